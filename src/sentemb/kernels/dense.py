"""Scores of all titles: added up in float32, and the titles with scores from a limit on."""

import numpy as np

from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.prefetch import AHEAD, prefetch_row
from sentemb.kernels.scan import exact_dot
from sentemb.kernels.top_k import TOGETHER, any_above


@kernel
def add_products(total, factor, products, low):
    """total[q, low + r] += factor · products[r, q]; ``low`` is the title of the first row.

    total : (m, n_titles) float32, updated; factor : float32; products : (n, m) float32
    """
    n, m = products.shape
    for q in range(m):
        for r in range(n):
            total[q, low + r] += factor * products[r, q]


@kernel
def products_of_pairs(scores, queries, query_index, title_index, rows, scales, first, end):
    """scores[p] = the dot product of one query and one row, in float64 in a fixed order.

    scores : (n_pairs,) float64, written for the pairs ``first`` to ``end``
    queries : (n_queries, dim) float64
    query_index, title_index : (n_pairs,) int64
    rows, scales : (n, dim) float32 or int8, and (n,) float32, the factor of each row, or (0,)
    """
    for p in range(first, end):
        if p + AHEAD < end:
            prefetch_row(rows, title_index[p + AHEAD])
        score = exact_dot(queries[query_index[p]], rows[title_index[p]])
        if scales.size:
            score *= scales[title_index[p]]
        scores[p] = score


@kernel
def titles_from(titles, counts, total, limits, first, end):
    """The titles whose scores are at least a limit.

    titles : (m, room) int32, written for the queries ``first`` to ``end``: ascending; as many as
        there is room for
    counts : (m,) int64, written: how many there are, perhaps more than there is room for
    total : (m, n_titles) float32, -inf for titles that are not wanted
    limits : (m,) float64
    """
    n_titles = total.shape[1]
    for q in range(first, end):
        row, limit = total[q], limits[q]
        below = np.nextafter(np.float32(limit), np.float32(-np.inf))
        n = 0
        for start in range(0, n_titles, TOGETHER):
            stop = min(start + TOGETHER, n_titles)
            if any_above(row[start:stop], below):
                for title in range(start, stop):
                    # What is not a number is not left out: its exact score tells that a file is
                    # damaged.
                    if not row[title] < limit and row[title] != -np.inf:
                        if n < titles.shape[1]:
                            titles[q, n] = title
                        n += 1
        counts[q] = n
