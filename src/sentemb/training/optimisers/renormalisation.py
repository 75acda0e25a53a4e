"""Gradient re-normalisation (th_G of Algorithm 1), over a whole tower."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from sentemb.kernels.input_layer import RowGradient
from sentemb.kernels.lengths import (
    bound_of_squares,
    gather_squares,
    square_rows,
    sum_of_squares,
)
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import spread
from sentemb.training.optimisers.row_tasks import flat, spread_rows

# The input weights: only the rows that a mini-batch touches have a gradient.
SPARSE = "table"

# How far sums in float32 may be off: a bound of the norm must be this much below the limit.
_ROUNDING = 1.001


def renormalisation(
    gradient: Arrays, rows: RowGradient, max_norm: float
) -> Generator[list[KernelTask], None, float]:
    """The factor, at most 1, that makes a tower's gradient no longer than ``max_norm``, as a job.

    ``gradient`` is as `Encoder.backward_tasks` returns it; ``rows`` is its part at the input rows.
    Most gradients are so short that a bound of the norm is enough.
    """
    words = rows.words
    word_squares = np.empty(len(words), words.dtype)
    yield spread(len(words), square_rows, word_squares, words, cost=words.shape[1])
    dense = sum(sum_of_squares(flat(array)) for name, array in gradient.items() if name != "words")
    if _ROUNDING * (bound_of_squares(rows, word_squares) + dense) <= max_norm**2:
        return 1.0
    squares = np.empty(rows.offsets.size - 1, words.dtype)
    yield spread_rows(rows, gather_squares, squares, rows, word_squares)
    norm = math.sqrt(squares.sum(dtype=np.float64) + dense)
    return max_norm / norm if norm > max_norm else 1.0
