"""Training of pair models: same bits for threads and stops, its data, its mistakes."""

import math
import os
import signal
from typing import get_args

import numpy as np
import pytest
from helpers import made_up_judged_set, made_up_log

import sentemb
from sentemb import PairScorer, SentembError, SentenceEncoder, train
from sentemb.data.click_log import ClickLogBuilder
from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.models.pairs import PAIR_MODELS, make_pair_model
from sentemb.models.pairs.head import Dropout
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.text_pairs import TextPairs
from sentemb.training.objectives.pair_losses import PairTargets, hinge_of_lists, logistic_of_pairs
from sentemb.training.optimisers.dense_adam import DenseAdam
from sentemb.training.pairs import pair_task
from sentemb.training.pairs.pair_lessons import ClickLessons, LabelledLessons, distinct
from sentemb.training.pairs.pair_settings import PairSettings
from sentemb.training.pairs.pair_start import start_of
from sentemb.training.stopping import Interrupted
from sentemb.training.trainer import PairModelName

TINY = {
    "model": "wordembed",
    "embedding": 4,
    "mlp": 5,
    "epochs": 3,
    "batch_size": 30,
    "n_negatives": 2,
    "threads": 1,
}


def weights_file(folder):
    return (folder / "model.safetensors").read_bytes()


def whole_run(folder, data=None, **settings):
    train(made_up_log() if data is None else data, output=folder, **{**TINY, **settings})
    return weights_file(folder)


def made_up_vectors(log, dim=4):
    words = sorted({word for text in (*log.queries, *log.titles) for word in text.split()})
    vectors = np.random.default_rng(0).standard_normal((len(words), dim)).astype(np.float32)
    return WordVectors(words, vectors, name="made-up")


def made_up_labels(n=40, seed=0):
    """The first text of a pair with label 1 shares its first word with the second."""
    rng = np.random.default_rng(seed)
    words = np.array(["ab", "cd", "ef", "gh", "ij"])
    labels = np.arange(n) % 2
    first, second = rng.integers(0, 5, (2, n))
    second = np.where(labels, first, (first + 1 + second % 4) % 5)
    tails = rng.integers(0, 5, (2, n))
    texts = [
        [f"{words[head]} {words[tail]}" for head, tail in zip(heads, some, strict=True)]
        for heads, some in zip((first, second), tails, strict=True)
    ]
    return LabelledPairs(labels.astype(np.int8), *texts)


# -- same bits -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"dropout": 0.5, "mlp_layers": 2, "decay": "linear"},
        {"optimiser": "sgd", "learning_rate": 0.1},
        {"objective": "logistic"},
        {"teacher": "bm25", "hard_negatives": 2},
        {"model": "arc2", "maps": (3, 2), "dropout": 0.2},
    ],
    ids=str,
)
def test_threads_change_no_bit_and_training_learns(tmp_path, settings):
    bits = [whole_run(tmp_path / str(k), threads=k, **settings) for k in (1, 3)]
    assert bits[0] == bits[1]
    model = sentemb.load(tmp_path / "1", threads=1)
    assert isinstance(model, PairScorer)
    losses = [line["loss"] for line in model.history]
    assert len(losses) == 3
    assert "dropout" in settings or losses[-1] < losses[0]


@pytest.mark.parametrize("of", ["clicks", "labels", "tuned vectors", "reconstruction"])
def test_a_stopped_training_continues_to_the_same_bits(tmp_path, of):
    log, settings = made_up_log(), {"dropout": 0.3}
    if of == "reconstruction":  # whose epochs have no figure on dev
        settings = {"model": "urae", "cells": 4, "epochs": 4}
    data = made_up_labels() if of == "labels" else log
    if of == "tuned vectors":
        settings |= {"vectors": made_up_vectors(log), "train_vectors": True}
    else:
        settings["dev"] = made_up_labels(20, 1) if of == "labels" else made_up_judged_set(log)
    expected = whole_run(tmp_path / "whole", data, **settings)
    seen = []

    def stop(progress):
        seen.append(progress)
        if len(seen) == 3:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(Interrupted, match="--resume"):
        whole_run(tmp_path / "m", data, on_progress=stop, **settings)
    notes = []
    assert (
        whole_run(tmp_path / "m", data, resume=True, on_note=notes.append, **settings) == expected
    )
    assert any(note.startswith("continuing at epoch") for note in notes)
    # A finished training is not repeated.
    assert whole_run(tmp_path / "m", data, resume=True, **settings) == expected


