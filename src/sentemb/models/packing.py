"""A batch laid out for the recurrences."""

import numpy as np

from sentemb.kernels.packing import pack_blocks
from sentemb.parallel import CHUNKS

# Texts that run side by side: enough rows for an efficient product, few enough to stay in cache.
BLOCK_TEXTS = 64


class Packing:
    """Rows, steps and blocks of a `TextBatch`; see `pack_blocks` for the arrays.

    Texts without words have no row.
    """

    def __init__(self, batch):
        lengths = np.diff(batch.offsets)
        order = np.argsort(-lengths, kind="stable")
        self.order = order[: np.count_nonzero(lengths)]
        self.lengths = lengths[self.order]
        # Few texts are spread over all chunks, so that threads have something to do.
        self.block_texts = max(1, min(BLOCK_TEXTS, -(-self.order.size // CHUNKS)))
        (
            self.block_steps,
            self.step_rows,
            words,
            words_reversed,
            tokens,
            tokens_reversed,
            self.last_rows,
        ) = pack_blocks(self.order, batch.offsets, batch.word_index, self.block_texts)
        # One per direction: left to right, right to left.
        self.words = (words, words_reversed)
        self.tokens = (tokens, tokens_reversed)

    @property
    def n_rows(self):
        return self.words[0].size

    @property
    def n_blocks(self):
        return self.block_steps.size - 1

    def rows_of_tokens(self, direction):
        """The row of every token, (n_tokens,) int64."""
        rows = np.empty(self.n_rows, np.int64)
        rows[self.tokens[direction]] = np.arange(self.n_rows)
        return rows
