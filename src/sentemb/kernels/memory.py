"""The memory of a click log: titles scored by the queries that they were clicked for."""

import numpy as np

from sentemb.kernels.jit import summing_kernel


@summing_kernel
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
    for q in range(first, end):
        query, best = queries[q], found[q]
        best[:] = -1
        for c in range(len(clicked)):
            row = clicked[c]
            product = np.float32(0)
            for j in range(query.size):
                product += query[j] * row[j]
            for entry in range(title_offsets[c], title_offsets[c + 1]):
                title = titles[entry]
                if product > best[title]:
                    best[title] = product
