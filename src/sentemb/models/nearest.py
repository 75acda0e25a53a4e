"""Exact search for the nearest titles: the highest dot products of rows."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import brief, is_integer
from sentemb.errors import SentembError
from sentemb.kernels.scan import scan_codes, scan_doubles, scan_halves, scan_singles
from sentemb.models.int8_rows import LARGEST, Int8Rows
from sentemb.models.similarity import unit_rows
from sentemb.protocols import Embedder
from sentemb.system.parallel import Workers

# A thread gets at least this many queries, or else this many titles.
_QUERIES_PER_THREAD = 32
_TITLES_PER_THREAD = 4096
# A mask that leaves fewer than one title in this many is turned into a copy of those titles.
_FEW_LEFT = 8
_INT32 = 2**31 - 1


def nearest(
    queries: np.ndarray,
    titles: np.ndarray | Int8Rows,
    k: int,
    mask: NDArray[np.bool_] | None = None,
    workers: Workers | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The titles with the highest dot products.

    A score is the sum of the products in float64, added in a fixed order. So it has the same bits
    whatever the other queries, the number of threads and the place of the title are, and titles
    with equal vectors have equal scores. `sentemb.kernels.scan` has the method and its error bound.

    Parameters
    ----------
    queries : (m, dim) float32 or float64
        Rows of unit length give cosines with titles of unit length.
    titles : (n, dim) float16, float32 or float64, or Int8Rows
        May be mapped from a file.
    k : int
        Titles per query.
    mask : (n,) bool, optional
        The titles that may be found; by default all.
    workers : Workers, optional
        The threads; by default the calling thread alone.

    Returns
    -------
    places, scores : (m, min(k, n)) int64, (m, min(k, n)) float64
        Rows of ``titles`` and their dot products, highest first, equal ones in the order of the
        rows; -1 and -inf where the mask leaves fewer.

    Raises
    ------
    SentembError
        If a value is not a finite number (of the titles that the mask leaves at least), or shapes
        do not fit.
    """
    rows = _checked(queries, titles, k, mask)
    n, found = len(titles), min(k, len(titles))
    if mask is not None:
        left = np.flatnonzero(mask)
        if left.size < n // _FEW_LEFT:
            some = titles.rows(left) if isinstance(titles, Int8Rows) else titles[left]
            places, scores = nearest(rows, some, found, None, workers)
            places = left[places]
            short = ((0, 0), (0, found - places.shape[1]))
            return (
                np.pad(places, short, constant_values=-1),
                np.pad(scores, short, constant_values=-np.inf),
            )
    m, threads = len(rows), workers.threads if workers else 1
    by_queries = m >= threads * _QUERIES_PER_THREAD
    parts = threads if by_queries else min(threads, max(1, n // _TITLES_PER_THREAD))
    allowed = np.empty(0, np.bool_) if mask is None else np.ascontiguousarray(mask)
    places = np.full((m, found if by_queries else parts * found), -1)
    scores = np.full(places.shape, -np.inf)
    scan = _Scan(rows, titles, allowed, places, scores)
    tasks = []
    for part in range(parts):
        of_queries, of_titles = slice(0, m), (0, n)
        columns = slice(part * found, (part + 1) * found)
        if by_queries:
            of_queries = slice(m * part // parts, m * (part + 1) // parts)
            columns = slice(0, found)
        else:
            of_titles = (n * part // parts, n * (part + 1) // parts)
        tasks.append((scan.run, of_queries, columns, *of_titles))
    if found and m:
        if workers is None:
            for run, of_queries, columns, first, end in tasks:
                run(of_queries, columns, first, end)
        else:
            workers.run(tasks)
    if scan.wrong:
        raise SentembError(
            f"row {min(scan.wrong):,} of the titles has a value that is not a finite number, or "
            "one that is huge; correct it"
        )
    order = np.lexsort((places, -scores), axis=1)[:, :found]
    return np.take_along_axis(places, order, axis=1), np.take_along_axis(scores, order, axis=1)


class _Scan:
    """The queries and titles in the forms that the kernels take, and the heaps they fill."""

    def __init__(
        self,
        queries: np.ndarray,
        titles: np.ndarray | Int8Rows,
        allowed: NDArray[np.bool_],
        places: NDArray[np.int64],
        scores: NDArray[np.float64],
    ) -> None:
        self._exact = np.ascontiguousarray(queries, np.float64)
        with np.errstate(over="ignore"):
            self._single = np.ascontiguousarray(queries, np.float32)
        # A square may leave the range of float64, a length does not.
        self._norms = np.array([math.hypot(*row) for row in self._exact.tolist()], np.float64)
        self._allowed, self._places, self._scores = allowed, places, scores
        self.wrong: list[int] = []
        self._extra: tuple[Any, ...] = ()
        self._titles: tuple[np.ndarray, ...]
        if isinstance(titles, Int8Rows):
            self._kernel = scan_codes
            self._titles = (titles.codes, titles.scales)
            self._extra = _as_integers(self._exact)
        else:
            self._kernel = _KERNELS[titles.dtype.newbyteorder("=").name]
            titles = titles.view(np.uint16) if titles.dtype == np.float16 else titles
            self._titles = (np.ascontiguousarray(titles),)

    def run(self, of_queries: slice, columns: slice, first: int, end: int) -> None:
        """Put the best of the titles from ``first`` to ``end`` into a part of the heaps."""
        single = self._single[of_queries]
        places = np.ascontiguousarray(self._places[of_queries, columns])
        scores = np.ascontiguousarray(self._scores[of_queries, columns])
        wrong = self._kernel(
            places,
            scores,
            self._exact[of_queries],
            single,
            np.ascontiguousarray(single.T),
            self._norms[of_queries],
            *(each[of_queries] for each in self._extra),
            *self._titles,
            self._allowed,
            first,
            end,
        )
        if wrong >= 0:
            self.wrong.append(wrong)
        self._places[of_queries, columns], self._scores[of_queries, columns] = places, scores


_KERNELS = {"float16": scan_halves, "float32": scan_singles, "float64": scan_doubles}


def _as_integers(
    queries: NDArray[np.float64],
) -> tuple[NDArray[np.int16], NDArray[np.float64], NDArray[np.float64]]:
    """Queries as integers of 16 bits, the factor of each, and the length of what is lost."""
    most = min(2**15 - 1, _INT32 // (LARGEST * max(1, queries.shape[1])))
    steps = np.abs(queries).max(axis=1, initial=0) / most
    factors = np.divide(1, steps, out=np.zeros_like(steps), where=steps > 0)
    integers = np.rint(queries * factors[:, None])
    lost = np.linalg.norm(queries - integers * steps[:, None], axis=1)
    return integers.astype(np.int16), steps, lost


def _checked(
    queries: np.ndarray, titles: np.ndarray | Int8Rows, k: int, mask: NDArray[np.bool_] | None
) -> np.ndarray:
    """The queries, checked together with all else that `nearest` was given."""
    rows = np.asarray(queries)
    shape = titles.codes.shape if isinstance(titles, Int8Rows) else titles.shape
    if rows.ndim != 2 or len(shape) != 2 or rows.shape[1] != shape[1]:
        raise SentembError(
            f"queries of shape {rows.shape} and titles of shape {shape} have no dot products; give "
            "rows of equal length"
        )
    if not is_integer(k) or k < 0:
        raise SentembError(f"k is {brief(k)}; give the number of titles per query")
    if mask is not None and (mask.shape != (shape[0],) or mask.dtype != np.bool_):
        raise SentembError(f"the mask must be {shape[0]:,} times True or False, one per title")
    if not isinstance(titles, Int8Rows) and titles.dtype.newbyteorder("=").name not in _KERNELS:
        raise SentembError(f"titles are {titles.dtype}; give {', '.join(_KERNELS)} or Int8Rows")
    with np.errstate(over="ignore"):
        squares = np.square(rows, dtype=np.float64).sum(axis=1)
    if not np.isfinite(squares).all():
        row = np.flatnonzero(~np.isfinite(squares))[0]
        raise SentembError(
            f"row {row} of the queries has a value that is not a finite number, or one that is huge"
        )
    return rows


class TitleVectors:
    """A catalogue as vectors: a `sentemb.protocols.Retriever`.

    Parameters
    ----------
    embedder : Embedder
        What embeds queries and titles.
    titles : sequence of str
        The catalogue.
    """

    def __init__(self, embedder: Embedder, titles: Sequence[str]) -> None:
        self._embedder = embedder
        self._vectors = unit_rows(embedder.encode_document(titles))
        self._workers = Workers()

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The titles with the highest cosines; see `sentemb.protocols.Retriever`."""
        vectors = unit_rows(self._embedder.encode_query(queries))
        return nearest(vectors, self._vectors, k, workers=self._workers)
