"""Whether one ranking is better than another, or only lucky.

The paired randomisation test (Fisher; Smucker, Allan and Carterette, "A comparison of statistical
significance tests for information retrieval evaluation", CIKM 2007): if two systems were the same,
the sign of each query's difference would be a coin's. Confidence intervals are of the paired
bootstrap. Several comparisons with one reference are corrected by Holm's method.

Of a model trained with several seeds, a query's figure is the mean over them: the tests then speak
about other queries, not about other seeds.
"""

from dataclasses import dataclass

import numpy as np

from sentemb.bounds import MAX_SEED, whole
from sentemb.errors import SentembError

# Up to this many differences all signs are tried.
_EXACT = 16
_MOST_SAMPLES = 10**7
# Numbers drawn at a time: bounds the memory, and stays in the cache.
_DRAWN = 1 << 20


@dataclass(frozen=True)
class Difference:
    """One system against another on the same queries.

    Attributes
    ----------
    mean : float
        Of the differences, first minus second.
    low, high : float
        95 % confidence interval of the mean.
    p : float
        Two-sided, of the randomisation test.
    """

    mean: float
    low: float
    high: float
    p: float


def compare_paired(first, second, *, samples=10_000, seed=0):
    """Compare the figures of two systems, query by query: `compare_all` for one system."""
    return compare_all([first], second, samples=samples, seed=seed)[0]


def compare_all(systems, reference, *, samples=10_000, seed=0):
    """Compare each of some systems with one reference, query by query.

    All systems meet the same random signs and the same bootstrap samples, so that one pass over
    them serves all; a system's figures do not depend on which others there are.

    Parameters
    ----------
    systems : (k, n_queries) float
        No NaN: leave queries without a figure out of all. Of a trained model, the mean over its
        seeds.
    reference : (n_queries,) float
    samples : int
        Random signs, and bootstrap samples. Of a system with few differences that are not zero all
        signs are tried instead.
    seed : int

    Returns
    -------
    list of Difference
        Uncorrected: see `holm`.
    """
    whole("samples", samples, 1, _MOST_SAMPLES)
    whole("seed", seed, 0, MAX_SEED)
    try:
        reference = np.asarray(reference, np.float64)
        systems = [np.asarray(figures, np.float64) for figures in systems]
    except (TypeError, ValueError):
        raise SentembError("a paired comparison needs lists of numbers") from None
    if reference.ndim != 1 or not reference.size:
        raise SentembError("a paired comparison needs one figure for each query")
    if any(figures.shape != reference.shape for figures in systems):
        raise SentembError("a paired comparison needs one figure for each query from every system")
    if not systems:
        return []
    differences = np.stack(systems) - reference
    if not np.isfinite(differences).all():
        raise SentembError("a paired comparison needs numbers; leave out queries that have none")
    low, high = np.quantile(_bootstrap_means(differences, samples, seed), [0.025, 0.975], axis=0)
    p = _randomisation(differences, samples, seed)
    few = np.count_nonzero(differences, axis=1) <= _EXACT
    for k in np.flatnonzero(few):
        p[k] = _exact_randomisation(differences[k][differences[k] != 0])
    return [
        Difference(*map(float, figures)) for figures in zip(differences.mean(axis=1), low, high, p)
    ]


def holm(p_values):
    """Holm's correction: p-values that hold for all comparisons together, in the order given.

    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).
    """
    p_values = np.asarray(p_values, np.float64)
    order = np.argsort(p_values, kind="stable")
    factors = p_values.size - np.arange(p_values.size)
    corrected = np.empty_like(p_values)
    corrected[order] = np.minimum(1, np.maximum.accumulate(factors * p_values[order]))
    return corrected


def _exact_randomisation(differences):
    """Two-sided p of the sum, from all signs; differences of zero have none and are left out."""
    n = differences.size
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return np.mean(np.abs(signs @ differences) >= _limits(differences[None])[0])


def _randomisation(differences, samples, seed):
    """Two-sided p, (k,), of the sums of ``differences``, (k, n): (b + 1) / (samples + 1).

    b counts random signs whose sum is as far from zero as the one found; the one found is the 1.
    """
    rng = np.random.default_rng([seed, 0])
    k, n = differences.shape
    limits, totals = _limits(differences), differences.sum(axis=1)
    as_far = np.zeros(k, np.int64)
    for size in _portions(samples, n):
        # Bits 0 and 1 for the signs - and +.
        bits = rng.integers(0, 2, (size, n), dtype=np.int8).astype(np.float64)
        sums = 2 * (bits @ differences.T) - totals
        as_far += np.count_nonzero(np.abs(sums) >= limits, axis=0)
    return (as_far + 1) / (samples + 1)


def _limits(differences):
    """From where on a sum is as far from zero as the one found; rounding makes no difference."""
    return np.abs(differences.sum(axis=1)) - 1e-12 * np.abs(differences).sum(axis=1)


def _bootstrap_means(differences, samples, seed):
    """Means, (samples, k), over queries drawn with replacement."""
    rng = np.random.default_rng([seed, 1])
    n = differences.shape[1]
    means = []
    for size in _portions(samples, n):
        drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        means.append(counts @ differences.T / n)
    return np.concatenate(means)


def _portions(samples, n):
    """``samples`` in portions whose draws fit in memory."""
    size = max(1, _DRAWN // n)
    return [min(size, samples - first) for first in range(0, samples, size)]
