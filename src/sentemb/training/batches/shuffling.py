"""The order in which an epoch goes through the pairs of a log, in bounded memory.

A long log is shuffled in two steps: blocks of consecutive pairs at random, then the pairs of a
window of such blocks. Both are functions of the seed and the epoch, so that a training continues
anywhere without a state of its own.
"""

import numpy as np
from numpy.typing import NDArray

# The most pairs that are shuffled all at once.
AT_ONCE = 1 << 22
# Consecutive pairs of a block, and blocks of a window.
BLOCK, WINDOW = 1 << 13, 1 << 6
# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x77696E64


class Shuffle:
    """All pairs in random order, as windows that are shuffled when they are asked for.

    Seed and epoch decide the order. ``starts`` (n_windows + 1,) int64 has the position of the first
    pair of every window, and ``n_pairs``.
    """

    def __init__(self, n_pairs: int, seed: int, epoch: int) -> None:
        self._n_pairs, self._seed, self._epoch = n_pairs, seed, epoch
        self.starts = np.array([0, n_pairs])
        if n_pairs > AT_ONCE:
            n_blocks = -(-n_pairs // BLOCK)
            self._blocks = np.random.default_rng([seed, epoch]).permutation(n_blocks)
            ends = np.cumsum(np.minimum(BLOCK, n_pairs - BLOCK * self._blocks))
            self.starts = np.concatenate([[0], ends[WINDOW - 1 : -1 : WINDOW], ends[-1:]])

    def window(self, number: int) -> NDArray[np.int64]:
        """The pairs of window ``number``, (k,) int64."""
        if self._n_pairs <= AT_ONCE:
            return np.random.default_rng([self._seed, self._epoch]).permutation(self._n_pairs)
        firsts = BLOCK * self._blocks[number * WINDOW : (number + 1) * WINDOW, None]
        pairs = (firsts + np.arange(BLOCK)).ravel()
        pairs = pairs[pairs < self._n_pairs]  # the last block of the log may be shorter
        return np.random.default_rng([self._seed, self._epoch, number, _KEY]).permutation(pairs)
