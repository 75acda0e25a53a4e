"""Where the titles with some ids are, in 12 bytes an id."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


class Places(Mapping[str, int]):
    """The place of every id, as a mapping that keeps hashes and compares the ids themselves.

    Parameters
    ----------
    ids : sequence of str
        It is kept. A place is its number in this sequence.
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
        place = int(self.of([id])[0])
        if place < 0:
            raise KeyError(id)
        return place

    def of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The places of ``ids``, (k,); -1 for an id that is unknown."""
        wanted = _hashes(ids)
        firsts = np.searchsorted(self._hashes, wanted)
        ends = np.searchsorted(self._hashes, wanted, "right")
        found = np.full(len(ids), -1)
        for k in np.flatnonzero(ends > firsts).tolist():
            for place in self._order[firsts[k] : ends[k]].tolist():
                if self._ids[place] == ids[k]:
                    found[k] = place
        return found

    def repeated(self) -> tuple[int, int] | None:
        """The first place whose id came before: where it came first, and the place."""
        again = 1 + np.flatnonzero(self._hashes[1:] == self._hashes[:-1])
        # Equal hashes are in the order of the places.
        for at in again[np.argsort(self._order[again])].tolist():
            first, place = np.searchsorted(self._hashes, self._hashes[at]), int(self._order[at])
            for before in self._order[first:at].tolist():
                if self._ids[before] == self._ids[place]:
                    return before, place
        return None


def _hashes(ids: Sequence[str]) -> NDArray[np.int64]:
    """The hash of each id; it differs from process to process."""
    return np.fromiter(map(hash, ids), np.int64, len(ids))
