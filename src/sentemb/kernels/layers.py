"""Layers of the encoders without recurrence: sums of words, and tanh layers over whole texts."""

from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.jit import kernel
from sentemb.kernels.matmul import add_matmul


@kernel
def sum_words(X, P, column, bias, word_index, offsets, first, end):
    """X[text] = bias + the sum of its words' projections, for the texts ``first`` to ``end``.

    X : (n_texts, n) float; P : (n_words, at least column + n) float; bias : (n,) float
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    """
    for text in range(first, end):
        x = X[text]
        x[:] = bias
        for token in range(offsets[text], offsets[text + 1]):
            p = P[word_index[token], column : column + x.size]
            for j in range(x.size):
                x[j] += p[j]


@kernel
def dense_tanh(Y, X, W, bias, first, end):
    """Y = tanh(X W + b) for the rows ``first`` to ``end``.

    Y : (rows, n) float; X : (rows, k) float; W : (k, n) float; bias : (n,) float
    """
    for r in range(first, end):
        Y[r] = bias
    add_matmul(Y[first:end], X[first:end], W)
    tanh_rows(Y, first, end, 0, Y.shape[1])


@kernel
def tanh_errors(D, V, Y, first, end):
    """D = V (1 - Y^2): the gradient at Z from that at Y = tanh(Z); D may be V.

    D, V, Y : (rows, n) float
    """
    one = Y.dtype.type(1)
    for r in range(first, end):
        d, v, y = D[r], V[r], Y[r]
        for j in range(y.size):
            d[j] = v[j] * (one - y[j] * y[j])


@kernel
def dense_errors(dX, D, W, first, end):
    """dX = D W, the gradient at a layer's input from that at its pre-activation.

    dX : (rows, k) float; D : (rows, n) float; W : (n, k) float, the forward pass's transposed.
    """
    for r in range(first, end):
        dX[r] = 0
    add_matmul(dX[first:end], D[first:end], W)


@kernel
def set_dense_gradient(dW, X, D, first, end):
    """dW = X^T D over the rows ``first`` to ``end``: (k, n), (rows, k), (rows, n) float."""
    dW[:] = 0
    add_matmul(dW, X[first:end].T, D[first:end])
