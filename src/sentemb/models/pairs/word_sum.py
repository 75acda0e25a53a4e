"""WordEmbed: the sums of the word vectors of both texts, through an MLP."""

from __future__ import annotations

import numpy as np

from sentemb.kernels.layers import sum_words
from sentemb.kernels.mlp import rows_of_texts
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.joined import Joined
from sentemb.models.pairs.pair_model import FirstStage, Texts
from sentemb.models.words.workspace import Job
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import spread


class WordSum(Joined):
    """s = MLP([sum of x_i; sum of y_j]), the paper's competitor WordEmbed (section 5.1)."""

    name = "wordembed"
    word_spread = 0.3  # a sum of ten such vectors has numbers of about 1

    @property
    def vector_length(self) -> int:
        """Length of a word vector."""
        return self.width

    def _cost_of_text(self, texts: Texts) -> float:
        """The cost of reading or writing the words of a text; see `spans`."""
        return self.width * (1 + texts.mean_words)

    def vector_tasks(self, given: Pass, side: str, texts: Texts) -> Job[Arrays]:
        """The sums of the words."""
        P = given.P
        h = np.empty((texts.n_texts, self.width), P.dtype)
        nothing = np.zeros(self.width, P.dtype)
        words = texts.word_index, texts.offsets
        cost = self._cost_of_text(texts)
        yield spread(texts.n_texts, sum_words, h, P, 0, nothing, *words, cost=cost)
        return {"h": h}

    def vector_backward_tasks(
        self, given: Pass, side: str, reading: FirstStage, dh: np.ndarray, words: bool
    ) -> Job[tuple[Arrays, np.ndarray | None]]:
        """Every word of a text has the gradient at its sum."""
        if not words:
            return {}, None
        texts = reading.texts
        dX = given.space.empty(f"dX {side}", (texts.word_index.size, self.width), dh.dtype)
        cost = self._cost_of_text(texts)
        yield spread(texts.n_texts, rows_of_texts, dX, dh, texts.offsets, cost=cost)
        return {}, dX
