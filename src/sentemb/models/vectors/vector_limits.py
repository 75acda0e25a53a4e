"""Limits of word vectors, which every reader and writer checks."""

import numpy as np

MAX_DIM = 10_000
# Sums of products of two such numbers stay finite.
MAX_NUMBER = 1e12
MAX_COUNT = 2**63 - 1


def is_sound(numbers: np.ndarray) -> bool:
    """Whether all of some floating-point numbers are finite and at most `MAX_NUMBER`."""
    if not numbers.size:
        return True
    # A comparison with NaN is false; float() because float16 cannot hold the limit.
    return -MAX_NUMBER <= float(numbers.min()) <= float(numbers.max()) <= MAX_NUMBER


def sound_rows(rows: np.ndarray) -> np.ndarray:
    """Whether each of ``rows``, (k, d), is sound; (k,) bool."""
    return np.array([is_sound(row) for row in rows], bool)


def first_unsound(rows: np.ndarray) -> int:
    """The first row that is not sound; there must be one. ``rows`` is (k, d)."""
    return next(k for k, row in enumerate(rows) if not is_sound(row))
