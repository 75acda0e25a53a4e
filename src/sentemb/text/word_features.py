"""Word vectors as features: a word has a number in each dimension, in addition to its trigrams."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.text.words import without_edges


class WordFeatures:
    """The vectors of some words, each dimension of which is a feature.

    The words are all different and lower-cased. The vectors are (n, dim) float16, at the scale at
    which they are multiplied with the rows of the input weights.
    """

    def __init__(self, words: list[str], vectors: NDArray[np.float16]) -> None:
        self.words, self.vectors = words, vectors
        self._row_of_word = {word: row for row, word in enumerate(words)}

    def __len__(self) -> int:
        """The number of words that have a vector."""
        return len(self.words)

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self.vectors.shape[1])

    def row_of(self, word: str) -> int:
        """The row of ``word``, or else of the word without the punctuation around it; or -1."""
        row = self._row_of_word.get(word)
        return self._row_of_word.get(without_edges(word), -1) if row is None else row

    def of(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The indices (k,) int64 of ``words`` with a vector, and the vectors (k, dim) float32."""
        rows = np.array([self.row_of(word) for word in words], np.int64)
        known = np.flatnonzero(rows >= 0)
        return known, self.vectors[rows[known]].astype(np.float32)

    def fingerprint(self) -> str:
        """A hash of the words and their vectors."""
        digest = hashlib.sha256("\n".join([*self.words, ""]).encode())
        digest.update(f"{self.vectors.shape}".encode())
        digest.update(np.ascontiguousarray(self.vectors, "<f2").data.cast("B"))
        return digest.hexdigest()
