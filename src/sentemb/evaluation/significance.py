"""Whether one ranking is better than another or only lucky.

The paired randomisation test (Fisher; Smucker, Allan and Carterette, "A comparison of statistical
significance tests for information retrieval evaluation", CIKM 2007): if two systems were equal, the
sign of each query's difference would be random. Confidence intervals come from the paired
bootstrap. Several comparisons with one reference are corrected by Holm's method.

If a model was trained with several seeds, give the mean over the seeds for each query: the tests
then generalise to other queries, not to other seeds.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, whole
from sentemb.system.html_tables import ShownRows, facts_table

_Floats: TypeAlias = NDArray[np.float64]

# Up to this many differences, all combinations of signs are tried.
_EXACT = 16
_MOST_SAMPLES = 10**7
# Numbers drawn at a time: this bounds the memory and fits in the cache.
_DRAWN = 1 << 20


@dataclass(frozen=True)
class Difference:
    """One system against another on the same queries.

    Attributes
    ----------
    mean : float
        Mean of the differences, first minus second.
    low, high : float
        95 % confidence interval of the mean.
    p : float
        Two-sided p-value of the randomisation test.
    """

    mean: float
    low: float
    high: float
    p: float

    def _repr_html_(self) -> str:
        return facts_table(
            {
                "difference": f"{self.mean:+.4f}",
                "95 % interval": f"{self.low:+.4f} to {self.high:+.4f}",
                "p": f"{self.p:.2g}",
            }
        )


def compare_all(
    systems: Iterable[ArrayLike], reference: ArrayLike, *, samples: int = 10_000, seed: int = 0
) -> list[Difference]:
    """Compare several systems with one reference, query by query.

    All systems share the same random signs and the same bootstrap samples, so one pass serves them
    all, and a system's result does not depend on the other systems.

    ``systems`` (k, n_queries) and ``reference`` (n_queries,) have one value per query, such as its
    NDCG; no NaN, so leave out queries without a value. For a trained model, give the mean over its
    seeds. ``samples`` is the number of random sign vectors and of bootstrap samples; for a system
    with at most 16 non-zero differences, all sign vectors are tried instead. In the result p is not
    corrected, see `holm`. Raises `SentembError` for values that are not numbers, lists of different
    lengths, NaN or infinity.
    """
    whole("samples", samples, 1, _MOST_SAMPLES)
    whole("seed", seed, 0, MAX_SEED)
    try:
        base = np.asarray(reference, np.float64)
        compared = [np.asarray(values, np.float64) for values in systems]
    except (TypeError, ValueError):
        raise SentembError("a paired comparison needs lists of numbers") from None
    if base.ndim != 1 or not base.size:
        raise SentembError("a paired comparison needs one number per query")
    if any(values.shape != base.shape for values in compared):
        raise SentembError("a paired comparison needs one number per query from every system")
    if not compared:
        return []
    differences = np.stack(compared) - base
    if not np.isfinite(differences).all():
        raise SentembError(
            "a paired comparison needs finite numbers; leave out queries that have none"
        )
    low, high = np.quantile(_bootstrap_means(differences, samples, seed), [0.025, 0.975], axis=0)
    p = _randomisation(differences, samples, seed)
    few = np.count_nonzero(differences, axis=1) <= _EXACT
    for k in np.flatnonzero(few):
        p[k] = _exact_randomisation(differences[k][differences[k] != 0])
    return ShownRows(
        Difference(*map(float, numbers))
        for numbers in zip(differences.mean(axis=1), low, high, p, strict=True)
    )


def holm(p_values: ArrayLike) -> _Floats:
    """P-values, (k,) float64, by Holm's correction for several comparisons, in the given order.

    Holm, "A simple sequentially rejective multiple test procedure", Scand. J. Statist. 6 (1979).

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    factors = p.size - np.arange(p.size)
    corrected = np.empty_like(p)
    corrected[order] = np.minimum(1, np.maximum.accumulate(factors * p[order]))
    return corrected


def _exact_randomisation(differences: _Floats) -> float:
    """Two-sided p of the sum of ``differences``, none of them zero, from all sign vectors."""
    n = differences.size
    signs = 1 - 2 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)
    return float(np.mean(np.abs(signs @ differences) >= _limits(differences[None])[0]))


def _randomisation(differences: _Floats, samples: int, seed: int) -> _Floats:
    """Two-sided p, (k,), of the sums of ``differences``, (k, n): (b + 1) / (samples + 1).

    b counts the random sign vectors whose sum is at least as far from zero as the observed sum;
    the observed sum adds the 1.
    """
    rng = np.random.default_rng([seed, 0])
    k, n = differences.shape
    limits, totals = _limits(differences), differences.sum(axis=1)
    as_far = np.zeros(k, np.int64)
    for size in _portions(samples, n):
        # Bit 0 is the sign -, bit 1 the sign +.
        bits = rng.integers(0, 2, (size, n), dtype=np.int8).astype(np.float64)
        sums = 2 * (bits @ differences.T) - totals
        as_far += np.count_nonzero(np.abs(sums) >= limits, axis=0)
    return (as_far + 1) / (samples + 1)


def _limits(differences: _Floats) -> _Floats:
    """The observed distances from zero, lowered so that rounding does not decide a tie."""
    limits: _Floats = np.abs(differences.sum(axis=1)) - 1e-12 * np.abs(differences).sum(axis=1)
    return limits


def _bootstrap_means(differences: _Floats, samples: int, seed: int) -> _Floats:
    """Means, (samples, k), over queries drawn with replacement."""
    rng = np.random.default_rng([seed, 1])
    n = differences.shape[1]
    means = []
    for size in _portions(samples, n):
        drawn = rng.integers(0, n, (size, n)) + n * np.arange(size)[:, None]
        counts = np.bincount(drawn.ravel(), minlength=size * n).reshape(size, n)
        means.append(counts @ differences.T / n)
    return np.concatenate(means)


def _portions(samples: int, n: int) -> Sequence[int]:
    """``samples`` in portions whose draws fit in memory."""
    size = max(1, _DRAWN // n)
    return [min(size, samples - first) for first in range(0, samples, size)]
