"""Jobs for threads, and the arrays that they reuse."""

from __future__ import annotations

import math
from collections.abc import Generator
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.input_layer import cut_lists
from sentemb.system.aligned import aligned_empty
from sentemb.system.contracts import KernelTask
from sentemb.system.parallel import spans

_T = TypeVar("_T")
# A job for `Workers.together`: yields the tasks of each phase, returns its result.
Job: TypeAlias = Generator[list[KernelTask], None, _T]


def spans_of(
    offsets: NDArray[np.int64], of_entry: float, of_item: float = 0, sums: int = 0
) -> list[tuple[int, int, int]]:
    """As `spans`, for items that are lists of unequal lengths: parts that cost about as much.

    Item k has the entries from ``offsets[k]`` to ``offsets[k + 1]``; each costs ``of_entry``, and
    the item ``of_item`` besides.
    """
    size = offsets.size - 1
    cost = of_entry * float(offsets[-1]) + of_item * size

    def cut(parts: int) -> list[int]:
        edges = np.empty(parts + 1, np.int64)
        cut_lists(edges, offsets, float(of_entry), float(of_item))
        numbers: list[int] = edges.tolist()
        return numbers

    return spans(size, cost / max(1, size), sums, cut)


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
