"""Dropout whose random numbers are a function of a key and a position, not of an order of calls.

Every thread can compute its part, and the backward pass computes the same numbers again. The
generator is SplitMix64 (Steele, Lea and Flood, OOPSLA 2014) used as a counter-based one: the output
for the state key + (position + 1) times its increment.
"""

import numpy as np

from sentemb.kernels.compiling.jit import kernel

_INCREMENT = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_PER_LAYER = np.uint64(1 << 56)


@kernel
def mixed(state):
    """The output function of SplitMix64: uint64 to uint64."""
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    return state ^ (state >> np.uint64(31))


@kernel
def dropout_rows(X, key, layer, rate, first, end):
    """X[r, j] becomes 0 with probability ``rate``, else X[r, j] / (1 - rate), for some rows.

    Used on values and, with the same key and layer, on their gradients.

    X : (rows, n) float, changed in place from row ``first`` to row ``end``
    key : uint64, a new one for every update
    layer : int, from 0 to 254; which layer of the model it is
    rate : float, from 0, below 1
    """
    scale = X.dtype.type(1 / (1 - rate))
    limit = np.uint64(rate * 2.0**53)
    start = key + np.uint64(layer) * _PER_LAYER
    for r in range(first, end):
        x = X[r]
        for j in range(x.size):
            counter = np.uint64(r) * np.uint64(x.size) + np.uint64(j + 1)
            number = mixed(start + counter * _INCREMENT) >> np.uint64(11)
            if number < limit:
                x[j] = 0
            else:
                x[j] *= scale
