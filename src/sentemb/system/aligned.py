"""Arrays that begin at a cache line.

NumPy's own begin 16 bytes behind one, so that every vector of 64 bytes that a kernel loads or
stores takes parts of two lines.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import DTypeLike

LINE_BYTES = 64


def aligned_empty(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """As `numpy.empty`, at a cache line: arbitrary contents."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return _aligned(np.empty(size + LINE_BYTES - 1, np.uint8), shape, dtype)


def aligned_zeros(shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    """As `numpy.zeros`, at a cache line; memory is taken from the system as it is written to."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    return _aligned(np.zeros(size + LINE_BYTES - 1, np.uint8), shape, dtype)


def zeros_like_all(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Zeros in the shapes and types of ``arrays``, by name, each at a cache line."""
    return {name: aligned_zeros(array.shape, array.dtype) for name, array in arrays.items()}


def _aligned(memory: np.ndarray, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
    first = -memory.ctypes.data % LINE_BYTES
    return memory[first : memory.size - LINE_BYTES + 1 + first].view(dtype).reshape(shape)
