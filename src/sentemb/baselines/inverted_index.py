"""BM25 over all titles of a collection: for each word the titles that hold it.

`BM25` scores given pairs and needs the package bm25s. This index looks through all titles and needs
no package; both compute the same numbers.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.bm25 import K1, B
from sentemb.kernels.inverted_index import highest_sums
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words


class InvertedIndex:
    """The BM25 weight of every word in every title, in the form that Lucene uses.

    The weight of a word that occurs f times in a title of l words is ``idf · f / (f + k1 · (1 - b +
    b · l / mean l))`` with ``idf = ln(1 + (N - n + 0.5) / (n + 0.5))`` for N titles, n of which
    hold the word.

    Parameters
    ----------
    titles : sequence of str
        The collection.

    Attributes
    ----------
    n_titles : int
    """

    def __init__(self, titles: Sequence[str]) -> None:
        tokens = tokenize(titles, plain_words)
        self.n_titles = len(titles)
        self._word_of = {word: place for place, word in enumerate(tokens.words)}
        lengths = np.diff(tokens.offsets)
        title_of_token = np.repeat(np.arange(self.n_titles), lengths)
        # One number for word and title: sorted, they are the lists of all words.
        entries, counts = np.unique(
            tokens.word_index.astype(np.int64) * self.n_titles + title_of_token, return_counts=True
        )
        words, holding = np.divmod(entries, self.n_titles)
        n_holding = np.bincount(words, minlength=len(tokens.words))
        self._offsets = np.concatenate([[0], np.cumsum(n_holding)])
        self._titles = holding.astype(np.int32)
        idf = np.log(1 + (self.n_titles - n_holding + 0.5) / (n_holding + 0.5))
        # Without any word there are no entries, and the mean is not used.
        mean_length = max(lengths.sum(), 1) / self.n_titles
        saturation = K1 * (1 - B + B * lengths / mean_length)
        self._weights = (idf[words] * counts / (counts + saturation[holding])).astype(np.float32)

    def look_up(self, queries: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The words of ``queries`` that occur in some title.

        Returns
        -------
        offsets, words : (n_queries + 1,) int64, (n,) int32
        """
        known = [
            [self._word_of[word] for word in plain_words(query) if word in self._word_of]
            for query in queries
        ]
        offsets = np.cumsum([0, *map(len, known)], dtype=np.int64)
        return offsets, np.array([word for words in known for word in words], np.int32)

    def highest(
        self,
        highest: NDArray[np.int32],
        queries: tuple[NDArray[np.int64], NDArray[np.int32]],
        left_out: tuple[NDArray[np.int64], NDArray[np.int32]],
        first: int,
        end: int,
    ) -> None:
        """The titles with the highest BM25 scores, equal scores in the order of the titles.

        Parameters
        ----------
        highest : (n_queries, k) int32, written
            Highest first; -1 where fewer titles have a word of the query.
        queries : (n_queries + 1,) int64, (n,) int32
            What `look_up` returned.
        left_out : (n_queries + 1,) int64, (n,) int32
            Offsets and titles: those of each query that are not wanted.
        first, end : int
            The queries to do.
        """
        lists = self._offsets, self._titles, self._weights
        highest_sums(highest, *queries, *lists, self.n_titles, *left_out, first, end)
