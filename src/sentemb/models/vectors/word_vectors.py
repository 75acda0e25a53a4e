"""Word vectors in memory or mapped from a file, and which of them are alike."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import repeat
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.vectors.vector_limits import MAX_NUMBER, first_unsound, is_sound
from sentemb.system.bounds import brief, whole
from sentemb.system.html_tables import facts_table

# Numbers that are in memory at a time while all vectors are read.
_BLOCK_NUMBERS = 1 << 19
# Words that a notebook shows.
_FIRST = 10


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
        if not isinstance(self.vectors, np.ndarray) or self.vectors.dtype.kind not in "fiu":
            kind = getattr(self.vectors, "dtype", type(self.vectors).__name__)
            raise SentembError(
                f"the vectors are {kind}; give an array of float16, float32 or float64"
            )
        if self.vectors.ndim != 2 or len(self.words) != len(self.vectors):
            raise SentembError(
                f"{len(self.words):,} words with an array of shape {self.vectors.shape}; give one "
                "row for each word"
            )

    def __repr__(self) -> str:
        return f"WordVectors({self.name}, {len(self):,} words, {self.dim} dimensions)"

    def _repr_html_(self) -> str:
        first = ", ".join(self.words[:_FIRST])
        return facts_table(
            {
                "name": self.name or None,
                "words": len(self),
                "length of a vector": self.dim,
                "dtype": self.vectors.dtype,
                "first words": f"{first}, …" if len(self) > _FIRST else first,
                "counts": None if self.counts is None else f"{self.counts.sum():,} in all",
                "source": self.source or None,
                "licence": self.licence or None,
            }
        )

    def __sklearn_clone__(self) -> Self:
        # scikit-learn clones the parameters of what it fits again; these never change.
        return self

    def __len__(self) -> int:
        return len(self.words)

    @property
    def dim(self) -> int:
        """Length of a vector."""
        return int(self.vectors.shape[1])

    @cached_property
    def row_of_word(self) -> dict[str, int]:
        """Word -> its row; a `SentembError` if a word occurs twice."""
        rows = {word: row for row, word in enumerate(self.words)}
        if len(rows) < len(self.words):
            twice = next(word for row, word in enumerate(self.words) if rows[word] != row)
            raise SentembError(f"the word {brief(twice)} occurs twice; keep one of its vectors")
        return rows

    def rows(self, words: Iterable[str]) -> NDArray[np.int64]:
        """The rows of ``words``, -1 for a word without a vector: (k,) int64."""
        return np.fromiter(map(self.row_of_word.get, words, repeat(-1)), np.int64)

    def with_small_letters(self) -> Self:
        """The same vectors under words in small letters, which are those of texts.

        A word that has a vector in small letters keeps it. One that the vectors have in capitals
        only, such as "Paris", has that of the first spelling.
        """
        known, spelled = set(self.words), list(self.words)
        for row, word in enumerate(self.words):
            lower = word.lower()
            if lower not in known:
                known.add(lower)
                spelled[row] = lower
        return self if spelled == self.words else replace(self, words=spelled)

    def take(self, rows: Sequence[int] | NDArray[np.integer]) -> "WordVectors":
        """Some of the words with their vectors and counts, in this order and in memory.

        Raises
        ------
        SentembError
            If a number of these vectors is not finite or above 1e12.
        """
        chosen = np.asarray(rows, np.int64)
        words = [self.words[row] for row in chosen.tolist()]
        vectors = np.ascontiguousarray(self.vectors[chosen])
        self._check(words, vectors)
        return replace(
            self,
            words=words,
            vectors=vectors,
            counts=None if self.counts is None else self.counts[chosen],
        )

    def blocks(self) -> Iterator[tuple[int, np.ndarray]]:
        """Yield ``(first, rows)``: all vectors, (k, d) at a time, and the row they begin with.

        A file that they are mapped from is read in passes of a few megabytes. Numbers are checked
        as in `take`.
        """
        size = max(1, _BLOCK_NUMBERS // max(1, self.dim))
        for first in range(0, len(self), size):
            rows = self.vectors[first : first + size]
            self._check(self.words[first : first + size], rows)
            yield first, rows

    def lengths(self) -> NDArray[np.float64]:
        """The Euclidean length of each vector, (n,)."""
        lengths = np.empty(len(self))
        for first, rows in self.blocks():
            lengths[first : first + len(rows)] = _lengths(rows.astype(np.float64))
        return lengths

    def nearest(
        self, word_or_vector: str | Sequence[float] | np.ndarray, k: int = 10
    ) -> list[tuple[str, float]]:
        """The words whose vectors have the highest cosines with a word's vector, or with a vector.

        All vectors are compared, in float64. The cosine with a zero vector is 0.

        Parameters
        ----------
        word_or_vector : str or (d,) array-like of float
            A word is left out of its own result.
        k : int
            How many words; all if there are not more.

        Returns
        -------
        list of (str, float)
            Words and cosines, the highest first, equal cosines in the order of the words.

        Raises
        ------
        SentembError
            If the word has no vector, or the vector is zero, not finite or of another length.
        """
        # Compiled code: the other members need none, and importing it takes a while.
        from sentemb.kernels.top_k import highest

        k = whole("k", k, 1, 2**31 - 1)
        word_row, target = self._target(word_or_vector)
        cosines = np.empty(len(self))
        for first, stored in self.blocks():
            rows = stored.astype(np.float64)
            # einsum adds in one order, whatever the number of threads.
            dots, lengths = np.einsum("kd,d->k", rows, target), _lengths(rows)
            np.divide(dots, lengths, out=dots, where=lengths != 0)
            cosines[first : first + len(rows)] = dots
        best = [row for row in highest(cosines, k + 1).tolist() if row != word_row]
        return [(self.words[row], min(1.0, max(-1.0, float(cosines[row])))) for row in best[:k]]

    def _target(
        self, word_or_vector: str | Sequence[float] | np.ndarray
    ) -> tuple[int, NDArray[np.float64]]:
        """The row of a word, -1 for a vector, and the normalised vector."""
        if isinstance(word_or_vector, str):
            name, row = f"the vector of {brief(word_or_vector)}", self._row_of(word_or_vector)
            vector = self.take([row]).vectors[0].astype(np.float64)
        else:
            name, row = "the vector", -1
            try:
                vector = np.array(word_or_vector, np.float64)
            except (TypeError, ValueError, OverflowError):
                raise SentembError("give a word or a vector of numbers") from None
            if vector.shape != (self.dim,) or not is_sound(vector):
                raise SentembError(
                    f"the vector is of shape {vector.shape}; give {self.dim} finite numbers of at "
                    f"most {MAX_NUMBER:.0e}"
                )
        length = _lengths(vector[None])[0]
        if length == 0:
            raise SentembError(f"{name} is zero and has no cosine; give another")
        return row, vector / length

    def _row_of(self, word: str) -> int:
        if word not in self.row_of_word:
            lower = word.lower()
            advice = f"try {brief(lower)}" if lower in self.row_of_word else "give another"
            raise SentembError(f"{brief(word)} has no vector in {self.name or 'these'}; {advice}")
        return self.row_of_word[word]

    def _check(self, words: Sequence[str], rows: np.ndarray) -> None:
        if not is_sound(rows):
            raise SentembError(
                f"{self.name or 'word vectors'}: the vector of "
                f"{brief(words[first_unsound(rows)])} has a number that is NaN, infinite or above "
                f"{MAX_NUMBER:.0e}; convert the vectors again"
            )


def _lengths(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths: NDArray[np.float64] = np.sqrt(np.einsum("kd,kd->k", rows, rows))
    return lengths
