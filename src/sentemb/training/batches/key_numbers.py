"""Numbers for keys in order of first appearance, in a few bytes for each distinct key."""

import secrets

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.numbering import fill_slots, number_keys

_MOST = 2**31 - 1
# The least share of free room: in slots a half, in keys nothing; both grow when they are full.
_FIRST_SLOTS = 1 << 12
_GROWTH = 1.25


class KeyNumbers:
    """Numbers distinct keys from 0, in order of first appearance.

    A key takes its own bytes, ``width`` times 64 bits, and 8 to 16 more. There may be ``most``
    distinct keys; messages call the things that have keys ``what``.
    """

    def __init__(self, what: str, width: int = 1, most: int = _MOST) -> None:
        self._what, self._most = what, most
        self._keys = np.empty((0, width), np.uint64)
        self._slots = np.full(_FIRST_SLOTS, -1, np.int32)
        self._count = 0
        self._seed = np.uint64(secrets.randbits(64))

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> NDArray[np.uint64]:
        """The distinct keys by their numbers, (n, width) uint64."""
        return self._keys[: self._count]

    def number(self, keys: NDArray[np.uint64]) -> NDArray[np.int32]:
        """The number of each of ``keys``, (k, width) uint64: (k,) int32.

        Raises `SentembError` if there are too many distinct keys.
        """
        self._make_room(self._count + len(keys))
        numbers = np.empty(len(keys), np.int32)
        self._count = number_keys(self._keys, self._count, self._slots, self._seed, keys, numbers)
        if self._count > self._most:
            raise SentembError(
                f"the log has more than {self._most:,} distinct {self._what}; split it into "
                "smaller logs"
            )
        return numbers

    def _make_room(self, count: int) -> None:
        """See that ``count`` keys have room."""
        if count > len(self._keys):
            # In place where the system can move pages, so that two copies rarely exist at once.
            size = int(_GROWTH * count), self._keys.shape[1]
            self._keys.resize(size, refcheck=False)
        if 2 * count > self._slots.size:
            size_of_slots = self._slots.size
            while 2 * count > size_of_slots:
                size_of_slots *= 2
            self._slots = np.zeros(0, np.int32)  # frees the old slots first
            self._slots = np.full(size_of_slots, -1, np.int32)
            fill_slots(self._keys, self._count, self._slots, self._seed)