def test_resuming_with_another_start_is_refused(tmp_path):
    log = made_up_log()
    vectors = made_up_vectors(log)
    whole_run(tmp_path / "m", log, vectors=vectors)
    others = WordVectors(vectors.words, vectors.vectors[:, ::-1].copy(), name="others")
    with pytest.raises(SentembError, match="other word vectors"):
        whole_run(tmp_path / "m", log, vectors=others, resume=True)
    with pytest.raises(SentembError, match="another teacher"):
        whole_run(tmp_path / "m", log, vectors=vectors, teacher="bm25", resume=True)
    with pytest.raises(SentembError, match="mlp = 5, not 6"):
        whole_run(tmp_path / "m", log, vectors=vectors, mlp=6, resume=True)


# -- what it learns from ---------------------------------------------------------------------------


@pytest.mark.parametrize("decay", ["linear", "none"])
def test_the_rate_falls_from_the_whole_to_its_last_part(decay, monkeypatch):
    rates = {}

    def step_tasks(adam, gradient, update, rate):
        rates[update] = rate
        return steps(adam, gradient, update, rate)

    steps = DenseAdam.step_tasks
    monkeypatch.setattr(DenseAdam, "step_tasks", step_tasks)
    train(made_up_log(), **TINY, learning_rate=0.03, decay=decay)
    updates, falls = len(rates), decay == "linear"
    expected = {k: 0.03 * (1 - k / updates if falls else 1) for k in range(updates)}
    assert updates > 10 and rates == pytest.approx(expected, rel=1e-12)


def test_every_update_drops_other_values(monkeypatch):
    def of(rate, *numbers):
        made.append(dropout(rate, *numbers))
        return made[-1]

    made, dropout = [], Dropout.of
    monkeypatch.setattr(Dropout, "of", of)
    train(made_up_log(), **TINY, dropout=0.5, seed=3)
    keys = [one.key for one in made]
    assert len(keys) > 10 and len(set(keys)) == len(keys)
    assert {one.rate for one in made} == {0.5}
    train(made_up_log(), **TINY, dropout=0.5, seed=4)
    assert len({one.key for one in made}) == 2 * len(keys)


def test_the_best_epoch_is_kept():
    log = made_up_log()
    model = train(log, dev=made_up_judged_set(log), **{**TINY, "epochs": 5})
    figures = [line["dev"]["ndcg@1"] for line in model.history]
    again = train(log, **{**TINY, "epochs": 1 + int(np.argmax(figures))})
    assert model.score("ab", "cd ab") == again.score("ab", "cd ab")
    best = train(made_up_labels(), dev=made_up_labels(20, 1), **{**TINY, "epochs": 2})
    assert set(best.history[0]["dev"]) == {"accuracy"}


def test_labels_are_learned():
    pairs = made_up_labels(200)
    large = {"embedding": 10, "mlp": 40, "epochs": 30, "learning_rate": 0.02}
    model = train(pairs, **{**TINY, **large})
    every = np.arange(len(pairs))
    scores = model.score_pairs(pairs.first, pairs.second, every, every)
    assert np.mean((scores > 0) == (pairs.labels == 1)) > 0.85
    assert model.training["objective"] == "logistic"


def test_each_list_has_the_clicked_title_first_then_negatives_nobody_clicked():
    log = made_up_log()
    settings = PairSettings(model="wordembed", n_negatives=3, batch_size=20)
    hard_titles = np.full((len(log.queries), 30), -1, np.int32)
    clicked = {(q, t) for q, t in zip(log.query_index, log.title_index, strict=True)}
    for query in range(len(log.queries)):
        free = [t for t in range(len(log.titles)) if (query, t) not in clicked][: query % 3]
        hard_titles[query, : len(free)] = free
    corpus = Corpus(log, settings, one_list=True)
    lessons = ClickLessons(corpus, settings, 2, hard_titles)
    seen = 0
    for step in range(lessons.steps):
        batch = lessons.batch(1, step)
        offsets, labels = batch.targets.offsets, batch.targets.labels
        assert batch.targets.weights.sum() == pytest.approx(1)
        words = batch.texts.offsets
        assert words.size - 1 == batch.n_queries + batch.title_index.max() + 1
        pairs = lessons._examples(1, step)
        for k, pair in enumerate(pairs):
            own = slice(offsets[k], offsets[k + 1])
            assert labels[own].tolist() == [1] + [0] * (offsets[k + 1] - offsets[k] - 1)
            assert len(set(batch.query_index[own])) == 1
            n_hard = np.count_nonzero(hard_titles[log.query_index[pair]] >= 0)
            assert offsets[k + 1] - offsets[k] == 1 + 3 + min(2, n_hard)
        seen += pairs.size
        again = lessons.batch(1, step)
        assert again.title_index.tobytes() == batch.title_index.tobytes()
    assert seen == log.query_index.size == lessons.n_examples


