"""Distinct numbers by bits, against NumPy's `unique`."""

import numpy as np
import pytest

from sentemb.kernels.bits import bits_for, renumber
from sentemb.training.batches.renumbering import Renumbering


@pytest.mark.parametrize("limit", [1, 63, 64, 65, 128, 1000])
def test_numbers_are_renumbered_in_ascending_order(limit):
    rng = np.random.default_rng(limit)
    bits, places = bits_for(limit), np.full(limit, -1, np.int32)
    for count in (0, 1, 7, 200, 2000):
        numbers = rng.integers(0, limit, count).astype(np.int32)
        distinct, found = renumber(numbers, bits, places)
        expected, inverse = np.unique(numbers, return_inverse=True)
        assert np.array_equal(distinct, expected) and np.array_equal(found, inverse)
        assert distinct.dtype == found.dtype == np.int32
        assert not bits.any()
    both_ends = np.array([limit - 1, 0], np.int32)
    assert renumber(both_ends, bits, places)[0].tolist() == sorted({0, limit - 1})


def test_the_scratch_of_one_mini_batch_does_not_reach_the_next():
    numbers = Renumbering(70)
    for some in ([69, 3, 3, 64], [2, 69], [64]):
        distinct, places = numbers.distinct(np.array(some, np.int32))
        assert distinct.tolist() == sorted(set(some)) and distinct[places].tolist() == some
