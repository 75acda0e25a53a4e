"""The MLP of a pair model: ReLU layers over a pair's features and a linear output."""

from sentemb.kernels import sums
from sentemb.kernels.compiling.jit import kernel


@kernel
def relu_rows(Y, first, end):
    """Y = max(0, Y) for the rows ``first`` to ``end``: (rows, n) float. NaN stays NaN."""
    zero = Y.dtype.type(0)
    for r in range(first, end):
        y = Y[r]
        for j in range(y.size):
            if y[j] < zero:
                y[j] = zero


@kernel
def relu_errors(D, Y, scale, first, end):
    """D becomes the gradient before ReLU and dropout: D scale where Y > 0, else 0.

    At 0 the slope counts as 0. An output that was dropped is 0, so the mask is not needed.

    D : (rows, n) float; Y : (rows, n) float, the outputs of the layer after dropout;
    scale : float, 1 / (1 - rate)
    """
    zero, scale = D.dtype.type(0), D.dtype.type(scale)
    for r in range(first, end):
        d, y = D[r], Y[r]
        for j in range(y.size):
            d[j] = d[j] * scale if y[j] > zero else zero


@kernel
def join_rows(A, bias, Ax, queries, Ay, titles, first, end):
    """A[k] = bias + Ax[queries[k]] + Ay[titles[k]] for the pairs ``first`` to ``end``.

    The first layer of the MLP on two vectors side by side, W1 [h_x; h_y] + c1, in which each text's
    part is computed once, whatever the number of pairs that it is in.

    A : (n_pairs, n) float, written; bias : (n,) float; Ax, Ay : (n_queries, n), (n_titles, n) float
    queries, titles : (n_pairs,) int32
    """
    for k in range(first, end):
        a, ax, ay = A[k], Ax[queries[k]], Ay[titles[k]]
        for j in range(a.size):
            a[j] = bias[j] + ax[j] + ay[j]


@kernel
def output_rows(scores, Y, w, bias, first, end):
    """scores[k] = w . Y[k] + bias for the pairs ``first`` to ``end``.

    scores : (n_pairs,) float, written; Y : (n_pairs, n) float; w : (n,) float; bias : (1,) float
    """
    for k in range(first, end):
        scores[k] = sums.dot(Y[k], w) + bias[0]


@kernel
def output_errors(D, dw, dbias, V, Y, w, first, end):
    """The backward pass of `output_rows` for the pairs ``first`` to ``end``.

    D : (n_pairs, n) float, written, the gradient at Y; dw, dbias : (n,), (1,) float, added to;
    V : (n_pairs,) float, the gradient at the scores; Y, w : as for `output_rows`
    """
    for k in range(first, end):
        d, y, v = D[k], Y[k], V[k]
        dbias[0] += v
        for j in range(y.size):
            d[j] = v * w[j]
            dw[j] += v * y[j]


@kernel
def rows_of_texts(dX, dh, offsets, first, end):
    """dX[token] = dh[text] for every token of the texts ``first`` to ``end``.

    dX : (n_tokens, n) float, written; dh : (n_texts, n) float; offsets : (n_texts + 1,) int64
    """
    for text in range(first, end):
        for token in range(offsets[text], offsets[text + 1]):
            dX[token] = dh[text]
