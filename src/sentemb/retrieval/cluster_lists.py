"""Approximate search for the nearest titles: a query meets those of the nearest clusters only.

An inverted file, as in Sivic and Zisserman, "Video Google", ICCV 2003: each cluster has the list of
its titles. The products of the titles that are met are those of exact search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.retrieval.clusters import MOVES, centres_of, drawn_sample, n_clusters, nearest_centres
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.nearest import nearest
from sentemb.system.parallel import Workers

# The recall@10 that the number of probed clusters is chosen for, and the most that are probed, as a
# share of all: with more, exact search is hardly slower.
RECALL_AT, LEAST_RECALL = 10, 0.95
_MOST_PROBED = 8
# What recall is measured with.
OF_TITLES, OF_QUERIES = "titles", "queries"
# Clusters, in roots of the number of titles. A query that meets a sixteenth of 100,000 titles of a
# simulated shop has the recall@10 0.80 with 1, 0.90 with 2 and 0.93 with 4, which takes longest to
# make.
_FINENESS = 4
# Titles whose clusters are looked up at a time.
_PORTION = 8192


@dataclass(frozen=True, eq=False)
class ClusterLists:
    """The titles of each cluster.

    Attributes
    ----------
    centres : (n_clusters, dim) float32
        Unit vectors.
    offsets : (n_clusters + 1,) int64
        Cluster c has ``titles[offsets[c]:offsets[c + 1]]``.
    titles : (n,) int32
        Each title with known words once, ascending in each cluster.
    probed : int
        Clusters that a query meets.
    recall : float
        The share of the 10 nearest titles that was found when the lists were made.
    measured_with : {"titles", "queries"}
        The texts of which the nearest titles were looked for: titles, or queries of a log.
    """

    centres: NDArray[np.float32]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    probed: int
    recall: float
    measured_with: str = OF_TITLES

    @classmethod
    def of(
        cls,
        rows: np.ndarray | Int8Rows,
        is_empty: NDArray[np.bool_],
        queries: np.ndarray,
        workers: Workers,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Divide titles into clusters, four times as many as the root of their number.

        Parameters
        ----------
        rows : (n_titles, dim) float16 or float32, or Int8Rows
            Of unit length, or zero.
        is_empty : (n_titles,) bool
            The titles with zeros.
        queries : (m, dim) float
            Unit vectors that recall is measured with.
        workers : Workers
            Threads to compute with; the lists do not depend on their number.
        on_progress : function, optional
            Called with the share of the work that is done, as a number of titles, and their number.

        Raises
        ------
        SentembError
            If all titles have zeros, or there are no queries.
        """
        there = np.flatnonzero(~is_empty)
        if not there.size or not len(queries):
            raise SentembError("no title has a word that the model knows; leave clusters out")
        count = min(there.size, _FINENESS * n_clusters(there.size))
        # In the order of the file, which may be mapped, and then in that of the sample.
        drawn, position = np.unique(there[drawn_sample(there.size, count)], return_inverse=True)
        sample = _vectors(rows, drawn)[position]
        # The sample is looked up at each move, then all titles are.
        total = MOVES * len(sample) + len(rows)

        def show(done: int) -> None:
            if on_progress is not None:
                on_progress(max(1, done * len(rows) // total), len(rows))

        centres = centres_of(sample, count, workers, lambda move: show(move * len(sample)))
        lists = cls(centres, np.zeros(len(centres) + 1, np.int64), np.empty(0, np.int32), 1, 0.0)
        lists = lists.joined(rows, 0, workers, lambda done, _: show(MOVES * len(sample) + done))
        return lists._measured(rows, ~is_empty, queries, workers)

    def __str__(self) -> str:
        return (
            f"a query meets {self.probed:,} of {len(self.centres):,}; "
            f"recall@{RECALL_AT} {self.recall:.3f} for {self._measured_for} when they were made"
        )

    @property
    def _measured_for(self) -> str:
        return "queries of the log" if self.measured_with == OF_QUERIES else "titles as queries"

    def _measured(
        self,
        rows: np.ndarray | Int8Rows,
        allowed: NDArray[np.bool_],
        queries: np.ndarray,
        workers: Workers,
    ) -> Self:
        """These lists with the number of probed clusters that gives the recall."""
        best, _ = nearest(queries, rows, RECALL_AT, allowed, workers)
        most = max(1, len(self.centres) // _MOST_PROBED)
        probed, _ = nearest(queries, self.centres, most, workers=workers)
        cluster_of = np.empty(len(rows), np.int32)
        cluster_of[self.titles] = self._clusters()
        is_there = best >= 0
        # By number of probed clusters, the share of the nearest titles that are in them.
        is_met = cluster_of[best][:, :, None] == probed[:, None, :]
        recall = np.cumsum(is_met[is_there].mean(axis=0))
        reached = np.flatnonzero(recall >= LEAST_RECALL)
        n_probed = int(reached[0]) + 1 if reached.size else most
        return replace(self, probed=n_probed, recall=float(recall[n_probed - 1]))

    def joined(
        self,
        rows: np.ndarray | Int8Rows,
        first: int,
        workers: Workers,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """These lists with the titles ``rows`` in the clusters that are nearest to them.

        Parameters
        ----------
        rows : (n, dim) float16 or float32, or Int8Rows
            The new titles; those with zeros are left out.
        first : int
            The number of the first of them.
        workers : Workers
            As for `of`.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all.
        """
        clusters = np.empty(len(rows), np.int32)
        for low in range(0, len(rows), _PORTION):
            vectors = _vectors(rows, slice(low, low + _PORTION))
            of_portion = nearest_centres(vectors, self.centres, 1, workers)[:, 0]
            of_portion[~vectors.any(axis=1)] = -1
            clusters[low : low + len(vectors)] = of_portion
            if on_progress is not None:
                on_progress(low + len(vectors), len(rows))
        there = np.flatnonzero(clusters >= 0)
        cluster_of = np.concatenate([self._clusters(), clusters[there]])
        titles = np.concatenate([self.titles, (there + first).astype(np.int32)])
        order = np.argsort(cluster_of, kind="stable")
        return replace(self, titles=titles[order], offsets=self._offsets_of(cluster_of))

    def without(self, is_kept: NDArray[np.bool_]) -> Self:
        """These lists over the titles where ``is_kept``, (n_titles,), is true."""
        number_of = (np.cumsum(is_kept) - 1).astype(np.int32)
        stays = is_kept[self.titles]
        titles = number_of[self.titles[stays]]
        return replace(self, titles=titles, offsets=self._offsets_of(self._clusters()[stays]))

    def _clusters(self) -> NDArray[np.int32]:
        """The cluster of each of ``titles``."""
        return np.repeat(np.arange(len(self.centres), dtype=np.int32), np.diff(self.offsets))

    def _offsets_of(self, cluster_of: NDArray[np.int32]) -> NDArray[np.int64]:
        return np.append(0, np.cumsum(np.bincount(cluster_of, minlength=len(self.centres))))

    def nearest(
        self,
        queries: np.ndarray,
        rows: np.ndarray | Int8Rows,
        k: int,
        mask: NDArray[np.bool_] | None,
        workers: Workers,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """As `sentemb.retrieval.nearest.nearest`, among the titles of the nearest clusters.

        Where these are fewer than ``k``, the query meets all titles of the lists. Scores have the
        bits of exact search.
        """
        positions, scores = np.empty((len(queries), k), np.int64), np.empty((len(queries), k))

        def search(workers: Workers | None, first: int, end: int) -> None:
            for q in range(first, end):
                query = queries[q : q + 1]
                titles = self._near(query)
                if mask is not None:
                    titles = titles[mask[titles]]
                if titles.size < k:
                    allowed = np.zeros(len(rows), np.bool_)
                    allowed[self.titles] = True if mask is None else mask[self.titles]
                    best, products = nearest(query, rows, k, allowed, workers)
                else:
                    best, products = nearest(query, _taken(rows, titles), k, workers=workers)
                    best = titles[best].astype(np.int64)
                positions[q], scores[q] = best[0], products[0]

        if len(queries) < workers.threads:
            search(workers, 0, len(queries))
        else:
            workers.over(len(queries), search, None)
        return positions, scores

    def _near(self, query: np.ndarray) -> NDArray[np.int32]:
        """The titles of the clusters nearest to a query, (1, dim), ascending."""
        clusters, _ = nearest(query, self.centres, self.probed)
        spans = zip(self.offsets[clusters[0]], self.offsets[clusters[0] + 1], strict=True)
        return np.sort(np.concatenate([self.titles[first:end] for first, end in spans]))


def _vectors(rows: np.ndarray | Int8Rows, which: slice | NDArray[np.int64]) -> np.ndarray:
    """Some of the rows in float32."""
    if isinstance(rows, Int8Rows):
        return rows.rows(which).vectors()
    return rows[which].astype(np.float32)


def _taken(rows: np.ndarray | Int8Rows, titles: NDArray[np.int32]) -> np.ndarray | Int8Rows:
    """Some of the rows; unlike an index, `np.take` lets other threads run."""
    if isinstance(rows, Int8Rows):
        return Int8Rows(np.take(rows.codes, titles, axis=0), np.take(rows.scales, titles))
    return np.take(rows, titles, axis=0)
