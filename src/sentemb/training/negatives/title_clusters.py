"""Clusters of titles: what lets a query find its nearest titles without meeting all of them.

Spherical k-means, as in Dhillon and Modha, "Concept decompositions for large sparse text data using
clustering", Machine Learning 42 (2001), on a sample of the titles. There are as many clusters as
the square root of the number of titles, and a query meets the titles of the nearest few.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.kernels.hard_negatives import highest_of_clusters, highest_titles, lay_out_clusters
from sentemb.system.parallel import Workers

# Clusters that a query meets.
PROBED = 8
# Titles per cluster that the centres are computed from, and how often they are moved.
_SAMPLE, _MOVES = 40, 4


def n_clusters(n_titles: int) -> int:
    """How many clusters titles are divided into."""
    return max(1, round(n_titles**0.5))


def n_comparisons(n_queries: int, n_titles: int) -> int:
    """How many vectors are multiplied to find titles for all queries, clusters included."""
    count = n_clusters(n_titles)
    of_centres = min(_SAMPLE * count, n_titles) * _MOVES + n_titles
    return count * of_centres + n_queries * (count + PROBED * n_titles // count)


@dataclass(frozen=True, eq=False)
class TitleClusters:
    """Titles, divided into clusters.

    centres : (n_clusters, dim) float, unit vectors
    blocks : (n_titles * dim,) float, the embeddings of the titles, cluster by cluster; see
        `lay_out_clusters`
    titles, offsets : (n_titles,), (n_clusters + 1,); cluster c has
        ``titles[offsets[c]:offsets[c + 1]]``, in ascending order
    place_of : (n_titles,); ``titles[place_of[t]]`` is t
    """

    centres: np.ndarray
    blocks: np.ndarray
    titles: NDArray[np.int32]
    offsets: NDArray[np.int64]
    place_of: NDArray[np.int32]

    @classmethod
    def of(cls, Ud: np.ndarray, workers: Workers) -> "TitleClusters":
        """Divide titles into clusters, for any number of threads the same.

        ``Ud`` (n_titles, dim) float are normalised embeddings, at least one.
        """
        centres = _centres(Ud, n_clusters(len(Ud)), workers)
        cluster_of = nearest(Ud, centres, 1, workers)[:, 0]
        titles = np.argsort(cluster_of, kind="stable").astype(np.int32)
        sizes = np.bincount(cluster_of, minlength=len(centres))
        offsets = np.concatenate([[0], np.cumsum(sizes)])
        blocks = np.empty(Ud.size, Ud.dtype)
        workers.over(len(centres), lay_out_clusters, blocks, Ud, titles, offsets)
        place_of = np.empty_like(titles)
        place_of[titles] = np.arange(titles.size, dtype=np.int32)
        return cls(centres, blocks, titles, offsets, place_of)

    def highest(
        self,
        lists: NDArray[np.int32],
        Uq: np.ndarray,
        clicked_offsets: NDArray[np.int64],
        clicked: NDArray[np.int32],
        workers: Workers,
    ) -> None:
        """Write the titles with the highest cosines, among those of the nearest clusters.

        They go into ``lists`` (n_queries, k), in any order, -1 where there are fewer titles. ``Uq``
        (n_queries, dim) are normalised. The clicked titles of every query are left out:
        ``clicked_offsets`` (n_queries + 1,) and ``clicked`` (n,). The lists do not depend on the
        number of threads.
        """
        probed = nearest(Uq, self.centres, min(PROBED, len(self.centres)), workers)
        clusters = self.blocks, self.titles, self.offsets, self.place_of
        arguments = lists, Uq, probed, clicked_offsets, clicked, *clusters
        workers.over(len(Uq), highest_of_clusters, *arguments)


def nearest(U: np.ndarray, centres: np.ndarray, k: int, workers: Workers) -> NDArray[np.int32]:
    """The k centres with the highest cosines for each row of U, (n, k) int32, in any order."""
    closest = np.empty((len(U), k), np.int32)
    nothing = np.zeros(len(U) + 1, np.int64), np.empty(0, np.int32)
    workers.over(len(U), highest_titles, closest, U, np.ascontiguousarray(centres.T), *nothing)
    return closest


def _centres(Ud: np.ndarray, count: int, workers: Workers) -> np.ndarray:
    """Unit vectors in the middle of clusters, (count, dim)."""
    # The sample must be the same whenever the titles are. The seed of a training has no say in it,
    # as in the rest of the look-up.
    drawn = np.random.default_rng(0).permutation(len(Ud))[: _SAMPLE * count]
    sample, centres = Ud[drawn], Ud[drawn[:count]]
    for _ in range(_MOVES):
        nearest_centre = nearest(sample, centres, 1, workers)[:, 0]
        by_centre = np.argsort(nearest_centre, kind="stable")
        # A centre to which no title is nearest keeps its place.
        held, starts = np.unique(nearest_centre[by_centre], return_index=True)
        centres[held] = np.add.reduceat(sample[by_centre], starts, axis=0)
        normalise_rows(centres, np.empty(len(centres), centres.dtype), centres)
    return centres
