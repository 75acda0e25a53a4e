"""Steps of the LSTM and the RNN: where a text's error starts, truncation, dL/dW_rec."""

from typing import NamedTuple

import numpy as np

from sentemb.kernels.compiling.jit import inlined_kernel, kernel
from sentemb.kernels.copying import copy_row
from sentemb.kernels.matmul import add_matmul


class Steps(NamedTuple):
    """The blocks and time steps of some texts; see `pack_blocks`.

    order, lengths : (n,) int64, the text of every packed column, from long to short, and its number
        of words
    block_steps, step_rows : (n_blocks + 1,) int64, (n_steps + 1,) int64
    block_texts : texts of a full block
    """

    order: np.ndarray
    lengths: np.ndarray
    block_steps: np.ndarray
    step_rows: np.ndarray
    block_texts: int


@inlined_kernel
def start_errors(E, V, column, order, first_text, first, end):
    """E[k] = V[text] for the texts ``first`` to ``end`` of a block, whose last step this is.

    The error e(m) = v at the last y, equation (15).

    E : (block texts, n) float
    V : (n_texts, dim) float, dL/dy of every text; this direction's part begins at ``column``
    order : (n,) int64, text of every packed column; the block begins at column ``first_text``
    """
    n = E.shape[1]
    for k in range(first, end):
        v = V[order[first_text + k], column : column + n]
        e = E[k]
        for j in range(n):
            e[j] = v[j]


@inlined_kernel
def cut_texts(lengths, first_text, running, step, window):
    """Count the texts of a block that are outside their last ``window`` steps at ``step``.

    They are the longest, so the first ones: running texts 0 up to the returned number.
    """
    cut = 0
    while cut < running and lengths[first_text + cut] - window > step:
        cut += 1
    return cut


@kernel
def copy_last_rows(embeddings, column, Y, order, last_rows, first, end):
    """embeddings[order[k], column:] = Y[last_rows[k]] for the packed texts ``first`` to ``end``.

    embeddings : (n_texts, at least column + n) float; Y : (n_rows, n) float
    order, last_rows : see `pack_blocks`
    """
    n = Y.shape[1]
    for k in range(first, end):
        copy_row(embeddings[order[k], column : column + n], Y[last_rows[k]])


@kernel
def set_recurrent_gradient(dR, Y, D, block_steps, step_rows, part, first, end):
    """dR[part] = sum over steps t > 1 of y(t-1) delta(t)^T: equation (9) for all gates at once.

    dR : (n_parts, n, G n) float, [dWrec_1^T, dWrec_3^T, ...], stacked like the recurrent matrices
    Y, D : (n_rows, n), (n_rows, G n) float, outputs, and errors at the pre-activations
    block_steps, step_rows : see `pack_blocks`
    first, end : the blocks that are summed up
    """
    sums = dR[part]
    sums[:] = 0
    for b in range(first, end):
        for s in range(block_steps[b] + 1, block_steps[b + 1]):
            low, high = step_rows[s], step_rows[s + 1]
            before = step_rows[s - 1]
            add_matmul(sums, Y[before : before + high - low].T, D[low:high])
