"""The rows of titles in clusters: a query meets those of the nearest clusters only.

An inverted file, as in Sivic and Zisserman, "Video Google", ICCV 2003: the rows of each cluster
follow each other, with the titles that they are of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.scan import dots
from sentemb.kernels.top_k import highest
from sentemb.retrieval.clusters import MOVES, centres_of, drawn_sample, n_clusters, nearest_centres
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.system.growing import scratch_array
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath

# Rows whose clusters are looked up at a time.
_PORTION = 65536


@dataclass(frozen=True, eq=False)
class ClusterRows:
    """The rows of each cluster.

    centres : (n_clusters, dim) float32, unit vectors
    offsets : (n_clusters + 1,) int64; cluster c has the entries ``offsets[c]`` to
        ``offsets[c + 1]`` of the next two
    titles : (n_rows,) int32, the title of each row, rising in each cluster
    rows : the rows themselves
    """

    centres: NDArray[np.float32]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    rows: Int8Rows

    @classmethod
    def of(
        cls,
        rows: Int8Rows,
        titles: NDArray[np.int32],
        workers: Workers,
        on_progress: Callable[[int, int], None] | None = None,
        scratch: AnyPath | None = None,
    ) -> Self:
        """Divide rows into clusters, as many as the root of their number.

        Parameters
        ----------
        rows : Int8Rows
            At least one, none of zeros.
        titles : (n_rows,) int32
            The title of each, rising.
        workers : Workers
            Threads to compute with; the clusters do not depend on their number.
        on_progress : function, optional
            Called with the numbers of rows that are done and of all.
        scratch : path, optional
            A folder for the rows; see `sentemb.system.growing.scratch_array`.
        """
        count = n_clusters(len(rows))
        # In the order of the file, which may be mapped, and then in that of the sample.
        drawn, position = np.unique(drawn_sample(len(rows), count), return_inverse=True)
        sample = _directions(rows.rows(drawn))[position]
        total = MOVES * len(sample) + len(rows)

        def show(done: int) -> None:
            if on_progress is not None:
                on_progress(max(1, done * len(rows) // total), len(rows))

        centres = centres_of(sample, count, workers, lambda move: show(move * len(sample)))
        offsets = np.zeros(count + 1, np.int64)
        clusters = cls(centres, offsets, titles[:0], rows.rows(slice(0)))
        return clusters.joined(
            rows, titles, workers, lambda n: show(MOVES * len(sample) + n), scratch
        )

    def joined(
        self,
        rows: Int8Rows,
        titles: NDArray[np.int32],
        workers: Workers,
        on_progress: Callable[[int], None] | None = None,
        scratch: AnyPath | None = None,
    ) -> Self:
        """These clusters with more rows, each in that of the nearest centre.

        ``rows``, ``titles``, ``workers`` and ``scratch`` are as for `of`, the titles behind those
        that are there; ``on_progress`` is called with the number of rows that are done.
        """
        cluster_of = np.empty(len(rows), np.int32)
        for low in range(0, len(rows), _PORTION):
            portion = slice(low, low + _PORTION)
            vectors = _directions(rows.rows(portion))
            cluster_of[portion] = nearest_centres(vectors, self.centres, 1, workers)[:, 0]
            if on_progress is not None:
                on_progress(low + len(vectors))
        old = np.repeat(np.arange(len(self.centres), dtype=np.int32), np.diff(self.offsets))
        cluster_of = np.concatenate([old, cluster_of])
        order = np.argsort(cluster_of, kind="stable")
        sizes = np.bincount(cluster_of, minlength=len(self.centres))
        both = self.rows.joined(rows) if old.size else rows
        all_titles = np.concatenate([self.titles, titles])
        offsets = np.append(0, np.cumsum(sizes))
        codes = scratch_array(both.codes.shape, np.int8, scratch)
        for low in range(0, len(order), _PORTION):
            codes[low : low + _PORTION] = both.codes[order[low : low + _PORTION]]
        ordered = Int8Rows(codes, both.scales[order])
        return replace(self, offsets=offsets, titles=all_titles[order], rows=ordered)

    def without(self, is_kept: NDArray[np.bool_]) -> Self:
        """The rows of the titles where ``is_kept``, (n_titles,), is true."""
        number_of = (np.cumsum(is_kept) - 1).astype(np.int32)
        stays = is_kept[self.titles]
        offsets = np.append(0, np.cumsum(stays))[self.offsets]
        titles = number_of[self.titles[stays]]
        return replace(self, offsets=offsets, titles=titles, rows=self.rows.take(stays))

    def nearest(self, query: NDArray[np.float32], count: int) -> NDArray[np.int64]:
        """The clusters nearest to a query, (dim,), rising."""
        cosines = np.empty(len(self.centres), np.float32)
        dots(cosines, self.centres, query)
        return np.sort(highest(cosines, count))


def _directions(rows: Int8Rows) -> NDArray[np.float32]:
    """Unit vectors in the direction of rows."""
    vectors = rows.codes.astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors
