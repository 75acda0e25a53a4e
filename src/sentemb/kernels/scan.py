"""The highest dot products of queries with all rows of a table, selected during one pass.

A pass computes the products in float32, fast and with rounding errors. A row whose product, plus a
bound on its error, exceeds the lowest score kept so far is scored again by `_exact`: one chain of
float64 additions in a fixed order. Only these scores are compared and returned. So the result is
that of scoring every row by `_exact`, whatever the fast products are computed with.

The bound: a float32 sum of d products, in any order, fused or not, differs from the exact sum by
at most (d + 2) u |q| |t| / (1 - (d + 2) u) with u = 2^-24, where two of the roundings are those of
the entries themselves (Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., (3.5)).
"""

import math

import numpy as np

from sentemb.kernels.jit import kernel, strict_kernel, summing_kernel
from sentemb.kernels.matmul import add_matmul

# Rows and queries of one product: with 96 numbers in a row it stays in the second cache.
ROWS, QUERIES = 128, 128
# With fewer queries than this, one product per row and query is faster than tiles.
_FEW = 4
_LARGEST = np.float32(3.4028234e38)
_UNIT = 2.0**-24
# A float32 product below the normal numbers may become 0.
_TINY = 2.0**-125
_QUARTER = 2.0**-22


@kernel
def scan_singles(places, scores, exact, single, across, norms, titles, mask, first, end):
    """Merge the rows from ``first`` to ``end`` into the heaps of all queries.

    Parameters
    ----------
    places, scores : (m, k) int64, (m, k) float64, updated
        For each query a heap of the best rows so far, the worst of them first; -1 and -inf where a
        heap is not full. Rows are merged in rising order; a row with the score of a kept one ranks
        after it.
    exact : (m, dim) float64
        The queries.
    single, across : (m, dim) float32, (dim, m) float32
        The same, rounded, and transposed.
    norms : (m,) float64
        At least the lengths of the queries.
    titles : (n, dim) float32
    mask : (n,) bool, or (0,)
        The rows that may be found; empty for all.
    first, end : int

    Returns
    -------
    int
        A row with a value that is not finite; -1 if there is none.
    """
    S, T = np.empty((ROWS, QUERIES), np.float32), np.empty(QUERIES, np.float32)
    plain = np.empty(0, np.float32)
    for low in range(first, end, ROWS):
        tile = titles[low : min(low + ROWS, end)]
        wrong = _merge_tile(
            places, scores, exact, single, across, norms, tile, tile, plain, mask, low, S, T
        )
        if wrong >= 0:
            return wrong
    return -1


@kernel
def scan_doubles(places, scores, exact, single, across, norms, titles, mask, first, end):
    """As `scan_singles`, for ``titles`` (n, dim) float64."""
    dim = single.shape[1]
    S, T = np.empty((ROWS, QUERIES), np.float32), np.empty(QUERIES, np.float32)
    plain, rounded = np.empty(0, np.float32), np.empty((ROWS, dim), np.float32)
    for low in range(first, end, ROWS):
        tile = titles[low : min(low + ROWS, end)]
        some = rounded[: len(tile)]
        some[:] = tile
        wrong = _merge_tile(
            places, scores, exact, single, across, norms, some, tile, plain, mask, low, S, T
        )
        if wrong >= 0:
            return wrong
    return -1


@kernel
def scan_halves(places, scores, exact, single, across, norms, titles, mask, first, end):
    """As `scan_singles`, for ``titles`` (n, dim) uint16, the bits of float16."""
    dim = single.shape[1]
    S, T = np.empty((ROWS, QUERIES), np.float32), np.empty(QUERIES, np.float32)
    plain, bits = np.empty(0, np.float32), np.empty((ROWS, dim), np.uint32)
    singles = bits.view(np.float32)
    for low in range(first, end, ROWS):
        high = min(low + ROWS, end)
        for r in range(high - low):
            _widen(bits[r], singles[r], titles[low + r])
        some = singles[: high - low]
        wrong = _merge_tile(
            places, scores, exact, single, across, norms, some, some, plain, mask, low, S, T
        )
        if wrong >= 0:
            return wrong
    return -1


