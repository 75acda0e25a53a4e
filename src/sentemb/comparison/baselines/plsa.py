"""Probabilistic latent semantic analysis with MAP estimates; new texts are folded in.

Hofmann, "Probabilistic latent semantic indexing", SIGIR 1999. A training text is a title with all
queries that it was clicked for, so that words with the same meaning can share a topic. A query and
a title are compared by the cosine of their topic mixtures.
"""

from collections.abc import Callable, Sequence
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines.baseline import VectorBaseline, learned_from
from sentemb.data.click_log import ClickLog
from sentemb.kernels.plsa import expect_words, fold_in
from sentemb.system.bounds import number, whole
from sentemb.text.batch import Numbering
from sentemb.text.words import plain_words

_ITERATIONS = 40
_FOLD_IN_ITERATIONS = 30


class PLSA(VectorBaseline):
    """Cosines of topic mixtures of probabilistic latent semantic analysis.

    ``prior`` is the count that a Dirichlet prior adds to every word in every topic; 0 gives maximum
    likelihood. `fit` sets ``log_likelihoods``, those of the training texts before each iteration.
    """

    name = "plsa"
    is_random = True
    grid = tuple({"topics": topics, "prior": p} for topics in (100, 300) for p in (0.001, 0.01))

    def __init__(self, topics: int = 100, prior: float = 0.001) -> None:
        self.topics, self.prior = whole("topics", topics, 1, 5000), number("prior", prior, 0, 1e6)

    def fit(self, log: ClickLog | None, titles: Sequence[str] = (), seed: int = 0) -> Self:
        """Estimate the topics; see `Baseline.fit`."""
        log = learned_from(log, self.name)
        texts = [[title] for title in log.titles]
        for query, title in zip(log.query_index, log.title_index, strict=True):
            texts[title].append(log.queries[query])
        self._word_numbers = Numbering()
        lists = _word_counts([" ".join(group) for group in texts], self._word_numbers.__getitem__)
        rng = np.random.default_rng(seed)
        self._topics = _shares(rng.random((len(self._word_numbers), self.topics)) + 0.5, axis=0)
        mixtures = _shares(rng.random((len(texts), self.topics)) + 0.5, axis=1)
        self.log_likelihoods: list[float] = []
        for _ in range(_ITERATIONS):
            self._step(mixtures, lists)
        self.n_parameters = self._topics.size
        return self

    def _step(self, mixtures: NDArray[np.float64], lists: "_WordCounts") -> None:
        """One EM step; ``mixtures`` are replaced."""
        likelihoods = np.zeros(len(mixtures))
        sums = np.full(self._topics.shape, float(self.prior))
        expect_words(sums, mixtures, self._topics, *lists, likelihoods, 0, len(mixtures))
        self.log_likelihoods.append(float(likelihoods.sum()))
        self._topics = _shares(sums, axis=0)

    def vectors(self, texts: Sequence[str]) -> NDArray[np.float64]:
        """p(z|text) by folding in, (n_texts, topics) float64; zero without a known word."""
        offsets, words, counts = _word_counts(texts, self._word_numbers.get)
        # A word with probability zero in every topic would divide by zero.
        alive = (self._topics[words] > 0).any(axis=1)
        n_alive = np.concatenate([[0], np.cumsum(alive)])
        offsets, words, counts = n_alive[offsets], words[alive], counts[alive]
        mixtures = np.full((len(texts), self.topics), 1 / self.topics)
        arguments = (self._topics, offsets, words, counts, _FOLD_IN_ITERATIONS)
        fold_in(mixtures, *arguments, 0, len(texts))
        mixtures[offsets[1:] == offsets[:-1]] = 0
        return mixtures


_WordCounts: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float64]]


def _word_counts(texts: Sequence[str], number_of: Callable[[str], int | None]) -> _WordCounts:
    """Offsets, words and counts of texts; words without a number are left out."""
    offsets: list[int] = [0]
    words: list[int] = []
    counts: list[int] = []
    for text in texts:
        counted: dict[int, int] = {}
        for word in plain_words(text):
            number = number_of(word)
            if number is not None:
                counted[number] = counted.get(number, 0) + 1
        words += counted.keys()
        counts += counted.values()
        offsets.append(len(words))
    return np.array(offsets), np.array(words, np.int32), np.array(counts, np.float64)


def _shares(array: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    shares: NDArray[np.float64] = array / array.sum(axis=axis, keepdims=True)
    return shares
