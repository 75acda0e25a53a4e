"""The letter trigrams, and words, that a model knows."""

from collections import Counter
from itertools import chain

import numpy as np

from sentemb.text.batch import batch_of, tokenize
from sentemb.text.words import letter_trigrams


class Vocabulary:
    """What a model knows of a word: letter trigrams, and the whole of some words beside them.

    Each has a row in the input weights, its id: first the trigrams, then the words.

    Parameters
    ----------
    trigrams, words : list of str
        Distinct each.
    """

    def __init__(self, trigrams, words=()):
        self.trigrams, self.words = list(trigrams), list(words)
        self._trigram_ids = {trigram: i for i, trigram in enumerate(self.trigrams)}
        self._word_ids = {word: i for i, word in enumerate(self.words, len(self.trigrams))}

    def __len__(self):
        """Rows of the input weights."""
        return len(self.trigrams) + len(self.words)

    def __str__(self):
        words = f" and {len(self.words):,} words" if self.words else ""
        return f"{len(self.trigrams):,} letter trigrams{words}"

    @classmethod
    def collect(cls, *tokens, word_features=0):
        """All trigrams of the given `Tokens`, most frequent first, ties in alphabetical order.

        Frequent trigrams side by side share memory pages, which training notices.

        Parameters
        ----------
        tokens : Tokens
        word_features : int
            Words that stand so often in all of them together are collected too; 0 for none.
        """
        places, ids, uses = {}, [], []
        words = Counter()
        for some in tokens:
            ids += [places.setdefault(t, len(places)) for t in _trigrams_of_all(some.words)]
            used = np.bincount(some.word_index, minlength=len(some.words))
            uses.append(np.repeat(used, [len(word) for word in some.words]))
            if word_features:
                words.update(dict(zip(some.words, used.tolist())))
        counts = np.bincount(ids, weights=np.concatenate(uses), minlength=len(places))
        of_trigram = dict(zip(places, counts.tolist()))
        frequent = {word: count for word, count in words.items() if count >= word_features}
        return cls(_most_frequent_first(of_trigram), _most_frequent_first(frequent))

    def features_of_all(self, words):
        """The known features of ``words``, trigrams that repeat within a word included.

        Returns
        -------
        places, ids : (k,) int64
            Word ``places[j]`` of the list has the feature ``ids[j]``.
        """
        ids = [self._trigram_ids.get(t, -1) for t in _trigrams_of_all(words)]
        # A word of n letters has n trigrams.
        places = np.repeat(np.arange(len(words)), [len(word) for word in words])
        if self.words:
            ids += [self._word_ids.get(word, -1) for word in words]
            places = np.concatenate([places, np.arange(len(words))])
        ids = np.array(ids, np.int64)
        return places[ids >= 0], ids[ids >= 0]

    def features(self, word):
        """The known features of ``word``: a dict from id to count, ids rising as in a batch.

        In one order everywhere, a word's sum of rows has the same bits everywhere.
        """
        found = {}
        for trigram in letter_trigrams(word):
            known = self._trigram_ids.get(trigram)
            if known is not None:
                found[known] = found.get(known, 0) + 1
        if word in self._word_ids:
            found[self._word_ids[word]] = 1
        return dict(sorted(found.items()))

    def batch(self, texts):
        """``texts`` (iterable of str) as a `TextBatch`."""
        return batch_of(tokenize(texts), self)


def _trigrams_of_all(words):
    """The trigrams of all ``words``, one after the other; a word of n letters has n."""
    return chain.from_iterable(map(letter_trigrams, words))


def _most_frequent_first(counts):
    return sorted(counts, key=lambda item: (-counts[item], item))
