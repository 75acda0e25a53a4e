"""Probabilistic latent semantic analysis with MAP estimates, and folding-in of new texts.

Hofmann, "Probabilistic latent semantic indexing", SIGIR 1999. A training text is a title with all
queries that it was clicked for, so that words which mean the same can share a topic. A query and a
title are compared by the cosine of their topic mixtures.
"""

import numpy as np

from sentemb.baselines.baseline import Baseline, cosines, plain_words
from sentemb.bounds import brief, is_integer, is_number
from sentemb.errors import SentembError
from sentemb.kernels.plsa import expect_words, fold_in
from sentemb.text.batch import Places

_ITERATIONS = 40
_FOLD_IN_ITERATIONS = 30


class PLSA(Baseline):
    """See the module.

    Parameters
    ----------
    topics : int
    prior : float
        What a Dirichlet prior adds to every word's expected count in every topic; 0 is maximum
        likelihood.

    Attributes
    ----------
    log_likelihoods : list of float
        Of the training texts, before each iteration; after `fit`.
    """

    name = "plsa"
    is_random = True
    grid = tuple({"topics": topics, "prior": p} for topics in (100, 300) for p in (0.001, 0.01))

    def __init__(self, topics=100, prior=0.001):
        if not (is_integer(topics) and 1 <= topics <= 5000):
            raise SentembError(f"topics must be an integer from 1 to 5000, not {brief(topics)}")
        if not (is_number(prior) and 0 <= prior < 1e6):
            raise SentembError(f"prior must be a number from 0 to 1e6, not {brief(prior)}")
        self.topics, self.prior = topics, prior

    def fit(self, log, docs=(), seed=0):
        texts = [[title] for title in log.titles]
        for query, title in zip(log.query_index, log.title_index):
            texts[title].append(log.queries[query])
        self._places = Places()
        lists = _word_counts([" ".join(some) for some in texts], self._places.__getitem__)
        rng = np.random.default_rng(seed)
        self._topics = _shares(rng.random((len(self._places), self.topics)) + 0.5, axis=0)
        mixtures = _shares(rng.random((len(texts), self.topics)) + 0.5, axis=1)
        self.log_likelihoods = []
        for _ in range(_ITERATIONS):
            self._step(mixtures, lists)
        self.n_parameters = self._topics.size
        return self

    def _step(self, mixtures, lists):
        """One EM step; ``mixtures`` are replaced."""
        likelihoods = np.zeros(len(mixtures))
        sums = np.full(self._topics.shape, float(self.prior))
        expect_words(sums, mixtures, self._topics, *lists, likelihoods, 0, len(mixtures))
        self.log_likelihoods.append(float(likelihoods.sum()))
        self._topics = _shares(sums, axis=0)

    def mixtures(self, texts):
        """p(z|text) of new texts, by folding in: (n_texts, topics); 0 without a known word."""
        offsets, words, counts = _word_counts(texts, self._places.get)
        # A word that no topic has any longer would divide by zero.
        alive = (self._topics[words] > 0).any(axis=1)
        kept = np.concatenate([[0], np.cumsum(alive)])
        offsets, words, counts = kept[offsets], words[alive], counts[alive]
        mixtures = np.full((len(texts), self.topics), 1 / self.topics)
        arguments = (self._topics, offsets, words, counts, _FOLD_IN_ITERATIONS)
        fold_in(mixtures, *arguments, 0, len(texts))
        mixtures[offsets[1:] == offsets[:-1]] = 0
        return mixtures

    def score_pairs(self, queries, docs, query_index, doc_index):
        return cosines(self.mixtures(queries)[query_index], self.mixtures(docs)[doc_index])


def _word_counts(texts, place_of):
    """Texts as lists of words with counts: offsets, words, counts; words without place left out."""
    offsets, words, counts = [0], [], []
    for text in texts:
        found = {}
        for word in plain_words(text):
            place = place_of(word)
            if place is not None:
                found[place] = found.get(place, 0) + 1
        words += found.keys()
        counts += found.values()
        offsets.append(len(words))
    return np.array(offsets), np.array(words, np.int32), np.array(counts, np.float64)


def _shares(array, axis):
    return array / array.sum(axis=axis, keepdims=True)
