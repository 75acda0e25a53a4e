"""The generative model behind SIF: drawing sentences, the partition function, the likeliest c.

Equation (2) of Arora, Liang and Ma (ICLR 2017): a sentence has a discourse vector c_s, and each of
its words is drawn, independently of the others, from

    p(w | c) = alpha p(w) + (1 - alpha) exp(<v_w, c>) / Z(c),    c = beta c0 + (1 - beta) c_s

with c0 orthogonal to c_s. `lab.likelihood.likelihood` has its likelihood and the gradient.
"""

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from lab.likelihood.likelihood import Likelihood, Sentences
from sentemb.errors import SentembError

Matrix = NDArray[np.float64]

# Numbers that the probabilities of all words in some directions may have at once.
_MOST_NUMBERS = 20_000_000
# The longest step of the ascent in units of |c| / |gradient|.
_LONGEST_STEP = 1e6
# How far, relative to it, rounding may lower a likelihood that a step does not change.
_ROUNDING = 1e-14


def discourse_vectors(
    n: int,
    dim: int,
    rng: np.random.Generator,
    norm: float = 1.0,
    common: Matrix | None = None,
    beta: float = 0.0,
) -> tuple[Matrix, Matrix]:
    """Draw n discourse vectors uniformly from a sphere: c_s, of length ``norm``, (n, dim) float64.

    With ``common``, c0 (dim,) float64, every c_s is orthogonal to it. The second array is
    ``beta c0 + (1 - beta) c_s`` in the same shape, for a share ``beta`` from 0 to 1. (With both of
    length 1, the mixture has the length sqrt(beta² + (1 - beta)²), not 1 as the paper has it.)

    Raises `SentembError` for ``beta`` out of bounds, or without a c0 to mix in.
    """
    if not 0 <= beta <= 1 or (beta > 0 and common is None):
        raise SentembError(f"beta is {beta}; give a number from 0 to 1, and c0 unless it is 0")
    C = rng.standard_normal((n, dim))
    if common is None:
        C = on_sphere(C, norm)
        return C, C
    unit = common / np.linalg.norm(common)
    C = on_sphere(C - np.outer((C * unit).sum(axis=1), unit), norm)
    return C, beta * common + (1 - beta) * C


def draw_sentences(
    model: Likelihood, C: Matrix, length: int, rng: np.random.Generator
) -> Sentences:
    """Draw one sentence for each discourse vector.

    Parameters
    ----------
    model : Likelihood
        Word vectors, p(w) and alpha.
    C : (n, d) float64
        The discourse vectors, c0 included.
    length : int
        Words of each sentence.
    rng : numpy.random.Generator
        Source of the random numbers.

    Returns
    -------
    Sentences
    """
    words = [
        np.searchsorted(np.cumsum(p), rng.random(length) * p.sum(), side="right")
        for p in (model.word_probabilities(c[None])[0] for c in C)
    ]
    return Sentences.of(words)


@dataclass(frozen=True)
class Concentration:
    """Spread of the partition function over directions.

    Attributes
    ----------
    mean : float
        Of Z(c) / V, V the number of words; 1 at c = 0.
    variation : float
        Standard deviation of Z over its mean.
    least, greatest : float
        The extremes of Z over its mean.
    """

    mean: float
    variation: float
    least: float
    greatest: float


