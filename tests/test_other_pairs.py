"""DeepMatch and uRAE: naive twins, gradients, threads, topics of pairs."""

import naive_other
import numpy as np
import pytest
from helpers import made_up_judged_set, made_up_log

import sentemb
from sentemb import SentembError, train
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.kernels.local_decisions import WordColumns, topic_of
from sentemb.models.pairs import deepmatch, make_pair_model
from sentemb.models.pairs.head import Dropout, Pass
from sentemb.models.pairs.pair_model import Pairs, Texts
from sentemb.models.pairs.pair_topics import topics_of_words
from sentemb.models.towers.towers import SIDES
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.words.workspace import Workspace
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.stopping import Interrupted

_N_WORDS = 9
_LENGTHS = (3, 0, 1, 5, 2, 2, 7, 1, 4, 6, 3, 3)
_SLOTS, _UNITS = deepmatch._SLOTS, deepmatch._UNITS
NAMES = ("urae", "deepmatch")


class Made:
    """A model with random weights, texts of both sides, and some pairs of them."""

    def __init__(self, name):
        self.rng = rng = np.random.default_rng(3)
        settings = {"urae": {"embedding": 5, "cells": 6}, "deepmatch": {"nodes": 13}}[name]
        self.model = make_pair_model(name, mlp=4, **settings)
        self.weights = self.model.initialise(_N_WORDS, rng, np.float64)
        for key, array in self.weights.items():
            if key != "table":
                array[...] = 0.5 * rng.standard_normal(array.shape)
        if name == "deepmatch":
            table = self.weights["table"]
            table[:, 2 * _SLOTS :] *= rng.choice([-1, 1], table[:, 2 * _SLOTS :].shape)
            # Most slots without a topic, so that some gates are off.
            table[:, : 2 * _SLOTS] *= rng.random((_N_WORDS, 2 * _SLOTS)) < 0.4
            table[0] = 0
        self.texts = {
            side: self._made_up(lengths)
            for side, lengths in zip(SIDES, (_LENGTHS, _LENGTHS[::-1]), strict=True)
        }
        self.index = tuple(rng.integers(0, len(_LENGTHS), (2, 20)).astype(np.int32))

    def _made_up(self, lengths):
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        return Texts(self.rng.integers(0, _N_WORDS, offsets[-1]).astype(np.int32), offsets)

    def done(self, threads=1, texts=None, index=None, dropout=None):
        texts, index, model = texts or self.texts, index or self.index, self.model
        given = self.given(dropout)
        with Workers(threads) as workers:
            readings = [
                workers.together(model.read_tasks(given, side, texts[side]))[0] for side in SIDES
            ]
            return workers.together(model.score_tasks(given, Pairs(*readings, *index)))[0]

    def given(self, dropout):
        return Pass(self.weights, self.weights["table"], Workspace(), dropout)

    def gradient(self, V, threads=1, dropout=None):
        """By the name of the array, the table included."""
        done = self.done(threads, dropout=dropout)
        job = self.model.backward_tasks(self.given(dropout), done, V)
        with Workers(threads) as workers:
            gradient, errors = workers.together(job)[0]
        table = np.zeros_like(self.weights["table"])
        for side in SIDES:
            np.add.at(table, self.texts[side].word_index, errors[side])
        return {**gradient, "table": table}

    def words(self, side, text):
        texts = self.texts[side]
        return texts.word_index[texts.offsets[text] : texts.offsets[text + 1]]

    def naive_text(self, side, text):
        rows = self.weights["table"][self.words(side, text)]
        if self.model.name == "urae":
            return rows
        number = SIDES.index(side)
        found = []
        for row in rows:
            topics, weights = row[: 2 * _SLOTS].reshape(2, -1)[number], row[2 * _SLOTS :]
            weights = weights.reshape(2, _SLOTS, _UNITS)[number]
            word = {}
            for topic, of_slot in zip(topics.astype(int), weights, strict=True):
                if topic:
                    word[topic] = word.get(topic, 0) + of_slot
            found.append(word)
        return found


@pytest.fixture(params=NAMES)
def made(request):
    return Made(request.param)


