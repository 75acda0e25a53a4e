"""Exact search for the nearest titles: the highest dot products of rows."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.scan import dots, integer_dots, largest_square, merge_rows, widen
from sentemb.retrieval.int8_rows import LARGEST, Int8Rows
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.bounds import brief, is_integer
from sentemb.system.parallel import Workers

if TYPE_CHECKING:
    from sentemb.models.contracts import Embedder

# A thread gets at least this many queries, or else this many titles.
_QUERIES_PER_THREAD, _TITLES_PER_THREAD = 32, 4096
# A mask that leaves fewer than one title in this many is turned into a copy of those titles.
_FEW_LEFT = 8
# With fewer queries than this, one product per row and query is faster than a matrix product.
_FEW = 4
# Titles and queries of one product. With 96 numbers in a row it stays in the processor's caches.
_TITLES_OF_FEW, _TITLES, _QUERIES = 8192, 1024, 128
# Rounding to float32, and the largest product that may become 0 there.
_UNIT, _TINY = 2.0**-24, 2.0**-125
# Rows of this length may have products that leave float32.
_HUGE = 1e18
# What `widen` leaves to do.
_WIDEN = np.float32(2.0**112)
_TYPES = (np.float16, np.float32, np.float64)
_NO_MASK, _NO_SCALES = np.empty(0, np.bool_), np.empty(0, np.float32)


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
    with equal vectors have equal scores.

    Products in float32 decide which titles get such a score. A float32 sum of d products of
    rounded numbers, in any order, differs from the exact sum by at most
    (d + 2) u |q| |t| / (1 - (d + 2) u), with u = 2^-24 (Higham, *Accuracy and Stability of
    Numerical Algorithms*, 2nd ed., (3.5)). Twice (d + 8) u |q| |t| is used, with the length of the
    longest title of the block: a title is left out only if its product plus this bound is not above
    the k-th best score so far. For int8 the few queries that are multiplied as integers add the
    length of what rounding to 16 bits takes from the query, times the length of the title.

    ``queries`` (m, dim) are float32 or float64; rows of unit length give cosines with titles of
    unit length. ``titles`` (n, dim), float16, float32, float64 or `Int8Rows`, may be mapped from a
    file. ``mask`` (n,) are the titles that may be found, by default all; ``workers`` are by default
    the calling thread alone.

    Returns rows of ``titles`` and their dot products, (m, min(k, n)) each, highest first, equal
    ones in the order of the rows; -1 and -inf where the mask leaves fewer. Raises `SentembError` if
    a value is not a finite number (of titles too far from the mask's, perhaps not noticed), or
    shapes do not fit.
    """
    exact = _checked(queries, titles, k, mask)
    m, n = len(exact), len(titles)
    k = min(k, n)
    if mask is not None:
        left = np.flatnonzero(mask)
        if left.size < n // _FEW_LEFT:
            allowed = titles.rows(left) if isinstance(titles, Int8Rows) else titles[left]
            best, best_scores = nearest(exact, allowed, k, None, workers)
            positions, scores = _empty_heaps(m, k)
            positions[:, : best.shape[1]], scores[:, : best.shape[1]] = left[best], best_scores
            return positions, scores
    positions, scores = _empty_heaps(m, k)
    if not m or not k:
        return positions, scores
    threads = workers.threads if workers else 1
    heaps = []
    if m >= threads * _QUERIES_PER_THREAD:
        for part in range(threads):
            block = slice(m * part // threads, m * (part + 1) // threads)
            heaps.append((positions[block], scores[block], exact[block], 0, n))
    else:
        parts = min(threads, max(1, n // _TITLES_PER_THREAD))
        for part in range(parts):
            heap = _empty_heaps(m, k)
            heaps.append((*heap, exact, n * part // parts, n * (part + 1) // parts))
    tasks = [(_scan, titles, mask, *heap) for heap in heaps]
    if workers is None:
        _scan(titles, mask, *heaps[0])
    else:
        workers.run(tasks)
    if m < threads * _QUERIES_PER_THREAD:
        positions, scores = (np.concatenate([heap[of] for heap in heaps], axis=1) for of in (0, 1))
    order = np.lexsort((positions, -scores), axis=1)[:, :k]
    return np.take_along_axis(positions, order, axis=1), np.take_along_axis(scores, order, axis=1)


def _empty_heaps(m: int, k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    return np.full((m, k), -1), np.full((m, k), -np.inf)


def _scan(
    titles: np.ndarray | Int8Rows,
    mask: NDArray[np.bool_] | None,
    positions: NDArray[np.int64],
    scores: NDArray[np.float64],
    exact: NDArray[np.float64],
    first: int,
    end: int,
) -> None:
    """Merge the titles from ``first`` to ``end`` into the heaps of some queries."""
    queries = _Queries(exact)
    m, dim = exact.shape
    size = _TITLES_OF_FEW if m < _FEW else _TITLES
    buffer = np.empty(size * min(m, _QUERIES), np.float32)
    is_half = not isinstance(titles, Int8Rows) and titles.dtype == np.float16
    bits = np.empty((size if is_half else 0, dim), np.uint32)
    for low in range(first, end, size):
        block = slice(low, min(low + size, end))
        rows: np.ndarray
        scales, tile = _NO_SCALES, None
        if isinstance(titles, Int8Rows):
            codes, scales = titles.codes[block], titles.scales[block]
            rows = codes
            # A damaged file may have -128, too.
            radius = (LARGEST + 1) * math.sqrt(dim) * float(np.abs(scales).max())
            if not radius < np.inf:
                raise _not_finite(low, scales[:, None])
            if m >= _FEW:
                tile = rows * scales[:, None]
        else:
            rows = np.ascontiguousarray(titles[block])
            if is_half:
                widen(bits, rows.view(np.uint16))
                tile = rows = bits[: len(rows)].view(np.float32)
                tile *= _WIDEN
            else:
                with np.errstate(over="ignore"):
                    tile = rows.astype(np.float32, copy=False)
        allowed = _NO_MASK if mask is None else mask[block]
        for left in range(0, m, _QUERIES):
            right = min(left + _QUERIES, m)
            products = buffer[: len(rows) * (right - left)].reshape(len(rows), right - left)
            if tile is None:
                errors = queries.integer_products(products, codes, scales, radius)
            else:
                square = queries.products(products, tile, left, right)
                if not square < np.inf:
                    # Squares of finite numbers may leave float32: then all are scored in float64.
                    _check_finite(low, rows)
                    square = np.inf
                radius = 1.001 * math.sqrt(square) + math.sqrt(dim) * 2.0**-62
                errors = queries.errors(radius)[left:right]
            merge_rows(
                positions[left:right],
                scores[left:right],
                exact[left:right],
                errors,
                rows,
                scales,
                allowed,
                low,
                products,
                products.ravel(),
            )


class _Queries:
    """Queries in float32, and as integers, with bounds on the errors of products."""

    def __init__(self, exact: NDArray[np.float64]) -> None:
        m, self._dim = exact.shape
        self._exact = exact
        with np.errstate(over="ignore"):
            self._single = exact.astype(np.float32)
        self._across = [
            np.ascontiguousarray(self._single[left : left + _QUERIES].T)
            for left in range(0, m, _QUERIES)
        ]
        # A square may be too small for float64, a length is not. What is added makes up for numbers
        # that lose digits in float32 because they are tiny.
        lost = math.sqrt(self._dim) * 2.0**-100
        self._lengths = np.array([math.hypot(*row) for row in exact.tolist()]) + lost
        self._integers: tuple[NDArray[np.int16], NDArray[np.float64], NDArray[np.float64]] | None
        self._integers = None

    def errors(self, radius: float) -> NDArray[np.float64]:
        """At least the errors of float32 products with rows of at most this length."""
        if not radius < _HUGE:
            return np.full(len(self._lengths), np.inf)
        errors = 2 * (self._dim + 8) * _UNIT * self._lengths * radius + self._dim * _TINY
        errors[self._lengths > _HUGE] = np.inf
        return errors

    def products(
        self, products: NDArray[np.float32], tile: NDArray[np.float32], left: int, right: int
    ) -> float:
        """Write ``tile`` times some of the queries; returns the largest square of a row."""
        if len(self._exact) < _FEW:
            return max(dots(products[:, q], tile, self._single[q]) for q in range(len(self._exact)))
        products[:] = 0
        add_matmul(products, tile, self._across[left // _QUERIES])
        return float(largest_square(tile))

    def integer_products(
        self,
        products: NDArray[np.float32],
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        radius: float,
    ) -> NDArray[np.float64]:
        """Write the products of rows of at most a length; returns what bounds their errors."""
        if self._integers is None:
            self._integers = _as_integers(self._exact)
        short, steps, lost = self._integers
        line = np.empty(len(codes), np.float32)
        for q, query in enumerate(short):
            with np.errstate(over="ignore"):
                integer_dots(line, codes, scales, query, np.float32(steps[q]))
            products[:, q] = line
        return self.errors(radius) + lost * radius


def _as_integers(
    queries: NDArray[np.float64],
) -> tuple[NDArray[np.int16], NDArray[np.float64], NDArray[np.float64]]:
    """Queries as integers of 16 bits, the factor of each, and the length of what is lost."""
    # Sums of products with codes must fit into 32 bits.
    most = min(2**15 - 1, (2**31 - 1) // ((LARGEST + 1) * max(1, queries.shape[1])))
    steps = np.abs(queries).max(axis=1, initial=0) / most
    integers = np.rint(queries / np.where(steps > 0, steps, 1)[:, None])
    lost = np.linalg.norm(queries - integers * steps[:, None], axis=1)
    return integers.astype(np.int16), steps, lost


def _check_finite(low: int, rows: np.ndarray) -> None:
    """Raise a `SentembError` if the square of a row is not a number that float64 can hold."""
    with np.errstate(over="ignore"):
        squares = np.square(rows, dtype=np.float64).sum(axis=1)
    if not np.isfinite(squares).all():
        raise _not_finite(low, squares[:, None])


def _not_finite(low: int, rows: np.ndarray) -> SentembError:
    row = low + int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
    return SentembError(
        f"row {row:,} of the titles has a value that is not a finite number, or is huge; correct it"
    )


def _checked(
    queries: np.ndarray, titles: np.ndarray | Int8Rows, k: int, mask: NDArray[np.bool_] | None
) -> NDArray[np.float64]:
    """The queries in float64, checked together with all else that `nearest` was given."""
    shape = titles.codes.shape if isinstance(titles, Int8Rows) else titles.shape
    if queries.ndim != 2 or len(shape) != 2 or queries.shape[1] != shape[1]:
        raise SentembError(
            f"queries of shape {queries.shape} and titles of shape {shape} have no dot products; "
            "give rows of equal length"
        )
    if not is_integer(k) or k < 0:
        raise SentembError(f"k is {brief(k)}; give the number of titles per query")
    if mask is not None and (mask.shape != (shape[0],) or mask.dtype != np.bool_):
        raise SentembError(f"the mask must be {shape[0]:,} times True or False, one per title")
    if not isinstance(titles, Int8Rows) and titles.dtype not in _TYPES:
        raise SentembError(f"titles are {titles.dtype}; give float16, float32, float64 or Int8Rows")
    exact = np.ascontiguousarray(queries, np.float64)
    with np.errstate(over="ignore"):
        squares = np.square(exact).sum(axis=1)
    if not np.isfinite(squares).all():
        row = np.flatnonzero(~np.isfinite(squares))[0]
        raise SentembError(
            f"row {row} of the queries has a value that is not a finite number, or is huge"
        )
    return exact


class TitleVectors:
    """A catalogue as vectors: a `sentemb.models.contracts.Retriever`."""

    def __init__(self, embedder: "Embedder", titles: Sequence[str]) -> None:
        self._embedder = embedder
        self._vectors = unit_rows(embedder.encode_document(titles))
        self._workers = Workers()

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The titles with the highest cosines; see `sentemb.models.contracts.Retriever`."""
        vectors = unit_rows(self._embedder.encode_query(queries))
        return nearest(vectors, self._vectors, k, workers=self._workers)
