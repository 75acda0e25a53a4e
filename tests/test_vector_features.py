"""Word vectors as features: values of words, components, models, and what is refused."""

import json
import re

import numpy as np
import pytest
from click.testing import CliRunner
from helpers import (
    made_up_judged_set,
    made_up_log,
    made_up_model,
    made_up_word_features,
    relative_error,
    write_any_tensors,
)
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

import sentemb
from sentemb import SentembError, SentenceEncoder, train
from sentemb.analysis.attribution import word_effects
from sentemb.analysis.explanation import unknown_words
from sentemb.cli import main
from sentemb.kernels.input_layer import RowGradient
from sentemb.models.files.tensor_files import open_tensors, write_tensors
from sentemb.models.files.vocabulary_arrays import arrays_of, stored_word_features
from sentemb.models.towers.layout import Layout
from sentemb.models.vectors.features import VectorSource
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.models.vectors.writing import write_word_vectors
from sentemb.models.words.word_memory import WordMemory
from sentemb.system import parallel
from sentemb.system.parallel import PARTS, Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.word_features import WordFeatures
from sentemb.text.words import letter_trigrams, without_edges
from sentemb.training.optimisers.row_tasks import spread_rows
from sentemb.training.stopping import Interrupted

LOG = made_up_log()
WORDS = sorted({word for text in (*LOG.queries, *LOG.titles) for word in text.split()})
TINY = {
    "epochs": 2, "batch_size": 16, "threads": 1, "hard_negatives": 0, "cells": 4,
    "word_features": 2,
}  # fmt: skip
TEXTS = ["ab (cab), bad", "", "zz9 ab", '"ab"', "...", "ab ab cab"]


QUICK = {"epochs": 1, "threads": 1}


def vectors_of(words, dim=6, seed=0, **told):
    rows = np.random.default_rng(seed).standard_normal((len(words), dim)).astype(np.float32)
    return WordVectors(list(words), rows, name="made-up", **told)


def features_of(vectors, uses, **options):
    notes = []
    found = VectorSource(vectors, **options).features(uses, notes.append)
    return found, notes


VECTORS = vectors_of([*WORDS[::2], "zz9", "qqqq"])


@pytest.fixture(scope="module")
def model():
    return train(LOG, vectors=VECTORS, vector_dim=3, **TINY)


def naive_features(vocabulary, word):
    """Feature by feature, from the lists and the array of vectors."""
    found = {}
    for row, trigram in enumerate(vocabulary.trigrams):
        count = letter_trigrams(word).count(trigram)
        if count:
            found[row] = count
    if word in vocabulary.words:
        found[len(vocabulary.trigrams) + vocabulary.words.index(word)] = 1
    known = vocabulary.vectors.words
    own = word if word in known else without_edges(word)
    if own in known:
        first = len(vocabulary.trigrams) + len(vocabulary.words)
        numbers = vocabulary.vectors.vectors[known.index(own)]
        found |= {first + k: float(number) for k, number in enumerate(numbers)}
    return found


# -- features ------------------------------------------------------------------------------------


def test_a_word_has_its_trigrams_itself_and_the_numbers_of_its_vector():
    texts = ["ab aaaaa cab", "bad (cab), ab", "zz9"]
    tokens = tokenize(texts)
    known = WordFeatures(["cab", "zz9", "ab"], np.array([[1, -2], [0.5, 0], [3, 4]], np.float16))
    vocabulary = Vocabulary.collect(tokenize(texts[:2]), word_features=2).with_vectors(known)
    assert len(vocabulary) == len(vocabulary.trigrams) + len(vocabulary.words) + 2
    batch = vocabulary.batch(texts)
    for place, word in enumerate(tokens.words):
        expected = naive_features(vocabulary, word)
        assert vocabulary.features(word) == expected
        own = slice(*batch.feature_offsets[place : place + 2])
        rows = batch.input_rows[batch.feature_ids[own]].tolist()
        assert rows == sorted(expected)
        assert dict(zip(rows, batch.feature_values[own].tolist(), strict=True)) == expected
    assert batch.feature_values.dtype == np.float32
    assert vocabulary.knows(["zz9", "(zz9)", "yy", "aaaaa"]).tolist() == [True, True, False, True]
    # "(cab)," has no vector of its own; "zz9" nothing but one.
    assert set(vocabulary.features("(cab),")) >= {len(vocabulary) - 2, len(vocabulary) - 1}
    assert list(vocabulary.features("zz9")) == [len(vocabulary) - 2, len(vocabulary) - 1]


