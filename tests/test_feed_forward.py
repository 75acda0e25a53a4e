"""The bag, DSSM and CLSM: forward against naive twins, corners, threads, files."""

import naive
import numpy as np
import pytest
from helpers import FEED_FORWARD, each_variant, made_up_log, made_up_model, made_up_texts

import sentemb
from sentemb import SentembError, SentenceEncoder
from sentemb.gradients import differences
from sentemb.gradients.pairs import PairProblem
from sentemb.kernels.convolution import pool_windows, spread_to_maxima
from sentemb.models.truncation import Truncation
from sentemb.system.parallel import Workers

TEXTS = made_up_texts(np.random.default_rng(5), (1, 2, 3, 7, 12, 1, 4, 9, 2, 5))


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
        expected = getattr(naive, variant[0])(blocks, L)
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
    word_index, offsets = np.array([0, 1, 0], np.int32), np.array([0, 3])
    M, places = np.empty((1, 2)), np.empty((1, 2), np.int32)
    pool_windows(M, places, P, np.zeros(2), word_index, offsets, 0, 1)
    assert M.tolist() == [[1, 5]] and places.tolist() == [[0, 0]]
    D = np.full((3, 2), np.nan)
    spread_to_maxima(D, np.array([[3.0, 4.0]]), places, offsets, 0, 1)
    assert D.tolist() == [[3, 4], [0, 0], [0, 0]]


@pytest.mark.parametrize("window", [3, 5])
def test_kinks_of_max_pooling_are_left_out_and_counted(window, monkeypatch):
    # Coarse steps only, so that some go over a kink.
    monkeypatch.setattr(differences, "STEPS", (1e-2, 5e-3))
    sizes = {"cells": 4, "hidden": 12, "entries": 60, "lengths": (8, 13, 20)}
    report = sentemb.gradcheck("clsm", window=window, **sizes, tolerance=1e-5)
    assert report.passed and sum(block.kinks for block in report.blocks) > 0
    assert sum(block.checked for block in report.blocks) > 200
    monkeypatch.setattr(PairProblem, "maxima", lambda self: b"")
    assert not sentemb.gradcheck("clsm", window=window, **sizes, tolerance=1e-5).passed


@pytest.mark.parametrize(**each_variant(FEED_FORWARD))
def test_gradients_of_texts_of_one_word(variant):
    """The outer slices of a convolution have none then, and the checker is not to miss one."""
    name, settings = variant
    report = sentemb.gradcheck(name, cells=3, lengths=(1, 1), entries=8, **settings)
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
        ({"model": "clsm", "window": 2}, "window is 2; give one of 1, 3, 5"),
        ({"model": "clsm", "hidden": 0}, "hidden is 0; give an integer from 1 to 1,000"),
        ({"model": "lstm", "hidden": 5}, "the model lstm has no hidden"),
        ({"model": "dssm", "truncate": 3}, "truncate"),
    ],
)
def test_settings_that_a_model_does_not_have(settings, message):
    with pytest.raises(SentembError, match=message):
        sentemb.train(made_up_log(), **settings)
