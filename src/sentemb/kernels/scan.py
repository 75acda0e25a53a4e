"""The parts of a pass over all rows of a table for the highest dot products with some queries.

`sentemb.retrieval.nearest` computes products in float32, which is fast but has rounding errors.
`merge_rows` scores a row again if its product plus a bound on the error exceeds the lowest score
kept so far. This second score is a float64 sum in a fixed order. Only such scores are compared and
returned, so the result is that of scoring every row this way, whatever the fast products are
computed with.
"""

import numpy as np

from sentemb.kernels.compiling.jit import inner_kernel, inner_strict_kernel, kernel, summing_kernel
from sentemb.kernels.integer_dot import LANES, ROWS, four_dots
from sentemb.kernels.top_k import TOGETHER, any_above

_LARGEST = np.float32(3.4028234e38)
_QUARTER = 2.0**-22


@kernel
def merge_rows(row_numbers, scores, exact, errors, rows, scales, mask, low, products, flat):
    """Merge rows into the heaps of all queries.

    row_numbers, scores : (m, k) int64, (m, k) float64, updated: for each query a heap of the best
        rows so far, the worst of them first; -1 and -inf where a heap is not full. Rows must be
        merged in rising order: of equal scores the later row ranks after.
    exact : (m, dim) float64, the queries
    errors : (m,) float64, at least the errors of the products of each query
    rows, scales : (n, dim) any numbers, and (n,) float32, the factor of each row, or (0,)
    mask : (n,) bool, the rows that may be found, or (0,) for all
    low : the number of the first row
    products, flat : (n, m) and (n m,) float32, the same memory, which takes long to compile as a
        view here; approximate; NaN, where float32 overflowed, counts as high
    """
    m = len(exact)
    limits = np.empty(m, np.float32)
    for q in range(m):
        limits[q] = _limit(scores[q, 0], errors[q])
    n = len(products)
    for start in range(0, n, TOGETHER):
        end = min(start + TOGETHER, n)
        if m == 1 and not any_above(flat[start:end], limits[0]):
            continue
        for r in range(start, end):
            if not _any_above(products[r], limits) or (mask.size and not mask[r]):
                continue
            for q in range(m):
                if not products[r, q] <= limits[q]:
                    score = exact_dot(exact[q], rows[r])
                    if scales.size:
                        score *= scales[r]
                    if score > scores[q, 0]:
                        row_numbers[q, 0], scores[q, 0] = low + r, score
                        _sift(row_numbers[q], scores[q])
                        limits[q] = _limit(scores[q, 0], errors[q])


@inner_kernel
def _any_above(products, limits):
    """Whether a product is not at most its limit."""
    count = np.int32(0)
    for q in range(products.size):
        count += np.int32(not products[q] <= limits[q])
    return count > 0


@inner_kernel
def _limit(score, error):
    """The largest float32 product that cannot be of a row with more than ``score``, or NaN."""
    # The last term is for the rounding of the limit itself.
    limit = score - error - abs(score) * _QUARTER
    # Without a limit every row is scored: no product is at most NaN. (-inf would not do: a sum that
    # overflows float32 can be -inf too.)
    return np.float32(min(limit, _LARGEST)) if limit > -np.inf else np.float32(np.nan)


@inner_strict_kernel
def exact_dot(query, row):
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


@inner_kernel
def _sift(row_numbers, scores):
    """Move the first entry of a heap down until no child ranks after it.

    An empty entry ranks after all others; of equal scores the higher row ranks after.
    """
    root, size = 0, scores.size
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _is_after(row_numbers, scores, child + 1, child):
            child += 1
        if not _is_after(row_numbers, scores, child, root):
            return
        row_numbers[root], row_numbers[child] = row_numbers[child], row_numbers[root]
        scores[root], scores[child] = scores[child], scores[root]
        root = child


@inner_kernel
def _is_after(row_numbers, scores, a, b):
    return scores[a] < scores[b] or (scores[a] == scores[b] and row_numbers[a] > row_numbers[b])


@summing_kernel
def dots(products, tile, query):
    """products[r] = tile[r] · query, and the largest square of a row, NaN if one is NaN.

    products : (n,) float32, written; tile : (n, dim) float32; query : (dim,) float32
    """
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


@kernel
def integer_dots(products, codes, scales, query, step):
    """products[r] = step · scales[r] · (codes[r] · query); the sums are exact, in int32.

    products : (n,) float32, written; codes, scales : (n, dim) int8, contiguous, and (n,) float32
    query, step : (dim,) int16, float32; small enough for the sums to fit
    """
    n, dim = codes.shape
    steps = dim // LANES
    together = n - n % ROWS
    for r in range(0, together, ROWS):
        a, b, c, d = four_dots(codes, r, query, steps)
        for j in range(steps * LANES, dim):
            number = np.int32(query[j])
            a += np.int32(codes[r, j]) * number
            b += np.int32(codes[r + 1, j]) * number
            c += np.int32(codes[r + 2, j]) * number
            d += np.int32(codes[r + 3, j]) * number
        products[r] = np.float32(a) * scales[r] * step
        products[r + 1] = np.float32(b) * scales[r + 1] * step
        products[r + 2] = np.float32(c) * scales[r + 2] * step
        products[r + 3] = np.float32(d) * scales[r + 3] * step
    for r in range(together, n):
        total = np.int32(0)
        for j in range(dim):
            total += np.int32(codes[r, j]) * np.int32(query[j])
        products[r] = np.float32(total) * scales[r] * step


@summing_kernel
def largest_square(tile):
    """The largest square of a row of ``tile`` (n, dim) float32; NaN if one is NaN."""
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


@kernel
def widen(bits, halves):
    """The numbers of ``halves`` as float32, but short by a factor of 2^112.

    A half has 5 bits of exponent in the place of 8. Infinity and NaN become infinity and NaN: they
    alone have the highest exponent.

    bits : (n, dim) uint32, written: the bits of float32 numbers
    halves : (n, dim) uint16, the bits of float16 numbers
    """
    for r in range(len(halves)):
        for j in range(halves.shape[1]):
            half = np.uint32(halves[r, j])
            low = half & np.uint32(0x7FFF)
            sign = (half ^ low) << np.uint32(16)
            special = np.uint32(0x7F800000) * np.uint32(low >= np.uint32(0x7C00))
            bits[r, j] = sign | (low << np.uint32(13)) | special
