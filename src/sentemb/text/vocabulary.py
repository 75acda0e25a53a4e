"""The features that a model knows: letter trigrams and whole words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sentemb.text.batch import TextBatch, Tokens, batch_of, tokenize
from sentemb.text.words import SPLITTINGS, WHITE_SPACE, letter_trigrams


class Vocabulary:
    """The known features: letter trigrams, and some words as a whole.

    The id of a feature is its row in the input weights: trigrams come first, then words.

    Parameters
    ----------
    trigrams, words : iterable of str
        Neither may hold a string twice.
    splitting : {"white-space", "words"}
        How texts are split into words, see `sentemb.text.words.SPLITTINGS`.

    Attributes
    ----------
    trigrams, words : list of str
    splitting : str
    split : function of a str
        The words of a text.
    """

    def __init__(
        self,
        trigrams: Iterable[str],
        words: Iterable[str] = (),
        splitting: str = WHITE_SPACE,
    ) -> None:
        self.splitting, self.split = splitting, SPLITTINGS[splitting]
        self.trigrams, self.words = list(trigrams), list(words)
        self._trigram_ids = {trigram: i for i, trigram in enumerate(self.trigrams)}
        self._word_ids = {word: i for i, word in enumerate(self.words, len(self.trigrams))}

    def __len__(self) -> int:
        """The number of features, which is the number of rows of the input weights."""
        return len(self.trigrams) + len(self.words)

    def __str__(self) -> str:
        words = f" and {len(self.words):,} words" if self.words else ""
        return f"{len(self.trigrams):,} letter trigrams{words}"

    @classmethod
    def collect(
        cls, *tokens: Tokens, word_features: int = 0, splitting: str = WHITE_SPACE
    ) -> Vocabulary:
        """Collect all trigrams, most frequent first, ties in alphabetical order.

        Rows of frequent trigrams then share memory pages, which makes training faster.

        Parameters
        ----------
        *tokens : Tokens
            The texts to collect from.
        word_features : int
            Also collect the words that occur at least this often in all ``tokens`` together; 0
            collects none.
        splitting : str
            How ``tokens`` were split into words.
        """
        places: dict[str, int] = {}
        ids: list[int] = []
        uses: list[np.ndarray] = []
        words: Counter[str] = Counter()
        for some in tokens:
            ids += [places.setdefault(t, len(places)) for t in _trigrams_of_all(some.words)]
            used = np.bincount(some.word_index, minlength=len(some.words))
            uses.append(np.repeat(used, [len(word) for word in some.words]))
            if word_features:
                words.update(dict(zip(some.words, used.tolist(), strict=True)))
        counts = np.bincount(ids, weights=np.concatenate(uses), minlength=len(places))
        of_trigram = dict(zip(places, counts.tolist(), strict=True))
        frequent = {word: count for word, count in words.items() if count >= word_features}
        return cls(_most_frequent_first(of_trigram), _most_frequent_first(frequent), splitting)

    def grown(self, other: Vocabulary) -> Vocabulary:
        """This vocabulary with the features of ``other`` that it lacks appended to both lists."""
        return Vocabulary(
            [*self.trigrams, *(t for t in other.trigrams if t not in self._trigram_ids)],
            [*self.words, *(word for word in other.words if word not in self._word_ids)],
            self.splitting,
        )

    def rows_of(self, other: Vocabulary) -> NDArray[np.int64]:
        """The rows that the features of ``other`` have here, (len(other),) int64.

        Every feature of ``other`` must be in this vocabulary.
        """
        rows = [self._trigram_ids[trigram] for trigram in other.trigrams]
        rows += [self._word_ids[word] for word in other.words]
        return np.array(rows, np.int64)

    def features_of_all(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The known features of ``words``; a trigram that a word repeats is listed each time.

        Returns
        -------
        places, ids : (k,) int64
            Word ``places[j]`` of the list has the feature ``ids[j]``.
        """
        ids: list[int] = []
        places = np.zeros(0, np.int64)
        if self.trigrams:
            ids = [self._trigram_ids.get(t, -1) for t in _trigrams_of_all(words)]
            # A word of n letters has n trigrams.
            places = np.repeat(np.arange(len(words)), [len(word) for word in words])
        if self.words:
            ids += [self._word_ids.get(word, -1) for word in words]
            places = np.concatenate([places, np.arange(len(words))])
        known = np.array(ids, np.int64)
        return places[known >= 0], known[known >= 0]

    def features(self, word: str) -> dict[int, int]:
        """The known features of ``word`` as a dict from id to count, in ascending order of ids.

        A batch has the same order, so that the sum of a word's rows has the same bits everywhere.
        """
        found: dict[int, int] = {}
        for trigram in letter_trigrams(word):
            known = self._trigram_ids.get(trigram)
            if known is not None:
                found[known] = found.get(known, 0) + 1
        if word in self._word_ids:
            found[self._word_ids[word]] = 1
        return dict(sorted(found.items()))

    def batch(self, texts: Iterable[str]) -> TextBatch:
        """``texts`` as a `TextBatch`."""
        return batch_of(tokenize(texts, self.split), self)


def _trigrams_of_all(words: Iterable[str]) -> Iterator[str]:
    """The trigrams of all ``words`` one after the other; a word of n letters has n."""
    return chain.from_iterable(map(letter_trigrams, words))


def _most_frequent_first(counts: Mapping[str, float]) -> list[str]:
    return sorted(counts, key=lambda item: (-counts[item], item))
