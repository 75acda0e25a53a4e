"""Trainings that start from the weights and the vocabulary of a model."""

import json
import weakref

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import made_up_judged_set, made_up_log

from sentemb import SentembError, SentenceEncoder, train
from sentemb.cli import main
from sentemb.data.click_log import ClickLogBuilder, write_click_log
from sentemb.models.files.model_files import load_model, save_model
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import Towers
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.batches.corpus import Corpus
from sentemb.training.stopping import Interrupted
from sentemb.training.towers import two_tower_trainer
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.two_towers import TwoTowers

DIM = 7
TINY = {"epochs": 2, "batch_size": 16, "threads": 1, "hard_negatives": 0}
LOG = made_up_log()
WORDS = sorted({word for text in [*LOG.queries, *LOG.titles] for word in text.split()})


def word_vectors(words=WORDS, dim=DIM, shared=True, dtype=np.float32, seed=0):
    """A linear bag of word vectors, as SIF makes them: whole words without punctuation."""
    rng = np.random.default_rng(seed)
    sides = ("query",) if shared else ("query", "document")
    shape = len(words), dim
    weights = {side: {"table": rng.standard_normal(shape).astype(dtype)} for side in sides}
    towers = Towers.of(make_encoder("bag", cells=dim), Vocabulary([], words, "words"), weights)
    return SentenceEncoder(towers.encoder, towers.vocabulary, towers.weights, threads=1)


def saved(model, path):
    save_model(SavedModel(model.towers, {"method": "sif"}), path)
    return path


def arrays_of(model):
    return {
        f"{side}.{name}": array
        for side, weights in model.towers.each.items()
        for name, array in weights.items()
    }


def same(first, second):
    first, second = arrays_of(first), arrays_of(second)
    assert first.keys() == second.keys()
    return all(np.array_equal(array, second[name]) for name, array in first.items())


def first_weights(start_from, **settings):
    """The towers of a training before its first update."""
    start = Start.of(start_from)
    chosen = Settings.of(**start.settings(None, settings))
    corpus = Corpus(LOG, chosen, start.towers.vocabulary)
    return TwoTowers.of(corpus, chosen, updates=1, start=start)


# -- the weights it starts with ------------------------------------------------------------------


@pytest.mark.parametrize("settings", [
    {"model": "lstm", "cells": 4, "peepholes": "full", "bag_dim": 3},
    {"model": "clsm", "cells": 4, "hidden": 5},
], ids=lambda settings: settings["model"])  # fmt: skip
@pytest.mark.parametrize("shared", [False, True])
def test_a_model_of_the_same_shape_gives_all_its_weights(settings, shared, tmp_path):
    model = train(LOG, **TINY, **settings, shared_towers=shared, output=tmp_path / "m")
    before = {name: array.copy() for name, array in arrays_of(model).items()}
    for start_from in (model, tmp_path / "m", str(tmp_path / "m")):
        towers = first_weights(start_from)
        assert towers.encoder.settings() == model.encoder.settings()
        assert towers.sides == tuple(model.towers.each)
        for side, weights in towers.weights().items():
            for name, array in weights.items():
                assert np.array_equal(array, before[f"{side}.{name}"])
    go_on = train(LOG, **TINY, start_from=model)
    assert go_on.history[0]["loss"] < model.history[0]["loss"]
    assert go_on.vocabulary.trigrams == model.vocabulary.trigrams
    assert go_on.vocabulary.words == model.vocabulary.words
    assert all(np.array_equal(array, before[name]) for name, array in arrays_of(model).items())
    assert not same(go_on, model)
    assert same(go_on, train(LOG, **TINY, start_from=tmp_path / "m"))


def test_separate_towers_may_start_from_a_shared_model():
    towers = first_weights(word_vectors(), shared_towers=False)
    query, document = (towers.weights()[side]["table"] for side in ("query", "document"))
    assert np.array_equal(query, document) and not np.shares_memory(query, document)
    model = train(LOG, **TINY, start_from=word_vectors(), shared_towers=False)
    assert not model.shared_towers
    assert train(LOG, **TINY, start_from=word_vectors()).shared_towers
    with pytest.raises(SentembError, match="separate towers, which cannot become one; leave"):
        train(LOG, **TINY, start_from=word_vectors(shared=False), shared_towers=True)


