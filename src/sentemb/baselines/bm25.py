"""BM25 by the package bm25s, with and without Porter stems.

Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009), in the form
that Lucene uses. The collection consists of the titles that are ranked.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.baseline import Baseline, package
from sentemb.bounds import number, share
from sentemb.text.words import plain_words

# Saturation of a word's count, and how much a title's length reduces it.
K1, B = 0.9, 0.4


class BM25(Baseline):
    """BM25 scores of the package bm25s.

    Parameters
    ----------
    k1, b : float
        Saturation of a word's count, and how much a title's length reduces it.
    stem : bool
        Whether words are reduced to their English Porter stems (PyStemmer).
    """

    name = "bm25"
    grid = tuple({"k1": k1, "b": b} for k1 in (0.5, 0.9, 1.5) for b in (0.4, 0.75))

    def __init__(self, k1: float = K1, b: float = B, stem: bool = False) -> None:
        self.k1, self.b, self.stem = number("k1", k1, 0, 1e6), share("b", b), stem
        self._stem_words: Callable[[list[str]], list[str]]
        self._stem_words = package("Stemmer").Stemmer("porter").stemWords if stem else list
        self._bm25s = package("bm25s")

    def _words(self, text: str) -> list[str]:
        return self._stem_words(plain_words(text))

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """BM25 scores, (k,) float64; see `sentemb.protocols.Ranker`."""
        query_index, title_index = np.asarray(query_index), np.asarray(title_index)
        words = [self._words(title) for title in titles]
        scores = np.zeros(query_index.size)
        if not any(words):
            return scores
        index = self._bm25s.BM25(k1=self.k1, b=self.b, method="lucene")
        index.index(words, show_progress=False)
        known = {word for some in words for word in some}
        by_query = np.argsort(query_index, kind="stable")
        starts = np.flatnonzero(np.diff(query_index[by_query], prepend=-1))
        for pairs in np.split(by_query, starts[1:]) if by_query.size else ():
            asked = [w for w in self._words(queries[query_index[pairs[0]]]) if w in known]
            if asked:
                scores[pairs] = index.get_scores(asked)[title_index[pairs]]
        return scores
