"""ARC-II's two-dimensional convolutions over the cells that are on, 2 x 2 pooling, and back.

Hu et al. (NIPS 2014), equations (4) to (6). A cell of a plane belongs to a window of the query and
a window of the title and holds one number per map. A cell that is off is neither stored nor
computed: the gate goes by position, so the cells that are on are a prefix of each row (`Planes`).
The planes of several pairs lie one after another, row by row, as rows of one matrix.

A convolution is a product for each of the k x k offsets of its window, of all cells that have a
neighbour at that offset which is on. So nothing is multiplied by a zero of the padding, and no cell
is copied for each window that it is in.
"""

from typing import NamedTuple

import numpy as np

from sentemb.kernels.compiling.jit import inner_kernel, kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.matmul import add_matmul, add_matmul_at

# Cells that a product for the gradient of the weights takes at once: what it reads twice must stay
# in the cache, and the sums over the cells are the same chain however they are cut.
_GATHERED = 256


class Planes(NamedTuple):
    """Planes of cells: which are on, and their rows in the arrays.

    shapes : (n_planes, 4) int64, ``upper, width, rows, rest``: rows 0 to ``upper`` have their first
        ``width`` cells on, rows ``upper`` to ``rows`` the first ``rest``; ``upper <= rows`` and
        ``rest <= width``; a rectangle has ``upper = rows``
    starts : (n_planes + 1,) int64, the number of each plane's first cell
    """

    shapes: np.ndarray
    starts: np.ndarray


@inner_kernel
def _neighbours(cells, neighbours, before, after, down, right, first, end):
    """List the cells of ``after`` whose neighbour at an offset is on in ``before``.

    Returns how many there are: cell ``cells[r]`` at (i, j) has the neighbour ``others[r]`` at
    (i + down, j + right). Both are counted from the first cell of plane ``first``.
    """
    count, cell = 0, 0
    for plane in range(first, end):
        upper, width, rows, rest = after.shapes[plane]
        from_upper, from_width, from_rows, from_rest = before.shapes[plane]
        start = before.starts[plane] - before.starts[first]
        for i in range(rows):
            here = width if i < upper else rest
            row = i + down
            if row < from_rows:
                above = min(row, from_upper)
                neighbour = start + above * from_width + (row - above) * from_rest + right
                there = from_width if row < from_upper else from_rest
                for j in range(min(here, there - right)):
                    cells[count] = cell + j
                    neighbours[count] = neighbour + j
                    count += 1
            cell += here
    return count


@kernel
def convolve_planes(Z, X, W, bias, before, after, back, first, end):
    """Z[i, j] = b + sum over o, p of X[i + o, j + p] W[o, p]: equation (6) without ReLU, or back.

    With ``back``, add to each neighbour from its cell instead: Z[i + o, j + p] = b + sum of X[i, j]
    W[o, p], with Z the cells of ``before`` and X those of ``after``. With the errors as X and the
    transposed matrices as W this is the gradient at the convolution's input.

    Z : (n_cells, n) float, written: the cells of the planes ``first`` to ``end`` of ``after``
    X : (n_cells before, m) float, those of ``before``
    W : (k, k, m, n) float; bias : (n,) float
    before, after : Planes
    """
    n_cells = X.shape[0] if back else Z.shape[0]
    cells, neighbours = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    for cell in range(Z.shape[0]):
        Z[cell] = bias
    to, source = (neighbours, cells) if back else (cells, neighbours)
    for o in range(W.shape[0]):
        for p in range(W.shape[1]):
            n = _neighbours(cells, neighbours, before, after, o, p, first, end)
            add_matmul_at(Z, to[:n], X, source[:n], W[o, p])


@kernel
def add_convolution_gradient(dW, dbias, X, D, before, after, first, end):
    """dW[o, p] += sum over i, j of X[i + o, j + p]^T D[i, j], and dbias += sum of D.

    dW, dbias : in the shapes of W and bias; X, D : as X and Z of `convolve_planes`
    """
    n_cells = D.shape[0]
    cells, neighbours = np.empty(n_cells, np.int64), np.empty(n_cells, np.int64)
    left = np.empty((_GATHERED, X.shape[1]), X.dtype)
    right = np.empty((_GATHERED, D.shape[1]), D.dtype)
    for o in range(dW.shape[0]):
        for p in range(dW.shape[1]):
            n = _neighbours(cells, neighbours, before, after, o, p, first, end)
            for low in range(0, n, _GATHERED):
                size = min(_GATHERED, n - low)
                for r in range(size):
                    left[r] = X[neighbours[low + r]]
                    right[r] = D[cells[low + r]]
                add_matmul(dW[o, p], left[:size].T, right[:size])
    for cell in range(n_cells):
        for f in range(D.shape[1]):
            dbias[f] += D[cell, f]


