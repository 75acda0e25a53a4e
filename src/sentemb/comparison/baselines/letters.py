"""Letter n-grams with clicks, without training: "letters-clicks".

A text is a vector of the n-grams of 2 to 4 letters within its words, blanks around a word included,
weighted by TF-IDF. The score of a title t for a query q is the highest of

    cos(q, t)   and   sqrt(share of t in the clicks of c) · cos(q, c)

over the queries c that t was clicked for. On small logs of one-word queries that is hard to beat.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.kernels.top_k import top_k
from sentemb.retrieval.bm25 import Lists, count_words
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize

LENGTHS = range(2, 5)
# Queries whose scores of all texts are in memory together.
_TOGETHER = 64


def letter_ngrams(text: str) -> list[str]:
    """The n-grams of 2 to 4 letters of each word of ``text``, lower-cased, with repeats.

    Examples
    --------
    >>> letter_ngrams("An ox")[:6]
    [' a', 'an', 'n ', ' an', 'an ', ' an ']
    """
    return [
        word[start : start + n]
        for word in (f" {part} " for part in text.lower().split())
        for n in LENGTHS
        for start in range(len(word) - n + 1)
    ]


class LettersOfClicks:
    """Finds titles by letter n-grams of titles and clicked queries.

    It is a `sentemb.models.contracts.Retriever`.

    Parameters
    ----------
    titles : sequence of str
        The catalogue.
    log : ClickLog
        The clicks; queries of titles that are not in the catalogue count in the idf alone.
    threads : int, optional
        By default all processors. No score depends on it.

    Examples
    --------
    >>> log = ClickLog.from_pairs([("drip", "Repair a Faucet")])
    >>> found = LettersOfClicks(["Paint a Wall", "Repair a Faucet"], log).find(["drips"], 2)
    >>> found[0].tolist()
    [[1, -1]]
    """

    def __init__(self, titles: Sequence[str], log: ClickLog, threads: int | None = None) -> None:
        clicked = ClickedQueries.of(log)
        clicks = clicked.of_titles(titles)
        self._lists = _lists([*titles, *clicked.queries])
        self._n_titles = len(titles)
        self._texts = self._n_titles + clicks.queries
        self._roots = np.sqrt(clicks.shares).astype(np.float32)
        self._clicked = np.flatnonzero(np.diff(clicks.offsets))
        self._starts = clicks.offsets[self._clicked]
        self._workers = Workers(threads)

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """See `sentemb.models.contracts.Retriever`; only titles with a score above 0."""
        k = min(k, self._n_titles)
        titles, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k))
        for first in range(0, len(queries), _TOGETHER):
            of_all = self.scores(queries[first : first + _TOGETHER])
            rows = slice(first, first + len(of_all))
            self._workers.over(len(of_all), top_k, titles[rows], of_all)
            scores[rows] = np.take_along_axis(of_all, titles[rows], axis=1)
        return np.where(scores > 0, titles, -1), np.where(scores > 0, scores, -np.inf)

    def scores(self, queries: Sequence[str]) -> NDArray[np.float32]:
        """The scores of all titles, (n_queries, n_titles), up to a factor of each query."""
        of_texts = np.zeros((len(queries), self._lists.n_titles), np.float32)
        asked = self._lists.look_up(tokenize(queries, letter_ngrams))
        self._lists.add(of_texts, 1.0, asked, self._workers)
        scores = of_texts[:, : self._n_titles].copy()
        if self._starts.size:
            of_clicks = np.maximum.reduceat(
                of_texts[:, self._texts] * self._roots, self._starts, axis=1
            )
            scores[:, self._clicked] = np.maximum(scores[:, self._clicked], of_clicks)
        return scores


def _lists(texts: Sequence[str]) -> Lists:
    """The n-grams of texts as unit vectors by TF-IDF, times the idf that a query adds."""
    no_clicks = ClickedQueries.nothing().of_titles(texts)
    counts = count_words(texts, no_clicks, tokenize(()), letter_ngrams).whole
    holding = np.diff(counts.offsets)
    idf = np.repeat(1 + np.log((1 + len(texts)) / (1 + holding)), holding)
    weights = counts.counts * idf
    lengths = np.sqrt(np.bincount(counts.titles, weights**2, len(texts)))
    products = (weights * idf / lengths[counts.titles]).astype(np.float32)
    return Lists(counts.words, counts.offsets, counts.titles, products, len(texts))