def test_labelled_mini_batches_hold_each_pair_once():
    pairs = made_up_labels(23)
    settings = PairSettings(model="wordembed", batch_size=5)
    (queries, _), (titles, _) = distinct(pairs.first), distinct(pairs.second)
    texts = TextPairs(queries, titles, one_list=True, word_features=1)
    lessons = LabelledLessons(texts, pairs, settings)
    found = []
    for step in range(lessons.steps):
        batch = lessons.batch(0, step)
        known = texts.vocabulary.words
        ids = batch.texts.feature_ids

        def words_of(text, batch=batch, known=known, ids=ids):
            first, end = batch.texts.offsets[text : text + 2]
            names = []
            for word in batch.texts.word_index[first:end]:
                own = ids[slice(*batch.texts.feature_offsets[word : word + 2])]
                rows = batch.texts.input_rows[own] - len(texts.vocabulary.trigrams)
                names += [known[row] for row in rows if row >= 0]
            return " ".join(names)

        for q, t, label in zip(
            batch.query_index, batch.title_index, batch.targets.labels, strict=True
        ):
            found.append((int(label), words_of(q), words_of(batch.n_queries + t)))
    expected = zip(pairs.labels.tolist(), pairs.first, pairs.second, strict=True)
    assert sorted(found) == sorted(expected)


