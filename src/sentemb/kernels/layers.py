"""Layers of the encoders without recurrence: sums and averages of words, dense layers."""

from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.matmul import add_matmul


@kernel
def sum_words(X, P, column, bias, word_index, offsets, first, end):
    """X[text] = bias + the sum of its words' projections, for the texts ``first`` to ``end``.

    X : (n_texts, n) float; P : (n_words, at least column + n) float; bias : (n,) float
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    """
    for text in range(first, end):
        x = X[text]
        copy_row(x, bias)
        for token in range(offsets[text], offsets[text + 1]):
            p = P[word_index[token], column : column + x.size]
            for j in range(x.size):
                x[j] += p[j]


@kernel
def average_words(X, read, P, word_index, offsets, first, end):
    """X[text] = the average of the words that are read, for the texts ``first`` to ``end``.

    g(x) = (1/n) sum of the word vectors, equation (1) of Wieting et al. (2016) and the input of the
    network of Iyyer et al. (2015). A word whose projection is zero is not read, because that is the
    projection of a word without known features; a text in which no word is read has the average 0.

    X : (n_texts, n) float; read : (n_texts,) int64, written, the number of words that are read
    P : (n_words, n) float; word_index, offsets : as for `sum_words`
    """
    for text in range(first, end):
        x = X[text]
        x[:] = 0
        read[text] = 0
        for token in range(offsets[text], offsets[text + 1]):
            p = P[word_index[token]]
            known = False
            for j in range(x.size):
                known |= p[j] != 0
                x[j] += p[j]
            if known:
                read[text] += 1
        if read[text] > 1:
            n = x.dtype.type(read[text])
            for j in range(x.size):
                x[j] /= n


@kernel
def divide_errors(dX, read, first, end):
    """The errors at the words of `average_words` from those at the averages, in place: dX / read.

    dX : (n_texts, n) float; read : (n_texts,) int64. A text in which no word is read passes its
    error on to words without features, where it changes nothing.
    """
    for text in range(first, end):
        if read[text] > 1:
            n = dX.dtype.type(read[text])
            for j in range(dX.shape[1]):
                dX[text, j] /= n


@kernel
def dense(Y, X, W, bias, first, end):
    """Y = X W + b for the rows ``first`` to ``end``.

    Y : (rows, n) float; X : (rows, k) float; W : (k, n) float; bias : (n,) float
    """
    for r in range(first, end):
        copy_row(Y[r], bias)
    add_matmul(Y[first:end], X[first:end], W)


@kernel
def dense_tanh(Y, X, W, bias, first, end):
    """Y = tanh(X W + b) for the rows ``first`` to ``end``; shapes as for `dense`."""
    dense(Y, X, W, bias, first, end)
    tanh_rows(Y, first, end, 0, Y.shape[1])


@kernel
def tanh_errors(D, V, Y, first, end):
    """D = V (1 - Y^2): the gradient at Z from that at Y = tanh(Z); D may be V.

    D, V, Y : (rows, n) float
    """
    unity = Y.dtype.type(1)
    for r in range(first, end):
        d, v, y = D[r], V[r], Y[r]
        for j in range(y.size):
            d[j] = v[j] * (unity - y[j] * y[j])


@kernel
def product_rows(C, A, B, first, end):
    """C = A B for the rows ``first`` to ``end`` of C.

    C : (rows, n) float; A : (rows, k) float, any strides; B : (k, n) float, rows contiguous.
    """
    for r in range(first, end):
        C[r] = 0
    add_matmul(C[first:end], A[first:end], B)


@kernel
def set_dense_gradient(dW, X, D, first, end):
    """dW = X^T D over the rows ``first`` to ``end``: (k, n), (rows, k), (rows, n) float."""
    dW[:] = 0
    add_matmul(dW, X[first:end].T, D[first:end])
