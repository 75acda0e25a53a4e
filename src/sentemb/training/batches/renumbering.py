"""The queries and titles of a mini-batch, numbered among those that are in it."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.bits import bits_for, renumber


class Renumbering:
    """Finds the distinct ones of some numbers below a limit; one thread at a time."""

    def __init__(self, limit: int) -> None:
        self._bits = bits_for(limit)
        self._positions = np.empty(limit, np.int32)

    def distinct(self, numbers: NDArray[np.int32]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The distinct ``numbers``, ascending, and the position of each number among them.

        As `numpy.unique` with ``return_inverse``, in a fifth of its time for a mini-batch.
        """
        distinct: tuple[NDArray[np.int32], NDArray[np.int32]]
        distinct = renumber(numbers, self._bits, self._positions)
        return distinct
