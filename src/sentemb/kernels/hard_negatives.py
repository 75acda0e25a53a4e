"""The titles that a model ranks highest for each query among those not clicked for it."""

import math

import numpy as np

from sentemb.kernels.jit import kernel
from sentemb.kernels.matmul import add_matmul

# Cosines are computed in tiles that stay in the processor's cache.
_QUERIES, _TITLES = 128, 2048


@kernel
def highest_titles(highest, Uq, UdT, clicked_offsets, clicked, first, end):
    """highest[q] = the titles with the largest cosines among those not clicked for q, in any order.

    Unlike `top_k` it selects while the cosines are computed, and keeps the order in which it found
    the titles: training draws from them by place.

    Parameters
    ----------
    highest : (n_queries, k) int32, written
        -1 where there are not enough titles.
    Uq : (n_queries, dim) float
        Normalised query embeddings.
    UdT : (dim, n_titles) float
        Normalised title embeddings, transposed.
    clicked_offsets, clicked : (n_queries + 1,) int64, (n,) int32
        The clicked titles of every query.
    first, end : int
        The queries to do.
    """
    n_titles, k = UdT.shape[1], highest.shape[1]
    S = np.empty((_QUERIES, _TITLES), Uq.dtype)
    kept = np.empty((_QUERIES, k), Uq.dtype)  # the cosines of highest[q]
    lowest = np.empty(_QUERIES, np.int64)  # the place of the smallest of them
    for low in range(first, end, _QUERIES):
        high = min(low + _QUERIES, end)
        highest[low:high] = -1
        kept[:] = -math.inf
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
                least = kept[r, lowest[r]]
                for j in range(right - left):
                    if s[j] > least:
                        highest[q, lowest[r]], kept[r, lowest[r]] = left + j, s[j]
                        lowest[r] = np.argmin(kept[r])
                        least = kept[r, lowest[r]]
