"""A cache of projected words: encoding need not sum up the features of a known word again."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.words import project_words
from sentemb.models.word_reader import WordReader
from sentemb.protocols import Arrays
from sentemb.text.batch import Places
from sentemb.text.vocabulary import Vocabulary

# When words and projections take more bytes than this, all are forgotten.
_LIMIT = 128 << 20
# Bytes of an entry in a dict of words, the word itself not counted.
_ENTRY_BYTES = 100
# Longer words rarely occur again.
_LONGEST_REMEMBERED = 100


class LookedUp(NamedTuple):
    """Texts as places in the projections of their words.

    Attributes
    ----------
    word_index : (n_tokens,) int32
        Rows of ``P``.
    offsets : (n_texts + 1,) int64
        Text k has ``word_index[offsets[k]:offsets[k + 1]]``.
    P : (n_words, width) float
        Valid until the next call.
    n_known : (n_texts,) int64 or None
        How many words of each text the model knows a feature of; None if each text has words and
        all of them are known.
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


class WordMemory:
    """W l + b of the words that one tower has met.

    An exception during a look-up (Ctrl-C, a time-out, no memory) empties it.

    Parameters
    ----------
    reader : WordReader
        An encoder or a pair model.
    vocabulary : Vocabulary
    weights : dict of arrays
        They must not change while the memory is in use.
    """

    def __init__(self, reader: WordReader, vocabulary: Vocabulary, weights: Arrays) -> None:
        self._vocabulary = vocabulary
        self._table = weights["table"]
        self._bias = reader.word_bias(weights, self._table.dtype)
        self._width = reader.width
        self._forget()

    def _forget(self) -> None:
        self._places = Places()  # word -> its row of P
        self._P = np.empty((0, self._width), self._table.dtype)
        self._is_known = np.empty(0, np.bool_)  # whether the word of a row of P has a feature
        self._all_known = True
        self._words_bytes = 0
        self._whole = True  # whether all words in `_places` are projected

    def look_up(self, texts: Sequence[str]) -> LookedUp:
        """The words of ``texts`` as places in the returned projections."""
        if not self._whole or self._P.nbytes + self._words_bytes > _LIMIT:
            self._forget()
        self._whole = False
        places, split = self._places, self._vocabulary.split
        known = len(places)
        found: list[int] = []
        offsets, all_have_words = [0], True
        for text in texts:
            words = split(text)
            if not words:
                all_have_words = False
            found += map(places.__getitem__, words)
            offsets.append(len(found))
        index = np.array(found, np.int32)
        if len(places) > known:
            new = list(itertools.islice(places, known, None))
            long = [word for word in new if len(word) > _LONGEST_REMEMBERED]
            if long:
                new = self._put_last(long, new, known, index)
            self._project(new, known)
            kept = new[: len(new) - len(long)]
            self._words_bytes += sum(map(sys.getsizeof, kept)) + _ENTRY_BYTES * len(kept)
        self._whole = True
        ends = np.array(offsets, np.int64)
        n_known = None
        if not (all_have_words and self._all_known):
            before = np.zeros(len(index) + 1, np.int64)
            np.cumsum(self._is_known[index], out=before[1:])
            n_known = np.diff(before[ends])
        return LookedUp(index, ends, self._P, n_known)

    def _put_last(
        self, long: list[str], new: list[str], known: int, index: NDArray[np.int32]
    ) -> list[str]:
        """Move ``long`` words behind all others, and remember only the others.

        Returns
        -------
        list of str
            The words of ``new`` in the order of their places from ``known`` on; ``index`` has the
            places changed accordingly.
        """
        places = self._places
        before = [places[word] for word in long]
        for word in long:
            del places[word]
        kept = list(itertools.islice(places, known, None))
        moved = np.arange(known + len(new), dtype=np.int32)
        moved[[places[word] for word in kept]] = np.arange(known, known + len(kept))
        moved[before] = np.arange(known + len(kept), known + len(new))
        places.update(zip(kept, range(known, known + len(kept)), strict=True))
        index[...] = moved[index]
        return kept + long

    def _project(self, words: list[str], known: int) -> None:
        """Write the projections of ``words`` to the rows of P from ``known`` onwards."""
        end = known + len(words)
        if end > len(self._P):
            larger = np.empty((max(end, 2 * len(self._P), 256), self._P.shape[1]), self._P.dtype)
            larger[:known] = self._P[:known]
            self._P = larger
            is_known = np.empty(len(larger), np.bool_)
            is_known[:known] = self._is_known[:known]
            self._is_known = is_known
        offsets, ids, values = self._vocabulary.features_of_all(words)
        self._is_known[known:end] = np.diff(offsets) > 0
        self._all_known = self._all_known and bool(self._is_known[known:end].all())
        project_words(
            self._P[known:end],
            self._table,
            self._table,
            np.zeros(ids.size, self._table.dtype),
            ids,  # every entry is its own row here
            self._bias,
            offsets,
            np.arange(ids.size, dtype=np.int32),
            values,
            0,
            len(words),
        )
