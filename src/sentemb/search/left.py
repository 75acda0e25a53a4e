"""The rows of titles that are left, after others were removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Left:
    """Rows of which some were removed. Those that are left are numbered from 0.

    count : all rows, from 0
    removed : (n_removed,), rising
    """

    count: int
    removed: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return self.count - self.removed.size

    def __reduce__(self) -> tuple[type[Left], tuple[int, NDArray[np.int64]]]:
        return Left, (self.count, self.removed)

    @cached_property
    def is_left(self) -> NDArray[np.bool_]:
        """Which rows are left, (count,)."""
        is_left = np.ones(self.count, np.bool_)
        is_left[self.removed] = False
        return is_left

    def numbers(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of rows that are left."""
        return rows - np.searchsorted(self.removed, rows) if self.removed.size else rows

    def rows(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows with some numbers."""
        if not self.removed.size:
            return numbers
        # For each removed row, how many before it are left.
        before = self.removed - np.arange(self.removed.size)
        return numbers + np.searchsorted(before, numbers, "right")

    def row(self, number: int) -> int:
        """The row with a number."""
        return int(self.rows(np.array([number]))[0]) if self.removed.size else number

    def mask(self, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """A mask of the rows that are left as one of all, (count,); None if all may be found."""
        if not self.removed.size:
            return mask
        if mask is None:
            return self.is_left
        of_rows = np.zeros(self.count, np.bool_)
        of_rows[self.is_left] = mask
        return of_rows

    def without(self, rows: NDArray[np.int64]) -> Left:
        """Fewer rows."""
        return Left(self.count, np.union1d(self.removed, rows))
