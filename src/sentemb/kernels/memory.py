"""The memory of a click log: titles scored by the queries that they were clicked for."""

import numpy as np

from sentemb.kernels.copying import copy_row
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
    found, queries, query_index, pair_offsets, pairs, clicked, offsets, of_titles, first, end
):
    """found[p] = `best_clicked` of one query and one title, with the same bits.

    The clicked queries of a title are read once for all pairs with it, and only if there are any.

    Parameters
    ----------
    found : (n_pairs,) float32, written
        -1 for a title without clicked queries.
    queries : (n_queries, dim) float32
        Rows of unit length, or zero.
    query_index : (n_pairs,) int64
        The query of each pair.
    pair_offsets, pairs : (n_titles + 1,) int64, (n_pairs,) int64
        Title t is in the pairs ``pairs[pair_offsets[t]:pair_offsets[t + 1]]``.
    clicked : (n_clicked, dim) float32
        Clicked queries, rows of unit length.
    offsets, of_titles : (n_titles + 1,) int64, (n_entries,) int32
        Title t was clicked for the queries ``of_titles[offsets[t]:offsets[t + 1]]``.
    first, end : int
        The titles to do.
    """
    dim = queries.shape[1]
    S = np.empty((_QUERIES, _CLICKED), np.float32)
    asked = np.empty((_QUERIES, dim), np.float32)
    across = np.empty((dim, _CLICKED), np.float32)
    for title in range(first, end):
        for pair in pairs[pair_offsets[title] : pair_offsets[title + 1]]:
            found[pair] = -1
        if pair_offsets[title] == pair_offsets[title + 1]:
            continue
        for top in range(offsets[title], offsets[title + 1], _CLICKED):
            some = of_titles[top : min(top + _CLICKED, offsets[title + 1])]
            for c in range(some.size):
                for j in range(dim):
                    across[j, c] = clicked[some[c], j]
            for low in range(pair_offsets[title], pair_offsets[title + 1], _QUERIES):
                own = pairs[low : min(low + _QUERIES, pair_offsets[title + 1])]
                for r in range(own.size):
                    copy_row(asked[r], queries[query_index[own[r]]])
                tile = S[: own.size, : some.size]
                tile[:] = 0
                add_matmul(tile, asked[: own.size], across[:, : some.size])
                for r in range(own.size):
                    found[own[r]] = max(found[own[r]], tile[r].max())
