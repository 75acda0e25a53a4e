"""Products of queries with many rows: fast ones in float32 with a proven bound, and exact ones."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.dense import products_of_pairs
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.scan import dots, integer_dots
from sentemb.retrieval.int8_rows import LARGEST, Int8Rows
from sentemb.system.contracts import Runner

# With fewer queries than this, one product per row and query is faster than a matrix product; with
# integers it is longer so, because a matrix product needs the rows in float32.
FEW, FEW_OF_CODES = 4, 8
_UNIT = 2.0**-24
_NO_SCALES = np.empty(0, np.float32)
# No row is longer: vectors of unit length, rounded.
LONGEST = 1.1


class QueryRows:
    """Queries of unit length in the forms that products need.

    Parameters
    ----------
    vectors : (m, dim) float
        Of unit length, or zero.
    """

    def __init__(self, vectors: np.ndarray) -> None:
        self.exact = np.ascontiguousarray(vectors, np.float64)
        self.single = self.exact.astype(np.float32)

    def __len__(self) -> int:
        return len(self.exact)

    @cached_property
    def across(self) -> NDArray[np.float32]:
        """The queries side by side, (dim, m)."""
        return np.ascontiguousarray(self.single.T)

    @cached_property
    def steps(self) -> NDArray[np.float64]:
        """The number that each query of `integers` is multiplied by, (m,)."""
        most = min(2**15 - 1, (2**31 - 1) // ((LARGEST + 1) * max(1, self.exact.shape[1])))
        return np.asarray(np.abs(self.exact).max(axis=1, initial=0) / most)

    @cached_property
    def integers(self) -> NDArray[np.int16]:
        """The queries rounded to integers, (m, dim)."""
        return np.rint(self.exact / np.where(self.steps > 0, self.steps, 1)[:, None]).astype(
            np.int16
        )

    @cached_property
    def lost(self) -> NDArray[np.float64]:
        """The length of what rounding to integers takes from each query, (m,)."""
        lost = self.exact - self.integers * self.steps[:, None]
        return np.asarray(np.linalg.norm(lost, axis=1))

    @property
    def error(self) -> float:
        """At least the error of a product of `products` with a row of unit length.

        A float32 sum of d products of rounded numbers, in any order, differs from the exact sum by
        at most (d + 2) u |q| |r| / (1 - (d + 2) u), with u = 2^-24 (Higham, *Accuracy and Stability
        of Numerical Algorithms*, 2nd ed., (3.5)). Twice (d + 8) u is used. Where a query is rounded
        to integers, the length of what is lost, times that of a row, is added.
        """
        dim = self.exact.shape[1]
        lost = float(self.lost.max(initial=0)) if len(self) < FEW_OF_CODES else 0.0
        return (2 * (dim + 8) * _UNIT + lost) * LONGEST + dim * 2.0**-120


def products(queries: QueryRows, rows: np.ndarray | Int8Rows) -> NDArray[np.float32]:
    """The product of every row with every query, (n, m), within `QueryRows.error`.

    Parameters
    ----------
    queries : QueryRows
        The queries.
    rows : (n, dim) float16 or float32, or Int8Rows
        The rows.
    """
    n, m = len(rows), len(queries)
    table = np.zeros((n, m), np.float32)
    if m >= (FEW_OF_CODES if isinstance(rows, Int8Rows) else FEW):
        tile = rows.vectors() if isinstance(rows, Int8Rows) else rows
        add_matmul(table, np.ascontiguousarray(tile, np.float32), queries.across)
        return table
    line = np.empty(n, np.float32)
    for q in range(m):
        if isinstance(rows, Int8Rows):
            step = np.float32(queries.steps[q])
            integer_dots(line, rows.codes, rows.scales, queries.integers[q], step)
        else:
            dots(line, np.ascontiguousarray(rows, np.float32), queries.single[q])
        table[:, q] = line
    return table


def exact_products(
    queries: QueryRows,
    rows: np.ndarray | Int8Rows,
    query_index: NDArray[np.int64],
    row_index: NDArray[np.int64],
    workers: Runner,
) -> NDArray[np.float64]:
    """The products of pairs in float64, with the same bits in every call."""
    scores = np.empty(query_index.size)
    scales = _NO_SCALES
    table: np.ndarray
    if isinstance(rows, Int8Rows):
        table, scales = rows.codes, rows.scales
    elif rows.dtype == np.float32:
        table = rows
    else:
        table, row_index = rows[row_index].astype(np.float32), np.arange(row_index.size)
    arguments = queries.exact, query_index, row_index, table, scales
    workers.over(scores.size, products_of_pairs, scores, *arguments)
    return scores
