"""Pearson's and Spearman's correlation."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.errors import SentembError


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's product-moment correlation, from -1 to 1.

    NaN if all of ``x`` or all of ``y`` are equal, so that it is not defined. The bits do not depend
    on the number of threads. Raises `SentembError` if the lengths differ, there are fewer than two
    numbers, or one is not finite.
    """
    a, b = _checked(x, y)
    if a.min() == a.max() or b.min() == b.max():
        return float("nan")
    a, b = _centred(a), _centred(b)
    # Sums of products by NumPy alone: the bits of a BLAS depend on its threads.
    r = (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())
    return float(np.clip(r, -1, 1))


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation: Pearson's of the ranks, equal numbers sharing their mean rank.

    Parameters, result and errors are those of `pearson`.
    """
    a, b = _checked(x, y)
    return pearson(ranks(a), ranks(b))


def ranks(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rank of each number, from 1; equal numbers share the mean of their ranks: (n,) float64.

    Examples
    --------
    >>> ranks(np.array([2.5, 1.0, 2.5, 4.0])).tolist()
    [2.5, 1.0, 2.5, 4.0]
    """
    _, level, counts = np.unique(x, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    means: NDArray[np.float64] = ends - (counts - 1) / 2
    return means[level]


def _checked(x: ArrayLike, y: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    a, b = np.asarray(x, np.float64), np.asarray(y, np.float64)
    if a.ndim != 1 or a.shape != b.shape or a.size < 2:
        raise SentembError(
            f"cannot correlate arrays of shapes {a.shape} and {b.shape}; give two of equal length, "
            "at least 2"
        )
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        raise SentembError("cannot correlate numbers that are not finite; correct them")
    return a, b


def _centred(x: NDArray[np.float64]) -> NDArray[np.float64]:
    """``x`` minus its mean, scaled to a largest entry of 1 so that no square overflows."""
    # Scaled before and after: the difference of two huge numbers may overflow too.
    x = x / np.abs(x).max()
    x = x - x.mean()
    scaled: NDArray[np.float64] = x / np.abs(x).max()
    return scaled
