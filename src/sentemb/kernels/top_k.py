"""The highest scores of a row, in order: what ranking and search select with."""

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.compiling.jit import inner_kernel, kernel

# Scores that are compared with a limit at a time, in vector registers.
TOGETHER = 64


@kernel
def top_k(best, scores, first, end):
    """best[r] = the indices of the k highest scores of row r, highest first.

    Equal scores are in the order of their indices. NaN ranks below every number, -inf included.

    best : (n_rows, k) int64, written for the rows ``first`` to ``end``; k is at most n
    scores : (n_rows, n) float
    """
    for r in range(first, end):
        top_k_of_row(best[r], scores[r])


@inner_kernel
def top_k_of_row(heap, s):
    """heap = the indices of the k highest scores, as `top_k` of one row.

    heap : (k,) int64, written, k at most n; s : (n,) float
    """
    n, k = s.size, heap.size
    if k == 0:
        return
    # A heap of the best so far, the worst of them at its root.
    for j in range(k):
        heap[j] = j
    for root in range(k // 2 - 1, -1, -1):
        _sift(heap, s, root, k)
    for start in range(k, n, TOGETHER):
        end = min(start + TOGETHER, n)
        if any_above(s[start:end], s[heap[0]]):
            for j in range(start, end):
                if not s[j] <= s[heap[0]] and _is_before(s, j, heap[0]):
                    heap[0] = j
                    _sift(heap, s, 0, k)
    # The worst goes to the end, again and again.
    for size in range(k - 1, 0, -1):
        heap[0], heap[size] = heap[size], heap[0]
        _sift(heap, s, 0, size)


@inner_kernel
def any_above(scores, limit):
    """Whether a score is not at most ``limit``."""
    count = np.int32(0)
    for j in range(scores.size):
        count += np.int32(not scores[j] <= limit)
    return count > 0


@inner_kernel
def _is_before(scores, a, b):
    """Whether index ``a`` ranks before index ``b``, a total order."""
    x, y = scores[a], scores[b]
    if x > y:
        return True
    if x < y:
        return False
    x_is_number, y_is_number = x == x, y == y
    if x_is_number != y_is_number:
        return x_is_number
    return a < b


@inner_kernel
def _sift(heap, scores, root, size):
    """Move ``heap[root]`` down until none of its children ranks after it: a min-heap of ``size``.

    heap : (at least size,) int64; scores : (n,) float
    """
    while True:
        child = 2 * root + 1
        if child >= size:
            return
        if child + 1 < size and _is_before(scores, heap[child], heap[child + 1]):
            child += 1
        if not _is_before(scores, heap[root], heap[child]):
            return
        heap[root], heap[child] = heap[child], heap[root]
        root = child


def highest(scores: np.ndarray, k: int) -> NDArray[np.int64]:
    """`top_k` of one row: the indices of the k highest of ``scores``, highest first.

    ``scores`` is (n,) float, the result (min(k, n),) int64: all n indices if there are not more.
    """
    best = np.empty((1, min(k, scores.size)), np.int64)
    top_k(best, scores.reshape(1, -1), 0, 1)
    return best[0]