@pytest.mark.parametrize(
    ("model", "settings"),
    [("lstm", {}), ("rnn", {"cells": 5}), ("dssm", {"hidden": 4}), ("clsm", {}), ("bilstm", {})],
)
def test_word_vectors_start_any_other_model_as_a_projection(model, settings):
    bag = word_vectors(shared=False)
    towers = first_weights(bag, model=model, seed=3, **settings)
    assert towers.encoder.cells == settings.get("cells", DIM)
    for side in ("query", "document"):
        weights = towers.weights()[side]
        rows = bag.weights[side]["table"].astype(float)
        rng = np.random.default_rng([3, 0])
        Q = rng.standard_normal((DIM, towers.encoder.width)) / np.sqrt(DIM)
        np.testing.assert_allclose(weights["table"], rows @ Q, rtol=1e-4, atol=1e-5)
        assert weights["table"].dtype == np.float32
        dense = towers.encoder.initialise(0, rng)
        for name in dense.keys() - {"table"}:
            assert np.array_equal(weights[name], dense[name])


def test_both_towers_of_one_set_of_word_vectors_start_equal():
    towers = first_weights(word_vectors(), model="rnn", shared_towers=False).weights()
    for name, array in towers["query"].items():
        other = towers["document"][name]
        assert np.array_equal(array, other) and not np.shares_memory(array, other)


def test_columns_that_are_added_up_take_the_word_vectors_as_they_are():
    bag = word_vectors()
    for model in ("lstm", "rnn", "irnn"):
        towers = first_weights(bag, model=model, cells=3, bag_dim=DIM)
        table = towers.weights()["query"]["table"]
        assert np.array_equal(table[:, -DIM:], bag.weights["query"]["table"])
        assert np.linalg.matrix_rank(table[:, :-DIM]) > 1
        other = first_weights(bag, model=model, cells=3, bag_dim=DIM - 1)
        assert not np.array_equal(
            other.weights()["query"]["table"][:, -DIM + 1 :], bag.weights["query"]["table"][:, 1:]
        )


@pytest.mark.parametrize(
    ("name", "shape"), [("dan", {"cells": 3, "hidden": DIM}), ("irnn", {"cells": DIM})]
)
def test_an_encoder_that_averages_word_vectors_gets_them_without_a_copy(name, shape, tmp_path):
    start = Start.of(saved(word_vectors(), tmp_path / "m"))
    encoder = make_encoder(name, **shape)
    table = start.towers.weights["query"]["table"]
    rng = np.random.default_rng(0)
    taken = start.weights("query", encoder, rng)["table"]
    assert np.array_equal(taken, table) and np.shares_memory(taken, table)
    assert not np.shares_memory(start.weights("document", encoder, rng)["table"], table)


def test_arrays_are_copied_only_where_somebody_else_has_them(tmp_path):
    bag = word_vectors(shared=False)
    start = Start.of(saved(bag, tmp_path / "m"))
    rng = np.random.default_rng(0)
    for side in ("query", "document"):
        own = start.towers.weights[side]["table"]
        assert np.shares_memory(start.weights(side, bag.encoder, rng)["table"], own)
        copied = Start.of(bag).weights(side, bag.encoder, rng)["table"]
        assert not np.shares_memory(copied, bag.weights[side]["table"])
        assert np.array_equal(copied, own)


def test_a_model_in_float64_and_in_columns_is_taken_over_in_float32():
    bag = word_vectors(dtype=np.float64)
    bag.weights["query"]["table"] = np.asfortranarray(bag.weights["query"]["table"])
    table = first_weights(bag).weights()["query"]["table"]
    assert table.dtype == np.float32 and table.flags.c_contiguous
    np.testing.assert_allclose(table, bag.weights["query"]["table"], rtol=1e-6)
    assert train(LOG, **TINY, start_from=bag).dtype == np.float32


def test_the_word_vectors_are_not_kept_while_training(tmp_path, monkeypatch):
    path = saved(word_vectors(), tmp_path / "m")
    kept, of = [], Start.of

    def remember(model):
        start = of(model)
        kept.append(weakref.ref(start.towers.weights["query"]["table"]))
        return start

    monkeypatch.setattr(two_tower_trainer.Start, "of", remember)
    alive = []

    def on_progress(progress):
        alive.append(kept[0]() is not None)

    train(LOG, **TINY, start_from=path, model="rnn", on_progress=on_progress)
    assert alive and not any(alive)