def test_words_are_projected_alike_alone_in_a_batch_and_by_hand(model):
    weights = model.weights["query"]
    tokens = tokenize(TEXTS, model.vocabulary.split)
    batch = model.vocabulary.batch(TEXTS)
    with Workers(1) as workers:
        P = model.encoder.project(weights, batch, workers)
    memory = WordMemory(model.encoder, model.vocabulary, weights)
    found = memory.look_up(TEXTS)
    assert np.array_equal(found.P[found.word_index], P[batch.word_index])
    bias = model.encoder.word_bias(weights, np.float32)
    for place, word in enumerate(tokens.words):
        expected = bias.astype(float)
        for row, value in naive_features(model.vocabulary, word).items():
            expected = expected + value * weights["table"][row].astype(float)
        assert relative_error(P[place], expected) < 1e-5
    known = [sum(bool(naive_features(model.vocabulary, w)) for w in model.vocabulary.split(t))
             for t in TEXTS]  # fmt: skip
    assert found.n_known.tolist() == known and known[2] >= 1 and known[4] == 0


def test_components_are_those_of_the_singular_value_decomposition():
    words = [f"w{k}" for k in range(40)]
    scales = np.array([5, 3, 2, 1, 0.5, 0.1], np.float32)
    rows = vectors_of(words).vectors * scales + 7  # far from the origin
    found, _ = features_of(WordVectors(words, rows), dict.fromkeys(words, 1), vector_dim=3)
    centred = rows - rows.mean(axis=0)
    _, _, directions = np.linalg.svd(centred.astype(float), full_matrices=False)
    expected = centred @ directions[:3].T
    expected *= np.sqrt(2 / np.mean(np.sum(expected**2, axis=1)))
    # Directions have no sign, so the dot products of words are compared.
    ours = found.vectors.astype(float)
    assert relative_error(ours @ ours.T, expected @ expected.T) < 5e-3
    assert np.mean(np.sum(ours**2, axis=1)) == pytest.approx(2, rel=1e-3)
    shorter, _ = features_of(WordVectors(words, rows), dict.fromkeys(words, 1))
    assert shorter.dim == 6  # all dimensions, because there are fewer than 48


def test_first_words_and_those_of_the_log_are_kept_lower_cased():
    words = ["The", "Rome", "the", "new york", "of", "rome", "hotel", "in", "c++", "(", "bad\ud800"]
    vectors = vectors_of(words)
    uses = {"(hotel)": 3, "rome": 2, "c++": 4, "yyy": 1}
    found, notes = features_of(vectors, uses, vector_dim=2, vector_words=4)
    assert found.words == ["the", "rome", "hotel", "c++"]
    places = {"hotel": 2, "(hotel),": 2, "c++": 3, "in": -1, "yyy": -1}
    assert {word: found.row_of(word) for word in places} == places
    # "Rome" comes first, so it is the vector of "rome"; the words of equal vectors are equal.
    assert notes == [
        "90.0% of the words of the log, and 75.0% of its distinct words, have a vector in made-up"
    ]


def write_text(vectors, path):
    lines = zip(vectors.words, vectors.vectors.tolist(), strict=True)
    path.write_text("".join(f"{word} {' '.join(map(repr, row))}\n" for word, row in lines))


@pytest.mark.parametrize("form", ["folder", "v.txt"])
def test_files_and_folders_give_the_features_of_the_array(form, tmp_path):
    vectors = vectors_of(["zz", *WORDS])
    path = tmp_path / form
    (write_word_vectors if form == "folder" else write_text)(vectors, path)
    uses = dict.fromkeys(WORDS, 1)
    expected, _ = features_of(vectors, uses, vector_dim=4, vector_words=5)
    found, _ = features_of(path, uses, vector_dim=4, vector_words=5)
    assert found.words == expected.words == ["zz", *WORDS]
    assert found.fingerprint() == expected.fingerprint()


# -- models --------------------------------------------------------------------------------------


