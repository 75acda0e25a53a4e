"""The scores against independent formulas and by hand."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scores import (
    area_under_curve,
    attenuation,
    average_precision,
    highest,
    inverse_document_frequency,
    normalised_mutual_information,
    precision_recall,
    purity,
    shuffled_within,
)

ranked = st.lists(st.tuples(st.integers(0, 5), st.booleans()), min_size=2, max_size=30).filter(
    lambda pairs: len({relevant for _, relevant in pairs}) == 2
)
tables = st.lists(st.lists(st.integers(0, 9), min_size=3, max_size=3), min_size=1, max_size=6)


def test_precision_recall():
    assert precision_recall([1, 1, 0, 0, 1], [1, 0, 0, 1, 1]) == (2 / 3, 2 / 3)
    assert precision_recall([0, 0], [1, 0]) == (0, 0)
    assert precision_recall([1, 0], [0, 0]) == (0, 0)


def test_average_precision_by_hand():
    assert average_precision([4, 3, 2, 1], [1, 0, 1, 0]) == pytest.approx((1 + 2 / 3) / 2)
    # All equal: one step, at which half of what is found is relevant.
    assert average_precision([0, 0, 0, 0], [1, 0, 1, 0]) == pytest.approx(0.5)


@given(ranked)
def test_average_precision_threshold_by_threshold(pairs):
    scores, relevant = map(np.array, zip(*pairs, strict=True))
    area = recall_before = 0
    for limit in sorted(set(scores), reverse=True):
        precision, recall = precision_recall(scores >= limit, relevant)
        area += precision * (recall - recall_before)
        recall_before = recall
    assert average_precision(scores, relevant) == pytest.approx(area)


@given(ranked)
def test_area_pair_by_pair(pairs):
    keywords = [score for score, relevant in pairs if relevant]
    others = [score for score, relevant in pairs if not relevant]
    wins = [(a > b) + (a == b) / 2 for a, b in product(keywords, others)]
    assert area_under_curve(*zip(*pairs, strict=True)) == pytest.approx(np.mean(wins))


def test_attenuation_by_hand():
    # Text 1 has no other word, text 2 no keyword: only text 0 and 3 have a difference.
    found = attenuation([3, 1, 9, 5, 2, 4, 1], [1, 0, 1, 0, 1, 1, 0], [0, 0, 1, 2, 3, 3, 3], seed=0)
    assert found.keywords == pytest.approx((3 + 9 + 2 + 4) / 4)
    assert found.others == pytest.approx((1 + 5 + 1) / 3)
    assert found.difference == 2
    assert (found.low, found.high) == (2, 2)
    assert found.texts == 2


def test_the_interval_is_that_of_the_mean():
    rng = np.random.default_rng(1)
    differences = rng.normal(0.3, 1, 400)
    values = np.column_stack([differences, np.zeros(400)]).ravel()
    found = attenuation(values, np.tile([True, False], 400), np.repeat(np.arange(400), 2))
    error = 1.96 * differences.std(ddof=1) / 20
    assert found.difference == pytest.approx(differences.mean())
    assert found.low == pytest.approx(differences.mean() - error, abs=0.15 * error)
    assert found.high == pytest.approx(differences.mean() + error, abs=0.15 * error)


def test_purity():
    assert purity([[3, 1], [0, 4]]) == 7 / 8
    assert purity([[2, 2], [0, 0]]) == 0.5


def test_mutual_information_at_its_ends():
    assert normalised_mutual_information([[5, 0], [0, 5]]) == pytest.approx(1)
    assert normalised_mutual_information([[2, 4], [1, 2]]) == pytest.approx(0)
    assert normalised_mutual_information([[7]]) == 0


@given(tables.filter(lambda table: np.sum(table) > 0))
def test_mutual_information_term_by_term(table):
    p = np.array(table) / np.sum(table)
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    information = sum(
        p[i, j] * math.log(p[i, j] / rows[i] / columns[j])
        for i, j in product(*map(range, p.shape))
        if p[i, j]
    )
    entropies = [-sum(x * math.log(x) for x in shares if x) for shares in (rows, columns)]
    expected = 2 * information / sum(entropies) if sum(entropies) else 0
    assert normalised_mutual_information(table) == pytest.approx(expected, abs=1e-12)


def test_shuffling_stays_within_texts():
    texts = np.repeat([0, 1, 2], [2, 5, 1])
    orders = np.array([shuffled_within(texts, np.random.default_rng(k)) for k in range(200)])
    np.testing.assert_array_equal(texts[orders], np.tile(texts, (200, 1)))
    assert (np.sort(orders) == np.arange(8)).all()
    for place in range(5):  # every word of the second text comes to each of its places
        assert set(orders[:, 2 + place]) == set(range(2, 7))


def test_highest():
    assert highest([1, 3, 3, 2], 2).tolist() == [False, True, True, False]
    assert highest([1, 1], 1).tolist() == [True, False]
    assert not highest([1, 1], 0).any()


def test_inverse_document_frequency():
    idf = inverse_document_frequency(["a b b", "B c", "a"])
    assert idf("a") == pytest.approx(math.log(4 / 3))
    assert idf("b") == pytest.approx(math.log(4 / 3))
    assert idf("c") == pytest.approx(math.log(4 / 2))
    assert idf("unheard") == pytest.approx(math.log(4))
