"""The first plane of a pair, equations (3) and (4) of Hu et al. (NIPS 2014), and back.

Layer 1 of ARC-II has a cell for each window i of the query and j of the title, W [x_i; y_j] + b =
u_i + v_j + b, where u_i and v_j belong to one text each. Layer 2 takes the maximum of 2 x 2 cells.
If a cell is on where both windows begin at a word, the maximum over the cells is that over the
query's two windows plus that over the title's. So each text is pooled alone, and the cells of
layer 1 are never computed. The units of a text are then its pooled windows.

The paper prints a gate that is on where either window has a word. For that gate the sum of maxima
is wrong at the edges, so `first_plane_forward_printed` looks at the cells of layer 1; the units of
a text are its windows. The plane is then as wide as the longest text.
"""

import numpy as np

from sentemb.kernels.compiling.jit import inner_kernel, kernel


@kernel
def first_plane_forward(
    Z, U, V, bias, u_starts, v_starts, query_index, title_index, planes, first, end
):
    """Z[p, q] = max(0, u_p + v_q + b): layers 1 and 2, equations (3) and (4), gate "and".

    Z : (n_cells, n) float, written: the cells of the pairs ``first`` to ``end``
    U, V : (n_units, n) float, pooled windows of the queries and of the titles
    bias : (n,) float
    u_starts, v_starts : (n_texts + 1,) int64, first unit of each query and title
    query_index, title_index : (n_pairs,) int32
    planes : Planes, rectangles: a row per unit of the query, a column per unit of the title
    """
    n = bias.size
    a, zero = np.empty(n, Z.dtype), Z.dtype.type(0)
    cell = 0
    for pair in range(first, end):
        u, v = u_starts[query_index[pair]], v_starts[title_index[pair]]
        width, rows = planes.shapes[pair, 1], planes.shapes[pair, 2]
        for p in range(rows):
            for f in range(n):
                a[f] = U[u + p, f] + bias[f]
            for q in range(width):
                z, b = Z[cell], V[v + q]
                for f in range(n):
                    sum_of_both = a[f] + b[f]
                    z[f] = zero if sum_of_both < zero else sum_of_both
                cell += 1


@kernel
def first_plane_backward(dU, dV, dbias, dZ, Z, rows_starts, columns_starts, planes, first, end):
    """Back from `first_plane_forward`: the errors of the units in each pair; dbias += their sum.

    dU, dV : (n_rows, n) float, written: sums of the errors over each row and over each column of
        each pair's plane
    dbias : (n,) float
    dZ, Z : (n_cells, n) float, the cells of the pairs ``first`` to ``end``
    rows_starts, columns_starts : (n_pairs + 1,) int64, first row of ``dU`` and ``dV`` of each pair
    """
    cell, zero = 0, Z.dtype.type(0)
    for pair in range(first, end):
        v = columns_starts[pair]
        for row in range(v, columns_starts[pair + 1]):
            dV[row] = 0
        width, rows = planes.shapes[pair, 1], planes.shapes[pair, 2]
        for p in range(rows):
            du = dU[rows_starts[pair] + p]
            du[:] = 0
            for q in range(width):
                dv, d, z = dV[v + q], dZ[cell], Z[cell]
                for f in range(du.size):
                    error = d[f] if z[f] > zero else zero
                    du[f] += error
                    dv[f] += error
                cell += 1
            for f in range(du.size):
                dbias[f] += du[f]


@inner_kernel
def _greatest(U, V, u, n_u, v, n_v, size, p, q, f):
    """The greatest u_i + v_j of block (p, q) that the printed gate leaves on, with i and j.

    Windows beyond a text's last are zero; a cell is on if one of its windows begins at a word.
    """
    most, at_i, at_j = U.dtype.type(-np.inf), -1, -1
    for i in range(2 * p, min(2 * p + 2, size)):
        for j in range(2 * q, min(2 * q + 2, size)):
            if i < n_u or j < n_v:
                a = U.dtype.type(0)
                if i < n_u:
                    a += U[u + i, f]
                if j < n_v:
                    a += V[v + j, f]
                if at_i < 0 or a > most:
                    most, at_i, at_j = a, i, j
    return most, at_i, at_j


