"""Probabilistic latent semantic analysis: the EM steps over lists of word counts.

Hofmann, "Probabilistic latent semantic indexing", SIGIR 1999. Only p(z|d) of
each text d and p(w|z) of each topic z are kept; the responsibilities p(z|d, w) are computed where
they are needed.
"""

import math

import numpy as np

from sentemb.kernels.compiling.jit import kernel


@kernel
def expect_words(sums, mixtures, topics, offsets, words, counts, likelihoods, first, end):
    """The E step of the texts ``first`` to ``end``, and the M step of their mixtures.

    sums : (n_words, n_topics) float64, added to: the expected count of each word from each topic
    mixtures : (n_texts, n_topics) float64, p(z|d), replaced by their next values
    topics : (n_words, n_topics) float64, p(w|z)
    offsets, words, counts : (n_texts + 1,) int64, (n_entries,) int32, (n_entries,) float64
    likelihoods : (n_texts,) float64, written: log p(d) under the given mixtures and topics
    """
    n_topics = mixtures.shape[1]
    joint, following = np.empty(n_topics), np.empty(n_topics)
    for text in range(first, end):
        mixture = mixtures[text]
        following[:] = 0
        likelihood = 0.0
        length = 0.0
        for entry in range(offsets[text], offsets[text + 1]):
            topic = topics[words[entry]]
            total = 0.0
            for z in range(n_topics):
                joint[z] = mixture[z] * topic[z]
                total += joint[z]
            likelihood += counts[entry] * math.log(total)
            length += counts[entry]
            share = counts[entry] / total
            s = sums[words[entry]]
            for z in range(n_topics):
                expected = share * joint[z]
                following[z] += expected
                s[z] += expected
        likelihoods[text] = likelihood
        if length > 0:
            for z in range(n_topics):
                mixture[z] = following[z] / length


@kernel
def fold_in(mixtures, topics, offsets, words, counts, iterations, first, end):
    """EM on the mixtures of new texts, the topics fixed; see `expect_words` for the arrays."""
    n_topics = mixtures.shape[1]
    joint, following = np.empty(n_topics), np.empty(n_topics)
    for text in range(first, end):
        mixture = mixtures[text]
        for _ in range(iterations):
            following[:] = 0
            length = 0.0
            for entry in range(offsets[text], offsets[text + 1]):
                topic = topics[words[entry]]
                total = 0.0
                for z in range(n_topics):
                    joint[z] = mixture[z] * topic[z]
                    total += joint[z]
                length += counts[entry]
                share = counts[entry] / total
                for z in range(n_topics):
                    following[z] += share * joint[z]
            if length > 0:
                for z in range(n_topics):
                    mixture[z] = following[z] / length
