"""Rows divided by their lengths, so that a product of two is their cosine."""

import math

from sentemb.kernels.jit import summing_kernel

# Squares of numbers of this size are well within the range of float64.
_LEAST, _GREATEST = 1e-150, 1e150


@summing_kernel
def divide_by_lengths(rows):
    """Each row becomes row / ||row||, with lengths in float64; a zero row stays zero.

    A row with a number that is not finite becomes NaN.

    rows : (k, dim) float32 or float64, contiguous
    """
    for r in range(len(rows)):
        row = rows[r]
        length = _length(row)
        if not _LEAST < length < _GREATEST:
            largest = row.dtype.type(0)
            for j in range(row.size):
                largest = max(largest, abs(row[j]))
            if largest == 0:
                continue
            for j in range(row.size):
                row[j] /= largest
            length = _length(row)
        for j in range(row.size):
            row[j] /= length


@summing_kernel
def _length(row):
    """||row||: (dim,) float."""
    total = 0.0
    for j in range(row.size):
        number = float(row[j])
        total += number * number
    return math.sqrt(total)
