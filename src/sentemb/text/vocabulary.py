"""The letter trigrams that a model knows."""

from itertools import chain

import numpy as np

from sentemb.text.batch import batch_of, tokenize
from sentemb.text.words import letter_trigrams


class Vocabulary:
    """The letter trigrams that a model knows, each with its row in the input weights.

    Parameters
    ----------
    trigrams : list of str
        Distinct; the place in the list is the trigram's id.
    """

    def __init__(self, trigrams):
        self.trigrams = list(trigrams)
        self._ids = {trigram: i for i, trigram in enumerate(self.trigrams)}

    def __len__(self):
        return len(self.trigrams)

    @classmethod
    def collect(cls, *tokens):
        """All trigrams of the given `Tokens`, most frequent first, ties in alphabetical order.

        Frequent trigrams side by side share memory pages, which training notices.
        """
        places, ids, uses = {}, [], []
        for some in tokens:
            ids += [places.setdefault(t, len(places)) for t in _trigrams_of_all(some.words)]
            used = np.bincount(some.word_index, minlength=len(some.words))
            uses.append(np.repeat(used, [len(word) for word in some.words]))
        counts = np.bincount(ids, weights=np.concatenate(uses), minlength=len(places))
        of_trigram = dict(zip(places, counts.tolist()))
        return cls(sorted(of_trigram, key=lambda trigram: (-of_trigram[trigram], trigram)))

    def trigram_ids(self, words):
        """The ids of all trigrams of ``words`` one after the other, -1 for unknown: (k,) int64."""
        known = self._ids
        return np.array([known.get(t, -1) for t in _trigrams_of_all(words)], np.int64)

    def word_trigrams(self, word):
        """The known trigrams of ``word``: a dict from id to count, ids rising as in a batch.

        In one order everywhere, a word's sum of rows has the same bits everywhere.
        """
        found = {}
        for trigram in letter_trigrams(word):
            known = self._ids.get(trigram)
            if known is not None:
                found[known] = found.get(known, 0) + 1
        return dict(sorted(found.items()))

    def batch(self, texts):
        """``texts`` (iterable of str) as a `TextBatch`."""
        return batch_of(tokenize(texts), self)


def _trigrams_of_all(words):
    """The trigrams of all ``words``, one after the other; a word of n letters has n."""
    return chain.from_iterable(map(letter_trigrams, words))