def concentration(model: Likelihood, C: Matrix) -> Concentration:
    """The concentration of Z over the rows of C, (n, d) float64.

    The paper takes Lemma 2.1 of Arora et al. (TACL 2016) to make Z the same for all directions.
    """
    at_once = max(1, _MOST_NUMBERS // len(model.vectors))
    parts = range(0, len(C), at_once)
    logs = np.concatenate([model.partition(C[first : first + at_once]).log for first in parts])
    largest = logs.max()
    relative = np.exp(logs - largest)
    mean = relative.mean()
    return Concentration(
        mean=float(np.exp(largest - np.log(len(model.vectors))) * mean),
        variation=float(relative.std() / mean),
        least=float(relative.min() / mean),
        greatest=float(relative.max() / mean),
    )


@dataclass(frozen=True, eq=False)
class Likeliest:
    """The discourse vectors that maximise the likelihood.

    Attributes
    ----------
    C : (n, d) float64
    values : (n,) float64
        The log-likelihood there.
    slopes : (n,) float64
        The length of the gradient along the sphere, relative to that of the whole gradient.
    agreeing : (n,) int64
        From how many of the starts this maximum was reached, up to a cosine of 1 - 1e-6.
    """

    C: Matrix
    values: Matrix
    slopes: Matrix
    agreeing: NDArray[np.int64]


def likeliest(
    model: Likelihood,
    sentences: Sentences,
    norm: float = 1.0,
    *,
    tolerance: float = 1e-6,
    most_steps: int = 2000,
    seed: int = 0,
) -> Likeliest:
    """The exact maximum of the likelihood over all c with |c| = ``norm``.

    Projected gradient ascent from three starts for each sentence: the direction of the gradient at
    0, that of the plain sum of the word vectors, and a random one. The likelihood is not concave,
    so the best of the three counts. Every step is checked to raise the likelihood.

    Parameters
    ----------
    model : Likelihood
        Word vectors, p(w) and alpha.
    sentences : Sentences
        The sentences whose likelihood is measured.
    norm : float
        Above 0; the paper has 1.
    tolerance : float
        The largest relative slope that counts as converged.
    most_steps : int
        Evaluations of the gradient after which a start is given up, with a warning.
    seed : int
        Decides the random start.

    Returns
    -------
    Likeliest
    """
    n, dim = len(sentences), model.vectors.shape[1]
    zero = np.zeros((n, dim))
    plain = np.add.reduceat(model.vectors[sentences.words], sentences.starts, axis=0)
    starts = [
        model.values_and_gradient(zero, sentences)[1],
        plain,
        np.random.default_rng(seed).standard_normal((n, dim)),
    ]
    ascents = [_ascend(model, sentences, on_sphere(C, norm), tolerance, most_steps) for C in starts]
    C, values, slopes = (np.stack(parts) for parts in zip(*ascents, strict=True))
    best, each = values.argmax(axis=0), np.arange(n)
    chosen = C[best, each]
    cosines = (C * chosen).sum(axis=2) / norm**2
    late = int((slopes[best, each] > tolerance).sum())
    if late:
        warnings.warn(
            f"{late} of {n} sentences did not converge to a slope of {tolerance:g} within "
            f"{most_steps:,} steps",
            RuntimeWarning,
            stacklevel=2,
        )
    return Likeliest(
        chosen, values[best, each], slopes[best, each], (cosines > 1 - 1e-6).sum(axis=0)
    )


def _ascend(
    model: Likelihood, sentences: Sentences, C: Matrix, tolerance: float, most_steps: int
) -> tuple[Matrix, Matrix, Matrix]:
    """(C, values, relative slopes) after the ascent from C, whose rows all have the same norm."""
    norm = float(np.linalg.norm(C[0]))
    values, gradient = model.values_and_gradient(C, sentences)
    along, slopes = _along_sphere(C, gradient)
    # A step of this length times the gradient moves c by its own length.
    longest = norm / np.maximum(np.linalg.norm(gradient, axis=1), np.finfo(float).tiny)
    steps = longest.copy()
    for _ in range(most_steps):
        active = np.flatnonzero(slopes > tolerance)
        if not active.size:
            break
        tried = on_sphere(C[active] + steps[active, None] * along[active], norm)
        new_values, new_gradient = model.values_and_gradient(tried, sentences.take(active))
        # Rounding hides what the last steps gain.
        raised = new_values >= values[active] - _ROUNDING * np.abs(values[active])
        better = active[raised]
        moved = tried[raised] - C[better]
        C[better], values[better] = tried[raised], new_values[raised]
        before = along[better]
        along[better], slopes[better] = _along_sphere(C[better], new_gradient[raised])
        # The step of Barzilai and Borwein (1988), from the change of the gradient over the move.
        curvature = np.abs((moved * (along[better] - before)).sum(axis=1))
        squares = (moved * moved).sum(axis=1)
        suggested = squares / np.maximum(curvature, np.finfo(float).tiny)
        steps[better] = np.minimum(suggested, _LONGEST_STEP * longest[better])
        steps[active[~raised]] /= 4
    return C, values, slopes


def _along_sphere(C: Matrix, gradient: Matrix) -> tuple[Matrix, Matrix]:
    """The part of the gradient along the sphere, and its length relative to all of it."""
    outwards = (gradient * C).sum(axis=1) / (C * C).sum(axis=1)
    along = gradient - outwards[:, None] * C
    whole = np.linalg.norm(gradient, axis=1)
    return along, np.linalg.norm(along, axis=1) / np.maximum(whole, np.finfo(float).tiny)


def on_sphere(C: Matrix, norm: float = 1.0) -> Matrix:
    """The rows of C, (n, d) float64, scaled to the length ``norm``; rows of zeros stay."""
    lengths = np.linalg.norm(C, axis=1, keepdims=True)
    return norm * C / np.where(lengths == 0, 1, lengths)
