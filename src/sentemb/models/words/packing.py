"""The tokens of some texts packed for the recurrences."""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.packing import longest_first, pack_blocks
from sentemb.kernels.recurrent import Steps
from sentemb.models.words.workspace import spans_of

# Texts that run side by side: enough rows for an efficient product, few enough to stay in cache.
BLOCK_TEXTS = 64
# Those of a mini-batch, whose blocks are fewer: the longest is to keep no thread waiting.
TRAINED_TEXTS = 32
# A few texts are cut into as many blocks, so that several threads have work.
LEAST_BLOCKS = 8


class Packing:
    """Packed rows, steps and blocks of some texts; see `pack_blocks` for the arrays.

    A packed row belongs to one token. Texts without words have no row. A block has at most
    ``most_texts`` texts.
    """

    def __init__(
        self,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        most_texts: int = TRAINED_TEXTS,
    ) -> None:
        if offsets.size == 2 and word_index.size:
            self._lay_out_one_text(word_index)
            return
        self.order, self.lengths = longest_first(offsets)
        self.block_texts = max(1, min(most_texts, -(-self.order.size // LEAST_BLOCKS)))
        (
            self.block_steps,
            self.step_rows,
            words,
            words_reversed,
            tokens,
            tokens_reversed,
            self.last_rows,
        ) = pack_blocks(self.order, offsets, word_index, self.block_texts)
        # One per direction: left to right, right to left.
        self.words = (words, words_reversed)
        self.tokens = (tokens, tokens_reversed)

    def _lay_out_one_text(self, word_index: NDArray[np.int32]) -> None:
        """Lay out one text as `pack_blocks` would, without the cost of the call."""
        self.block_texts = 1
        (
            self.order,
            self.lengths,
            self.block_steps,
            self.step_rows,
            self.tokens,
            self.last_rows,
        ) = _one_text(word_index.size)
        self.words = (word_index, word_index[::-1].copy())

    @property
    def n_rows(self) -> int:
        """The number of packed rows, one per token."""
        return self.words[0].size

    @property
    def n_blocks(self) -> int:
        """The number of blocks."""
        return self.block_steps.size - 1

    @property
    def steps(self) -> Steps:
        """The arrays of the backward kernels, bundled."""
        return Steps(self.order, self.lengths, self.block_steps, self.step_rows, self.block_texts)

    def spans(self, cost: float, sums: int = 0) -> list[tuple[int, int, int]]:
        """Parts of the blocks, (part, first, end), if a row costs ``cost``: see `spans_of`."""
        return spans_of(self.step_rows[self.block_steps], cost, sums=sums)

    def texts_of(self, first: int, end: int) -> tuple[int, int]:
        """The first text of the blocks ``first`` to ``end`` in `order`, and the end of them."""
        return first * self.block_texts, min(end * self.block_texts, self.order.size)

    def rows_of_tokens(self, direction: int) -> NDArray[np.int64]:
        """The packed row of every token, (n_tokens,) int64."""
        rows = np.empty(self.n_rows, np.int64)
        rows[self.tokens[direction]] = np.arange(self.n_rows)
        return rows

    def block(self, number: int) -> Packing:
        """One block as a packing of its own, its rows counted from 0."""
        if self.n_blocks == 1:
            return self
        first_step, end_step = self.block_steps[number : number + 2]
        first_row, end_row = self.step_rows[first_step], self.step_rows[end_step]
        texts = slice(number * self.block_texts, (number + 1) * self.block_texts)
        block = copy.copy(self)
        block.order, block.lengths = self.order[texts], self.lengths[texts]
        block.block_steps = np.array([0, end_step - first_step])
        block.step_rows = self.step_rows[first_step : end_step + 1] - first_row
        block.last_rows = self.last_rows[texts] - first_row
        block.words = tuple(words[first_row:end_row] for words in self.words)
        block.tokens = tuple(tokens[first_row:end_row] for tokens in self.tokens)
        return block


@lru_cache(maxsize=64)
def _one_text(length: int) -> tuple[Any, ...]:
    """The part of the packing of a text of ``length`` words that does not depend on the words."""
    tokens = np.arange(length + 1)
    arrays = (np.zeros(1, np.int64), np.array([length]), np.array([0, length]), tokens)
    return *arrays, (tokens[:-1], tokens[-2::-1]), np.array([length - 1])
