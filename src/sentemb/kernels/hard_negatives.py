"""The titles that a model ranks highest for each query among those not clicked for it.

`highest_titles` compares a query with all titles. `highest_of_clusters` compares it with those of
some clusters, which `lay_out_clusters` has put side by side.
"""

import math

import numpy as np

from sentemb.kernels.compiling.jit import inner_kernel, kernel
from sentemb.kernels.matmul import add_matmul

# Cosines are computed in tiles that stay in the processor's cache.
_QUERIES, _TITLES = 128, 2048


@kernel
def highest_titles(highest, Uq, UdT, clicked_offsets, clicked, first, end):
    """highest[q] = the titles with the largest cosines among those not clicked for q, in any order.

    Unlike `top_k` it selects while the cosines are computed, and keeps the order in which it found
    the titles: training draws from them by position.

    highest : (n_queries, k) int32, written for the queries ``first`` to ``end``; -1 where there are
        not enough titles
    Uq : (n_queries, dim) float, normalised query embeddings
    UdT : (dim, n_titles) float, normalised title embeddings, transposed
    clicked_offsets, clicked : (n_queries + 1,) int64, (n,) int32, the clicked titles of every query
    """
    n_titles, k = UdT.shape[1], highest.shape[1]
    S = np.empty((_QUERIES, _TITLES), Uq.dtype)
    cosines = np.empty((_QUERIES, k), Uq.dtype)  # the cosines of highest[q]
    lowest = np.empty(_QUERIES, np.int64)  # the column of the smallest of them
    for low in range(first, end, _QUERIES):
        high = min(low + _QUERIES, end)
        highest[low:high] = -1
        cosines[:] = -math.inf
        lowest[:] = 0
        for left in range(0, n_titles, _TITLES):
            right = min(left + _TITLES, n_titles)
            tile = S[: high - low, : right - left]
            tile[:] = 0
            add_matmul(tile, Uq[low:high], UdT[:, left:right])
            for r in range(high - low):
                q, s = low + r, tile[r]
                for entry in range(clicked_offsets[q], clicked_offsets[q + 1]):
                    if left <= clicked[entry] < right:
                        s[clicked[entry] - left] = -math.inf
                least = cosines[r, lowest[r]]
                for j in range(right - left):
                    if s[j] > least:
                        highest[q, lowest[r]], cosines[r, lowest[r]] = left + j, s[j]
                        lowest[r] = _least(cosines[r])
                        least = cosines[r, lowest[r]]


@kernel
def lay_out_clusters(blocks, Ud, titles, offsets, first, end):
    """Put the titles of each cluster side by side, transposed.

    blocks : (n_titles * dim,) float, written for the clusters ``first`` to ``end``: cluster c is
        the (dim, size) matrix from ``dim * offsets[c]`` to ``dim * offsets[c + 1]``
    Ud : (n_titles, dim) float, title embeddings
    titles, offsets : (n_titles,) int32, (n_clusters + 1,) int64; cluster c has
        ``titles[offsets[c]:offsets[c + 1]]``
    """
    for c in range(first, end):
        block = _block(blocks, Ud.shape[1], offsets, c)
        for j in range(block.shape[1]):
            row = Ud[titles[offsets[c] + j]]
            for i in range(row.size):
                block[i, j] = row[i]


@kernel
def highest_of_clusters(
    highest,
    Uq,
    probed,
    clicked_offsets,
    clicked,
    blocks,
    titles,
    offsets,
    position_of,
    first,
    end,
):
    """highest[q] = the titles with the largest cosines in some clusters, without those clicked.

    Queries of one cluster are multiplied with its titles together, cluster after cluster in the
    order of their numbers. What a query finds does not depend on the other queries.

    highest, Uq, clicked_offsets, clicked, first, end : as for `highest_titles`
    probed : (n_queries, n_probed) int32, the clusters of every query, each once
    blocks, titles, offsets : from `lay_out_clusters`, of normalised embeddings
    position_of : (n_titles,) int32; ``titles[position_of[t]]`` is t
    """
    dim, k, n_clusters = Uq.shape[1], highest.shape[1], offsets.size - 1
    S = np.empty((_QUERIES, _TITLES), Uq.dtype)
    U = np.empty((_QUERIES, dim), Uq.dtype)
    cosines = np.full((end - first, k), -math.inf, Uq.dtype)  # the cosines of highest[q]
    lowest = np.zeros(end - first, np.int64)  # the column of the smallest of them
    highest[first:end] = -1
    starts, asking = _queries_of_clusters(probed, n_clusters, first, end)
    for c in range(n_clusters):
        block = _block(blocks, dim, offsets, c)
        for low in range(starts[c], starts[c + 1], _QUERIES):
            queries = asking[low : min(low + _QUERIES, starts[c + 1])]
            for r in range(queries.size):
                U[r] = Uq[queries[r]]
            for left in range(0, block.shape[1], _TITLES):
                right = min(left + _TITLES, block.shape[1])
                tile = S[: queries.size, : right - left]
                tile[:] = 0
                add_matmul(tile, U[: queries.size], block[:, left:right])
                position = offsets[c] + left  # of the first title of the tile
                for r in range(queries.size):
                    q, s = queries[r], tile[r]
                    for entry in range(clicked_offsets[q], clicked_offsets[q + 1]):
                        j = position_of[clicked[entry]] - position
                        if 0 <= j < s.size:
                            s[j] = -math.inf
                    of_query, worst = cosines[q - first], lowest[q - first]
                    least = of_query[worst]
                    for j in range(s.size):
                        if least < s[j]:
                            highest[q, worst], of_query[worst] = titles[position + j], s[j]
                            worst = _least(of_query)
                            least = of_query[worst]
                    lowest[q - first] = worst


@inner_kernel
def _least(numbers):
    """`numpy.argmin` of numbers without NaN; Numba takes 0.1 s to compile that."""
    least = 0
    for j in range(1, numbers.size):
        if numbers[j] < numbers[least]:
            least = j
    return least


@inner_kernel
def _block(blocks, dim, offsets, cluster):
    """The (dim, size) matrix of one cluster."""
    low, high = offsets[cluster], offsets[cluster + 1]
    return blocks[dim * low : dim * high].reshape(dim, high - low)


@inner_kernel
def _queries_of_clusters(probed, n_clusters, first, end):
    """The queries from ``first`` to ``end`` by cluster: offsets and queries, in their order."""
    starts = np.zeros(n_clusters + 1, np.int64)
    for q in range(first, end):
        for c in probed[q]:
            starts[c + 1] += 1
    starts = np.cumsum(starts)
    asking = np.empty(starts[n_clusters], np.int64)
    free = starts.copy()
    for q in range(first, end):
        for c in probed[q]:
            asking[free[c]] = q
            free[c] += 1
    return starts, asking
