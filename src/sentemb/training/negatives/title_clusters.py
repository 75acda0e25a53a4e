"""Clusters of the titles of a training: a query meets those of the nearest few clusters.

There are as many clusters as the square root of the number of titles.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.hard_negatives import highest_of_clusters, lay_out_clusters
from sentemb.retrieval.clusters import (
    MOVES,
    SAMPLE,
    centres_of,
    drawn_sample,
    n_clusters,
    nearest_centres,
)
from sentemb.system.parallel import Workers

# Clusters that a query meets.
PROBED = 8


def n_comparisons(n_queries: int, n_titles: int) -> int:
    """How many vectors are multiplied to find titles for all queries, clusters included."""
    count = n_clusters(n_titles)
    of_centres = min(SAMPLE * count, n_titles) * MOVES + n_titles
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
        # The seed of a training has no say in the sample, as in the rest of the look-up.
        count = n_clusters(len(Ud))
        centres = centres_of(Ud[drawn_sample(len(Ud), count)], count, workers)
        cluster_of = nearest_centres(Ud, centres, 1, workers)[:, 0]
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
        probed = nearest_centres(Uq, self.centres, min(PROBED, len(self.centres)), workers)
        clusters = self.blocks, self.titles, self.offsets, self.place_of
        arguments = lists, Uq, probed, clicked_offsets, clicked, *clusters
        workers.over(len(Uq), highest_of_clusters, *arguments)