@kernel
def pool_planes(M, argmax, Z, before, after, first, end):
    """M = max(0, maximum over 2 x 2 cells of Z): equation (4), the ReLU after the maximum.

    The ReLU rises, so it may come before or after. In the last row or column of an odd plane, and
    at the edge of the cells that are on, the maximum is that of the cells that there are. Z has
    only the cells of the planes ``first`` to ``end``, M and ``argmax`` have those of all planes.

    M : (n_cells after, n) float, written
    argmax : (n_cells after, n) uint8, written: 2 (row - 2p) + (column - 2q) of the first greatest
        cell
    Z : (n_cells before, n) float
    before, after : Planes
    """
    zero = M.dtype.type(0)
    for plane in range(first, end):
        upper, width, rows, rest = before.shapes[plane]
        start = before.starts[plane] - before.starts[first]
        cell = after.starts[plane]
        for i in range(0, rows, 2):
            here = width if i < upper else rest
            at = start + min(i, upper) * width + (i - min(i, upper)) * rest
            below = 0 if i + 1 >= rows else width if i + 1 < upper else rest
            for j in range(0, here, 2):
                most, chosen = M[cell], argmax[cell]
                copy_row(most, Z[at + j])
                chosen[:] = 0
                for number in range(1, 4):
                    down, right = number // 2, number % 2
                    if j + right < (below if down else here):
                        z = Z[at + down * here + j + right]
                        for f in range(most.size):
                            greater = (z[f] > most[f]) | (z[f] != z[f])  # NaN stays visible
                            most[f] = z[f] if greater else most[f]
                            chosen[f] = number if greater else chosen[f]
                for f in range(most.size):
                    if most[f] < zero:
                        most[f] = zero
                cell += 1


@kernel
def unpool_planes(D, dM, M, argmax, before, after, first, end):
    """D = dM at the cell of each maximum that the ReLU lets pass, else 0: back from `pool_planes`.

    D : (n_cells before, n) float, written, the cells of the planes ``first`` to ``end``
    dM : (n_cells after, n) float, the cells of these planes
    M, argmax : as in `pool_planes`, the cells of all planes
    """
    offset, zero = after.starts[first], D.dtype.type(0)
    for plane in range(first, end):
        upper, width, rows, rest = before.shapes[plane]
        start = before.starts[plane] - before.starts[first]
        cell = after.starts[plane]
        for i in range(0, rows, 2):
            here = width if i < upper else rest
            at = start + min(i, upper) * width + (i - min(i, upper)) * rest
            below = 0 if i + 1 >= rows else width if i + 1 < upper else rest
            for j in range(0, here, 2):
                dm, most, chosen = dM[cell - offset], M[cell], argmax[cell]
                for number in range(4):
                    down, right = number // 2, number % 2
                    if j + right < (below if down else here):
                        d = D[at + down * here + j + right]
                        for f in range(d.size):
                            passes = (most[f] > zero) & (chosen[f] == number)
                            d[f] = dm[f] if passes else zero
                cell += 1


@kernel
def flatten_planes(H, M, planes, size, first, end):
    """H = the planes ``first`` to ``end`` as rows of full size, 0 where a cell is off.

    H : (n_planes, size * size * n) float, written; M : (n_cells, n) float, the cells of all planes
    """
    n = M.shape[1]
    for plane in range(first, end):
        upper, width, rows, rest = planes.shapes[plane]
        h, cell = H[plane], planes.starts[plane]
        h[:] = 0
        for i in range(rows):
            for j in range(width if i < upper else rest):
                column = (i * size + j) * n
                copy_row(h[column : column + n], M[cell])
                cell += 1


@kernel
def unflatten_planes(dM, dH, planes, size, first, end):
    """The gradient at the cells that are on: back from `flatten_planes`.

    dM : (n_cells, n) float, written, the cells of the planes ``first`` to ``end``
    dH : (n_planes, size * size * n) float
    """
    n, cell = dM.shape[1], 0
    for plane in range(first, end):
        upper, width, rows, rest = planes.shapes[plane]
        for i in range(rows):
            for j in range(width if i < upper else rest):
                column = (i * size + j) * n
                dM[cell] = dH[plane, column : column + n]
                cell += 1
