"""The bag, DSSM, CLSM and DAN: forward against naive twins, corners, threads, files."""

import naive
import numpy as np
import pytest
from helpers import (
    FEED_FORWARD,
    each_variant,
    made_up_log,
    made_up_model,
    made_up_texts,
    made_up_weights,
)

import sentemb
from sentemb import SentembError, SentenceEncoder
from sentemb.gradients import differences
from sentemb.gradients.pair_problem import PairProblem
from sentemb.kernels.convolution import pool_windows, spread_to_maxima
from sentemb.kernels.layers import average_words, divide_errors
from sentemb.models.towers import make_encoder
from sentemb.models.towers.truncation import Truncation
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary

TEXTS = made_up_texts(np.random.default_rng(5), (1, 2, 3, 7, 12, 1, 4, 9, 2, 5, 70))


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-13), (np.float32, 2e-6)])
@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_embeddings_are_those_of_the_naive_twin(variant, dtype, tolerance):
    model = made_up_model(variant, TEXTS, dtype=dtype)
    blocks = {
        name: np.asarray(block, np.float64) for name, block in model.parameters()["query"].items()
    }
    vectors = model.encode_query(TEXTS)
    for text, vector in zip(TEXTS, vectors, strict=True):
        L = naive.trigram_vectors(text, model.vocabulary.trigrams)
        own = {key: variant[1][key] for key in ("activation",) if key in variant[1]}
        expected = getattr(naive, variant[0])(blocks, L, **own)
        np.testing.assert_allclose(vector, expected, rtol=0, atol=tolerance * abs(expected).max())


@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_the_number_of_threads_changes_no_bit(variant):
    model = made_up_model(variant, TEXTS, dtype=np.float32)
    weights, batch = model.weights["query"], model.vocabulary.batch(TEXTS)
    V = np.random.default_rng(0).standard_normal((len(TEXTS), model.dim)).astype(np.float32)
    results = []
    for threads in (1, 2, 5):
        with Workers(threads) as workers:
            done = model.encoder.forward(weights, batch, workers)
            results.append(model.encoder.backward(weights, done, V, workers))
    for gradient in results[1:]:
        for name, array in results[0].items():
            assert np.array_equal(gradient[name], array), name


@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_texts_without_words_and_words_without_trigrams(variant):
    model = made_up_model(variant, TEXTS)
    texts = ["", TEXTS[0], "  ", "ж ж", TEXTS[3]]
    with pytest.warns(UserWarning, match="2 of 5 texts have no words"):
        vectors = model.encode_query(texts)
    assert not vectors[[0, 2]].any() and np.isfinite(vectors).all()
    assert np.array_equal(vectors[1], model.encode_query(TEXTS[0]))
    weights, batch = model.weights["query"], model.vocabulary.batch(texts)
    with Workers(1) as workers:
        done = model.encoder.forward(weights, batch, workers)
        V = np.ones_like(done.embeddings)
        whole = model.encoder.backward(weights, done, V, workers)
        V[[0, 2]] = 7  # what has no words has no gradient
        assert all(
            np.array_equal(array, whole[name])
            for name, array in model.encoder.backward(weights, done, V, workers).items()
        )


def test_the_first_of_equal_maxima_wins_and_takes_the_gradient():
    P = np.array([[1.0, 5.0], [1.0, 2.0]])
    word_index, offsets = np.array([0, 1, 0] + [1] * 40, np.int32), np.array([0, 43])
    M, places = np.empty((1, 2)), np.empty((1, 2), np.int32)
    pool_windows(M, places, P, np.zeros(2), word_index, offsets, 0, 1)
    assert M.tolist() == [[1, 5]] and places.tolist() == [[0, 0]]
    D = np.full((43, 2), np.nan)
    spread_to_maxima(D, np.array([[3.0, 4.0]]), places, offsets, 0, 1)
    assert D.tolist() == [[3, 4]] + [[0, 0]] * 42


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_averages_of_words_and_their_errors(dtype):
    rng = np.random.default_rng(2)
    P = rng.standard_normal((9, 5)).astype(dtype)
    P[[2, 6]] = 0  # unknown words
    P[3, :4] = 0  # a known word whose first numbers happen to be zero
    offsets = np.array([0, 1, 4, 4, 11, 13, 20])
    word_index = rng.integers(0, 9, 20).astype(np.int32)
    word_index[:4], word_index[11:13] = (3, 2, 4, 6), (2, 6)
    X, read = np.full((6, 5), np.nan, dtype), np.full(6, -1)
    for first, end in ((0, 2), (2, 6)):
        average_words(X, read, P, word_index, offsets, first, end)
    expected, n_read = naive.average_words(P, word_index, offsets)
    np.testing.assert_allclose(X, expected, rtol=0, atol=1e-6 if dtype == np.float32 else 1e-14)
    assert X.dtype == dtype and read.tolist() == n_read.tolist()
    assert read[1] == 1 and read[2] == read[4] == 0 and not X[[2, 4]].any()
    D = np.ones((6, 5), dtype)
    divide_errors(D, read, 0, 3)
    divide_errors(D, read, 3, 6)
    np.testing.assert_allclose(D, np.tile(1 / np.maximum(n_read, 1)[:, None], 5), rtol=1e-6)