def test_a_model_is_stored_and_read_to_the_bit(model, tmp_path):
    model.save_pretrained(tmp_path / "m")
    read = sentemb.load(tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["format"] == 1
    assert config["vectors"] == {"words": len(VECTORS), "dim": 3}
    told = config["training"]["vectors"]
    assert told["name"] == "made-up" and told["sha256"] == model.vocabulary.vectors.fingerprint()
    assert read.vocabulary.vectors.words == VECTORS.words
    with pytest.warns(UserWarning, match="no word"):
        assert np.array_equal(read.encode_query(TEXTS), model.encode_query(TEXTS))
    assert f"vectors of {len(VECTORS):,} words" in (tmp_path / "m" / "README.md").read_text()
    assert read.saved().model.fingerprint() == model.saved().model.fingerprint()
    # "qqqq" is in no text of the log, and its trigrams are unknown.
    assert unknown_words(read, "qqqq yyy") == ["yyy"]
    assert np.any(read.encode_query(["qqqq"]))
    plain = train(LOG, **TINY)
    plain.save_pretrained(tmp_path / "plain")
    config = json.loads((tmp_path / "plain" / "config.json").read_text())
    assert "vectors" not in config and "vectors" not in config["training"]


def write_changed(model, path, change):
    """The model with its arrays and configuration changed by ``change``."""
    model.save_pretrained(path)
    with open_tensors(path / "model.safetensors") as file:
        arrays, metadata = {name: file[name] for name in file}, file.metadata
    change(arrays, metadata["config"])
    write_any_tensors(path / "model.safetensors", arrays, metadata)


def _nan(arrays, config):
    numbers = arrays["vector_numbers"].view("<f2").copy()
    numbers[1, 1] = np.nan
    arrays["vector_numbers"] = numbers.view(np.uint8)


def _twice(arrays, config):
    lines = arrays["vector_words"].tobytes().split(b"\n")
    arrays["vector_words"] = np.frombuffer(b"\n".join([*lines[:-2], lines[0], b""]), np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays, config: arrays.pop("vector_words"), "vector_words is missing"),
        (lambda arrays, config: arrays.pop("vector_numbers"), "vector_numbers is missing"),
        (lambda arrays, config: config["vectors"].update(dim=2), "vector_numbers is missing or of"),
        (lambda arrays, config: config["vectors"].update(words=2), "vector_numbers is missing or"),
        (lambda arrays, config: config.update(vectors=3), "vectors is not a number of words"),
        (lambda arrays, config: config.pop("vectors"), "holds vector_|another shape"),
        (_nan, "vector_numbers has a value that is not a finite number"),
        (_twice, "vector_words has not .* different words"),
    ],
    ids=["no words", "no numbers", "dim", "fewer", "kind", "untold", "nan", "twice"],
)
def test_damaged_vectors_are_refused(model, change, message, tmp_path):
    write_changed(model, tmp_path / "m", change)
    with pytest.raises(SentembError, match=message):
        sentemb.load(tmp_path / "m")


# Without surrogates, which UTF-8 cannot hold, and white space, at which texts are split.
_TOKENS = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1)
# The bits of all finite numbers of float16; `st.floats(width=16)` rejects most of what it draws.
_FINITE_BITS = st.integers(0, 0x7BFF) | st.integers(0x8000, 0xFBFF)


@hypothesis_settings(max_examples=10)
@given(st.lists(_TOKENS, min_size=1, max_size=6, unique=True), st.integers(1, 4), st.data())
def test_any_words_and_numbers_are_written_and_read(tmp_path_factory, words, dim, data):
    row = st.lists(_FINITE_BITS, min_size=dim, max_size=dim)
    rows = data.draw(st.lists(row, min_size=len(words), max_size=len(words)))
    features = WordFeatures(words, np.array(rows, np.uint16).view(np.float16))
    path = tmp_path_factory.mktemp("any") / "x.safetensors"
    write_tensors(path, arrays_of(features), {})
    with open_tensors(path) as file:
        read = stored_word_features(file, {"words": len(words), "dim": dim})
    assert read.words == words
    assert read.vectors.tobytes() == features.vectors.tobytes()
    assert read.fingerprint() == features.fingerprint()


def test_a_stopped_training_resumes_to_the_same_bits_and_only_with_the_same_vectors(tmp_path):
    settings = {**TINY, "dev": made_up_judged_set(LOG), "output": tmp_path / "m"}
    own = {"vectors": VECTORS, "vector_dim": 3}
    whole = train(LOG, **{**settings, "output": None}, **own)

    def stop(progress):
        if progress.step == 3:
            raise KeyboardInterrupt

    with pytest.raises((KeyboardInterrupt, Interrupted)):
        train(LOG, checkpoint_seconds=0, on_progress=stop, **settings, **own)
    refused = "was trained with other word vectors"
    others = [{}, {**own, "vector_dim": 2}, {**own, "vectors": vectors_of(WORDS, seed=1)}]
    for other in others:
        with pytest.raises(SentembError, match=refused):
            train(LOG, resume=True, **settings, **other)
    resumed = train(LOG, resume=True, **{**settings, "threads": 2}, **own)
    for side in ("query", "document"):
        for name, array in whole.weights[side].items():
            assert np.array_equal(array, resumed.weights[side][name])
    # A finished training is refused too.
    with pytest.raises(SentembError, match=refused):
        train(LOG, resume=True, **settings)
    plain = {**settings, "output": tmp_path / "plain"}
    train(LOG, **plain)
    with pytest.raises(SentembError, match=refused):
        train(LOG, resume=True, **plain, **own)


