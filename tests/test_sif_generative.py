"""The generative model behind SIF."""

import warnings

import numpy as np
import pytest
from lab.likelihood import generative
from lab.likelihood.generative import (
    concentration,
    discourse_vectors,
    draw_sentences,
    likeliest,
    on_sphere,
)
from lab.likelihood.likelihood import Likelihood, Sentences

from sentemb import SentembError
from sentemb.models.vectors.probabilities import zipf


def model_of(n_words=200, dim=6, norm=3.0, alpha=0.3, seed=0):
    rng = np.random.default_rng(seed)
    vectors = on_sphere(rng.standard_normal((n_words, dim)), norm)
    return rng, Likelihood(vectors, zipf(n_words), alpha)


def test_discourse_vectors_are_orthogonal_to_the_common_one():
    rng = np.random.default_rng(0)
    common = 3 * on_sphere(rng.standard_normal((1, 6)))[0]
    own, mixed = discourse_vectors(50, 6, rng, norm=3.0, common=common, beta=0.4)
    assert np.linalg.norm(own, axis=1) == pytest.approx(3.0)
    assert np.abs(own @ common).max() < 1e-12
    assert mixed == pytest.approx(0.4 * common + 0.6 * own)
    # Not the length of both parts, as the paper has it.
    assert np.linalg.norm(mixed, axis=1) == pytest.approx(3 * np.hypot(0.4, 0.6))
    for wrong in ({"beta": 0.4}, {"beta": -0.1, "common": common}, {"beta": 1.1, "common": common}):
        with pytest.raises(SentembError, match="beta is"):
            discourse_vectors(5, 6, rng, **wrong)


def test_words_are_drawn_with_their_probabilities():
    rng, model = model_of(n_words=20, dim=4)
    C, _ = discourse_vectors(2, 4, rng)
    sentences = draw_sentences(model, C, 40_000, rng)
    expected = np.exp(
        [model.values(C, Sentences.of([[w], [w]])) for w in range(20)]  # log p(w | c)
    )
    for r, words in enumerate(np.split(sentences.words, 2)):
        seen = np.bincount(words, minlength=20) / 40_000
        # Five standard deviations of a share.
        assert (np.abs(seen - expected[:, r]) < 5 * np.sqrt(expected[:, r] / 40_000)).all()


def test_concentration_of_a_known_partition_function():
    model = Likelihood(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([0.5, 0.5]), 0.1)
    found = concentration(model, np.array([[0.0, 5.0], [1.0, 0.0]]))
    Z = np.array([1.0, np.cosh(1.0)])  # over two words
    assert found.mean == pytest.approx(Z.mean())
    assert found.variation == pytest.approx(Z.std() / Z.mean())
    assert (found.least, found.greatest) == pytest.approx((1 / Z.mean(), Z[1] / Z.mean()))


def test_a_mean_of_the_vectors_spoils_the_concentration():
    rng, model = model_of(n_words=2000, dim=20)
    C, _ = discourse_vectors(100, 20, rng)
    shifted = Likelihood(model.vectors + 0.3, model.probabilities, 0.3)
    assert concentration(shifted, C).variation > 5 * concentration(model, C).variation


@pytest.mark.parametrize(("norm", "scale"), [(1.0, 3.0), (3.0, 2.0), (1.0, 0.1), (1.0, 8.0)])
def test_the_maximum_is_above_a_fine_grid_of_the_circle(norm, scale):
    rng = np.random.default_rng(3)
    vectors = scale * (rng.standard_normal((30, 2)) + 0.3)
    model = Likelihood(vectors, zipf(30), 0.5)
    sentences = Sentences.of([[4, 9, 20], [0], [1, 1, 28, 7, 12]])
    found = likeliest(model, sentences, norm)
    assert np.linalg.norm(found.C, axis=1) == pytest.approx(norm)
    assert (found.slopes <= 1e-6).all() and (found.agreeing >= 1).all()
    angles = np.linspace(0, 2 * np.pi, 2000)
    for angle in angles:
        c = norm * np.array([np.cos(angle), np.sin(angle)])
        assert (model.values(np.tile(c, (3, 1)), sentences) <= found.values + 1e-10).all()


def test_the_maximum_is_stationary_and_the_same_bits_again():
    rng, model = model_of()
    C, _ = discourse_vectors(8, 6, rng)
    sentences = draw_sentences(model, C, 12, rng)
    found, again = likeliest(model, sentences), likeliest(model, sentences)
    assert np.array_equal(found.C, again.C) and np.array_equal(found.values, again.values)
    _, gradient = model.values_and_gradient(found.C, sentences)
    assert (found.C * on_sphere(gradient)).sum(axis=1) == pytest.approx(1, abs=1e-9)
    assert found.values == pytest.approx(model.values(found.C, sentences), abs=1e-12)
    assert (found.values >= model.values(C, sentences)).all()


def test_the_best_of_the_starts_counts(monkeypatch):
    _, model = model_of()
    reached = iter([1.0, 3.0, 2.0])

    def ascend(model, sentences, C, tolerance, most_steps):
        return C, np.full(len(C), next(reached)), np.zeros(len(C))

    monkeypatch.setattr(generative, "_ascend", ascend)
    found = likeliest(model, Sentences.of([[3, 5], [8]]))
    assert found.values.tolist() == [3.0, 3.0]
    assert found.C[1] == pytest.approx(on_sphere(model.vectors[[8]])[0])  # the second start


def test_a_maximum_that_is_not_reached_is_said():
    rng, model = model_of()
    C, _ = discourse_vectors(4, 6, rng)
    sentences = draw_sentences(model, C, 12, rng)
    with pytest.warns(RuntimeWarning, match=r"4 of 4 sentences did not converge .* 1 steps"):
        likeliest(model, sentences, most_steps=1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        likeliest(model, sentences)


def test_the_weighted_average_is_near_the_maximum_where_the_paper_assumes_it():
    """Vectors of one length in all directions: equation (3) holds, and centring adds to it."""
    rng, model = model_of(n_words=1000, dim=20)
    C, _ = discourse_vectors(40, 20, rng)
    sentences = draw_sentences(model, C, 12, rng)
    best = likeliest(model, sentences).C
    weights = (model.a / (model.a + model.probabilities))[sentences.words, None]
    rows = model.vectors[sentences.words]

    def cosine(X):
        sums = np.add.reduceat(X, sentences.starts, axis=0)
        return (on_sphere(sums) * best).sum(axis=1).mean()

    weighted, plain = cosine(weights * rows), cosine(rows)
    centred = cosine(weights * (rows - model.vectors.mean(axis=0)))
    assert plain < 0.95 < 0.98 < weighted < centred
