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


@kernel
def best_clicked_of_pairs(
    found, queries, query_index, title_index, clicked, offsets, of_titles, first, end
):
    """found[p] = `best_clicked` of one query and one title, with the same bits.

    Parameters
    ----------
    found : (n_pairs,) float32, written
        -1 for a title without clicked queries.
    queries : (n_queries, dim) float32
        Rows of unit length, or zero.
    query_index, title_index : (n_pairs,) int64
        The query and the title of each pair.
    clicked : (n_clicked, dim) float32
        Clicked queries, rows of unit length.
    offsets, of_titles : (n_titles + 1,) int64, (n_entries,) int32
        Title t was clicked for the queries ``of_titles[offsets[t]:offsets[t + 1]]``.
    first, end : int
        The pairs to do.
    """
    dim = queries.shape[1]
    across = np.empty((dim, _CLICKED), np.float32)
    products = np.empty((1, _CLICKED), np.float32)
    for pair in range(first, end):
        query, title = query_index[pair], title_index[pair]
        best = np.float32(-1)
        for low in range(offsets[title], offsets[title + 1], _CLICKED):
            n = min(_CLICKED, offsets[title + 1] - low)
            for c in range(n):
                row = of_titles[low + c]
                products[0, c] = 0
                for j in range(dim):
                    across[j, c] = clicked[row, j]
            add_matmul(products[:, :n], queries[query : query + 1], across[:, :n])
            for c in range(n):
                best = max(best, products[0, c])
        found[pair] = best
