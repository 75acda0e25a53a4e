"""The memory of a click log: titles scored by the queries that they were clicked for."""

import numpy as np

from sentemb.kernels.jit import kernel
from sentemb.kernels.matmul import add_matmul

# Products are computed in tiles that stay in the processor's cache.
_CLICKED, _QUERIES = 256, 64


@kernel
def best_clicked(found, queries, clicked, title_offsets, titles, first, end):
    """found[q, t] = the highest dot product of query q with a query that title t was clicked for.

    A product has the same bits whatever the other queries are.

    Parameters
    ----------
    found : (n_queries, n_titles) float32, written
        -1 for a title without clicked queries.
    queries : (n_queries, dim) float32
        Rows of unit length, or zero.
    clicked : (n_clicked, dim) float32
        Clicked queries, rows of unit length.
    title_offsets, titles : (n_clicked + 1,) int64, (n_entries,) int32
        Query c was clicked for the titles ``titles[title_offsets[c]:title_offsets[c + 1]]``.
    first, end : int
        The queries to do.
    """
    found[first:end] = -1
    S = np.empty((_CLICKED, _QUERIES), np.float32)
    across = np.empty((queries.shape[1], _QUERIES), np.float32)
    for low in range(first, end, _QUERIES):
        high = min(low + _QUERIES, end)
        n = high - low
        for r in range(n):
            for j in range(queries.shape[1]):
                across[j, r] = queries[low + r, j]
        for top in range(0, len(clicked), _CLICKED):
            some = clicked[top : top + _CLICKED]
            tile = S[: len(some), :n]
            tile[:] = 0
            add_matmul(tile, some, across[:, :n])
            for r in range(n):
                best = found[low + r]
                for c in range(len(some)):
                    product = tile[c, r]
                    for entry in range(title_offsets[top + c], title_offsets[top + c + 1]):
                        title = titles[entry]
                        if product > best[title]:
                            best[title] = product
