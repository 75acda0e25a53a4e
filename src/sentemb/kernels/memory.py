"""The best row of each title for a query: the kernels of the memory of a click log.

The rows of a title follow each other, so no list of titles is needed per row. Row r is the vector
``scales[r] * codes[r]`` of 8-bit integers.
"""

import numpy as np

from sentemb.kernels.compiling.jit import inner_kernel, kernel
from sentemb.kernels.prefetch import AHEAD, prefetch_row, prefetch_run
from sentemb.kernels.scan import exact_dot, integer_dots

# Rows whose products are in memory at a time.
_TOGETHER = 512


@kernel
def add_best(total, factor, products, offsets, low, first, end):
    """total[q, t] += factor · the largest product of the rows of title t; nothing without rows.

    total : (m, n_titles) float32, updated; factor : float32
    products : (n_rows, m) float32, those of the rows of the titles from ``first`` to ``end``
    offsets : (n_titles + 1,) int64; title t has the rows ``offsets[t]`` to ``offsets[t + 1]``
    low : ``offsets[first]``
    """
    m = products.shape[1]
    best = np.empty(m, np.float32)
    for title in range(first, end):
        start, stop = offsets[title] - low, offsets[title + 1] - low
        if start == stop:
            continue
        for q in range(m):
            best[q] = products[start, q]
        for r in range(start + 1, stop):
            for q in range(m):
                best[q] = max(best[q], products[r, q])
        for q in range(m):
            total[q, title] += factor * best[q]


@kernel
def add_best_of_one(total, factor, offsets, codes, scales, query, step, first, end):
    """total[t] += factor · the largest product of the rows of title t and one query.

    Products are made some hundreds at a time and stay in the nearest cache, so that the rows are
    all that is read.

    total : (n_titles,) float32, updated; factor : float32
    offsets, codes, scales : (n_titles + 1,) int64, (n_rows, dim) int8 and (n_rows,) float32
    query, step : as for `sentemb.kernels.scan.integer_dots`
    """
    line = np.empty(_TOGETHER, np.float32)
    title = first
    while title < end:
        low, stop = offsets[title], title + 1
        while stop < end and offsets[stop + 1] - low <= _TOGETHER:
            stop += 1
        n = offsets[stop] - low
        if n > line.size:
            line = np.empty(n, np.float32)
        products = line[:n]
        integer_dots(products, codes[low : low + n], scales[low : low + n], query, step)
        for t in range(title, stop):
            begin, behind = offsets[t] - low, offsets[t + 1] - low
            if begin < behind:
                highest = products[begin]
                for r in range(begin + 1, behind):
                    highest = max(highest, products[r])
                total[t] += factor * highest
        title = stop


@inner_kernel
def _ask_for(offsets, scales, codes, titles, k, end):
    """Ask for the rows of a title that comes soon after place ``k``, as far as ``end``."""
    if k + 2 * AHEAD < end:
        prefetch_run(offsets, titles[k + 2 * AHEAD], titles[k + 2 * AHEAD] + 2)
    if k + AHEAD < end:
        low, high = offsets[titles[k + AHEAD]], offsets[titles[k + AHEAD] + 1]
        prefetch_run(scales, low, high)
        for r in range(low, high):
            prefetch_row(codes, r)


@kernel
def best_of_titles(best, titles, offsets, codes, scales, query, step):
    """best[k] = the largest product of the rows of title k and one query; 0 without rows.

    best, titles : (n,) float32, written, and (n,) int64
    offsets, codes, scales, query, step : as for `add_best_of_one`
    """
    line = np.empty(_TOGETHER, np.float32)
    for k in range(titles.size):
        _ask_for(offsets, scales, codes, titles, k, titles.size)
        low, high = offsets[titles[k]], offsets[titles[k] + 1]
        if high - low > line.size:
            line = np.empty(high - low, np.float32)
        integer_dots(line[: high - low], codes[low:high], scales[low:high], query, step)
        best[k] = line[: high - low].max() if high > low else 0


@kernel
def best_of_pairs(
    scores, rows, queries, query_index, title_index, offsets, codes, scales, first, end
):
    """scores[p] = the largest product of one query with the rows of one title, in float64.

    scores, rows : (n_pairs,) float64, (n_pairs,) int64, written for the pairs ``first`` to ``end``:
        0 and -1 for a title without rows; of equal products the first row
    queries : (n_queries, dim) float64
    query_index, title_index : (n_pairs,) int64
    offsets : (n_titles + 1,) int64
    codes, scales : (n_rows, dim) int8, (n_rows,) float32
    """
    for p in range(first, end):
        _ask_for(offsets, scales, codes, title_index, p, end)
        query, title = queries[query_index[p]], title_index[p]
        scores[p], rows[p] = 0, -1
        for r in range(offsets[title], offsets[title + 1]):
            product = exact_dot(query, codes[r]) * scales[r]
            if rows[p] < 0 or product > scores[p]:
                scores[p], rows[p] = product, r
