"""The weights of a ranking: a convex fit to the right titles of some queries.

For query q with the candidates C(q), of which R(q) are right, and x(q, t) the vector of what all
parts score, the weights w minimise

    mean over q of mean over r in R(q) of -log softmax(w · x(q, ·) over C(q))[r] + ridge |w s|² / 2

s are the standard deviations of the parts, so that the penalty does not depend on their units.
Newton's method finds the only minimum. A right title may count more than another, and some weights
may be kept from being negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

_RIDGE = 1e-4
_STEPS = 50
_TOLERANCE = 1e-9
# Differences of this share of a score are rounding.
_ROUNDING = 1e-9


class Candidates(NamedTuple):
    """Pairs (n,) of a query and a candidate, in the order of the queries.

    Every query has at least one right and one other candidate. ``right`` is 0 for the others, and
    how much a right one counts among those of its query.
    """

    query_index: NDArray[np.int64]
    title_index: NDArray[np.int64]
    right: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        right: tuple[NDArray[np.int64], NDArray[np.int64]],
        counts: NDArray[np.float64],
        ranked: Sequence[tuple[NDArray[np.int64], NDArray[np.int64]]],
        n_titles: int,
    ) -> Self | None:
        """Distinct pairs, of those queries that can teach; None if there is none.

        ``right`` are distinct pairs that are right, and ``counts`` how much each counts; ``ranked``
        are pairs that may be right too.
        """
        n = max(n_titles, 1)
        right_cells, *cells = (q * np.int64(n) + t for q, t in (right, *ranked))
        every = np.unique(np.concatenate([right_cells, *cells]))
        weights = np.zeros(every.size)
        weights[np.searchsorted(every, right_cells)] = counts
        query_index = every // n
        n_right = np.bincount(query_index, weights > 0)
        can_teach = ((n_right > 0) & (np.bincount(query_index) > n_right))[query_index]
        if not can_teach.any():
            return None
        return cls(query_index[can_teach], every[can_teach] % n, weights[can_teach])


class Fit(NamedTuple):
    """Weights (n_parts,) and their loss."""

    weights: NDArray[np.float64]
    loss: float


def fit_weights(
    features: NDArray[np.float64],
    candidates: Candidates,
    start: NDArray[np.float64] | None = None,
    tolerance: float = _TOLERANCE,
    not_negative: NDArray[np.bool_] | None = None,
) -> Fit:
    """The weights with the lowest loss.

    ``features`` (n, n_parts) are the scores of each part for each candidate; ``start`` (n_parts,)
    are weights near the best ones; ``tolerance`` is the decrease of the loss that a step must
    promise. ``not_negative`` (n_parts,) are weights from 0: one after the other those that would be
    below are left out.
    """
    first = np.flatnonzero(np.diff(candidates.query_index, prepend=-1))
    sizes = np.diff(np.append(first, len(features)))
    n_right = np.add.reduceat(candidates.right, first)
    # Every query counts the same.
    target = candidates.right / np.repeat(n_right, sizes) / first.size
    weights = np.zeros(features.shape[1]) if start is None else start
    is_free = np.ones(weights.size, np.bool_)
    while True:
        problem = features[:, is_free], target, first, sizes
        weights = np.where(is_free, weights, 0.0)
        weights[is_free], loss = _minimum(weights[is_free], *problem, tolerance)
        if not_negative is None or not (weights[not_negative] < 0).any():
            return Fit(weights, loss)
        scaled = np.where(not_negative, weights * features.std(axis=0), 0)
        is_free[np.argmin(scaled)] = False


def losses_of(scores: NDArray[np.float64], candidates: Candidates) -> NDArray[np.float64]:
    """The loss of each query, (n_queries,), where candidates have these scores."""
    first = np.flatnonzero(np.diff(candidates.query_index, prepend=-1))
    sizes = np.diff(np.append(first, len(scores)))
    z = scores - np.repeat(np.maximum.reduceat(scores, first), sizes)
    log_p = z - np.repeat(np.log(np.add.reduceat(np.exp(z), first)), sizes)
    sums = np.add.reduceat(candidates.right * log_p, first)
    return np.asarray(-sums / np.add.reduceat(candidates.right, first))


def _minimum(
    weights: NDArray[np.float64],
    features: NDArray[np.float64],
    target: NDArray[np.float64],
    first: NDArray[np.int64],
    sizes: NDArray[np.int64],
    tolerance: float,
) -> tuple[NDArray[np.float64], float]:
    """The weights with the lowest loss, from ``weights`` on, and the loss."""
    scale = features.std(axis=0)
    # A part that is the same for all but for rounding tells nothing.
    scale[scale <= _ROUNDING * np.abs(features).max(axis=0)] = 1
    problem = features / scale, target, first, sizes
    w = weights * scale
    loss, gradient, curvature = _loss(w, *problem)
    for _ in range(_STEPS):
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        if decrease < tolerance:
            break
        size = 1.0
        while True:
            tried = _loss(w - size * step, *problem)
            if tried[0] <= loss - 1e-4 * size * decrease or size < 1e-6:
                break
            size /= 2
        w = w - size * step
        loss, gradient, curvature = tried
    return w / scale, loss


def _loss(
    w: NDArray[np.float64],
    X: NDArray[np.float64],
    target: NDArray[np.float64],
    first: NDArray[np.int64],
    sizes: NDArray[np.int64],
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """Loss, gradient and Hessian."""
    # No BLAS: it would wake threads for these few columns.
    z = np.einsum("nj,j->n", X, w)
    z -= np.repeat(np.maximum.reduceat(z, first), sizes)
    e = np.exp(z)
    sums = np.add.reduceat(e, first)
    p = e / np.repeat(sums, sizes) / first.size
    log_p = z - np.repeat(np.log(sums), sizes)
    loss = -float((target * log_p).sum()) + _RIDGE / 2 * float(w @ w)
    gradient = np.einsum("nj,n->j", X, p - target) + _RIDGE * w
    means = np.add.reduceat(X * p[:, None], first, axis=0) * np.sqrt(first.size)
    curvature = (X.T * p) @ X - means.T @ means + _RIDGE * np.eye(w.size)
    return loss, gradient, curvature
