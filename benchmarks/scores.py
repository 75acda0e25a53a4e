"""Scores of what a model shows: keyword detection, attenuation, cells against topics.

Plain NumPy over arrays. The words of many texts are one array; ``texts`` gives the text of each
word, so that chance can be measured by shuffling words within their texts.
"""

from collections import Counter
from dataclasses import dataclass

import numpy as np

from sentemb.text.words import split_words

_RESAMPLES = 2000
_CONFIDENCE = 0.95


@dataclass(frozen=True)
class Attenuation:
    """A value at keywords against its value at all other words.

    Attributes
    ----------
    keywords, others : float
        Means over all words of either sort.
    difference : float
        Keywords minus others within a text, the mean over the texts that have both.
    low, high : float
        Ends of the 95 % interval of ``difference``, by a bootstrap over texts.
    texts : int
        How many have both.
    """

    keywords: float
    others: float
    difference: float
    low: float
    high: float
    texts: int


# -- keywords -----------------------------------------------------------------------------------


def precision_recall(declared, relevant):
    """Precision and recall of ``declared`` (k,) bool against ``relevant`` (k,) bool.

    Precision is 0 if nothing is declared, recall is 0 if nothing is relevant.
    """
    declared, relevant = np.asarray(declared, bool), np.asarray(relevant, bool)
    hits = np.count_nonzero(declared & relevant)
    return (
        hits / max(1, np.count_nonzero(declared)),
        hits / max(1, np.count_nonzero(relevant)),
    )


def average_precision(scores, relevant):
    """Precision at each rise of recall, averaged: the area under the precision-recall steps.

    Equal scores are one step, so that their order does not matter.

    Parameters
    ----------
    scores : (k,) float
        Higher scores come first.
    relevant : (k,) bool
        At least one.

    Returns
    -------
    float
    """
    relevant = np.asarray(relevant, bool)
    _, step = np.unique(-np.asarray(scores), return_inverse=True)
    found = np.bincount(step)
    hits = np.bincount(step, weights=relevant)
    precision = np.cumsum(hits) / np.cumsum(found)
    return float(precision @ hits / hits.sum())


def area_under_curve(scores, relevant):
    """How likely a relevant word scores higher than another one; ties count half. 0.5 is chance.

    The area under the ROC curve, by the rank sum of Mann and Whitney; parameters as for
    `average_precision`, with at least one word that is not relevant.
    """
    relevant = np.asarray(relevant, bool)
    _, step = np.unique(np.asarray(scores), return_inverse=True)
    sizes = np.bincount(step)
    middle_ranks = np.cumsum(sizes) - (sizes - 1) / 2
    n = np.count_nonzero(relevant)
    above = middle_ranks[step][relevant].sum() - n * (n + 1) / 2
    return float(above / (n * (relevant.size - n)))


# -- attenuation --------------------------------------------------------------------------------


def attenuation(values, relevant, texts, seed=0):
    """Compare ``values`` at keywords and at other words, within texts.

    Differences are taken within each text, so that texts with high values overall do not count as
    keywords. The interval resamples texts, since the words of a text are not independent.

    Parameters
    ----------
    values : (k,) float
        The mean input gate at each word, say.
    relevant : (k,) bool
        Keyword or not.
    texts : (k,) int
        Which text each word is in, from 0.
    seed : int
        Seed of the resampling.

    Returns
    -------
    Attenuation
    """
    values, relevant = np.asarray(values, np.float64), np.asarray(relevant, bool)
    sums, sizes = np.zeros((2, 2, np.max(texts) + 1))
    np.add.at(sums, (relevant.astype(int), texts), values)
    np.add.at(sizes, (relevant.astype(int), texts), 1)
    both = sizes.all(axis=0)
    others, keywords = sums[:, both] / sizes[:, both]
    differences = keywords - others
    rng = np.random.default_rng(seed)
    drawn = [rng.choice(differences, differences.size).mean() for _ in range(_RESAMPLES)]
    low, high = np.quantile(drawn, [(1 - _CONFIDENCE) / 2, (1 + _CONFIDENCE) / 2])
    return Attenuation(
        keywords=float(values[relevant].mean()),
        others=float(values[~relevant].mean()),
        difference=float(differences.mean()),
        low=float(low),
        high=float(high),
        texts=int(differences.size),
    )


# -- cells and topics ---------------------------------------------------------------------------


def purity(counts):
    """The share of all that lies in its cell's largest topic; ``counts`` is (cells, topics)."""
    return float(np.max(counts, axis=1).sum() / np.sum(counts))


def normalised_mutual_information(counts):
    """How much cell and topic say about each other, from 0 to 1.

    Parameters
    ----------
    counts : (cells, topics) int
        How often both came together; not all 0.

    Returns
    -------
    float
        Mutual information divided by the mean of the two entropies; 0 if there is only one cell or
        one topic.
    """
    joint = np.asarray(counts, np.float64) / np.sum(counts)
    of_cells, of_topics = joint.sum(axis=1), joint.sum(axis=0)
    entropies = _entropy(of_cells) + _entropy(of_topics)
    if entropies == 0:
        return 0.0
    return float(2 * (entropies - _entropy(joint.ravel())) / entropies)


def _entropy(shares):
    shares = shares[shares > 0]
    return -np.sum(shares * np.log(shares))


# -- baselines ----------------------------------------------------------------------------------


def shuffled_within(texts, rng):
    """An order of all words in which each text's words are shuffled among its own places.

    Parameters
    ----------
    texts : (k,) int
        Rising.
    rng : numpy.random.Generator
        Source of the shuffles.

    Returns
    -------
    (k,) int
        ``values[order]`` are the values of a model that knows how many keywords a text has but not
        which.
    """
    return np.lexsort((rng.random(len(texts)), texts))


def highest(scores, count):
    """The ``count`` highest of ``scores`` (k,) as a (k,) bool; ties go to the first."""
    chosen = np.zeros(len(scores), bool)
    chosen[np.argsort(-np.asarray(scores), kind="stable")[:count]] = True
    return chosen


def inverse_document_frequency(texts):
    """A function from word to ln((N + 1) / (df + 1)), largest for a word that is in no text.

    Parameters
    ----------
    texts : list of str
        N of them; df is the number that contain the word.
    """
    found_in = Counter()
    for text in texts:
        found_in.update(set(split_words(text)))

    def idf(word):
        return float(np.log((len(texts) + 1) / (found_in[word] + 1)))

    return idf
