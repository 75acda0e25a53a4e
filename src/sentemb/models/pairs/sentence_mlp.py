"""SenMLP: all word vectors of both texts side by side, through an MLP."""

from __future__ import annotations

import numpy as np

from sentemb.kernels.windows import copy_units, lay_out_words
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.joined import Joined
from sentemb.models.pairs.pair_model import FirstStage, Texts
from sentemb.models.words.workspace import Job
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import spread


class SenMLP(Joined):
    """s = MLP([x_1; ...; x_L; y_1; ...; y_L]), a competitor in section 5.1 of Hu et al. (2014).

    After the last word of a text come zeros.
    """

    name = "senmlp"

    @property
    def vector_length(self) -> int:
        """Numbers in the longest text."""
        return int(self.max_words) * self.width

    def _starts(self, texts: Texts) -> np.ndarray:
        """The rows at which the vectors of texts begin, if a row is a word."""
        return np.arange(texts.n_texts + 1) * int(self.max_words)

    def vector_tasks(self, given: Pass, side: str, texts: Texts) -> Job[Arrays]:
        """The word vectors, then zeros."""
        h = np.empty((texts.n_texts, self.vector_length), given.P.dtype)
        rows, starts = h.reshape(-1, self.width), self._starts(texts)
        words = given.P, texts.word_index, texts.offsets
        yield spread(texts.n_texts, lay_out_words, rows, *words, starts, cost=self.vector_length)
        return {"h": h}

    def vector_backward_tasks(
        self, given: Pass, side: str, reading: FirstStage, dh: np.ndarray, words: bool
    ) -> Job[tuple[Arrays, np.ndarray | None]]:
        """Every word has the gradient at its place."""
        if not words:
            return {}, None
        texts = reading.texts
        dX = given.space.empty(f"dX {side}", (texts.word_index.size, self.width), dh.dtype)
        rows, lengths = dh.reshape(-1, self.width), np.diff(texts.offsets)
        starts = self._starts(texts)
        arguments = dX, rows, texts.offsets, starts, lengths
        yield spread(texts.n_texts, copy_units, *arguments, cost=self.vector_length)
        return {}, dX