@pytest.mark.parametrize("splitting", ["white-space", "words"])
def test_a_linear_layer_over_whole_words_is_the_projection_of_the_average(splitting):
    """PP-proj: g = Wp (1/n) sum of the word vectors + b; unknown words are not read."""
    encoder = make_encoder("dan", cells=3, hidden=4, activation="linear")
    words, rng = ["hotel", "in", "rome"], np.random.default_rng(0)
    weights = made_up_weights(encoder, 3, rng)
    model = SentenceEncoder(encoder, Vocabulary([], words, splitting), {
        "query": weights, "document": weights
    })  # fmt: skip
    vectors, p = weights["table"], model.parameters()["query"]
    for text, read in {"hotel in rome": [0, 1, 2], "a hotel near rome rome": [0, 2, 2]}.items():
        expected = p["W1"] @ vectors[read].mean(axis=0) + p["b1"]
        np.testing.assert_allclose(model.encode_query(text), expected, atol=1e-12)
    np.testing.assert_allclose(model.encode_query("no such word"), p["b1"], atol=1e-12)


@pytest.mark.parametrize("window", [3, pytest.param(5, marks=pytest.mark.slow)])
def test_kinks_of_max_pooling_are_left_out_and_counted(window, monkeypatch):
    # Coarse steps only, so that some go over a kink.
    monkeypatch.setattr(differences, "STEPS", (1e-2, 5e-3))
    sizes = {"cells": 4, "hidden": 12, "entries": 40, "lengths": (8, 13, 20), "n_negatives": 1}
    sizes["n_texts"] = 0
    report = sentemb.gradcheck("clsm", window=window, **sizes, tolerance=1e-5)
    assert report.passed and sum(block.kinks for block in report.blocks) > 0
    assert sum(block.checked for block in report.blocks) > 200
    monkeypatch.setattr(PairProblem, "branches", lambda self: b"")
    assert not sentemb.gradcheck("clsm", window=window, **sizes, tolerance=1e-5).passed


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_gradients_of_long_texts(variant):
    name, settings = variant
    sizes = {"cells": 3, "lengths": (30, 2, 20), "n_negatives": 2, "n_texts": 0}
    assert sentemb.gradcheck(name, entries=6, **sizes, **settings).passed


@pytest.mark.usefixtures("two_steps")
@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_gradients_of_texts_of_one_word(variant):
    """The outer slices of a convolution have none then, and the checker is not to miss one."""
    name, settings = variant
    report = sentemb.gradcheck(name, cells=3, lengths=(1, 1), entries=8, n_texts=0, **settings)
    assert report.passed
    middle = f"Wc{settings.get('window', 1) // 2 + 1}"
    for block in report.blocks:
        kind = block.block.split(".")[1]
        assert (block.analytic == 0) == (kind.startswith("Wc") and kind != middle), block


@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_training_saving_and_reading(variant, tmp_path):
    name, settings = variant
    log = made_up_log(200)
    model = sentemb.train(
        log, model=name, cells=8, epochs=8, batch_size=20, output=tmp_path / "m", **settings
    )
    assert model.history[-1]["loss"] < 0.8 * model.history[0]["loss"]
    read = SentenceEncoder.from_pretrained(tmp_path / "m")
    assert read.encoder.settings() == model.encoder.settings()
    assert np.array_equal(read.encode_document(log.titles), model.encode_document(log.titles))


def test_what_needs_steps_says_so(tmp_path):
    model = made_up_model(("dssm", {}), TEXTS)
    with pytest.raises(SentembError, match="does not read word by word"):
        model.trace(TEXTS[0])
    with pytest.raises(SentembError, match="use the form scan"):
        sentemb.gradcheck("dssm", form="trace")
    with pytest.raises(SentembError, match="no steps through time"):
        weights, batch = model.weights["query"], model.vocabulary.batch(TEXTS)
        with Workers(1) as workers:
            done = model.encoder.forward(weights, batch, workers)
            V = done.embeddings
            model.encoder.backward(weights, done, V, workers, truncation=Truncation(2))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "bag", "hidden": 5}, "the model bag has no hidden"),
        ({"model": "dssm", "window": 3}, "the model dssm has no window"),
        ({"model": "dssm", "layers": 2}, "the model dssm has no layers"),
        ({"model": "lstm", "hidden": 5}, "the model lstm has no hidden"),
        ({"model": "dssm", "truncate": 3}, "truncate"),
    ],
)
def test_settings_that_a_model_does_not_have(settings, message):
    with pytest.raises(SentembError, match=message):
        sentemb.train(made_up_log(), **settings)
