"""Word vectors in memory or mapped from a file, and which of them are alike."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """One vector for each of some words.

    Attributes
    ----------
    words : list of str
        All different, in the order of the file: usually the most frequent word first.
    vectors : (n, d) float16, float32 or float64
        May be mapped from a file: take the rows that are needed.
    counts : (n,) int64 or None
        How often each word occurred in the corpus that the vectors were trained on.
    name : str
        The name of the file or folder they are from.
    sha256 : str
        Hash of the words and the vectors; empty for vectors that are in no folder of ours.
    source, licence : str
        Where the vectors are from, and under which terms; empty if nobody said so.
    """

    words: list[str]
    vectors: np.ndarray
    counts: NDArray[np.int64] | None = None
    name: str = ""
    sha256: str = ""
    source: str = ""
    licence: str = ""

    def __post_init__(self) -> None:
        if self.vectors.ndim != 2 or len(self.words) != len(self.vectors):
            raise SentembError(
                f"{len(self.words):,} words with an array of shape {self.vectors.shape}; give one "
                "row for each word"
            )

    def __repr__(self) -> str:
        return f"WordVectors({self.name}, {len(self):,} words, {self.dim} dimensions)"

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def places(self) -> dict[str, int]:
        """Word -> its row."""
        return {word: row for row, word in enumerate(self.words)}

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The rows of ``words``, -1 for a word without a vector: (k,) int64."""
        places = self.places
        return np.array([places.get(word, -1) for word in words], np.int64)

    def take(self, rows: Sequence[int] | NDArray[np.integer]) -> "WordVectors":
        """Some of the words with their vectors and counts, in this order and in memory."""
        chosen = np.asarray(rows, np.int64)
        return replace(
            self,
            words=[self.words[row] for row in chosen.tolist()],
            vectors=np.ascontiguousarray(self.vectors[chosen]),
            counts=None if self.counts is None else self.counts[chosen],
        )
