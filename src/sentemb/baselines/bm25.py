"""BM25 by the package bm25s, with and without Porter stems.

Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009), in the form
that Lucene uses. The collection is the titles that are ranked.
"""

import numpy as np

from sentemb.baselines.baseline import Baseline, package, plain_words
from sentemb.bounds import brief, is_number
from sentemb.errors import SentembError


class BM25(Baseline):
    """See the module.

    Parameters
    ----------
    k1, b : float
        Saturation of a word's count, and how far a title's length divides it.
    stem : bool
        Whether words are cut to their English Porter stems (PyStemmer).
    """

    name = "bm25"
    grid = tuple({"k1": k1, "b": b} for k1 in (0.5, 0.9, 1.5) for b in (0.4, 0.75))

    def __init__(self, k1=0.9, b=0.4, stem=False):
        if not (is_number(k1) and is_number(b) and 0 <= k1 <= 1e6 and 0 <= b <= 1):
            raise SentembError(
                f"k1 must be a number from 0 to 1e6 and b from 0 to 1, not {brief(k1)} and "
                f"{brief(b)}"
            )
        self.k1, self.b, self.stem = k1, b, stem
        self._stem_words = package("Stemmer").Stemmer("porter").stemWords if stem else list
        self._bm25s = package("bm25s")

    def _words(self, text):
        return self._stem_words(plain_words(text))

    def score_pairs(self, queries, docs, query_index, doc_index):
        query_index, doc_index = np.asarray(query_index), np.asarray(doc_index)
        words = [self._words(doc) for doc in docs]
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
                scores[pairs] = index.get_scores(asked)[doc_index[pairs]]
        return scores