@kernel
def first_plane_forward_printed(
    Z, U, V, bias, u_starts, v_starts, query_index, title_index, planes, size, first, end
):
    """Z[p, q] = max(0, greatest u_i + v_j + b of the block's cells that are on): gate "printed".

    Equations (3) and (4) to the letter.

    U, V : (n_units, n) float, windows of the queries and of the titles
    planes : Planes, the pooled cells, with an upper part of full width
    size : windows on each side of the whole plane
    The rest as for `first_plane_forward`
    """
    cell, zero = 0, Z.dtype.type(0)
    for pair in range(first, end):
        u, v = u_starts[query_index[pair]], v_starts[title_index[pair]]
        n_u = u_starts[query_index[pair] + 1] - u
        n_v = v_starts[title_index[pair] + 1] - v
        upper, width, rows, rest = planes.shapes[pair]
        for p in range(rows):
            for q in range(width if p < upper else rest):
                for f in range(bias.size):
                    most, _, _ = _greatest(U, V, u, n_u, v, n_v, size, p, q, f)
                    most += bias[f]
                    Z[cell, f] = zero if most < zero else most
                cell += 1


@kernel
def first_plane_backward_printed(
    dU, dV, dbias, dZ, Z, rows_starts, columns_starts,
    U, V, u_starts, v_starts, query_index, title_index, planes, size, first, end,
):  # fmt: skip
    """Back from `first_plane_forward_printed`; shapes as there and in `first_plane_backward`."""
    cell = 0
    for pair in range(first, end):
        u, v = u_starts[query_index[pair]], v_starts[title_index[pair]]
        n_u = u_starts[query_index[pair] + 1] - u
        n_v = v_starts[title_index[pair] + 1] - v
        to_u, to_v = rows_starts[pair], columns_starts[pair]
        for i in range(n_u):
            dU[to_u + i] = 0
        for j in range(n_v):
            dV[to_v + j] = 0
        upper, width, rows, rest = planes.shapes[pair]
        for p in range(rows):
            for q in range(width if p < upper else rest):
                for f in range(dbias.size):
                    if Z[cell, f] > 0:
                        _, i, j = _greatest(U, V, u, n_u, v, n_v, size, p, q, f)
                        error = dZ[cell, f]
                        dbias[f] += error
                        if i < n_u:
                            dU[to_u + i, f] += error
                        if j < n_v:
                            dV[to_v + j, f] += error
                cell += 1


@kernel
def sum_over_pairs(dT, errors, starts, pair_starts, offsets, pairs, first, end):
    """dT = the errors of each text's units, summed over its pairs in their order.

    dT : (n_units, n) float, written for the texts ``first`` to ``end``
    errors : (n_rows, n) float, dU or dV of `first_plane_backward`
    starts, pair_starts : (n_texts + 1,) int64, (n_pairs + 1,) int64, first unit of each text, and
        first row of ``errors`` of each pair
    offsets, pairs : (n_texts + 1,) int64, (n_pairs,) int32; the pairs of text t are
        ``pairs[offsets[t] : offsets[t + 1]]``
    """
    for text in range(first, end):
        low, high = starts[text], starts[text + 1]
        for unit in range(low, high):
            dT[unit] = 0
        for entry in range(offsets[text], offsets[text + 1]):
            pair = pairs[entry]
            row = pair_starts[pair]
            # A pair whose other text has no words has no cells, and no rows here.
            for unit in range(min(high - low, pair_starts[pair + 1] - row)):
                d, e = dT[low + unit], errors[row + unit]
                for f in range(d.size):
                    d[f] += e[f]
