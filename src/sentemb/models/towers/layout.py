"""A batch of texts in the order in which the passes of a tower visit it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.input_layer import invert_lists, invert_weighted_lists
from sentemb.models.words.packing import Packing
from sentemb.system.contracts import WordsOfFeatures
from sentemb.text.batch import TextBatch


class Layout:
    """Index arrays of a `TextBatch` for the passes; they depend on the texts alone.

    Each part is computed when it is first used and then kept. `Encoder.lay_out` computes all that
    its passes use, so that training can overlap this with the previous mini-batch.
    """

    def __init__(self, batch: TextBatch) -> None:
        self.batch = batch

    def computed(self, parts: Iterable[str]) -> Self:
        """This layout, once the named parts have been computed."""
        for part in parts:
            getattr(self, part)
        return self

    @cached_property
    def packing(self) -> Packing:
        """The packed rows: every token of the texts, in the order of the recurrences."""
        return Packing(self.batch.word_index, self.batch.offsets)

    @cached_property
    def words_of_features(self) -> WordsOfFeatures:
        """The words that hold each feature, and its value in each.

        One list for each of the batch's ``input_rows``: offsets (n_features + 1,) int64, words
        (n_entries,) int32, values (n_entries,) float32.
        """
        batch = self.batch
        return invert_weighted_lists(
            batch.feature_offsets, batch.feature_ids, batch.feature_values, batch.input_rows.size
        )

    @cached_property
    def packed_rows_of_words(self) -> list[tuple[NDArray[np.int64], NDArray[np.int32]]]:
        """The packed rows of each word, for each direction of reading.

        Returns offsets (n_words + 1,) int64 and packed rows (n_tokens,) int32.
        """
        one_row_each = np.arange(self.batch.word_index.size + 1)
        return [
            invert_lists(one_row_each, words, self.batch.n_words) for words in self.packing.words
        ]

    @cached_property
    def tokens_of_words(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The tokens of each word, in the order of the texts.

        Returns offsets (n_words + 1,) int64 and tokens (n_tokens,) int32.
        """
        one_word_each = np.arange(self.batch.word_index.size + 1)
        return invert_lists(one_word_each, self.batch.word_index, self.batch.n_words)

    @cached_property
    def texts_of_words(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The texts that hold each word, listed once per occurrence.

        Returns offsets (n_words + 1,) int64 and texts (n_tokens,) int32.
        """
        batch = self.batch
        return invert_lists(batch.offsets, batch.word_index, batch.n_words)
