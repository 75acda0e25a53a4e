"""A cache of projected words: encoding need not sum up the features of a known word again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.inference import sum_features
from sentemb.kernels.tokens import add_words, find_words, with_room
from sentemb.models.words.word_reader import WordReader
from sentemb.system.aligned import aligned_empty
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers, one_after_the_other, spread
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.word_bytes import edges_of, word_bytes, words_of

# When words and projections take more bytes than this, all are forgotten.
_LIMIT = 128 << 20
# Longer words rarely occur again.
_LONGEST_REMEMBERED = 100
# Texts that one task reads.
_TEXTS = 128
# Slots of an empty table, and rows of the first projections.
_FIRST = 256


# The first arguments of `find_words`, up to ``is_known``; projections.
KnownWords: TypeAlias = tuple[
    bytes, bytes, NDArray[np.int64], NDArray[np.uint8], int, NDArray[np.bool_], np.ndarray
]


class LookedUp(NamedTuple):
    """Texts as places in the projections of their words.

    word_index : (n_tokens,) int32, rows of ``P``
    offsets : (n_texts + 1,) int64; text k has ``word_index[offsets[k]:offsets[k + 1]]``
    P : (n_words, width) float, valid until the next call
    n_known : (n_texts,) int64, how many words of each text the model knows a feature of; None if
        each text has words and all of them are known
    """

    word_index: NDArray[np.int32]
    offsets: NDArray[np.int64]
    P: np.ndarray
    n_known: NDArray[np.int64] | None

    def without_words(self) -> NDArray[np.bool_]:
        """Whether each text has no words, (n_texts,) bool."""
        return np.diff(self.offsets) == 0

    def unknown(self) -> NDArray[np.bool_]:
        """Whether each text has words, but none that the model knows, (n_texts,) bool."""
        if self.n_known is None:
            return np.zeros(len(self.offsets) - 1, np.bool_)
        return (self.n_known == 0) & ~self.without_words()


class _Reading(NamedTuple):
    """Some texts, and their words as rows of the projections.

    text : from `word_bytes`
    word_index, offsets : as in `LookedUp`; -1 for a word that has no row yet
    n_new, n_poor : words that have no row yet, and texts without a word that the model knows
    """

    text: bytes
    word_index: NDArray[np.int32]
    offsets: NDArray[np.int64]
    n_new: int
    n_poor: int


class WordMemory:
    """W l + b of the words that one tower or pair model has met.

    The weights must not change while the memory is in use. An exception during a look-up
    (Ctrl-C, a time-out, no memory) empties it.
    """

    def __init__(self, reader: WordReader, vocabulary: Vocabulary, weights: Arrays) -> None:
        self._vocabulary = vocabulary
        self._table = weights["table"]
        self._bias = reader.word_bias(weights, self._table.dtype)
        self._width = reader.width
        self._edges = edges_of(vocabulary.split)
        # Nobody can choose words that all want the same slots.
        self._seed = int.from_bytes(os.urandom(7), "little")
        self._forget()

    def _forget(self) -> None:
        # Entries and letters of the words that have a row; see `sentemb.kernels.tokens`.
        self._words = (np.zeros((_FIRST, 4), np.int64), np.empty(0, np.uint8))
        self._n_words = self._n_letters = 0
        self._P = np.empty((0, self._width), self._table.dtype)
        self._is_known = np.empty(0, np.bool_)  # whether the word of a row of P has a feature
        self._bytes = 0
        self._whole = True  # whether all words that have a row are projected

    def arguments(self, texts: Sequence[str]) -> KnownWords | None:
        """A few texts and all words that have a projection, for a kernel that reads texts itself.

        They are the first arguments of `find_words`, then the projections, valid until the next
        call. None while no word has a projection: a program that reads a single text needs no such
        kernel compiled.
        """
        if not self._n_words or not self._whole or self._bytes > _LIMIT:
            return None
        text = word_bytes(texts, self._vocabulary.split)
        return text, self._edges, *self._words, self._seed, self._is_known, self._P

    def look_up(self, texts: Sequence[str], workers: Workers | None = None) -> LookedUp:
        """The words of ``texts`` as places in the returned projections; a text may have no words.

        Without ``workers`` the calling thread works alone.
        """
        if not self._whole or self._bytes > _LIMIT:
            self._forget()
        if len(texts) <= _TEXTS:
            # Plain tuples here: a single text takes a few microseconds.
            text, index, offsets, n_new, n_poor = self._read(texts)
            if not n_new and not n_poor:
                return LookedUp(index, offsets, self._P, None)
            parts = [_Reading(text, index, offsets, n_new, n_poor)]
        else:
            parts = self._read_all(texts, workers)
        new = [part for part in parts if part.n_new]
        if new:
            self._whole = False
            self._add(new, workers)
            self._whole = True
        _, index, offsets, *_ = parts[0]
        if len(parts) > 1:
            index = np.concatenate([part.word_index for part in parts])
            ends = np.concatenate([part.offsets[1:] for part in parts])
            lengths = np.diff(ends, prepend=0)
            lengths[::_TEXTS] = ends[::_TEXTS]  # each part counts from 0
            offsets = np.append(0, lengths.cumsum())
        n_known = None
        if new or any(part.n_poor for part in parts):
            before = np.zeros(len(index) + 1, np.int64)
            np.cumsum(self._is_known[index], out=before[1:])
            n_known = np.diff(before[offsets])
            n_known = None if n_known.all() else n_known
        return LookedUp(index, offsets, self._P, n_known)

    def _read(
        self, texts: Sequence[str]
    ) -> tuple[bytes, NDArray[np.int32], NDArray[np.int64], int, int]:
        """Look up the words of some texts, as the fields of `_Reading`; nothing is changed."""
        text = word_bytes(texts, self._vocabulary.split)
        # Behind each word there is white space.
        index, offsets = np.empty(len(text) // 2, np.int32), np.empty(len(texts) + 1, np.int64)
        n_tokens, n_new, n_poor = find_words(
            text, self._edges, *self._words, self._seed, self._is_known, index, offsets
        )
        return text, index[:n_tokens], offsets, n_new, n_poor

    def _read_all(self, texts: Sequence[str], workers: Workers | None) -> list[_Reading]:
        """As `_read`, in portions that threads share."""
        read: dict[int, _Reading] = {}

        def read_from(first: int) -> None:
            read[first] = _Reading(*self._read(texts[first : first + _TEXTS]))

        tasks = [(read_from, first) for first in range(0, len(texts), _TEXTS)]
        if workers is None:
            one_after_the_other(*tasks)
        else:
            workers.run(tasks)
        return [read[first] for _, first in tasks]

    def _add(self, parts: list[_Reading], workers: Workers | None) -> None:
        """Give every word of ``parts`` a row: the new ones, then those that are not remembered."""
        entries, letters = self._words
        known, letters_known = self._n_words, self._n_letters
        n_letters, n_words = letters_known, known
        passing, n_passing = np.empty(sum(len(part.text) for part in parts), np.uint8), 0
        for part in parts:
            entries, letters = with_room(
                entries, letters, n_words + part.n_new, n_letters + len(part.text)
            )
            n_letters, n_words, n_passing, _ = add_words(
                part.text,
                self._edges,
                entries,
                letters,
                n_letters,
                n_words,
                self._seed,
                _LONGEST_REMEMBERED,
                passing,
                n_passing,
                part.word_index,
                part.offsets,
            )
        if n_passing:
            for part in parts:
                index = part.word_index
                index[index < 0] = n_words - 1 - index[index < 0]
        words = words_of(letters[letters_known:n_letters]) + words_of(passing[:n_passing])
        self._project(words, known, workers)
        self._words = entries, letters
        self._n_words, self._n_letters = n_words, n_letters
        self._bytes = self._P.nbytes + entries.nbytes + n_letters

    def _project(self, words: list[str], known: int, workers: Workers | None) -> None:
        """Write the projections of ``words`` to the rows of P from ``known`` onwards."""
        end = known + len(words)
        if end > len(self._P):
            size = max(end, 2 * len(self._P), _FIRST)
            larger = aligned_empty((size, self._width), self._P.dtype)
            larger[:known] = self._P[:known]
            self._P = larger
            is_known = np.empty(size, np.bool_)
            is_known[:known] = self._is_known[:known]
            self._is_known = is_known
        offsets, ids, values = self._vocabulary.features_of_all(words)
        self._is_known[known:end] = np.diff(offsets) > 0
        lists = (offsets, ids, values)
        cost = self._width * (1 + len(ids) / max(1, len(words)))
        arguments = self._P[known:end], self._table, self._bias, *lists
        tasks = spread(len(words), sum_features, *arguments, cost=cost)
        if workers is None:
            one_after_the_other(*tasks)
        else:
            workers.run(tasks)
