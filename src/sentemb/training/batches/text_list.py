"""Texts as integers, from which mini-batches take some."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.bits import bits_for
from sentemb.kernels.input_layer import take_texts, take_words
from sentemb.text.batch import TextBatch


class TextList:
    """A long list of texts."""

    def __init__(self, batch: TextBatch) -> None:
        self.batch = batch
        self._words = np.full(batch.n_words, -1, np.int32)
        self._bits = bits_for(batch.input_rows.size)
        self._rows = np.empty(batch.input_rows.size, np.int32)

    def take(self, numbers: NDArray[np.int32]) -> TextBatch:
        """Some of the texts, in this order, with their words and features renumbered.

        ``numbers`` (k,) may name a text more than once.
        """
        whole = self.batch
        word_index, offsets, words = take_texts(
            numbers, whole.word_index, whole.offsets, self._words
        )
        feature_offsets, ids, values, rows = take_words(
            words,
            whole.feature_offsets,
            whole.feature_ids,
            whole.feature_values,
            whole.input_rows,
            self._bits,
            self._rows,
        )
        return TextBatch(word_index, offsets, feature_offsets, ids, values, rows)