def entries(array, rng, n=10):
    flat = rng.permutation(array.size)[:n]
    return zip(*np.unravel_index(flat, array.shape), strict=True)


def difference(function, array, entry, step=1e-6):
    before = array[entry]
    array[entry] = before + step
    above = function()
    array[entry] = before - step
    below = function()
    array[entry] = before
    return (above - below) / (2 * step)


def test_scores_are_those_of_the_naive_twin(made):
    blocks = made.model.blocks(made.weights)
    more = (_UNITS,) if made.model.name == "deepmatch" else ()
    expected = [
        getattr(naive_other, made.model.name)(
            blocks, made.naive_text("query", q), made.naive_text("document", t), *more
        )
        for q, t in zip(*made.index, strict=True)
    ]
    assert len(set(expected)) > 10
    np.testing.assert_allclose(made.done().scores, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("dropout", [None, Dropout(0.4, np.uint64(7))])
def test_gradients_are_those_of_finite_differences(made, dropout):
    V = made.rng.standard_normal(20)
    gradient = made.gradient(V, dropout=dropout)
    assert set(gradient) == set(made.weights)

    def loss():
        return V @ made.done(dropout=dropout).scores

    for name, array in made.weights.items():
        assert (name in ("decode", "decode_bias")) == (not gradient[name].any()), name
        for entry in entries(array, made.rng):
            expected = difference(loss, array, entry)
            assert gradient[name][entry] == pytest.approx(expected, rel=1e-6, abs=1e-8), name


def test_a_pair_has_the_same_bits_alone_and_the_threads_change_none(made):
    together = made.done().scores
    assert made.done(threads=3).scores.tobytes() == together.tobytes()
    for q, t, score in zip(*made.index, together, strict=True):
        texts = {
            side: Texts(made.words(side, k), np.array([0, made.words(side, k).size]))
            for side, k in zip(SIDES, (q, t), strict=True)
        }
        one = np.zeros(1, np.int32)
        assert made.done(texts=texts, index=(one, one)).scores[0] == score
    V = made.rng.standard_normal(20)
    first, second = made.gradient(V), made.gradient(V, threads=3)
    for name in first:
        assert first[name].tobytes() == second[name].tobytes(), name


# -- uRAE ----------------------------------------------------------------------------------------


def reconstruction(made, threads=1, texts=None):
    texts = texts or made.texts["query"]
    job = made.model.reconstruction_tasks(made.given(None), texts, words=True)
    with Workers(threads) as workers:
        return workers.together(job)[0]


def test_the_reconstruction_is_that_of_the_naive_twin():
    made = Made("urae")
    losses, gradient, dX = reconstruction(made)
    blocks = made.model.blocks(made.weights)
    expected = [
        naive_other.urae_loss(blocks, made.naive_text("query", k)) for k in range(len(_LENGTHS))
    ]
    np.testing.assert_allclose(losses, expected, rtol=1e-13)
    assert expected[1] == 0
    again, *others = reconstruction(made, threads=3)
    assert again.tobytes() == losses.tobytes() and others[1].tobytes() == dX.tobytes()
    assert all(others[0][name].tobytes() == gradient[name].tobytes() for name in gradient)
    nothing = Texts(np.zeros(0, np.int32), np.zeros(3, np.int64))
    losses, gradient, dX = reconstruction(made, texts=nothing)
    assert not losses.any() and not any(array.any() for array in gradient.values()) and not dX.size


@pytest.mark.usefixtures("two_steps")
def test_gradcheck_of_the_reconstruction_passes_and_notices_a_missing_term(monkeypatch):
    report = sentemb.gradcheck("urae-reconstruction", entries=4)
    assert report.passed and len(report.blocks) == 5
    from sentemb.models.pairs import urae

    def without_the_chain(D, dh, E, H, steps, W, first, end):
        unfold_errors(D, dh, E, H, steps, 0 * W, first, end)

    unfold_errors = urae.unfold_errors
    monkeypatch.setattr(urae, "unfold_errors", without_the_chain)
    report = sentemb.gradcheck("urae-reconstruction", entries=4)
    assert set(report.failed) == {"text.W", "text.We", "text.be", "text.Wd", "text.bd"}


def test_the_auto_encoder_learns_first_and_the_mlp_on_fixed_vectors():
    model = make_pair_model("urae")
    first, second = model.phases()
    assert (first.epoch, second.epoch) == (0, 2)
    assert first.reconstructs and not second.reconstructs
    assert set(first.arrays) == {"encode", "encode_bias", "decode", "decode_bias"}
    assert {"table", *first.arrays, *second.arrays} == set(model.shapes(7))
    assert not model.trains_words


# -- DeepMatch -----------------------------------------------------------------------------------


def test_a_unit_is_off_where_one_text_lacks_its_topic():
    made = Made("deepmatch")
    Z = made.done().arrays["Z"]
    on = 0
    for k, (q, t) in enumerate(zip(*made.index, strict=True)):
        topics = [
            {topic for word in made.naive_text(side, text) for topic in word}
            for side, text in zip(SIDES, (q, t), strict=True)
        ]
        of_unit = np.arange(Z.shape[1]) // _UNITS + 1
        both = np.isin(of_unit, list(topics[0] & topics[1]))
        assert not Z[k][~both].any()
        on += int(both.sum())
    assert 0 < on < Z.size


def test_topics_have_no_gradient_and_any_sum_of_rows_names_one():
    made = Made("deepmatch")
    gradient = made.gradient(np.ones(20))["table"]
    assert not gradient[:, : 2 * _SLOTS].any() and gradient[:, 2 * _SLOTS :].any()
    columns = WordColumns(0, 1, 1, _UNITS, 3)
    found = [
        topic_of.py_func(np.array([value]), 0, columns) for value in (0, 1, 3.2, 4, 5, -1, 0.4)
    ]
    assert found == [0, 1, 3, 0, 1, 3, 0]


def themes():
    """Pairs about one of three themes, whose words differ from side to side."""
    rng = np.random.default_rng(0)
    queries, titles = [], []
    for k in range(90):
        for texts, side in ((queries, "q"), (titles, "t")):
            texts.append(" ".join(f"{side}{k % 3}{j}" for j in rng.integers(0, 4, 5)))
    return queries, titles


def test_topics_join_the_words_of_both_sides_that_go_together():
    queries, titles = themes()
    vocabulary = Vocabulary([], sorted({w for text in queries + titles for w in text.split()}))
    batches = vocabulary.batch(queries), vocabulary.batch(titles)
    pairs = np.arange(90), np.arange(90)
    found = []
    for threads in (1, 3):
        with Workers(threads) as workers:
            arguments = (*batches, pairs, len(vocabulary), 3, 0)
            found.append(topics_of_words(*arguments, workers))
    assert found[0].tobytes() == found[1].tobytes()
    shares = found[0].reshape(2, len(vocabulary), 3)
    topic_of_theme = set()
    for theme in "012":
        own = [
            (number, k)
            for k, word in enumerate(vocabulary.words)
            for number, side in enumerate("qt")
            if word[:2] == side + theme
        ]
        best = {int(shares[place].argmax()) for place in own}
        assert len(own) == 8 and len(best) == 1
        assert min(shares[place].max() for place in own) > 0.99
        topic_of_theme |= best
    assert len(topic_of_theme) == 3
    # A word of titles alone is in no topic as a word of a query.
    place = vocabulary.words.index("t00")
    assert not shares[0, place].any()


def test_preparing_gives_words_their_topics_and_keeps_their_weights():
    queries, titles = themes()
    vocabulary = Vocabulary([], sorted({w for text in queries + titles for w in text.split()}))
    model = make_pair_model("deepmatch", nodes=15, mlp=4)
    weights = model.initialise(len(vocabulary), np.random.default_rng(0))
    assert (weights["table"][:, 2 * _SLOTS :] >= 0).all()
    before = weights["table"].copy()
    batches = vocabulary.batch(queries), vocabulary.batch(titles)
    with Workers(1) as workers:
        model.prepare(weights, *batches, (np.arange(90), np.arange(90)), 0, workers, print)
    table = weights["table"]
    assert np.array_equal(table[:, 2 * _SLOTS :], before[:, 2 * _SLOTS :])
    for word, row in zip(vocabulary.words, table, strict=True):
        own, other = row[:_SLOTS], row[_SLOTS : 2 * _SLOTS]
        if word[0] == "t":
            own, other = other, own
        assert own[0] in (1, 2, 3) and not own[1:].any() and not other.any()


def test_a_deepmatch_has_no_embedding():
    with pytest.raises(SentembError, match="embedding"):
        make_pair_model("deepmatch", embedding=20)


# -- training ------------------------------------------------------------------------------------

LOG = made_up_log()
SETTINGS = {
    "urae": {"embedding": 4, "cells": 5},
    "deepmatch": {"nodes": 20, "word_features": 1},
}


def trained(name, **more):
    own = {"mlp": 4, "epochs": 4, "batch_size": 60, "threads": 1, "dev": made_up_judged_set(LOG)}
    return train(LOG, model=name, **{**own, **SETTINGS[name], **more})


def stop_after(updates):
    seen = []

    def on_progress(progress):
        seen.append(progress)
        if len(seen) == updates:
            raise KeyboardInterrupt

    return on_progress


def bits(scorer):
    return {name: array.tobytes() for name, array in scorer.weights.items()}


# Epochs have 5 updates, and a report at the end: the stops are in both phases and between them.
@pytest.mark.parametrize(("name", "stop_at"), [("urae", 3), ("urae", 12), ("urae", 15),
                                               ("deepmatch", 8)])  # fmt: skip
def test_a_stopped_training_resumes_to_the_same_bits(name, stop_at, tmp_path):
    whole = trained(name)
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        trained(name, output=tmp_path / "m", checkpoint_seconds=0, on_progress=stop_after(stop_at))
    resumed = trained(name, output=tmp_path / "m", resume=True, threads=2)
    assert bits(resumed) == bits(whole)
    assert [line["dev"] for line in resumed.history] == [line["dev"] for line in whole.history]
    again = sentemb.load(tmp_path / "m")
    index = np.arange(10), np.arange(10)
    texts = LOG.queries[:10], LOG.titles[:10]
    assert (again.score_pairs(*texts, *index) == whole.score_pairs(*texts, *index)).all()


def test_phases_train_their_own_arrays_and_the_reconstruction_gets_better():
    shorter = trained("urae", epochs=3)
    dev = [line["dev"] for line in shorter.history]
    assert dev[:2] == [None, None] and dev[2] is not None
    losses = [line["loss"] for line in shorter.history]
    assert losses[1] < losses[0]
    longer = trained("urae", epochs=4, dev=None)
    for name, array in longer.weights.items():
        fixed = name in ("table", "encode", "encode_bias", "decode", "decode_bias")
        assert (array.tobytes() == shorter.weights[name].tobytes()) == fixed, name


def test_deepmatch_learns_from_whole_words_and_labelled_pairs():
    scorer = trained("deepmatch", word_features=2)
    assert not scorer.vocabulary.trigrams and scorer.vocabulary.words
    losses = [line["loss"] for line in scorer.history]
    assert losses[-1] < losses[0]
    first, second = themes()
    labels = np.tile(np.array([1, 1, 0], np.int8), 30)
    pairs = LabelledPairs(labels, first, second)
    labelled = train(pairs, model="deepmatch", nodes=10, mlp=4, epochs=1, word_features=1)
    assert np.isfinite(labelled.score("q00 q01", "t00"))


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("deepmatch", {"word_features": 0}, "deepmatch reads whole words; word_features must be"),
        ("deepmatch", {"vectors": "vectors"}, "deepmatch gives words weights of its own"),
        ("urae", {"vectors": "vectors", "train_vectors": True}, "urae learns from fixed words"),
        ("urae", {"epochs": 2}, "the scores of urae are trained from epoch 3 on, and epochs is 2"),
    ],
)
def test_what_does_not_go_with_the_words_is_refused(name, more, message):
    if "vectors" in more:
        words = sorted({word for text in LOG.titles for word in text.split()})
        vectors = np.random.default_rng(0).standard_normal((len(words), 4)).astype(np.float32)
        more = {**more, "vectors": WordVectors(words, vectors)}
    with pytest.raises(SentembError, match=message):
        trained(name, **more)
