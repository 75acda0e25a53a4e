"""Words that were projected before, so that encoding need not sum up their trigrams again."""

import itertools

import numpy as np

from sentemb.kernels.words import project_words
from sentemb.text.batch import Places
from sentemb.text.words import split_words

# Bytes of projected words beyond which all are forgotten.
_LIMIT = 128 << 20


class WordMemory:
    """W l + b of the words that one tower has met.

    Parameters
    ----------
    encoder : Encoder
    vocabulary : Vocabulary
    weights : dict of arrays
        They must not change as long as the memory is used.
    """

    def __init__(self, encoder, vocabulary, weights):
        self._vocabulary = vocabulary
        self._table, self._bias = weights["table"], encoder.word_bias(weights)
        self._places = Places()
        self._P = np.empty((0, encoder.width), self._table.dtype)

    def look_up(self, texts):
        """The words of ``texts`` (list of str) as places in the returned projections.

        Returns
        -------
        word_index : (n_tokens,) int32
        offsets : (n_texts + 1,) int64
        P : (n_words, width) float
            Valid until the next call.
        empty : int
            Texts without words.
        """
        places = self._places
        if self._P.nbytes > _LIMIT:
            places.clear()
            self._P = self._P[:0].copy()
        known = len(places)
        index, offsets, empty = [], [0], 0
        for text in texts:
            words = split_words(text)
            if not words:
                empty += 1
            index += map(places.__getitem__, words)
            offsets.append(len(index))
        if len(places) > known:
            self._project(list(itertools.islice(places, known, None)), known)
        return np.array(index, np.int32), np.array(offsets, np.int64), self._P, empty

    def _project(self, words, known):
        """Append the projections of new words."""
        end = known + len(words)
        if end > len(self._P):
            larger = np.empty((max(end, 2 * len(self._P), 256), self._P.shape[1]), self._P.dtype)
            larger[:known] = self._P[:known]
            self._P = larger
        ids, counts, offsets = [], [], [0]
        for word in words:
            trigrams = self._vocabulary.features(word)
            ids += trigrams.keys()
            counts += trigrams.values()
            offsets.append(len(ids))
        ids = np.array(ids, np.int32)
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
