"""Rows divided by their lengths, so that a product of two is their cosine."""

import math

from sentemb.kernels import sums
from sentemb.kernels.compiling.jit import kernel

# Squares of numbers of this size neither overflow nor vanish, whatever the dtype.
_LEAST, _GREATEST = 1e-15, 1e15


@kernel
def divide_by_lengths(rows):
    """Each row becomes row / ||row||, squares summed in float64; a zero row stays zero.

    A row with a number that is not finite becomes NaN.

    rows : (k, dim) float32 or float64, contiguous
    """
    for r in range(len(rows)):
        row = rows[r]
        length = 0.0
        for scaled in range(2):
            length = math.sqrt(sums.squares(row))
            if scaled or _LEAST < length < _GREATEST:
                break
            largest = row.dtype.type(0)
            for j in range(row.size):
                largest = max(largest, abs(row[j]))
            if largest > 0:
                for j in range(row.size):
                    row[j] /= largest
        if length != 0:
            for j in range(row.size):
                row[j] /= length