def test_a_training_continues_with_the_vectors_of_its_model(model):
    log = sentemb.ClickLog.from_pairs(
        [("zz9 ab", "bad hotel"), ("cab", "hotel ab"), ("bad", "zz9")]
    )
    after = train(log, start_from=model, **{**TINY, "learning_rate": 1e-9, "epochs": 1})
    known, grown = model.vocabulary, after.vocabulary
    assert grown.vectors is known.vectors and len(grown) > len(known)
    with pytest.warns(UserWarning, match="no word"):
        np.testing.assert_allclose(after.encode(TEXTS), model.encode(TEXTS), atol=1e-6)
    table = after.weights["query"]["table"]
    rows = grown.rows_of(known)
    np.testing.assert_allclose(table[rows], model.weights["query"]["table"], atol=1e-6)
    with pytest.raises(SentembError, match="continues with these; leave vectors out"):
        train(log, start_from=model, vectors=VECTORS)
    with pytest.raises(SentembError, match="has no word vectors, and they cannot be added"):
        train(log, start_from=train(LOG, **TINY), vectors=VECTORS)


def test_models_with_the_same_vectors_are_averaged_others_refused(model):
    second = train(LOG, vectors=VECTORS, vector_dim=3, model="bag", seed=1, **TINY)
    average = SentenceEncoder.average([model, second])
    expected = (model.score("zz9 ab", "cab") + second.score("zz9 ab", "cab")) / 2
    assert average.score("zz9 ab", "cab") == pytest.approx(expected, abs=1e-6)
    for other in (train(LOG, **TINY), train(LOG, vectors=VECTORS, vector_dim=2, **TINY)):
        with pytest.raises(SentembError, match="different word vectors"):
            SentenceEncoder.average([model, other])


def test_several_seeds_have_the_same_vectors(model, tmp_path):
    own = {"vectors": VECTORS, "vector_dim": 3, "output": tmp_path / "m", "seeds": 2}
    average = train(LOG, **own, **TINY)
    read = sentemb.load(tmp_path / "m")
    assert read.vocabulary.vectors.fingerprint() == model.vocabulary.vectors.fingerprint()
    assert read.score("zz9 ab", "cab") == average.score("zz9 ab", "cab")
    own["vector_dim"] = 2
    with pytest.raises(SentembError, match="was trained with other word vectors"):
        train(LOG, resume=True, **own, **TINY)


def test_a_pair_model_takes_words_with_their_vectors_from_two_towers(model, tmp_path):
    pair = train(
        LOG, model="wordembed", start_from=model, epochs=1, threads=1, max_words=6,
        output=tmp_path / "pair",
    )  # fmt: skip
    read = sentemb.load(tmp_path / "pair")
    assert read.vocabulary.vectors.words == VECTORS.words
    score = pair.score("qqqq", "cab")
    assert read.score("qqqq", "cab") == score
    with pytest.warns(UserWarning, match="no word"):
        assert pair.score("yyy", "cab") != score
    with pytest.raises(SentembError, match="vector_dim is not for pair models"):
        train(LOG, model="wordembed", vectors=VECTORS, vector_dim=3)


def test_the_effect_of_a_word_includes_its_vector(model):
    effects = word_effects(model, "ab qqqq", "cab zz9")
    assert effects["query"].left_out[1] != 0 and effects["query"].gradient[1] != 0
    assert effects["document"].gradient[1] != 0
    nothing = word_effects(model, "ab yyy", "cab")  # without a feature
    assert nothing["query"].gradient[1] == 0


def test_a_quantised_encoding_and_float64_work(model):
    words = WORDS[:40]
    with pytest.warns(UserWarning, match="int8 is scaled"):
        assert model.encode_query(words, precision="int8").dtype == np.int8
    wide = model.astype("float64")
    np.testing.assert_allclose(wide.encode_query(words), model.encode_query(words), atol=1e-5)


# -- gradients -----------------------------------------------------------------------------------


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize("name", ["lstm", "bag", "dssm", "clsm"])
def test_the_gradient_is_right_with_vectors_and_wrong_without_their_values(name, monkeypatch):
    small = {"lengths": (1, 3), "entries": 3, "cells": 3, "n_negatives": 1, "vector_dim": 2}
    small["n_texts"] = 100
    report = sentemb.gradcheck(name, **small)
    assert report.passed and report.settings["vector_dim"] == 2
    right = Layout.words_of_features.func

    def counted(self):
        offsets, words, values = right(self)
        return offsets, words, np.rint(values)

    monkeypatch.setattr(Layout, "words_of_features", property(counted))
    assert not sentemb.gradcheck(name, **small).passed