# -- the texts -----------------------------------------------------------------------------------


def test_words_are_split_and_known_as_the_model_knows_them():
    builder = ClickLogBuilder()
    for query, title in [("C++ code", "write code!"), ("???", "code, again"), ("x y", "y")]:
        builder.add(query, title)
    notes, known = [], ["c", "code", "write"]
    model = train(builder.build(), **TINY, start_from=word_vectors(known), on_note=notes.append)
    # c code | write code | code again | x y | y: 5 of 9 words are known.
    assert "44.4% of the words of the log are not in the vocabulary" in notes[0]
    assert model.vocabulary.splitting == "words" and model.vocabulary.words == known
    assert np.isfinite(model.history[-1]["loss"])
    with pytest.raises(SentembError, match="no word of the log is in the vocabulary"):
        train(builder.build(), **TINY, start_from=word_vectors(["zebra"]))


@pytest.mark.parametrize("model", ["lstm", "bilstm", "dssm", "clsm"])
def test_texts_without_words_train(model):
    builder = ClickLogBuilder()
    for number, (query, title) in enumerate(
        [("???", "ab cd"), ("ab", "!"), ("cd", "cd ab ef")] * 2
    ):
        builder.add(f"{query} {'?' * number}", f"{title} {'!' * number}")
    trained = train(
        builder.build(), **TINY, start_from=word_vectors(["ab", "cd"]), model=model, cells=3
    )
    assert np.isfinite(trained.history[-1]["loss"])


def test_rows_of_words_that_the_log_lacks_stay():
    bag = word_vectors([*WORDS, "zebra"])
    model = train(LOG, **TINY, start_from=bag)
    trained, before = model.weights["query"]["table"], bag.weights["query"]["table"]
    assert np.array_equal(trained[-1], before[-1])
    assert (trained[:-1] != before[:-1]).any(axis=1).mean() > 0.9


# -- settings ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"cells": 9}, r"has cells 7, not 9; leave cells out or start"),
        ({"word_features": 3}, "word_features does not apply: the features are those of"),
        ({"preset": "large", "model": "bag", "bag_dim": 0}, "not 192; leave the preset out"),
        ({"model": "gru"}, "model is 'gru'"),
        ({"start_from": 3}, "start_from must be a model folder or a SentenceEncoder, not int"),
        ({"start_from": "nowhere"}, "nowhere: there is no model here"),
    ],
)
def test_what_contradicts_the_model_is_refused(settings, message):
    with pytest.raises(SentembError, match=message):
        train(LOG, **TINY, **{"start_from": word_vectors(), **settings})


def test_only_word_vectors_start_another_model(tmp_path):
    model = train(LOG, **TINY, model="rnn", cells=3, output=tmp_path / "m")
    with pytest.raises(SentembError, match="choose model rnn, or start from a bag"):
        train(LOG, **TINY, start_from=model, model="lstm")
    with pytest.raises(SentembError, match=r"^m has bag_dim 0, not 2; leave bag_dim out"):
        train(LOG, **TINY, start_from=tmp_path / "m", bag_dim=2)
    with pytest.raises(SentembError, match="would replace it; choose another output"):
        train(LOG, **TINY, start_from=tmp_path / "m", output=tmp_path / "x/../m", force=True)
    assert train(LOG, **TINY, start_from=model, bag_dim=None, cells=3).encoder.cells == 3


def test_a_preset_gives_the_shape_to_word_vectors():
    start = Start.of(word_vectors())
    settings = Settings.of("large", **start.settings("large", {"cells": 5}))
    assert (settings.model, settings.cells, settings.bag_dim) == ("bilstm", 5, 192)
    with pytest.raises(SentembError, match="preset must be paper or large for two towers"):
        train(LOG, start_from=word_vectors(), preset="small")


# -- what is recorded, and resuming --------------------------------------------------------------


