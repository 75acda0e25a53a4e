"""Clusters of vectors: they let a query find its nearest titles without meeting all of them.

Spherical k-means, as in Dhillon and Modha, "Concept decompositions for large sparse text data using
clustering", Machine Learning 42 (2001), on a sample of the vectors. A query meets the vectors of
the nearest few clusters.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.kernels.hard_negatives import highest_titles
from sentemb.system.parallel import Workers

# Vectors per cluster that the centres are computed from, and how often they are moved.
SAMPLE, MOVES = 40, 4


def n_clusters(n: int) -> int:
    """How many clusters ``n`` vectors are divided into."""
    return max(1, round(n**0.5))


def drawn_sample(n: int, count: int) -> NDArray[np.int64]:
    """The rows of ``n`` that ``count`` centres are computed from, first those where they start."""
    # The sample must be the same whenever the vectors are.
    return np.random.default_rng(0).permutation(n)[: SAMPLE * count]


def centres_of(
    sample: np.ndarray,
    count: int,
    workers: Workers,
    on_move: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Unit vectors in the middle of clusters, (count, dim), whatever the number of threads.

    Parameters
    ----------
    sample : (n, dim) float
        Unit vectors, at least ``count``.
    count : int
        The number of clusters.
    workers : Workers
        Threads to compute with.
    on_move : function, optional
        Called with the number of times, of `MOVES`, that the centres have moved.
    """
    centres = sample[:count].copy()
    for move in range(MOVES):
        nearest_centre = nearest_centres(sample, centres, 1, workers)[:, 0]
        by_centre = np.argsort(nearest_centre, kind="stable")
        # A centre to which no vector is nearest keeps its place.
        held, starts = np.unique(nearest_centre[by_centre], return_index=True)
        centres[held] = np.add.reduceat(sample[by_centre], starts, axis=0)
        normalise_rows(centres, np.empty(len(centres), centres.dtype), centres)
        if on_move is not None:
            on_move(move + 1)
    return centres


def nearest_centres(
    U: np.ndarray, centres: np.ndarray, k: int, workers: Workers
) -> NDArray[np.int32]:
    """The k centres with the highest cosines for each row of U, (n, k), in any order."""
    closest = np.empty((len(U), k), np.int32)
    nothing = np.zeros(len(U) + 1, np.int64), np.empty(0, np.int32)
    workers.over(len(U), highest_titles, closest, U, np.ascontiguousarray(centres.T), *nothing)
    return closest
