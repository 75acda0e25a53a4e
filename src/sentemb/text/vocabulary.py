"""The letter trigrams that a model knows."""

from collections import Counter

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
        counts = Counter()
        for some in tokens:
            uses = np.bincount(some.word_index, minlength=len(some.words)).tolist()
            for word, used in zip(some.words, uses):
                for trigram in letter_trigrams(word):
                    counts[trigram] += used
        return cls(sorted(counts, key=lambda trigram: (-counts[trigram], trigram)))

    def word_trigrams(self, word):
        """The known trigrams of ``word``: a dict from id to count."""
        found = {}
        for trigram in letter_trigrams(word):
            known = self._ids.get(trigram)
            if known is not None:
                found[known] = found.get(known, 0) + 1
        return found

    def batch(self, texts):
        """``texts`` (iterable of str) as a `TextBatch`."""
        return batch_of(tokenize(texts), self)
