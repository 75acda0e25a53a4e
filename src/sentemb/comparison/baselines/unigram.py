"""The unigram language model with Dirichlet smoothing.

Zhai and Lafferty, "A study of smoothing methods for language models applied to information
retrieval", ACM TOIS 22 (2004): a title's score is the log-likelihood of the query,

    sum over the query's words w of log (count of w in title + mu p(w)) / (words of title + mu),

where p(w) is the share of w in all titles. Words that occur in no title cannot distinguish titles
and are left out.
"""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines.baseline import Baseline
from sentemb.data.click_log import ClickLog
from sentemb.system.bounds import positive
from sentemb.text.words import plain_words


class Unigram(Baseline):
    """Log-likelihood of the query in the smoothed language model of the title.

    ``mu`` is the weight of the collection: the number of its words added to every title.
    """

    name = "unigram"
    grid = tuple({"mu": mu} for mu in (3.0, 10.0, 30.0, 100.0, 300.0, 1000.0))

    def __init__(self, mu: float = 10.0) -> None:
        self.mu = positive("mu", mu, 1e12)

    def fit(self, log: ClickLog | None, titles: Sequence[str] = (), seed: int = 0) -> Self:
        """Count the words of all titles; see `Baseline.fit`."""
        counts: Counter[str] = Counter()
        for title in {*titles, *(log.titles if log else ())}:
            counts.update(plain_words(title))
        total = sum(counts.values())
        self._shares = {word: count / total for word, count in counts.items()}
        self.n_parameters = len(counts)
        return self

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Log-likelihoods of queries, (k,) float64; see `sentemb.models.contracts.Ranker`."""
        words = [[w for w in plain_words(query) if w in self._shares] for query in queries]
        counts = [Counter(plain_words(title)) for title in titles]
        scores = np.empty(len(query_index))
        for k, (q, t) in enumerate(zip(query_index, title_index, strict=True)):
            length = math.log(counts[t].total() + self.mu)
            scores[k] = sum(
                math.log(counts[t][word] + self.mu * self._shares[word]) - length
                for word in words[q]
            )
        return scores
