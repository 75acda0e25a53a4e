"""The RNN: equation (1) forward, equation (10) backward. The printed recursion is exact.

With the identity in place of tanh it is the iRNN of Wieting et al. (2016), whose recursion has no
factor 1 - y^2.
"""

import numpy as np

from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.recurrent import cut_texts, start_errors


@kernel
def rnn_forward(Y, P, words, block_steps, step_rows, recurrent, linear, first, end):
    """Equation (1), y(t) = tanh(W l(t) + Wrec y(t-1) + b), in the blocks ``first`` to ``end``.

    Y : (n_rows, n) float, written; P : (n_words, n) float, W l + b of every distinct word
    words, block_steps, step_rows : see `pack_blocks`
    recurrent : (n, n) float, Wrec^T
    linear : whether the activation is the identity instead of tanh
    """
    n = Y.shape[1]
    for b in range(first, end):
        for s in range(block_steps[b], block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            for r in range(low, high):
                y, p = Y[r], P[words[r]]
                for j in range(n):
                    y[j] = p[j]
            if s > block_steps[b]:
                before = step_rows[s - 1]
                add_matmul(Y[low:high], Y[before : before + high - low], recurrent)
            if not linear:
                tanh_rows(Y, low, high, 0, n)


@kernel
def rnn_backward(
    D,
    Y,
    V,
    column,
    steps,
    recurrent,
    linear,
    window,
    first,
    end,
):
    """Equation (10): delta(t) = (1 - y^2) e(t), e(t-1) = Wrec^T delta(t), from e(m) = v.

    D : (n_rows, n) float, written: delta(t) of every row
    Y : as `rnn_forward` left it
    V, column : see `start_errors`
    steps : Steps
    recurrent : (n, n) float, Wrec, the transpose of the forward pass's
    linear : as in `rnn_forward`; then delta(t) = e(t)
    window : steps from each text's own end through which errors travel (truncation, the paper's T)
    """
    order, lengths, block_steps, step_rows, block_texts = steps
    n = Y.shape[1]
    unity = Y.dtype.type(1)  # an int would turn float32 into float64
    E = np.empty((block_texts, n), D.dtype)  # e(t) of the block's texts
    for b in range(first, end):
        first_text = b * block_texts
        running = 0
        for s in range(block_steps[b + 1] - 1, block_steps[b] - 1, -1):
            low, high = step_rows[s], step_rows[s + 1]
            t = s - block_steps[b]
            start_errors(E, V, column, order, first_text, running, high - low)
            running = high - low
            for k in range(cut_texts(lengths, first_text, running, t, window)):
                E[k] = 0
            if linear:
                for k in range(running):
                    copy_row(D[low + k], E[k])
            else:
                for k in range(running):
                    d, y, e = D[low + k], Y[low + k], E[k]
                    for j in range(n):
                        d[j] = (unity - y[j] * y[j]) * e[j]
            if t > 0:
                for k in range(running):
                    E[k] = 0
                add_matmul(E[:running], D[low:high], recurrent)