@kernel
def scan_codes(
    places, scores, exact, single, across, norms, short, steps, lost, titles, scales, mask,
    first, end,
):  # fmt: skip
    """As `scan_singles`, for rows of integers with a factor for each row.

    Few queries are multiplied as integers of 16 bits, which a processor adds up in pairs.

    Parameters
    ----------
    short, steps : (m, dim) int16, (m,) float64
        The queries as integers, and the factor of each. Sums of ``dim`` products with codes fit
        into 32 bits.
    lost : (m,) float64
        The lengths of the differences between the queries and these integers.
    titles : (n, dim) int8
        From -127 to 127.
    scales : (n,) float32
        The factor of each row, not negative.
    """
    m, dim = single.shape
    S, T = np.empty((ROWS, QUERIES), np.float32), np.empty(QUERIES, np.float32)
    widened = np.empty((ROWS if m >= _FEW else 0, dim), np.float32)
    longest = 127 * math.sqrt(dim)
    for low in range(first, end, ROWS):
        tile, scale = titles[low : min(low + ROWS, end)], scales[low : min(low + ROWS, end)]
        largest = np.float32(0)
        for r in range(len(tile)):
            if not np.float32(0) <= scale[r] <= _LARGEST:
                return low + r
            largest = max(largest, scale[r])
        if m >= _FEW:
            some = widened[: len(tile)]
            for r in range(len(tile)):
                for j in range(dim):
                    some[r, j] = np.float32(tile[r, j]) * scale[r]
            wrong = _merge_tile(
                places, scores, exact, single, across, norms, some, tile, scale, mask, low, S, T
            )
            if wrong >= 0:
                return wrong
            continue
        radius = longest * largest
        for q in range(m):
            for r in range(len(tile)):
                total = _integer_dot(tile[r], short[q])
                S[r, q] = total * scale[r] * steps[q]
            T[q] = _limit(scores[q, 0], lost[q] * radius + _error(norms[q], radius, dim))
        _merge(places, scores, exact, tile, scale, mask, low, S[: len(tile), :m], T[:m], 0)
    return -1


@kernel
def _merge_tile(
    places, scores, exact, single, across, norms, tile, rows, scales, mask, low, S, T
):  # fmt: skip
    """Merge the rows of one tile: ``tile`` in float32, ``rows`` and ``scales`` as they are stored.

    Returns a row with a value that is not finite, or -1.
    """
    m, dim = single.shape
    n = len(tile)
    if m == 1:
        largest = _dots_and_squares(S[:n, 0], tile, single[0])
    else:
        largest = _largest_square(tile)
    if not largest <= _LARGEST:
        # Squares of finite numbers may leave float32; then every row is scored in float64.
        wrong = _first_not_finite(rows)
        if wrong >= 0:
            return low + wrong
    radius = 1.001 * math.sqrt(largest) + math.sqrt(dim) * 2.0**-62
    for left in range(0, m, QUERIES):
        right = min(left + QUERIES, m)
        products, limits = S[:n, : right - left], T[: right - left]
        if 1 < m < _FEW:
            for r in range(n):
                for q in range(m):
                    products[r, q] = _dot(tile[r], single[q])
        elif m > 1:
            products[:] = 0
            add_matmul(products, tile, across[:, left:right])
        for q in range(left, right):
            limits[q - left] = _limit(scores[q, 0], _error(norms[q], radius, dim))
        _merge(places, scores, exact, rows, scales, mask, low, products, limits, left)
    return -1


@kernel
def _merge(places, scores, exact, rows, scales, mask, low, products, limits, left):
    """Score again what exceeds its limit and put it into the heap if it belongs there."""
    for r in range(len(products)):
        if not _any_above(products[r], limits) or (mask.size and not mask[low + r]):
            continue
        for q in range(limits.size):
            # A product that is NaN because float32 overflowed is scored again.
            if not products[r, q] <= limits[q]:
                score = _exact(exact[left + q], rows[r])
                if scales.size:
                    score *= scales[r]
                if score > scores[left + q, 0]:
                    places[left + q, 0], scores[left + q, 0] = low + r, score
                    _sift(places[left + q], scores[left + q])


