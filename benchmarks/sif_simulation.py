"""Simulated data of the SIF paper's model (2): word vectors, sentences, and averages of them."""

from dataclasses import dataclass

import numpy as np
from lab.likelihood.generative import (
    concentration,
    discourse_vectors,
    draw_sentences,
    on_sphere,
)
from lab.likelihood.likelihood import Likelihood, Sentences

from sentemb.models.vectors.probabilities import zipf


@dataclass(frozen=True)
class Settings:
    """What data are simulated with.

    ``norm`` is the length of all word vectors. With ``law`` = (b, k), |v|² = b + 2 d k log(p/p_min)
    instead. ``lean`` is the mean and ``lean_frequent`` the standard deviation, linear in log p, of
    what is added to the words along c0.
    """

    norm: float = 3.0
    law: tuple[float, float] | None = None
    alpha: float = 0.3
    n_words: int = 1000
    dim: int = 20
    length: int = 12
    n_sentences: int = 40
    discourse: float = 1.0  # the length of c_s and of c0
    beta: float = 0.0
    lean: float = 0.0
    lean_frequent: float = 0.0


@dataclass(frozen=True)
class Simulation:
    """A model with sentences drawn from it.

    ``own`` is c_s, ``mixed`` what the words were drawn from, ``common`` c0, of length 1.
    """

    settings: Settings
    model: Likelihood
    common: np.ndarray
    own: np.ndarray
    mixed: np.ndarray
    sentences: Sentences
    directions: np.ndarray  # random, of length 1

    def a(self, norm=1.0):
        """a = (1 - alpha) / (alpha Z), Z the mean over random directions of length ``norm``."""
        return self.model.a / concentration(self.model, norm * self.directions).mean

    def weights(self, a):
        """a / (a + p(w)) of every word of every sentence, as a column."""
        return (a / (a + self.model.probabilities[self.sentences.words]))[:, None]


def simulate(settings, seed):
    """The data of ``settings`` that ``seed`` decides."""
    rng = np.random.default_rng(seed)
    p = zipf(settings.n_words)
    vectors = on_sphere(rng.standard_normal((settings.n_words, settings.dim)), settings.norm)
    if settings.law is not None:
        base, factor = settings.law
        squares = base + 2 * settings.dim * factor * np.log(p / p.min())
        vectors = on_sphere(vectors) * np.sqrt(squares)[:, None]
    common = on_sphere(rng.standard_normal((1, settings.dim)))[0]
    frequent = np.log(p) - np.log(p).mean()
    along = settings.lean + settings.lean_frequent * frequent / frequent.std()
    model = Likelihood(vectors + np.outer(along, common), p, settings.alpha)
    directions = on_sphere(rng.standard_normal((200, settings.dim)))
    own, mixed = discourse_vectors(
        settings.n_sentences,
        settings.dim,
        rng,
        settings.discourse,
        settings.discourse * common,
        settings.beta,
    )
    sentences = draw_sentences(model, mixed, settings.length, rng)
    return Simulation(settings, model, common, own, mixed, sentences, directions)


def sums(rows, sentences):
    """The sum over each sentence of rows that belong to its words."""
    return np.add.reduceat(rows, sentences.starts, axis=0)


def cosines(A, B):
    """The cosine of each row of A with that of B."""
    return (on_sphere(A) * on_sphere(B)).sum(axis=1)


def first_component(X):
    """The first right singular vector of X, not centred, in the direction of the rows' mean."""
    _, vectors = np.linalg.eigh(X.T @ X)
    direction = vectors[:, -1]
    return direction if direction @ X.mean(axis=0) >= 0 else -direction


def removed(X, direction):
    """X without what its rows have along a direction of length 1."""
    return X - np.outer(X @ direction, direction)
