"""The order in which the recurrences visit tokens: blocks of texts, time step by time step."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.compiling.jit import kernel


def longest_first(offsets: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The texts that have words, from long to short, equally long ones in their own order.

    Returns the texts and the number of words of each, both (n,) int64; ``offsets`` is
    (n_texts + 1,) int64.
    """
    lengths = np.diff(offsets)
    # NumPy sorts numbers of one or two bytes in linear time.
    keys = (-lengths).astype(np.min_scalar_type(-int(lengths.max(initial=1))))
    order = np.argsort(keys, kind="stable")[: np.count_nonzero(lengths)]
    return order, lengths[order]


@kernel
def pack_blocks(order, offsets, word_index, block_texts):
    """Lay out the tokens of sorted texts so that each time step of a block is one run of rows.

    The texts of a block are sorted from long to short, so those still running at step t are the
    first ones of step t - 1: row k of step t follows row k of step t - 1, without padding.

    order : (n,) int64, non-empty texts from long to short; every ``block_texts`` of them are a
        block
    offsets, word_index : (n_texts + 1,) int64, (n_tokens,) int32

    Returns, in this order:

    block_steps : (n_blocks + 1,) int64; block b holds the steps ``block_steps[b]`` to
        ``block_steps[b + 1]``
    step_rows : (n_steps + 1,) int64; step s holds the rows ``step_rows[s]`` to ``step_rows[s + 1]``
    words, words_reversed : (n_rows,) int32, the word of every row for reading left to right, and
        right to left within each text
    tokens, tokens_reversed : (n_rows,) int64, the token of every row, likewise
    last_rows : (n,) int64, the row of the last step of each text of ``order``
    """
    n = order.size
    n_blocks = (n + block_texts - 1) // block_texts
    block_steps = np.zeros(n_blocks + 1, np.int64)
    for b in range(n_blocks):
        longest = order[b * block_texts]
        block_steps[b + 1] = block_steps[b] + offsets[longest + 1] - offsets[longest]
    step_rows = np.zeros(block_steps[-1] + 1, np.int64)
    n_rows = 0
    for k in range(n):
        n_rows += offsets[order[k] + 1] - offsets[order[k]]
    words = np.empty(n_rows, np.int32)
    words_reversed = np.empty(n_rows, np.int32)
    tokens = np.empty(n_rows, np.int64)
    tokens_reversed = np.empty(n_rows, np.int64)
    last_rows = np.empty(n, np.int64)
    row = 0
    for b in range(n_blocks):
        first = b * block_texts
        end = min(first + block_texts, n)
        for s in range(block_steps[b], block_steps[b + 1]):
            t = s - block_steps[b]
            for k in range(first, end):
                start = offsets[order[k]]
                length = offsets[order[k] + 1] - start
                if length <= t:
                    break
                tokens[row] = start + t
                tokens_reversed[row] = start + length - 1 - t
                words[row] = word_index[start + t]
                words_reversed[row] = word_index[start + length - 1 - t]
                if t == length - 1:
                    last_rows[k] = row
                row += 1
            step_rows[s + 1] = row
    return block_steps, step_rows, words, words_reversed, tokens, tokens_reversed, last_rows
