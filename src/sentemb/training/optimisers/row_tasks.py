"""Rows and numbers that an optimiser updates, cut into tasks of about equal length."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from sentemb.kernels.input_layer import RowGradient
from sentemb.models.words.workspace import spans_of
from sentemb.system.contracts import KernelTask
from sentemb.system.parallel import pieces, spans

# What a row costs by itself, in entries of its list.
_OF_A_ROW = 4
# What a number costs of an array that every mini-batch touches: it is read or written in each of
# weights, moments and gradient, and Adam takes a root and divides.
OF_A_NUMBER = 8


def flat(array: np.ndarray) -> np.ndarray:
    """All elements of an array in rows as one row: a view, for kernels that change them."""
    assert array.flags.c_contiguous
    return array.reshape(-1)


def spread_rows(
    gradient: RowGradient, function: Callable[..., object], *arguments: Any
) -> list[KernelTask]:
    """Tasks that call ``function(*arguments, first, end)`` for parts of the rows of ``gradient``.

    A trigram is in a few words, but a dimension of word vectors is in nearly all of them, and these
    rows come last: parts of as many rows each would leave most of the work to one thread. No row
    depends on another, so the parts do not change the result.
    """
    width = gradient.words.shape[1]
    parts = spans_of(gradient.offsets, width, width * _OF_A_ROW)
    return pieces(parts, function, *arguments)


def spread_numbers(
    function: Callable[..., object], arrays: Sequence[np.ndarray], *rates: float
) -> list[KernelTask]:
    """Tasks that call ``function(*arrays, *rates)`` for parts of some arrays of one shape."""
    numbers = [flat(array) for array in arrays]
    return [
        (function, *(array[first:end] for array in numbers), *rates)
        for _, first, end in spans(numbers[0].size, OF_A_NUMBER)
    ]
