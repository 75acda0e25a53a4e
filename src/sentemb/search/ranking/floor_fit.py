"""Fit a floor to dev queries and random letters."""

from __future__ import annotations

import string
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.search.ranking.floor import FEATURES, Floor, Letters, features_of
from sentemb.search.ranking.ranker import HybridRanker

# A floor refuses this share of random letters at least, and of dev queries at most.
LETTERS_REFUSED, QUERIES_REFUSED = 0.97, 0.02
# With fewer dev queries than this nobody knows what a floor refuses.
LEAST_QUERIES = 200
# Texts of random letters, and the share of them below the threshold: others are drawn in use. It is
# the higher share where that refuses next to no dev query.
_TEXTS, _BELOW, _NEXT_TO_NONE = 600, (0.985, 0.995), 0.004
# A floor is kept if it is one standard error above the share of letters that it promises to refuse.
_KEPT = LETTERS_REFUSED + (LETTERS_REFUSED * (1 - LETTERS_REFUSED) / _TEXTS) ** 0.5
_RIDGE = 1e-2
_STEPS = 60
# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x666C6F6F


def random_letters(seed: int, count: int = _TEXTS) -> list[str]:
    """Texts of one to three words of random letters."""
    draw = np.random.default_rng([seed, _KEY])
    letters = list(string.ascii_lowercase)
    return [
        " ".join("".join(draw.choice(letters, draw.integers(3, 10))) for _ in range(n))
        for n in draw.integers(1, 4, count).tolist()
    ]


def fitted_floor(
    ranker: HybridRanker,
    queries: Sequence[str],
    seed: int,
    note: Callable[[str], None],
    recorded: Sequence[str] = (),
) -> Floor | None:
    """The floor between real queries, which the log lacks, and random letters.

    ``queries`` are those of dev, which have clicks, so they are easier than others. ``recorded``
    are real queries without a click: they count when the threshold is chosen. None where it cannot
    be safe: ``note`` is called with the reason.
    """
    if not ranker.recipe.reads_words:
        return None  # without statistics of words
    if len(queries) < LEAST_QUERIES:
        note(
            f"no query is refused as one that the titles cannot answer: {len(queries):,} dev "
            f"queries are too few to tell, {LEAST_QUERIES:,} are needed"
        )
        return None
    statistics = ranker.fields.whole
    letters = Letters.of(statistics)
    x, n_found = [], []
    for texts in (queries, random_letters(seed), recorded):
        is_answered = ranker.are_answered(texts)
        asked = [texts[q] for q in np.flatnonzero(~is_answered).tolist()]
        ranked = ranker.ranked(asked, 1)
        is_found = ranked.titles[:, 0] >= 0
        x.append(features_of(ranker.asked(asked), ranked, statistics, letters)[is_found])
        n_found.append(len(x[-1]))
    if not min(n_found[:2]):
        return None  # the rules, or that nothing is found, tell them apart
    weights = _separating(*x[:2])
    scores, unreal, of_recorded = (weights[0] + each @ np.array(weights[1:]) for each in x)
    real = np.concatenate([scores, of_recorded])
    # Rules answer some queries, so the shares are those of all of them.
    all_per_asked = (len(queries) + len(recorded)) / len(real)
    shares = np.minimum(np.array([_NEXT_TO_NONE, QUERIES_REFUSED]) * all_per_asked, 1)
    free, most = np.quantile(real, shares)
    threshold = float(min(np.clip(free, *np.quantile(unreal, _BELOW)), most))
    if np.mean(unreal < threshold) * len(unreal) + _TEXTS - len(unreal) < _KEPT * _TEXTS:
        also = " and of those that the record has without a click" if recorded else ""
        note(
            "no query is refused as one that the titles cannot answer: a limit that refuses random "
            f"letters would refuse more than {QUERIES_REFUSED:.0%} of the dev queries{also}"
        )
        return None
    return Floor(weights, threshold, letters)


def _separating(real: NDArray[np.float64], unreal: NDArray[np.float64]) -> tuple[float, ...]:
    """Weights of a logistic regression, the intercept first, the others from 0 on.

    What speaks for a query may not count against it: features that would are left out.
    """
    x = np.concatenate([real, unreal])
    y = np.concatenate([np.ones(len(real)), np.zeros(len(unreal))])
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    is_free = deviation > 0
    deviation[~is_free] = 1
    z = np.concatenate([np.ones((len(x), 1)), (x - mean) / deviation], axis=1)
    while True:
        columns = np.concatenate([[0], 1 + np.flatnonzero(is_free)])
        w = np.zeros(len(FEATURES) + 1)
        w[columns] = _logistic(z[:, columns], y)
        if w[1:].min() >= 0:
            break
        is_free[np.argmin(w[1:])] = False
    weights = w[1:] / deviation
    intercept = w[0] - float(weights @ mean)
    return tuple(float(f"{weight:.7g}") for weight in (intercept, *weights.tolist()))


def _logistic(z: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
    """The weights of a logistic regression by Newton's method."""
    w = np.zeros(z.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ w, -500, 500)))
        curvature = (z.T * (p * (1 - p))) @ z + _RIDGE * np.eye(w.size)
        step = np.linalg.solve(curvature, z.T @ (p - y) + _RIDGE * w)
        w -= step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-8:
            break
    return w