def test_the_model_records_where_it_started(tmp_path):
    bag = word_vectors()
    path = saved(bag, tmp_path / "vectors")
    model = train(LOG, **TINY, start_from=path, output=tmp_path / "m")
    record = json.loads((tmp_path / "m/config.json").read_text())["training"]["start_from"]
    assert record == model.training["start_from"]
    assert record == {"name": "vectors", "sha256": Start.of(bag).sha256}
    assert "start_from" not in train(LOG, **TINY, model="bag", cells=3).training


@pytest.mark.parametrize("place", ["weight", "word", "splitting", "shape", "side"])
def test_models_that_differ_have_different_hashes(place):
    bag = word_vectors(["ab", "cd"], dim=4)
    before = Start.of(bag).sha256
    vocabulary, weights = bag.vocabulary, {"query": {"table": bag.weights["query"]["table"].copy()}}
    encoder = bag.encoder
    if place == "weight":
        weights["query"]["table"][1, 3] += 1e-6
    elif place == "word":
        vocabulary = Vocabulary([], ["a", "bcd"], "words")
    elif place == "splitting":
        vocabulary = Vocabulary([], ["ab", "cd"])
    elif place == "shape":
        encoder = make_encoder("bag", cells=2)
        weights["query"]["table"] = weights["query"]["table"].reshape(4, 2)
    else:
        weights["document"] = {"table": weights["query"]["table"].copy()}
    other = Towers.of(encoder, vocabulary, weights)
    assert Start(other, "", is_ours=False).sha256 != before
    assert Start.of(word_vectors(["ab", "cd"], dim=4)).sha256 == before


def stop_after(n_batches):
    seen = []

    def on_progress(progress):
        seen.append(progress)
        if len(seen) == n_batches:
            raise KeyboardInterrupt

    return on_progress


@pytest.mark.parametrize("model", ["bag", "rnn"])
def test_a_stopped_training_resumes_to_the_same_bits_and_only_from_the_same_start(model, tmp_path):
    path = saved(word_vectors(), tmp_path / "vectors")
    settings = {**TINY, "model": model, "start_from": path, "dev": made_up_judged_set(LOG)}
    whole = train(LOG, **settings)
    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(
            LOG, output=tmp_path / "m", checkpoint_seconds=0, on_progress=stop_after(6), **settings
        )
    other = saved(word_vectors(seed=1), tmp_path / "others")
    refused = "started from another model, other word vectors or another teacher, or"
    with pytest.raises(SentembError, match=refused):
        train(LOG, output=tmp_path / "m", resume=True, **{**settings, "start_from": other})
    copy = saved(word_vectors(), tmp_path / "copy")
    notes = []
    resumed = train(
        LOG,
        output=tmp_path / "m",
        resume=True,
        on_note=notes.append,
        **{**settings, "start_from": copy, "threads": 2},
    )
    assert any(note.startswith("continuing at epoch") for note in notes)
    assert same(resumed, whole)
    # The finished training too is known by its start.
    notes.clear()
    train(LOG, output=tmp_path / "m", resume=True, on_note=notes.append, **settings)
    assert any("is already finished" in note for note in notes)
    for start in (other, None):  # without a start other settings differ too
        with pytest.raises(SentembError, match=refused):
            train(LOG, output=tmp_path / "m", resume=True, **{**settings, "start_from": start})
    assert load_model(path).model.weights["query"]["table"].shape == (len(WORDS), DIM)


# -- the command ---------------------------------------------------------------------------------


def test_the_command_has_two_names_for_it(tmp_path):
    path = saved(word_vectors(), tmp_path / "vectors")
    write_click_log(LOG, tmp_path / "pairs.tsv")
    common = ["train", str(tmp_path / "pairs.tsv"), "--epochs", "1", "--batch-size", "16"]
    shared = []
    for number, options in enumerate((
        ["--start-from", str(path)],
        ["--start-from", str(path), "--separate-towers", "--objective", "hinge"],
    )):  # fmt: skip
        output = tmp_path / str(number)
        result = CliRunner().invoke(main, [*common, *options, "-o", str(output)])
        assert result.exit_code == 0, result.output
        assert "0.0% of the words of the log are not in the vocabulary of vectors" in result.stderr
        config = json.loads((output / "config.json").read_text())
        assert config["model"] == "bag" and config["cells"] == DIM
        shared.append(config["shared_towers"])
    assert shared == [True, False]
