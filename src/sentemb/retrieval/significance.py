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

from sentemb.errors import SentembError

# Up to this many differences all signs are tried.
_EXACT = 16
# Signs drawn at a time, in numbers: bounds the memory.
_DRAWN = 1 << 22


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
    """Compare the figures of two systems, query by query.

    Parameters
    ----------
    first, second : (n_queries,) float
        No NaN: leave queries without a figure out of both.
    samples : int
        Random signs, and bootstrap samples. With few queries all signs are tried instead.
    seed : int

    Returns
    -------
    Difference
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    if first.shape != second.shape or first.ndim != 1 or not first.size:
        raise SentembError("a paired comparison needs one figure for each query from both systems")
    if np.isnan(first).any() or np.isnan(second).any():
        raise SentembError("a paired comparison needs numbers; leave out queries that have none")
    differences = first - second
    rng = np.random.default_rng(seed)
    low, high = np.quantile(_bootstrap_means(differences, samples, rng), [0.025, 0.975])
    return Difference(
        mean=float(differences.mean()),
        low=float(low),
        high=float(high),
        p=_randomisation(differences[differences != 0], samples, rng),
    )


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


def _randomisation(differences, samples, rng):
    """Two-sided p of the mean; differences of zero have no sign and are left out."""
    n = differences.size
    if n == 0:
        return 1.0
    observed = abs(differences.sum())
    # Sums that differ by rounding only are equal.
    limit = observed - 1e-12 * np.abs(differences).sum()
    if n <= _EXACT:
        signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
        return float(np.mean(np.abs(signs @ differences) >= limit))
    as_far = 0
    for size in _portions(samples, n):
        signs = rng.integers(0, 2, (size, n), dtype=np.int8)
        sums = 2 * (signs @ differences) - differences.sum()
        as_far += int(np.count_nonzero(np.abs(sums) >= limit))
    return (as_far + 1) / (samples + 1)


def _bootstrap_means(differences, samples, rng):
    n = differences.size
    return np.concatenate(
        [
            differences[rng.integers(0, n, (size, n), dtype=np.int32)].mean(axis=1)
            for size in _portions(samples, n)
        ]
    )


def _portions(samples, n):
    """``samples`` in portions whose draws fit in memory."""
    size = max(1, _DRAWN // n)
    return [min(size, samples - first) for first in range(0, samples, size)]
