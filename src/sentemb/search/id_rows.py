"""The row of the title with some id, in 12 bytes an id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import Texts


class IdRows(Mapping[str, int]):
    """The row of every id, as a mapping that keeps hashes and compares the ids themselves.

    ``ids`` is kept. A row is the number of an id in this sequence. ``is_known`` (n,) are the rows
    that are found, by default all.
    """

    def __init__(self, ids: Sequence[str], is_known: NDArray[np.bool_] | None = None) -> None:
        self._ids = ids
        hashes = _hashes(ids)
        order = np.argsort(hashes, kind="stable")
        if is_known is not None:
            order = order[is_known[order]]
        self._hashes = hashes[order]
        self._order = order.astype(np.int32)

    def __len__(self) -> int:
        return len(self._order)

    def __iter__(self) -> Iterator[str]:
        return map(self._ids.__getitem__, np.sort(self._order).tolist())

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
        known = np.flatnonzero(ends > firsts)
        rows[known] = self._order[firsts[known]]
        for k, id in zip(known.tolist(), self._at(rows[known]), strict=True):
            if id != ids[k]:
                following = self._order[firsts[k] + 1 : ends[k]].tolist()
                rows[k] = next((row for row in following if self._ids[row] == ids[k]), -1)
        return rows

    def _at(self, rows: NDArray[np.int64]) -> list[str]:
        """The ids of some rows."""
        if isinstance(self._ids, Texts):
            return self._ids.at(rows)
        return [self._ids[row] for row in rows.tolist()]

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

    def shared(self, following: IdRows) -> str | None:
        """An id that ``following`` has as well, if there is one."""
        for hash in np.intersect1d(self._hashes, following._hashes).tolist():
            first, end = (np.searchsorted(self._hashes, hash, side) for side in ("left", "right"))
            ids: list[str] = [self._ids[row] for row in self._order[first:end].tolist()]
            same = next((id for id in ids if id in following), None)
            if same is not None:
                return same
        return None


def _hashes(ids: Sequence[str]) -> NDArray[np.int64]:
    """The hash of each id; it differs from process to process."""
    return np.fromiter(map(hash, ids), np.int64, len(ids))