# -- losses ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("loss", ["hinge", "logistic"])
def test_losses_are_their_definitions_and_slopes_their_differences(loss):
    rng = np.random.default_rng(0)
    scores = rng.standard_normal(9)
    targets = PairTargets.of_lists(np.array([0, 3, 5, 9]), np.array([0.5, 0.2, 0.3]))

    def value(s):
        total = 0.0
        for k, weight in enumerate(targets.weights):
            own = s[targets.offsets[k] : targets.offsets[k + 1]]
            if loss == "hinge":
                total += weight * np.mean(np.maximum(0, 0.7 + own[1:] - own[0]))
            else:
                signs = np.array([-1.0] + [1.0] * (own.size - 1))
                total += weight * np.mean(np.log(1 + np.exp(signs * own)))
        return total

    def at(s):
        return hinge_of_lists(s, targets, 0.7) if loss == "hinge" else logistic_of_pairs(s, targets)

    ours, V = at(scores)[:2]
    assert ours == pytest.approx(value(scores), rel=1e-12)
    step = 1e-6 * np.eye(9)
    slopes = [(value(scores + h) - value(scores - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(V, slopes, atol=1e-9)


def test_extreme_scores_neither_overflow_nor_hide():
    targets = PairTargets(np.arange(4), np.array([1, 0, 1], np.int8), np.full(3, 1 / 3))
    loss, V = logistic_of_pairs(np.array([-800.0, 800.0, 800.0]), targets)
    assert loss == pytest.approx(1600 / 3) and np.allclose(V, [-1 / 3, 1 / 3, 0])
    lists = PairTargets.of_lists(np.array([0, 2]), np.ones(1))
    assert np.isnan(hinge_of_lists(np.array([np.nan, 0.0]), lists, 1.0)[0])
    loss, V, active = hinge_of_lists(np.array([1.0, 0.0]), lists, 1.0)  # at the kink
    assert loss == 0 and not V.any() and not active.any()


@pytest.mark.filterwarnings("error")
def test_a_list_without_negatives_has_no_loss():
    targets = PairTargets.of_lists(np.array([0, 1, 3]), np.array([0.75, 0.25]))
    loss, V, active = hinge_of_lists(np.array([0.0, 0.5, 1.0]), targets, 1.0)
    assert loss == 0.25 * 1.5 and active.tolist() == [False, False, True]
    assert V.tolist() == [0, -0.25, 0.25]


# -- words -----------------------------------------------------------------------------------------


def test_fixed_vectors_stay_fixed_and_tuned_ones_move():
    log = made_up_log()
    vectors = made_up_vectors(log)
    scale = 0.3 / np.sqrt(np.mean(vectors.vectors**2))
    fixed = train(log, vectors=vectors, **TINY)
    assert fixed.vocabulary.words == vectors.words and not fixed.vocabulary.trigrams
    np.testing.assert_allclose(fixed.weights["table"], vectors.vectors * scale, rtol=1e-6)
    tuned = train(log, vectors=vectors, train_vectors=True, **TINY)
    assert not np.allclose(tuned.weights["table"], vectors.vectors * scale, rtol=1e-3)


def test_words_are_taken_from_two_towers():
    log = made_up_log()
    towers = train(log, model="bag", cells=3, epochs=1, hard_negatives=0, threads=1)
    assert isinstance(towers, SentenceEncoder)
    settings = {key: value for key, value in TINY.items() if key != "embedding"}
    model = train(log, start_from=towers, **settings)
    both = np.hstack([towers.weights[side]["table"] for side in ("query", "document")])
    ratio = model.weights["table"][both != 0] / both[both != 0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-5)
    assert model.model.embedding == 6 and model.vocabulary.trigrams == towers.vocabulary.trigrams


@pytest.mark.parametrize("place", ["table", "layers"])
def test_weights_that_become_huge_end_the_training(place, monkeypatch):
    if place == "table":
        monkeypatch.setattr(DenseAdam, "step_tasks", lambda *arguments: [])
        settings = {}
    else:
        settings = {"vectors": made_up_vectors(made_up_log())}
    with pytest.raises(SentembError, match="the weights have become huge"):
        train(made_up_log(), learning_rate=1e7, **settings, **TINY)


def test_scores_that_overflow_on_the_dev_set_end_the_training(monkeypatch, tmp_path):
    """The weights are within their bound and the scores are not."""
    monkeypatch.setattr(pair_task, "_WILD_WEIGHT", math.inf)
    log = made_up_log()
    settings = {**TINY, "epochs": 1, "batch_size": 10**6, "learning_rate": 1e25}
    with pytest.raises(SentembError, match="on dev are not finite at epoch 1, step 1; lower the"):
        train(log, dev=made_up_judged_set(log), output=tmp_path / "m", **settings)
    assert not (tmp_path / "m" / "model.safetensors").exists()


@pytest.mark.parametrize("word_features", [1, 0])
def test_words_of_two_towers_are_as_long_as_trained_ones(word_features):
    log = made_up_log()
    towers = train(
        log, model="bag", cells=8, epochs=1, hard_negatives=0, word_features=word_features
    )
    start = start_of(towers, {})
    model = make_pair_model("wordembed", **start.settings)
    table = start.first_weights(model, np.random.default_rng(0))["table"]
    # As the model reads them: whole words, or the trigrams of which each word has several.
    read = table
    if word_features:
        words = start.vocabulary.words
        read = np.zeros((len(words), table.shape[1]))
        for word, vector in zip(words, read, strict=True):
            for feature, count in start.vocabulary.features(word).items():
                vector += count * table[feature]
    expected = model.word_spread if word_features else model.table_spread()
    assert np.sqrt(np.mean(read**2)) == pytest.approx(expected, rel=1e-5)


def test_a_pair_model_continues_with_its_weights(tmp_path):
    log = made_up_log()
    whole_run(tmp_path / "m", log)
    before = PairScorer.from_pretrained(tmp_path / "m")
    settings = {key: TINY[key] for key in ("batch_size", "threads")}
    after = train(
        log, start_from=tmp_path / "m", epochs=1, learning_rate=1e-9, train_vectors=True, **settings
    )
    assert isinstance(after, PairScorer)
    for name, array in before.weights.items():
        np.testing.assert_allclose(after.weights[name], array, atol=1e-6)
    with pytest.raises(SentembError, match="m has mlp 5, not 7"):
        train(log, model="wordembed", start_from=tmp_path / "m", mlp=7)
    with pytest.raises(SentembError, match="would replace it"):
        train(log, start_from=tmp_path / "m", output=tmp_path / "m", force=True)
    with pytest.raises(SentembError, match="learns from the model there and would replace it"):
        train(log, **TINY, teacher=tmp_path / "m", output=tmp_path / "m", force=True)


def test_long_texts_are_cut_and_counted():
    log, notes = made_up_log(), []
    longest = max(len(text.split()) for text in (*log.queries, *log.titles))
    model = train(log, max_words=2, on_note=notes.append, **TINY)
    n_long = sum(len(text.split()) > 2 for text in (*log.queries, *log.titles))
    assert f"{n_long} texts are longer than 2 words and are cut" in notes
    assert model.model.max_words == 2
    assert train(log, **TINY).model.max_words == longest


# -- mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"hard_negatives": 2}, "give a teacher: bm25 or a two-tower model"),
        ({"teacher": "bm25", "hard_negatives": 0}, "leave it out, or hard_negatives 0"),
        ({"train_vectors": True}, "leave train_vectors out"),
        ({"labels": True}, "pairs must be a path or LabelledPairs, not ClickLog"),
        ({"negatives": "log"}, "need skipped titles"),
        ({"bag_dim": 5}, "bag_dim is not for pair models; leave bag_dim out, or choose model lstm"),
        ({"gate": "printed"}, "the model wordembed has no gate"),
        ({"maps": (3, 3)}, "the model wordembed has no maps"),
        ({"colour": 1}, "unknown setting colour"),
        ({"preset": "large"}, "preset must be paper for pair models, not 'large'"),
        ({"model": "arc2", "maps": (3, 2), "max_words": 6}, "need at least 7 words"),
        ({"learning_rate": 1e6, "optimiser": "sgd"}, "lower the learning rate"),
        ({"objective": "logistic", "margin": 2}, "the objective logistic has no margin; leave"),
    ],
    ids=str,
)
def test_wrong_settings_say_what_to_do(settings, message):
    with pytest.raises(SentembError, match=message):
        train(made_up_log(), **{**TINY, **settings})


def test_wrong_data_say_what_to_do(tmp_path):
    log = made_up_log()
    strange = WordVectors(["xyz"], np.ones((1, 4), np.float32), name="strange")
    with pytest.raises(SentembError, match="strange: no word of the texts has a vector"):
        train(log, vectors=strange, **TINY)
    vectors = made_up_vectors(log, dim=3)
    with pytest.raises(SentembError, match="have 3 numbers, not 4; leave embedding out"):
        train(log, vectors=vectors, **TINY)
    with pytest.raises(SentembError, match="give one of both"):
        train(log, vectors=vectors, start_from=tmp_path, **TINY)
    few = WordVectors(vectors.words[:2], vectors.vectors[:2], name="few")
    notes = []
    settings = {key: value for key, value in TINY.items() if key != "embedding"}
    train(log, vectors=few, on_note=notes.append, **settings)
    assert any("more than half of the words have no vector" in note for note in notes)
    labels = made_up_labels()
    same = LabelledPairs(np.ones(2, np.int8), ["a", "b"], ["c", "d"], "same")
    for data, more, message in [
        (same, {}, "same: only label 1"),
        (labels, {"objective": "hinge"}, "choose objective logistic"),
        (labels, {"teacher": "bm25"}, "leave teacher out"),
        (labels, {"negatives": "log"}, "leave negatives out"),
        (labels, {"margin": 2}, "the objective logistic has no margin"),
        (labels, {"skip_bad_lines": True}, "leave skip_bad_lines out"),
        (labels, {"dev": made_up_judged_set(log)}, "dev is a judged set; give labelled pairs"),
        (log, {"dev": labels}, "dev is a set of labelled pairs; give a judged set"),
        (labels, {"model": "lstm"}, "labels is not for two towers"),
    ]:
        with pytest.raises(SentembError, match=message):
            train(data, **{**settings, **more})


def test_a_log_without_negatives_is_refused():
    builder = ClickLogBuilder()
    builder.add("ab", "cd")
    with pytest.raises(SentembError, match="no negatives"):
        train(builder.build(), **TINY)


def test_the_type_of_train_knows_every_pair_model():
    assert set(get_args(PairModelName)) == set(PAIR_MODELS)
