"""The clicked queries of a log as vectors and as words, for rankings of any titles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import chosen
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.tokenizing import tokenize_all
from sentemb.retrieval.words_and_stems import Stems, Words
from sentemb.system.parallel import Turn
from sentemb.text.batch import Tokens
from sentemb.text.hashes import hashes_of
from sentemb.text.words import exact_key

# Queries that are hashed at a time.
_PORTION = 65_536
# Unit vectors of texts by the query tower.
Embed = Callable[[Sequence[str]], np.ndarray]


class ReadQueries:
    """Clicked queries as parts need them, each made when it is first needed.

    ``embed`` makes unit vectors of texts by the query tower. ``numbers`` (n,) are those of the
    texts in the log; None if these are all its queries. Vectors are kept if ``is_kept`` is set.
    """

    def __init__(
        self,
        texts: Sequence[str],
        embed: Embed,
        numbers: NDArray[np.integer] | None = None,
        is_kept: bool = True,
    ) -> None:
        self.texts, self.embed, self.numbers, self._is_kept = texts, embed, numbers, is_kept
        self._rows: Int8Rows | None = None
        self._is_known = np.zeros(len(texts), np.bool_)
        self._tokens: dict[Words, Tokens] = {}
        self._turn = Turn()
        self._keys: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None

    def of(self, numbers: NDArray[np.integer]) -> ReadQueries:
        """Some of the queries, of which alone the words are then read; distinct numbers, (n,)."""
        return ReadQueries(chosen(self.texts, numbers), self.embed, numbers)

    @property
    def distinct_keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct hashes of their `exact_key`, ascending, and the number of each query's."""
        with self._turn.lock:
            if self._keys is None:
                keys = np.empty(len(self.texts), np.int64)
                for low in range(0, len(self.texts), _PORTION):
                    texts = list(map(exact_key, self.texts[low : low + _PORTION]))
                    keys[low : low + len(texts)] = hashes_of(texts)
                distinct, number = np.unique(keys, return_inverse=True)
                self._keys = distinct, number
            return self._keys

    def tokens(self, words: Words) -> Tokens:
        """All of them, split by ``words``."""
        with self._turn.lock:
            if words not in self._tokens:
                if isinstance(words, Stems):
                    self._tokens[words] = words.of_tokens(self.tokens(words.split))
                else:
                    self._tokens[words] = tokenize_all(self.texts, words)
            return self._tokens[words]

    def rows(self, numbers: NDArray[np.integer]) -> Int8Rows:
        """Rows of 8-bit integers by the query tower, for distinct numbers of queries, (n,)."""
        if not self._is_kept:
            return Int8Rows.of(np.asarray(self.embed(chosen(self.texts, numbers)), np.float32))
        with self._turn.lock:
            new = numbers[~self._is_known[numbers]]
            if new.size or self._rows is None:
                vectors = self.embed(chosen(self.texts, new))
                coded = Int8Rows.of(np.asarray(vectors, np.float32))
                if self._rows is None:
                    shape = len(self.texts), coded.codes.shape[1]
                    self._rows = Int8Rows(np.zeros(shape, np.int8), np.zeros(shape[0], np.float32))
                self._rows.codes[new], self._rows.scales[new] = coded.codes, coded.scales
                self._is_known[new] = True
            return self._rows.rows(numbers.astype(np.int64))
