"""The unigram language model with Dirichlet smoothing.

Zhai and Lafferty, "A study of smoothing methods for language models applied to information
retrieval", ACM TOIS 22 (2004): a title's score is the log-likelihood of the query,

    sum over the query's words w of log (count of w in title + mu p(w)) / (words of title + mu),

p(w) being the share of w in all titles. Words that no title has say nothing about any and are left
out.
"""

import math
from collections import Counter

import numpy as np

from sentemb.baselines.baseline import Baseline, plain_words
from sentemb.bounds import brief, is_number
from sentemb.errors import SentembError


class Unigram(Baseline):
    """See the module.

    Parameters
    ----------
    mu : float
        Words of the collection that are added to every title.
    """

    name = "unigram"
    grid = tuple({"mu": mu} for mu in (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0))

    def __init__(self, mu=10.0):
        if not (is_number(mu) and 0 < mu <= 1e12):
            raise SentembError(f"mu must be a number above 0 and up to 1e12, not {brief(mu)}")
        self.mu = mu

    def fit(self, log, docs=(), seed=0):
        counts = Counter()
        for title in {*docs, *(log.titles if log else ())}:
            counts.update(plain_words(title))
        total = sum(counts.values())
        self._shares = {word: count / total for word, count in counts.items()}
        self.n_parameters = len(counts)
        return self

    def score_pairs(self, queries, docs, query_index, doc_index):
        words = [[w for w in plain_words(query) if w in self._shares] for query in queries]
        counts = [Counter(plain_words(doc)) for doc in docs]
        scores = np.empty(len(query_index))
        for k, (q, d) in enumerate(zip(query_index, doc_index)):
            length = math.log(counts[d].total() + self.mu)
            scores[k] = sum(
                math.log(counts[d][word] + self.mu * self._shares[word]) - length
                for word in words[q]
            )
        return scores
