"""The length of a mini-batch's gradient and its re-normalisation."""

import numpy as np
import pytest

from sentemb.kernels.input_layer import RowGradient, gather_weighted_rows
from sentemb.kernels.lengths import (
    are_below,
    bound_of_squares,
    gather_squares,
    square_rows,
    sum_of_squares,
)
from sentemb.system.parallel import Workers, one_after_the_other
from sentemb.training.optimisers.renormalisation import renormalisation

N_WORDS, N_ROWS, WIDTH = 12, 9, 37


def made_up(dtype, same_direction=False):
    """A gradient in which row k has k words, and its rows, gathered."""
    rng = np.random.default_rng(0)
    words = rng.standard_normal((N_WORDS, WIDTH))
    if same_direction:
        words = rng.random((N_WORDS, 1)) * words[:1]
    holders = [rng.choice(N_WORDS, count, replace=False) for count in range(N_ROWS)]
    offsets = np.cumsum([0, *map(len, holders)])
    values = rng.standard_normal(offsets[-1])
    if same_direction:
        values = abs(values)
    lists = offsets, np.concatenate(holders).astype(np.int32), values.astype(np.float32)
    gradient = RowGradient(words.astype(dtype), *lists)
    rows = np.empty((N_ROWS, WIDTH), dtype)
    gather_weighted_rows(rows, gradient, 0, N_ROWS)
    return gradient, rows.astype(float)


def squares_of_words(gradient):
    squares = np.full(N_WORDS, np.nan, gradient.words.dtype)
    square_rows(squares, gradient.words, 0, 5)
    assert np.isnan(squares[5:]).all()
    square_rows(squares, gradient.words, 5, N_WORDS)
    return squares


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_squares_are_those_of_the_gathered_rows(dtype):
    gradient, rows = made_up(dtype)
    word_squares = squares_of_words(gradient)
    expected = np.sum(gradient.words.astype(float) ** 2, axis=1)
    np.testing.assert_allclose(word_squares, expected, rtol=1e-6)
    squares = np.full(N_ROWS, np.nan, dtype)
    gather_squares(squares, gradient, word_squares, 0, 4)
    assert np.isnan(squares[4:]).all()
    gather_squares(squares, gradient, word_squares, 4, N_ROWS)
    np.testing.assert_allclose(squares, np.sum(rows**2, axis=1), rtol=1e-5)
    assert sum_of_squares(gradient.words[0]) == pytest.approx(expected[0], rel=1e-12)


@pytest.mark.parametrize("same_direction", [False, True])
def test_the_bound_holds_and_is_reached_where_all_words_pull_the_same_way(same_direction):
    gradient, rows = made_up(np.float64, same_direction)
    bound, exact = bound_of_squares(gradient, squares_of_words(gradient)), np.sum(rows**2)
    assert bound >= (1 - 1e-12) * exact
    assert np.isclose(bound, exact, rtol=1e-12) == same_direction


@pytest.mark.parametrize("same_direction", [False, True])
def test_a_gradient_is_shortened_to_the_limit_and_not_further(same_direction):
    gradient, rows = made_up(np.float64, same_direction)
    dense = np.random.default_rng(1).standard_normal((4, 6))
    norm = np.sqrt(np.sum(rows**2) + np.sum(dense**2))
    arrays = {"words": gradient.words, "bias": dense}
    for limit in (0.1 * norm, 0.9999 * norm, 1.0001 * norm, 1.01 * norm, 100 * norm):
        with Workers(1) as workers:
            (factor,) = workers.together(renormalisation(arrays, gradient, limit))
        assert factor == pytest.approx(min(1, limit / norm), rel=1e-12)
    arrays["bias"][0] = np.nan
    with Workers(1) as workers:
        assert workers.together(renormalisation(arrays, gradient, norm)) == [1]


def test_long_gradients_alone_are_gathered_to_be_measured():
    gradient, rows = made_up(np.float32)
    norm = np.sqrt(np.sum(rows**2))
    for limit, phases in ((0.5 * norm, 2), (100 * norm, 1)):
        done = 0
        for tasks in renormalisation({"words": gradient.words}, gradient, limit):
            one_after_the_other(*tasks)
            done += 1
        assert done == phases


@pytest.mark.parametrize("place", [0, 3, 36])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_one_number_that_is_too_large_is_seen_whatever_its_sign(place, dtype):
    numbers = np.full(WIDTH, -1.0, dtype)
    assert are_below(numbers, 2.0) and are_below(numbers[:0], 2.0)
    for large in (2.0, -2.0, 1e30, -np.inf, np.nan):
        numbers[place] = large
        assert not are_below(numbers, 2.0)
