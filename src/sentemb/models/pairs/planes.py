"""Which cells of ARC-II's planes are on, layer by layer, and how large the planes are.

Hu et al. (NIPS 2014). A text of n words has min(n, L - k + 1) windows that begin at a word, where L
is the longest text and k the window. The gate goes by position: a window further up is on if it
covers a cell that is on.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.convolution2d import Planes


def rectangles(rows: NDArray[np.integer], columns: NDArray[np.integer]) -> Planes:
    """Planes on where both windows begin at a word: (n_planes,) int each, windows per text."""
    return _planes(rows, columns, rows, np.zeros_like(columns))


def corners(rows: NDArray[np.integer], columns: NDArray[np.integer], size: int) -> Planes:
    """Planes of ``size`` rows and columns, on where either window begins at a word."""
    whole = np.full_like(rows, size)
    return _planes(rows, whole, whole, columns)


def pooled(planes: Planes) -> Planes:
    """The planes after pooling over 2 x 2 cells: a cell is on if one of its cells is."""
    return _planes(*(-(-planes.shapes // 2)).T)


def convolved(planes: Planes, size: int) -> Planes:
    """The planes after a convolution that has ``size`` rows and columns."""
    return _planes(*np.minimum(planes.shapes, size).T)


def _planes(
    upper: NDArray[np.integer],
    width: NDArray[np.integer],
    rows: NDArray[np.integer],
    rest: NDArray[np.integer],
) -> Planes:
    cells = upper * width + (rows - upper) * rest
    shapes = np.stack([upper, width, rows, rest], axis=1).astype(np.int64)
    shapes[cells == 0] = 0
    return Planes(shapes, starts_of(cells))


def starts_of(counts: NDArray[np.integer]) -> NDArray[np.int64]:
    """Start of each of some consecutive runs, and the end of the last."""
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts
