"""The weights of a ranking: a convex fit to the right titles of some queries.

For query q with the candidates C(q), of which R(q) are right, and x(q, t) the vector of what all
parts score, the weights w minimise

    mean over q of mean over r in R(q) of -log softmax(w · x(q, ·) over C(q))[r] + ridge |w s|² / 2

s are the standard deviations of the parts, so that the penalty does not depend on their units.
Newton's method finds the only minimum.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_RIDGE = 1e-4
_STEPS = 50
_TOLERANCE = 1e-9


class Candidates(NamedTuple):
    """Pairs (n,) of a query and a candidate, in the order of the queries.

    Every query has at least one right and one other candidate.
    """

    query_index: NDArray[np.int64]
    title_index: NDArray[np.int64]
    is_right: NDArray[np.bool_]


class Fit(NamedTuple):
    """Weights (n_parts,) and their loss."""

    weights: NDArray[np.float64]
    loss: float


def fit_weights(
    features: NDArray[np.float64],
    candidates: Candidates,
    start: NDArray[np.float64] | None = None,
    tolerance: float = _TOLERANCE,
) -> Fit:
    """The weights with the lowest loss.

    ``features`` (n, n_parts) are the scores of each part for each candidate; ``start`` (n_parts,)
    are weights near the best ones; ``tolerance`` is the decrease of the loss that a step must
    promise.
    """
    scale = features.std(axis=0)
    scale[scale == 0] = 1
    X = features / scale
    first = np.flatnonzero(np.diff(candidates.query_index, prepend=-1))
    sizes = np.diff(np.append(first, len(X)))
    n_right = np.add.reduceat(candidates.is_right.astype(np.float64), first)
    # Every query counts the same, and so does each of its right titles.
    target = candidates.is_right / np.repeat(n_right, sizes) / first.size
    w = np.zeros(X.shape[1]) if start is None else start * scale
    loss, gradient, curvature = _loss(w, X, target, first, sizes)
    for _ in range(_STEPS):
        step = np.linalg.solve(curvature, gradient)
        decrease = float(gradient @ step)
        if decrease < tolerance:
            break
        size = 1.0
        while True:
            tried = _loss(w - size * step, X, target, first, sizes)
            if tried[0] <= loss - 1e-4 * size * decrease or size < 1e-6:
                break
            size /= 2
        w = w - size * step
        loss, gradient, curvature = tried
    return Fit(w / scale, loss)


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
