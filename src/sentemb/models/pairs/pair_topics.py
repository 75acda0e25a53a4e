"""Topics of pairs of texts: words of queries and words of titles that go together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.plsa import expect_words
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch

_ITERATIONS = 30
# The count that the prior adds to every word in every topic, as in the PLSA baseline.
_PRIOR = 0.001
# Parts into which the pairs are cut for the threads. Each needs memory for all words and topics.
_PARTS = 2


def topics_of_words(
    queries: TextBatch,
    titles: TextBatch,
    pairs: tuple[NDArray[np.integer], NDArray[np.integer]],
    n_features: int,
    topics: int,
    seed: int,
    workers: Workers,
) -> NDArray[np.float64]:
    """p(z|w) of probabilistic latent semantic analysis in which a pair is one text.

    A word of a query and the same word of a title are two words. Words with other than one feature
    are left out, and so are repetitions of a word in a text.

    pairs : (n_pairs,) int, (n_pairs,) int, the query and the title of each pair
    n_features : features of the vocabulary, of which ``input_rows`` are numbers
    seed : the random seed of the initial topics; the result does not depend on the number of
        ``workers``

    Returns (2 n_features, topics) float64: for each feature as a word of a query, then for each as
    a word of a title; zero for those that no pair has.
    """
    n_pairs = pairs[0].size
    words, owners = [], []
    for side, (texts, numbers) in enumerate(zip((queries, titles), pairs, strict=True)):
        of_texts, text = _features_of_texts(texts)
        starts = np.searchsorted(text, np.arange(texts.n_texts + 1))
        lengths = np.diff(starts)[numbers]
        ends = np.cumsum(lengths)
        tokens = np.arange(ends[-1]) + np.repeat(starts[numbers] - (ends - lengths), lengths)
        words.append(of_texts[tokens] + side * n_features)
        owners.append(np.repeat(np.arange(n_pairs), lengths))
    owner = np.concatenate(owners)
    order = np.argsort(owner, kind="stable")
    used, ids = np.unique(np.concatenate(words)[order], return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(owner, minlength=n_pairs))])
    topic_weights = np.zeros((2 * n_features, topics))
    topic_weights[used] = _analysed(offsets, ids.astype(np.int32), used.size, topics, seed, workers)
    return topic_weights


def _features_of_texts(texts: TextBatch) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The distinct features of the words that have one: features, and the text of each."""
    single = np.diff(texts.feature_offsets) == 1
    feature = np.zeros(texts.n_words, np.int64)
    feature[single] = texts.input_rows[texts.feature_ids[texts.feature_offsets[:-1][single]]]
    text = np.repeat(np.arange(texts.n_texts), np.diff(texts.offsets))
    known = single[texts.word_index]
    n_features = int(feature.max(initial=0)) + 1
    keys = np.unique(text[known] * n_features + feature[texts.word_index[known]])
    return keys % n_features, keys // n_features


def _analysed(
    offsets: NDArray[np.int64],
    words: NDArray[np.int32],
    n_words: int,
    topics: int,
    seed: int,
    workers: Workers,
) -> NDArray[np.float64]:
    """p(z|w), (n_words, topics), by EM from random topics."""
    n_texts = offsets.size - 1
    rng = np.random.default_rng(seed)
    # Exponential numbers differ more than uniform ones, so the topics separate sooner.
    p_words = rng.standard_exponential((n_words, topics))
    p_words /= p_words.sum(axis=0)
    mixtures = rng.standard_exponential((n_texts, topics))
    mixtures /= mixtures.sum(axis=1, keepdims=True)
    counts, likelihoods = np.ones(words.size), np.zeros(n_texts)
    sums = np.empty((_PARTS, n_words, topics))
    edges = [n_texts * part // _PARTS for part in range(_PARTS + 1)]
    for _ in range(_ITERATIONS):
        sums[...] = _PRIOR / _PARTS
        lists = p_words, offsets, words, counts, likelihoods
        workers.run(
            [
                (expect_words, sums[part], mixtures, *lists, edges[part], edges[part + 1])
                for part in range(_PARTS)
            ]
        )
        p_words = sums.sum(axis=0)
        totals = p_words.sum(axis=0)
        p_words /= totals
    joint = p_words * totals
    shares: NDArray[np.float64] = joint / joint.sum(axis=1, keepdims=True)
    return shares
