"""How long the gradient of a mini-batch is: sums of squares, and a bound that needs no row."""

import math

import numpy as np

from sentemb.kernels import sums
from sentemb.kernels.compiling.jit import kernel
from sentemb.kernels.input_layer import gather_weighted_row


@kernel
def sum_of_squares(array):
    """The sum of the squares of (n,) float, as a float64."""
    return sums.squares(array)


@kernel
def are_below(array, limit):
    """Whether the absolute values of all numbers are below ``limit``; NaN is not. (n,) float."""
    above = 0
    for k in range(array.size):
        above |= int(not abs(array[k]) < limit)
    return not above


@kernel
def square_rows(squares, rows, first, end):
    """squares[k] = ||rows[k]||^2 for the rows ``first`` to ``end``: (n,) and (n, width) float."""
    for k in range(first, end):
        squares[k] = sums.dot(rows[k], rows[k])


@kernel
def bound_of_squares(gradient, word_squares):
    """An upper bound on the sum of the squares of all rows: the triangle inequality, row by row.

    ``||sum_e value_e word_e|| <= sum_e |value_e| ||word_e||``. Only the words' lengths are read, so
    this costs a hundredth of gathering the rows. The result is float64.

    gradient : RowGradient; word_squares : (n_words,) float, from `square_rows`
    """
    _, offsets, holders, values = gradient
    lengths = np.empty(word_squares.size)
    for w in range(word_squares.size):
        lengths[w] = math.sqrt(word_squares[w])
    total = 0.0
    for k in range(offsets.size - 1):
        length = 0.0
        for entry in range(offsets[k], offsets[k + 1]):
            length += abs(values[entry]) * lengths[holders[entry]]
        total += length * length
    return total


@kernel
def gather_squares(squares, gradient, word_squares, first, end):
    """squares[k] = the sum of squares of row k's gradient, for the rows ``first`` to ``end``.

    A row that one word holds has that word's, times its value squared. The rows that are gathered
    are not kept: they take as many bytes as the weights, and gathering them again when they are
    needed costs less than writing and reading them.

    squares : (n_rows,) float, written
    gradient : RowGradient; word_squares : (n_words,) float, from `square_rows`
    """
    source, offsets, holders, values = gradient
    o = np.empty(source.shape[1], source.dtype)
    for k in range(first, end):
        entry = offsets[k]
        if offsets[k + 1] == entry + 1:
            value = source.dtype.type(values[entry])
            squares[k] = value * value * word_squares[holders[entry]]
            continue
        gather_weighted_row(o, source, offsets, holders, values, k)
        squares[k] = sums.dot(o, o)