def test_the_gradient_at_the_rows_of_dimensions_is_the_sum_over_words():
    texts = ["ab cab", "bad ab ab", "cab"]
    model = made_up_model(("bag", {}), texts)
    known = made_up_word_features(["ab", "-", "cab"], dim=2)
    vocabulary = model.vocabulary.with_vectors(known)
    table = np.random.default_rng(0).standard_normal((len(vocabulary), 5))
    batch = vocabulary.batch(texts)
    V = np.random.default_rng(1).standard_normal((3, 5))
    with Workers(1) as workers:
        done = model.encoder.forward({"table": table}, batch, workers)
        gradient = model.encoder.backward({"table": table}, done, V, workers)["table"]
    by_word = {"ab": V[0] + 2 * V[1], "cab": V[0] + V[2]}
    expected = sum(
        np.outer(known.vectors[known.row_of(word)].astype(float), error)
        for word, error in by_word.items()
    )
    np.testing.assert_allclose(gradient[-2:], expected, rtol=1e-12)


@pytest.mark.parametrize(
    "sizes", [[0, 3, 1, 40, 40, 2], [1] * 30, [5], [], [0, 0, 90], [0] * 800 + [100] * 80]
)
def test_rows_are_cut_into_parts_of_about_equal_work(sizes, monkeypatch):
    monkeypatch.setattr(parallel, "PAYS", 1)
    offsets = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    nothing = np.zeros(0)
    tasks = spread_rows(RowGradient(np.zeros((0, 1)), offsets, nothing, nothing), print, "one")
    assert all(task[:2] == (print, "one") for task in tasks)
    assert [row for *_, first, end in tasks for row in range(first, end)] == list(range(len(sizes)))
    costs = [size + 4 for size in sizes]
    parts = min(len(sizes), PARTS)
    assert len(tasks) <= parts
    for *_, first, end in tasks:
        # No part is above its share by more than one row.
        assert sum(costs[first:end]) <= sum(costs) / parts + max(costs) + 1


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_dim": 7}, "have 6 dimensions and vector_dim is 7"),
        ({"vectors": None, "vector_dim": 3}, "is for vectors; give vectors too"),
        ({"vectors": vectors_of(["yyy", "xxx"])}, "no word of the log has a vector"),
        ({"vectors": WordVectors(WORDS, np.ones((len(WORDS), 6), np.float32))}, "span fewer than"),
        ({"vectors": vectors_of(WORDS[:2])}, "the vectors of 2 words span fewer than 6"),
    ],
)
def test_bad_vectors_are_refused(options, message):
    with pytest.raises(SentembError, match=message):
        train(LOG, **{**QUICK, "vectors": VECTORS, **options})


def test_numbers_that_are_not_finite_are_refused():
    vectors = vectors_of(WORDS)
    vectors.vectors[3, 1] = np.nan
    with pytest.raises(SentembError, match="has a number that is NaN"):
        train(LOG, vectors=vectors, **TINY)


def run(*arguments):
    return CliRunner().invoke(main, ["train", *map(str, arguments)], standalone_mode=False)


def test_the_command_takes_a_file_and_refuses_what_holds_no_vectors(tmp_path):
    log = tmp_path / "pairs.tsv"
    log.write_text("".join(f"{LOG.queries[q]}\t{LOG.titles[t]}\n" for q, t in zip(
        LOG.query_index, LOG.title_index, strict=True)))  # fmt: skip
    write_text(VECTORS, tmp_path / "v.txt")
    quick = ["--epochs", 1, "--threads", 1, "--cells", 4, "--batch-size", 16, "-o", tmp_path / "m"]
    done = run(log, *quick, "--vectors", tmp_path / "v.txt", "--vector-dim", 3, "--vector-words", 9)
    assert done.exception is None
    assert "% of the words of the log, and" in done.stderr and "in v.txt" in done.stderr
    words = sentemb.load(tmp_path / "m").vocabulary.vectors.words
    assert words[:9] == VECTORS.words[:9] and set(words) >= set(WORDS[::2])
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "folder").mkdir()
    for name, message in (
        ("empty.txt", "the file is empty"),
        ("folder", "is not a folder of word vectors|vectors.json"),
        ("nowhere.txt", "nowhere.txt"),
    ):
        done = run(log, *quick, "--force", "--vectors", tmp_path / name)
        assert isinstance(done.exception, SentembError)
        assert "\n" not in str(done.exception)
        assert re.search(message, str(done.exception)), str(done.exception)
