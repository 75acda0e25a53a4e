"""How far two rankings of the same titles agree."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.errors import SentembError

_Titles = NDArray[np.int64]


class Overlap(NamedTuple):
    """Agreement of two rankings, as means over the queries.

    same_first : share of the queries with the same first title
    shared : titles in both rankings, divided by the length of the longer one
    """

    same_first: float
    shared: float


def overlap(first: ArrayLike, second: ArrayLike) -> Overlap:
    """Compare two rankings of the same titles for the same queries.

    Each is (n_queries, k) int: positions of titles, best first, each at most once per row; -1 where
    fewer are found. Two empty rows agree. Raises `SentembError` for rankings of different queries,
    or none.
    """
    A, B = _rankings(first, second)
    shared = _shared(A, B)[:, -1].mean()
    return Overlap(float(np.mean(A[:, 0] == B[:, 0])), float(shared))


def agreements(first: ArrayLike, second: ArrayLike) -> NDArray[np.float64]:
    """Agreement of two rankings, as in `overlap`, query by query: (n_queries,), from 0 to 1.

    The average overlap of Webber, Moffat and Zobel, "A similarity measure for indefinite rankings",
    ACM TOIS 28 (2010), section 3: the mean over the depths 1 to k of the share of common titles
    down to that depth. The first titles count most.
    """
    A, B = _rankings(first, second)
    mean: NDArray[np.float64] = _shared(A, B).mean(axis=1)
    return mean


def _rankings(first: ArrayLike, second: ArrayLike) -> tuple[_Titles, _Titles]:
    A, B = np.asarray(first, np.int64), np.asarray(second, np.int64)
    if A.ndim != 2 or A.shape != B.shape or not A.size:
        raise SentembError(
            f"rankings of the shapes {A.shape} and {B.shape} cannot be compared; give one "
            "row per query and the same number of columns in both"
        )
    return A, B


def _shared(first: _Titles, second: _Titles) -> NDArray[np.float64]:
    """Titles in both rows down to each depth, divided by the length of the longer: (n_queries, k).

    1 where neither row has a title.
    """
    n, k = first.shape
    # A title is in both rows if it is in their union twice; the empty entries are made distinct.
    joined = np.hstack([first, second])
    joined = np.where(joined < 0, -1 - np.arange(2 * k), joined)
    order = np.argsort(joined, axis=1, kind="stable")
    joined = np.take_along_axis(joined, order, axis=1)
    row, column = np.nonzero(joined[:, 1:] == joined[:, :-1])
    # The sort is stable: the first row's rank comes before that of the second, which is k higher.
    lower = np.maximum(order[row, column], order[row, column + 1] - k)
    both = np.bincount(row * k + lower, minlength=n * k).reshape(n, k).cumsum(axis=1)
    longer = np.maximum((first >= 0).cumsum(axis=1), (second >= 0).cumsum(axis=1))
    shares = np.ones((n, k))
    np.divide(both, longer, out=shares, where=longer > 0)
    return shares
