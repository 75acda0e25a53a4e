"""The rows of titles that are left, after others were removed."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class Left:
    """Rows of which some were removed. A row that is left has a place: its number among those left.

    count : all rows, from 0
    removed : (n_removed,), rising
    """

    count: int
    removed: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def __len__(self) -> int:
        return self.count - self.removed.size

    @cached_property
    def is_left(self) -> NDArray[np.bool_]:
        """Which rows are left, (count,)."""
        is_left = np.ones(self.count, np.bool_)
        is_left[self.removed] = False
        return is_left

    def places(self, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """The places of rows that are left."""
        return rows - np.searchsorted(self.removed, rows) if self.removed.size else rows

    def rows(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows at places."""
        if not self.removed.size:
            return places
        # For each removed row, how many before it are left.
        before = self.removed - np.arange(self.removed.size)
        return places + np.searchsorted(before, places, "right")

    def mask(self, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
        """A mask of places as one of rows, (count,); None if all rows may be found."""
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
