"""Gradient re-normalisation (th_G of Algorithm 1), over a whole tower."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np

from sentemb.kernels.words import RowGradient, gather_squares
from sentemb.protocols import Arrays, KernelTask
from sentemb.training.optimisers.rows import spread_rows

# The input weights: only the rows that a mini-batch touches have a gradient.
SPARSE = "table"


def renormalisation(
    gradient: Arrays, rows: RowGradient, max_norm: float
) -> Generator[list[KernelTask], None, tuple[float, float]]:
    """The factor that makes a tower's gradient no longer than ``max_norm``, as a job.

    Parameters
    ----------
    gradient : dict of arrays
        As `Encoder.backward_tasks` returns it.
    rows : RowGradient
        Its part at the input rows.
    max_norm : float
        The longest gradient allowed.

    Returns
    -------
    norm, factor : float
        The gradient's norm, and a factor of at most 1.
    """
    squares = np.empty(rows.offsets.size - 1, rows.words.dtype)
    yield spread_rows(rows, gather_squares, squares, rows)
    total = squares.sum(dtype=np.float64)
    for name, array in gradient.items():
        if name != "words":
            total += np.sum(np.square(array, dtype=np.float64))
    norm = math.sqrt(total)
    return norm, max_norm / norm if norm > max_norm else 1.0
