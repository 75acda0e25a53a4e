"""The randomisation test, its intervals and Holm's correction."""

from itertools import product

import numpy as np
import pytest

from sentemb import SentembError
from sentemb.evaluation.significance import compare_all, holm


def compare(first, second, **settings):
    """One system against another."""
    (found,) = compare_all([first], second, **settings)
    return found


def exact_p(differences):
    """All signs tried, one by one."""
    observed = abs(sum(differences))
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return np.mean([total >= observed - 1e-12 for total in sums])


@pytest.mark.parametrize("seed", range(8))
def test_few_queries_are_tested_exactly(seed):
    rng = np.random.default_rng(seed)
    differences = rng.choice([-0.5, -0.25, 0, 0.25, 0.5, 1], rng.integers(3, 10))
    base = rng.random(differences.size)
    found = compare(base + differences, base)
    assert found.p == pytest.approx(exact_p([d for d in differences if d]), abs=1e-12)
    assert found.mean == pytest.approx(differences.mean(), abs=1e-12)


def test_drawn_signs_come_near_the_exact_p():
    rng = np.random.default_rng(1)
    differences = rng.normal(0.15, 0.4, 17)  # one more than is tried exactly
    signs = 1 - 2 * ((np.arange(2**17)[:, None] >> np.arange(17)) & 1)
    exact = np.mean(np.abs(signs @ differences) >= abs(differences.sum()) - 1e-12)
    assert compare(differences, 0 * differences, samples=20_000).p == pytest.approx(exact, abs=0.01)


def test_under_the_null_p_is_uniform():
    rng = np.random.default_rng(2)
    p = [compare(rng.random(60), rng.random(60), samples=400).p for _ in range(300)]
    for limit in (0.05, 0.2, 0.5):
        expected, deviation = limit, 4 * np.sqrt(limit * (1 - limit) / len(p))
        assert abs(np.mean(np.array(p) <= limit) - expected) < deviation


def test_the_interval_covers_the_mean_as_often_as_it_says():
    rng = np.random.default_rng(3)
    inside = 0
    for _ in range(300):
        found = compare(rng.normal(0.1, 0.3, 80), np.zeros(80), samples=400)
        inside += found.low <= 0.1 <= found.high
    assert 0.90 < inside / 300 < 0.99


def test_a_clear_difference_is_clear_and_none_is_none():
    rng = np.random.default_rng(4)
    base = rng.random(500)
    assert compare(base + 0.1, base).p == pytest.approx(1 / 10_001)
    same = compare(base, base)
    assert (same.mean, same.low, same.high, same.p) == (0, 0, 0, 1)
    one_way, other_way = compare(base, base**2), compare(base**2, base)
    assert one_way.mean == -other_way.mean and one_way.p == pytest.approx(other_way.p, abs=0.01)


def test_the_same_seed_gives_the_same_figures():
    rng = np.random.default_rng(5)
    a, b = rng.random((2, 100))
    assert compare(a, b, seed=1) == compare(a, b, seed=1)


def test_holm_by_hand():
    assert holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert holm([0.2, 0.001, 0.5, 0.02]) == pytest.approx([0.4, 0.004, 0.5, 0.06])
    assert holm([0.9, 0.8]) == pytest.approx([1, 1])
    assert holm([]).size == 0


@pytest.mark.parametrize(
    ("first", "second"), [([], []), ([1.0], [1.0, 2.0]), ([1.0, np.nan], [1.0, 2.0])]
)
def test_figures_that_are_not_paired(first, second):
    with pytest.raises(SentembError, match="paired comparison"):
        compare(first, second)


def test_scipy_finds_the_same():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(6)
    for n, tolerance in ((9, 1e-12), (40, 0.01)):
        a, b = rng.random((2, n)) + [[0.12], [0]]
        theirs = stats.permutation_test(
            (a, b),
            lambda x, y, axis: (x - y).mean(axis=axis),
            permutation_type="samples",
            vectorized=True,
            n_resamples=20_000,
            rng=rng,
        )
        ours = compare(a, b, samples=20_000)
        # With 9 pairs both try all signs.
        assert ours.p == pytest.approx(theirs.pvalue, abs=tolerance)
        assert ours.mean == pytest.approx(theirs.statistic)


def test_a_system_does_not_depend_on_the_others():
    rng = np.random.default_rng(7)
    base = rng.random(400)
    systems = [base + 0.05 * rng.standard_normal(400), rng.random(400), base.copy()]
    systems[2][:5] += 0.1  # few differences: tried exactly
    together = compare_all(systems, base, samples=500)
    for figures, found in zip(systems, together, strict=True):
        alone = compare(figures, base, samples=500)
        expected = [alone.mean, alone.low, alone.high, alone.p]
        assert [found.mean, found.low, found.high, found.p] == pytest.approx(expected, rel=1e-9)
    assert together[2].p == 2 / 2**5
    assert compare_all([], base) == []
