"""Gradient re-normalisation (th_G of Algorithm 1), over a whole tower."""

import math

import numpy as np

from sentemb.kernels.words import gather_squares
from sentemb.system.parallel import spread

# The input weights: only the rows that a mini-batch touches have a gradient.
SPARSE = "table"


def renormalisation(gradient, batch, max_norm):
    """The factor that makes a tower's gradient no longer than ``max_norm``: a job.

    Parameters
    ----------
    gradient : dict of arrays
        As `RecurrentEncoder.backward_tasks` returns it.
    batch : TextBatch
    max_norm : float

    Returns
    -------
    norm, factor : float
        The gradient's norm, and 1 or less.
    """
    dP = gradient["words"]
    squares = np.empty(batch.rows.size, dP.dtype)
    yield spread(squares.size, gather_squares, squares, dP, *batch.words_of_rows)
    total = squares.sum(dtype=np.float64)
    for name, array in gradient.items():
        if name != "words":
            total += np.sum(np.square(array, dtype=np.float64))
    norm = math.sqrt(total)
    return norm, max_norm / norm if norm > max_norm else 1.0