@kernel
def _any_above(products, limits):
    """Whether a product is not at most its limit."""
    count = np.int32(0)
    for q in range(limits.size):
        count += np.int32(not products[q] <= limits[q])
    return count > 0


@kernel
def _error(norm, radius, dim):
    """At least the error of a float32 product of a query with a row of length ``radius``."""
    return 2 * (dim + 8) * _UNIT * norm * radius + dim * _TINY


@kernel
def _limit(score, error):
    """The largest float32 product that cannot be of a row with more than ``score``."""
    limit = score - error - abs(score) * _QUARTER
    # Infinity minus infinity: nothing is known, so everything is scored.
    return np.float32(min(limit, _LARGEST)) if limit == limit else np.float32(-np.inf)


@strict_kernel
def _exact(query, row):
    """The sum of the products in float64, in four parts in a fixed order."""
    a = b = c = d = 0.0
    whole = query.size - query.size % 4
    for j in range(0, whole, 4):
        a += query[j] * row[j]
        b += query[j + 1] * row[j + 1]
        c += query[j + 2] * row[j + 2]
        d += query[j + 3] * row[j + 3]
    for j in range(whole, query.size):
        a += query[j] * row[j]
    return (a + b) + (c + d)


@kernel
def _sift(places, scores):
    """Move the first entry of a heap down until no child ranks after it.

    An empty entry ranks after all others; of equal scores the higher place ranks after.
    """
    root, size = 0, scores.size
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _is_after(places, scores, child + 1, child):
            child += 1
        if not _is_after(places, scores, child, root):
            return
        places[root], places[child] = places[child], places[root]
        scores[root], scores[child] = scores[child], scores[root]
        root = child


@kernel
def _is_after(places, scores, a, b):
    return scores[a] < scores[b] or (scores[a] == scores[b] and places[a] > places[b])


@summing_kernel
def _dot(row, query):
    total = np.float32(0)
    for j in range(query.size):
        total += row[j] * query[j]
    return total


@summing_kernel
def _dots_and_squares(products, tile, query):
    """products[r] = tile[r] · query; returns the largest square of a row, NaN if one is NaN."""
    largest, unknown = np.float32(0), np.float32(0)
    for r in range(len(tile)):
        row = tile[r]
        total = square = np.float32(0)
        for j in range(query.size):
            total += row[j] * query[j]
            square += row[j] * row[j]
        products[r] = total
        if square > largest:
            largest = square
        elif not square <= largest:
            unknown = square
    return largest + unknown


@summing_kernel
def _largest_square(tile):
    """The largest square of a row, NaN if one is NaN."""
    largest, unknown = np.float32(0), np.float32(0)
    for r in range(len(tile)):
        row = tile[r]
        square = np.float32(0)
        for j in range(row.size):
            square += row[j] * row[j]
        if square > largest:
            largest = square
        elif not square <= largest:
            unknown = square
    return largest + unknown


@summing_kernel
def _integer_dot(codes, query):
    """The sum of products of int8 and int16 numbers, in int32."""
    total = np.int32(0)
    for j in range(query.size):
        total += np.int32(np.int16(codes[j])) * np.int32(query[j])
    return total


@kernel
def _first_not_finite(rows):
    """The first row whose square in float64 is not finite; -1 if there is none."""
    for r in range(len(rows)):
        square = 0.0
        for j in range(rows.shape[1]):
            square += np.float64(rows[r, j]) * np.float64(rows[r, j])
        if not square < np.inf:
            return r
    return -1


@kernel
def _widen(bits, singles, halves):
    """Numbers of 16 bits as float32: ``singles`` is a view of ``bits``.

    The exponent of a half is short by 112. Infinity and NaN become infinity: nothing else has their
    exponent.
    """
    factor = np.float32(2.0**112)
    for j in range(halves.size):
        half = np.uint32(halves[j])
        sign = (half & np.uint32(0x8000)) << np.uint32(16)
        bits[j] = sign | ((half & np.uint32(0x7FFF)) << np.uint32(13))
    for j in range(halves.size):
        special = (halves[j] & np.uint16(0x7C00)) == np.uint16(0x7C00)
        singles[j] = np.float32(np.inf) if special else singles[j] * factor
