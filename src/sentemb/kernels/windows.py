"""Convolution over windows of ragged texts without copying the windows, and pooling over two.

The rows of a text lie together, followed by ``window - 1`` rows of zeros. A window is then
``window`` rows that lie together, and the next window begins one row further on. So one product
with rows that overlap (`overlapping`) does all windows of many texts. It also does those that begin
in the zeros between two texts, which nobody reads.

A text has ``units`` windows that are on and ``units + window - 1`` rows, of which the last may hold
words: its last windows hang over its end only if there is room in the longest text.
"""

import numpy as np
from numpy.lib.stride_tricks import as_strided

from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.matmul import add_matmul, add_matmul_at

# Rows that a product for the gradient of the weights takes at once. They are copied: without the
# rows between them the product is shorter, and faster where they lie together.
_GATHERED = 256


@kernel
def lay_out_words(S, P, word_index, offsets, starts, first, end):
    """The word vectors of each text as rows that lie together, then zeros.

    S : (n_rows, n) float, written for the texts ``first`` to ``end``; the rows of text t begin at
        ``starts[t]``
    P : (n_words, n) float
    word_index, offsets, starts : (n_tokens,) int32, (n_texts + 1,) int64, (n_texts + 1,) int64
    """
    for text in range(first, end):
        row = starts[text]
        for token in range(offsets[text], offsets[text + 1]):
            S[row] = P[word_index[token]]
            row += 1
        for beyond in range(row, starts[text + 1]):
            S[beyond] = 0


def overlapping(S: np.ndarray, window: int) -> np.ndarray:
    """The windows of the rows of S side by side: (n_rows - window + 1, window * columns), a view.

    Row r is ``S[r : r + window]`` in one. A product with it is a convolution; one with the errors
    of the windows, ``window - 1`` rows of zeros before them, is the gradient at S if the slices of
    the matrix are transposed and the last one comes first.

    S : (n_rows, columns) float, contiguous
    """
    n = max(0, len(S) - window + 1)
    windows: np.ndarray = as_strided(S, (n, window * S.shape[1]), S.strides)
    return windows


def flipped_slices(W: np.ndarray, window: int) -> np.ndarray:
    """W (window * m, n) for the gradient at the rows of `overlapping`.

    The result is (window * n, m): the transposed slices of W, the last row of the window first; a
    contiguous copy.
    """
    slices = W.reshape(window, -1, W.shape[1])[::-1].transpose(0, 2, 1)
    return np.ascontiguousarray(slices).reshape(-1, slices.shape[2])


@kernel
def products_at(C, c_rows, A, a_rows, B, bias):
    """C[c_rows[r]] = b + A[a_rows[r]] B for every r: only the windows that are on.

    C : (any, n) float, written; A : (any, k) float; B : (k, n) float; bias : (n,) float
    c_rows, a_rows : (m,) int64, each row of C at most once
    """
    for row in c_rows:
        for j in range(bias.size):
            C[row, j] = bias[j]
    add_matmul_at(C, c_rows, A, a_rows, B)


@kernel
def add_gradient_at(dB, dbias, A, D, rows):
    """dB += sum of A[r]^T D[r] over ``rows``, dbias += sum of D[r]: back from `products_at`.

    dB : (k, n) float; dbias : (n,) float; A : (any, k) float; D : (any, n) float; rows : (m,) int64
    """
    left = np.empty((_GATHERED, A.shape[1]), A.dtype)
    right = np.empty((_GATHERED, D.shape[1]), D.dtype)
    for low in range(0, rows.size, _GATHERED):
        size = min(_GATHERED, rows.size - low)
        for r in range(size):
            a, d = A[rows[low + r]], D[rows[low + r]]
            for k in range(a.size):
                left[r, k] = a[k]
            for j in range(d.size):
                right[r, j] = d[j]
                dbias[j] += d[j]
        add_matmul(dB, left[:size].T, right[:size])


@kernel
def pool_pairs(M, later, U, starts, pooled_starts, units, first, end):
    """M[p] = max(U[2p], U[2p + 1]) for each text: max pooling over two windows, layer 2.

    M : (n_pooled, n) float, written for the texts ``first`` to ``end``: ceil(units / 2) rows per
        text from ``pooled_starts`` on, then zeros up to the next text. The last one of an odd
        number is its only window. Without activation, which may come after.
    later : (n_pooled, n) bool, written: whether the second is greater; the first of equals wins;
        arbitrary where M is such a zero
    U : (n_rows, n) float
    starts, pooled_starts : (n_texts + 1,) int64, first row of U and of M of each text
    units : (n_texts,) int64, windows that are on
    """
    for text in range(first, end):
        row, to = starts[text], pooled_starts[text]
        for p in range(0, units[text], 2):
            m, bits, u = M[to], later[to], U[row + p]
            if p + 1 < units[text]:
                v = U[row + p + 1]
                for f in range(m.size):
                    bits[f] = (v[f] > u[f]) | (v[f] != v[f])  # NaN stays visible
                    m[f] = v[f] if bits[f] else u[f]
            else:
                copy_row(m, u)
                bits[:] = False
            to += 1
        for row in range(to, pooled_starts[text + 1]):
            M[row] = 0


@kernel
def unpool_pairs(dU, dM, later, starts, pooled_starts, units, first, end):
    """dU = dM at the greater of two windows, 0 elsewhere: back from `pool_pairs`.

    dU : (n_rows, n) float, written; the others as for `pool_pairs`
    """
    zero = dU.dtype.type(0)
    for text in range(first, end):
        row, to = starts[text], pooled_starts[text]
        for p in range(0, units[text], 2):
            d, bits, earlier = dM[to], later[to], dU[row + p]
            for f in range(d.size):
                earlier[f] = zero if bits[f] else d[f]
            if p + 1 < units[text]:
                following = dU[row + p + 1]
                for f in range(d.size):
                    following[f] = d[f] if bits[f] else zero
            to += 1
        for beyond in range(row + units[text], starts[text + 1]):
            dU[beyond] = 0


@kernel
def copy_units(to, source, to_starts, starts, units, first, end):
    """The first ``units`` rows of each text from one layout to another; the rest is 0."""
    for text in range(first, end):
        low, n = to_starts[text], units[text]
        for k in range(n):
            to[low + k] = source[starts[text] + k]
        for row in range(low + n, to_starts[text + 1]):
            to[row] = 0
