"""Words and their vectors as a file gives them: which are kept, and where they are kept."""

from collections.abc import Callable, Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.vectors.vector_limits import MAX_NUMBER, is_sound, sound_rows
from sentemb.models.vectors.word_vectors import WordVectors

# How much larger the array becomes when it is full.
_GROWTH = 1.25
# If more words than this and this share are unusable, the file is damaged or not UTF-8; in a file
# of few words half of them may be.
_MOST_UNUSABLE, _UNUSABLE_SHARE = 20, 0.05


class Collector:
    """Collects the distinct words of a file and their vectors as float32.

    name : the file, for messages
    limit : only this many distinct words are read; None for all
    words : only these are kept of the words that are read; None for all
    """

    def __init__(self, name: str, limit: int | None, words: Collection[str] | None) -> None:
        self._name = name
        self._limit = limit
        self._chosen = words
        self._seen: set[str] = set()
        self._duplicates = 0
        self._n_unusable = 0
        self._first_unusable = ""
        self._words: list[str] = []
        self._vectors: NDArray[np.float32] = np.empty((0, 0), np.float32)

    @property
    def is_full(self) -> bool:
        """Whether nothing more has to be read."""
        return self._limit is not None and len(self._seen) >= self._limit

    def wants(self, word: str) -> bool:
        """Whether the vector of the next word is kept; the first of duplicates is."""
        if word in self._seen:
            self._duplicates += 1
            return False
        self._seen.add(word)
        return self._chosen is None or word in self._chosen

    def pass_over(self, location: str, why: str, word: str = "") -> None:
        """Leave out a word that no text can have, or that has no sound vector, and count it.

        ``location`` is where it is, ``word`` the word if it was wanted before.
        """
        self._first_unusable = self._first_unusable or f"{location}: {why}"
        self._n_unusable += 1
        self._seen.discard(word)

    def add(self, words: Sequence[str], rows: np.ndarray, location: Callable[[int], str]) -> None:
        """Keep k words with their vectors, (k, d) float32 or float64, but not what is not sound.

        ``location`` gives, for messages, where a row is in the file.
        """
        if not is_sound(rows):
            sound = sound_rows(rows)
            for k in np.flatnonzero(~sound).tolist():
                why = f"a number is NaN, infinite or above {MAX_NUMBER:.0e}"
                self.pass_over(location(k), why, words[k])
            words, rows = [words[k] for k in np.flatnonzero(sound).tolist()], rows[sound]
        if not words:
            return
        first, end = len(self._words), len(self._words) + len(words)
        if end > len(self._vectors):
            # In place where the system can: two arrays of gigabytes may not fit.
            size = max(end, int(_GROWTH * len(self._vectors)))
            self._vectors.resize((size, rows.shape[1]), refcheck=False)
        self._vectors[first:end] = rows
        self._words.extend(words)

    def collected(self, note: Callable[[str], None]) -> WordVectors:
        """The words and vectors that were kept."""
        n_words = len(self._seen) + self._duplicates + self._n_unusable
        few = min(_MOST_UNUSABLE, n_words / 2)
        if self._n_unusable > max(few, _UNUSABLE_SHARE * n_words):
            raise SentembError(
                f"{self._first_unusable}, as {self._n_unusable:,} of {n_words:,} words; save the "
                "file as UTF-8, or get the whole file again"
            )
        if self._n_unusable:
            words = "1 word is" if self._n_unusable == 1 else f"{self._n_unusable:,} words are"
            note(f"{words} left out; the first: {self._first_unusable}")
        if not self._words:
            if self._seen:
                raise SentembError(f"{self._name}: none of the words has a vector; give others")
            raise SentembError(f"{self._name}: no vectors; give a file that has some")
        if self._duplicates:
            note(
                f"{self._name}: {self._duplicates:,} duplicate words; the first vector of each "
                "is kept"
            )
        self._vectors.resize((len(self._words), self._vectors.shape[1]), refcheck=False)
        return WordVectors(self._words, self._vectors, name=self._name.rsplit("/", 1)[-1])
