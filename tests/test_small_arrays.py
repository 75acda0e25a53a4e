"""The dense part of a step, against NumPy: the same numbers to the bit."""

import numpy as np
import pytest

from sentemb.kernels.adam import adam_dense
from sentemb.kernels.nesterov import nesterov_dense
from sentemb.kernels.small_arrays import all_below, scatter_rows, sum_parts, take_rows

SIZE = 5000  # more than `sum_parts` adds up at a time


def made_up(count, dtype=np.float32):
    return np.random.default_rng(0).standard_normal((count, SIZE)).astype(dtype)


def test_parts_are_added_in_their_order():
    for n_parts in (1, 2, 8):
        parts = made_up(n_parts)
        out, expected = np.full(SIZE, np.nan, np.float32), parts[0].copy()
        for part in parts[1:]:
            expected += part
        sum_parts(out, parts)
        assert np.array_equal(out, expected)


def test_one_wild_weight_is_noticed_wherever_it_is():
    array = made_up(1)[0]
    assert all_below(array, 10) and all_below(array[:0], 10)
    for place in (0, 500, SIZE - 1):
        for wild in (10, -11, np.inf, -np.inf, np.nan):
            changed = array.copy()
            changed[place] = wild
            assert not all_below(changed, 10)


def test_rows_are_taken_in_any_order_and_more_than_once():
    rows = made_up(4)
    places = np.array([3, 0, 0, 2, 3], np.int32)
    out = np.full((5, SIZE), np.nan, np.float32)
    take_rows(out, rows, places)
    assert np.array_equal(out, rows[places])


def test_rows_are_placed_in_their_columns_alone():
    source = made_up(7)[:, :5]
    out = np.zeros((6, 9), np.float32)
    places, rows = np.array([4, 0, 2]), np.array([6, 6, 1])
    scatter_rows(out, 3, places, source, rows)
    expected = np.zeros_like(out)
    expected[places, 3:8] = source[rows]
    assert np.array_equal(out, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dense_updates_have_the_bits_of_numpy(dtype):
    """The small trajectories that are stored depend on them."""
    theta, m, v, g = made_up(4, dtype)
    v *= v
    rate, scale, root_scale = map(dtype, (0.01, 0.7, 3))
    new_m = m + dtype(1 - 0.9) * (scale * g - m)
    new_v = v + dtype(1 - 0.999) * (scale * g * (scale * g) - v)
    expected = theta - rate * new_m / (root_scale * np.sqrt(new_v) + dtype(1e-8))
    adam_dense(theta, m, v, g, 0.01, 0.9, 0.999, 0.7, 3.0)
    for found, wanted in ((m, new_m), (v, new_v), (theta, expected)):
        assert np.array_equal(found, wanted)

    theta, velocity, ahead, g = made_up(4, dtype)
    new_velocity = dtype(0.9) * velocity - dtype(0.1) * g
    expected = ahead - dtype(0.1) * g
    nesterov_dense(theta, velocity, ahead, g, 0.9, 0.1)
    assert np.array_equal(velocity, new_velocity) and np.array_equal(theta, expected)
