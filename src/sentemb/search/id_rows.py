"""The row of the title with some id, in 12 bytes an id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class IdRows(Mapping[str, int]):
    """The row of every id, as a mapping that keeps hashes and compares the ids themselves.

    ``ids`` is kept. A row is the number of an id in this sequence.
    """

    def __init__(self, ids: Sequence[str]) -> None:
        self._ids = ids
        hashes = _hashes(ids)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order]
        self._order = order.astype(np.int32)

    def __len__(self) -> int:
        return len(self._ids)

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids)

    def __getitem__(self, id: str) -> int:
        row = int(self.of([id])[0])
        if row < 0:
            raise KeyError(id)
        return row

    def of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of ``ids``, (k,); -1 for an id that is unknown."""
        hashes = _hashes(ids)
        firsts = np.searchsorted(self._hashes, hashes)
        ends = np.searchsorted(self._hashes, hashes, "right")
        rows = np.full(len(ids), -1)
        for k in np.flatnonzero(ends > firsts).tolist():
            for row in self._order[firsts[k] : ends[k]].tolist():
                if self._ids[row] == ids[k]:
                    rows[k] = row
        return rows

    def repeated(self) -> tuple[int, int] | None:
        """The first row whose id came before: where it came first, and the row."""
        again = 1 + np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        # Equal hashes are in the order of the rows.
        for at in again[np.argsort(self._order[again])].tolist():
            first, row = np.searchsorted(self._hashes, self._hashes[at]), int(self._order[at])
            for before in self._order[first:at].tolist():
                if self._ids[before] == self._ids[row]:
                    return before, row
        return None


def _hashes(ids: Sequence[str]) -> NDArray[np.int64]:
    """The hash of each id; it differs from process to process."""
    return np.fromiter(map(hash, ids), np.int64, len(ids))
