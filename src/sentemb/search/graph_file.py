"""The file of a graph, as usearch 2 writes it, checked before usearch maps it.

usearch follows the numbers in the file without looking at them: a neighbour that does not exist is
read from memory that is not the graph's. The file has, without gaps:

    n, bytes of a vector                                        2 uint32
    vectors                                                     (n, dim) float16
    "usearch", version, kinds, n, deleted, dim, multi           64 bytes
    n, connectivity, connectivity of level 0, highest level, first node     5 uint64
    levels                                                      (n,) int16
    nodes, each with its key, its level, and one list per level from 0 up

A list is a uint32 with its length, and as many uint32 as the level may have neighbours.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

_MAGIC, _MAJOR = b"usearch", b"\2\0"
# Inner product, float16, keys of 64 bits, places of 32 bits.
_KINDS = bytes([ord("i"), 12, 14, 15])
_HEADER, _SIZES = 64, 5
_NODE_HEAD = 10
# Nodes that are looked at at a time.
_PORTION = 16_384


def fault_in_graph(raw: NDArray[np.uint8], n: int, dim: int, connectivity: int) -> str | None:
    """Why usearch must not map a file; None if it may.

    Parameters
    ----------
    raw : (n_bytes,) uint8
        The file.
    n, dim : int
        The shape of the vectors of the index.
    connectivity : int
        Neighbours per node above level 0; level 0 has twice as many.
    """
    vectors = 8 + n * dim * 2
    levels_from = vectors + _HEADER + 8 * _SIZES
    nodes_from = levels_from + 2 * n
    if raw.size < nodes_from or raw[:8].view("<u4").tolist() != [n, 2 * dim]:
        return "it is of other vectors"
    head = raw[vectors : vectors + _HEADER].tobytes()
    if head[:9] != _MAGIC + _MAJOR or head[13:17] != _KINDS:
        return "it is not a graph that sentemb wrote"
    about = np.frombuffer(head[17:41], "<u8").tolist()
    sizes = raw[vectors + _HEADER : levels_from].tobytes()
    size, per_level, at_base, highest, first = np.frombuffer(sizes, "<u8").tolist()
    if about != [n, 0, dim] or any(head[41:]) or size != n:
        return "it is of other titles"
    if (per_level, at_base) != (connectivity, 2 * connectivity):
        return "it has another number of neighbours"
    levels = raw[levels_from:nodes_from].copy().view("<i2").astype(np.int64)
    of_base, of_level = 4 * (1 + at_base), 4 * (1 + per_level)
    # The first node is on the highest level, and no other is above it.
    is_first = not n or (first < n and levels[first] == highest == levels.max())
    if not is_first or levels.min(initial=0) < 0:
        return "its levels are out of range"
    starts = np.zeros(n + 1, np.int64)
    np.cumsum(_NODE_HEAD + of_base + levels * of_level, out=starts[1:])
    if raw.size - nodes_from != starts[-1]:
        return "it is longer or shorter than its levels say"
    starts += nodes_from
    return _fault_in_nodes(raw, starts, levels) or _fault_in_lists(
        raw, starts, levels, of_base, of_level
    )


def _fault_in_nodes(
    raw: NDArray[np.uint8], starts: NDArray[np.int64], levels: NDArray[np.int64]
) -> str | None:
    """What is wrong with the heads of the nodes."""
    n = len(levels)
    for place in range(0, n, _PORTION):
        own = slice(place, min(place + _PORTION, n))
        heads = _gathered(raw, starts[:-1][own], _NODE_HEAD)
        keys = heads[:, :8].copy().view("<u8")[:, 0]
        if (keys != np.arange(own.start, own.stop)).any():
            return "its keys are not the places of titles"
        if (heads[:, 8:].copy().view("<i2")[:, 0] != levels[own]).any():
            return "its nodes are on other levels"
    return None


def _fault_in_lists(
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    levels: NDArray[np.int64],
    of_base: int,
    of_level: int,
) -> str | None:
    """What is wrong with the neighbours."""
    n = len(levels)
    for level, nodes, lists in _lists(raw, starts, levels, of_base, of_level):
        lengths, neighbours = lists[:, 0], lists[:, 1:].astype(np.int64)
        is_used = np.arange(neighbours.shape[1]) < lengths[:, None]
        used = neighbours[is_used]
        if (lengths > neighbours.shape[1]).any() or (used >= n).any():
            return f"a neighbour of title {nodes[0]:,} or a later one does not exist"
        if (levels[used] < level).any():
            return f"a neighbour of title {nodes[0]:,} or a later one is not on its level"
    return None


def _lists(
    raw: NDArray[np.uint8],
    starts: NDArray[np.int64],
    levels: NDArray[np.int64],
    of_base: int,
    of_level: int,
) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.uint32]]]:
    """Level, nodes, and their lists on this level, in portions."""
    for level in range(levels.max(initial=-1) + 1):
        nodes = np.flatnonzero(levels >= level)
        skipped = _NODE_HEAD + (of_base + (level - 1) * of_level if level else 0)
        for place in range(0, len(nodes), _PORTION):
            some = nodes[place : place + _PORTION]
            found = _gathered(raw, starts[some] + skipped, of_level if level else of_base)
            yield level, some, found.view("<u4")


def _gathered(raw: NDArray[np.uint8], starts: NDArray[np.int64], width: int) -> NDArray[np.uint8]:
    """Rows of ``width`` bytes."""
    return np.lib.stride_tricks.sliding_window_view(raw, width)[starts]
