"""Jobs for threads, and the arrays that they reuse."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike

from sentemb.system.aligned import aligned_empty
from sentemb.system.contracts import KernelTask

_T = TypeVar("_T")
# A job for `Workers.together`: yields the tasks of each phase, returns its result.
Job: TypeAlias = Generator[list[KernelTask], None, _T]


class Workspace:
    """Arrays that are reused for the next batch instead of being allocated again."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An array at a cache line, valid until ``name`` is requested again: arbitrary contents."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self._arrays[name] = aligned_empty((size + size // 4,), dtype)
        return array[:size].reshape(shape)

    def zeros(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """As `empty`, filled with zeros."""
        array = self.empty(name, shape, dtype)
        array[...] = 0
        return array
