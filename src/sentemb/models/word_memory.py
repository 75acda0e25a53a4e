"""A cache of projected words: encoding need not sum up the features of a known word again."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence

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
        self._words_bytes = 0
        self._whole = True  # whether all words in `_places` are projected

    def look_up(
        self, texts: Sequence[str]
    ) -> tuple[NDArray[np.int32], NDArray[np.int64], np.ndarray, int]:
        """The words of ``texts`` as places in the returned projections.

        Returns
        -------
        word_index : (n_tokens,) int32
        offsets : (n_texts + 1,) int64
        P : (n_words, width) float
            Valid until the next call.
        empty : int
            The number of texts without words.
        """
        if not self._whole or self._P.nbytes + self._words_bytes > _LIMIT:
            self._forget()
        self._whole = False
        places, split = self._places, self._vocabulary.split
        known = len(places)
        found: list[int] = []
        offsets, empty = [0], 0
        for text in texts:
            words = split(text)
            if not words:
                empty += 1
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
        return index, np.array(offsets, np.int64), self._P, empty

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
        known_ids: list[int] = []
        counts: list[int] = []
        offsets = [0]
        for word in words:
            features = self._vocabulary.features(word)
            known_ids += features.keys()
            counts += features.values()
            offsets.append(len(known_ids))
        ids = np.array(known_ids, np.int32)
        project_words(
            self._P[known:end],
            self._table,
            self._table,
            np.zeros(ids.size, self._table.dtype),
            ids,  # every entry is its own row here
            self._bias,
            np.array(offsets, np.int64),
            np.arange(ids.size, dtype=np.int32),
            np.array(counts, np.int32),
            0,
            len(words),
        )
