"""Hard negatives: unclicked titles that rank high for a query, and how they are drawn.

The training of two towers takes them from the current model itself; `teachers` makes lists from
another model or from BM25.

Training soon tells most titles of a mini-batch from the clicked one. From epoch 3 on, every three
epochs, the highest unclicked titles of all queries of the log are looked up. Some of those of its
pairs then join the clicked titles of every mini-batch, as candidates like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.distributed.cluster import Cluster
from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.kernels.hard_negatives import highest_titles
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch
from sentemb.training.corpus import Corpus
from sentemb.training.settings import HARD_AMONG
from sentemb.training.title_clusters import PROBED, TitleClusters, n_clusters

# Offsets of every query, and what they divide: titles or words.
OfQueries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]

# Queries between two calls of ``stopped``: a few seconds even with many titles.
_PORTION = 8_192
# With clusters, so that each thread has many queries of one cluster.
_PORTION_OF_CLUSTERS = 131_072
# Portions of a worker of a cluster, so that all end at about the same time, and their least size.
_PORTIONS_OF_WORKER, _LEAST = 4, 256

# Up to this number of queries times titles each query is compared with every title.
EXACT_UP_TO = 50_000_000


class _Towers(Protocol):
    """What a look-up needs of `TwoTowers`."""

    def embed(self, side: str, texts: TextBatch, workers: Workers) -> np.ndarray: ...


def look_up(
    corpus: Corpus,
    towers: _Towers,
    workers: Workers,
    stopped: Callable[[], bool],
    cluster: Cluster | None = None,
) -> NDArray[np.int32]:
    """The highest unclicked titles of every query; in a large log, among the nearest clusters.

    Up to `EXACT_UP_TO` the time is proportional to the number of queries times that of titles, and
    above it to the number of queries times the square root of that of titles.

    Parameters
    ----------
    corpus : Corpus
        The log.
    towers : TwoTowers
        Flushed.
    workers : Workers
        Threads to compute with.
    stopped : function
        Asked before every portion of the queries. After a yes the look-up ends, and the other
        queries have no titles.
    cluster : Cluster, optional
        Compares the queries with titles in place of this process, to the same lists.

    Returns
    -------
    (n_queries, HARD_AMONG) int32
        -1 where a query has fewer titles.
    """
    Uq = _unit_embeddings("query", corpus, towers, workers)
    Ud = _unit_embeddings("document", corpus, towers, workers)
    clicked = corpus.query_offsets, corpus.query_titles
    return nearest_titles(Uq, Ud, clicked, workers, stopped, cluster)


def described(n_queries: int, n_titles: int) -> str:
    """What a look-up for some queries among some titles does, in words."""
    what = "looking up hard negatives"
    if n_queries * n_titles <= EXACT_UP_TO:
        return what
    return f"{what} in the {PROBED} nearest of {n_clusters(n_titles):,} clusters of titles"


def nearest_titles(
    Uq: np.ndarray,
    Ud: np.ndarray,
    clicked: OfQueries,
    workers: Workers,
    stopped: Callable[[], bool],
    cluster: Cluster | None = None,
) -> NDArray[np.int32]:
    """The unclicked titles with the highest cosines, in any order; see `lists_of_all`.

    With more than `EXACT_UP_TO` queries times titles they are the highest in the `PROBED` clusters
    of titles that are nearest to the query.

    Parameters
    ----------
    Uq, Ud : (n_queries, dim), (n_titles, dim) float
        Normalised embeddings.
    clicked : (n_queries + 1,) int64, (n,) int32
        The clicked titles of every query.
    workers : Workers
        Threads to compute with.
    stopped : function
        As in `lists_of_all`.
    cluster : Cluster, optional
        As in `look_up`.
    """
    titles: AllTitles | TitleClusters
    if len(Uq) * len(Ud) <= EXACT_UP_TO:
        titles, portion = AllTitles(np.ascontiguousarray(Ud.T)), _PORTION
    else:
        titles, portion = TitleClusters.of(Ud, workers), _PORTION_OF_CLUSTERS

    if cluster is not None:
        return _lists_from(cluster, titles, Uq, clicked, stopped, portion)

    def fill(lists: NDArray[np.int32], first: int, end: int) -> None:
        titles.highest(lists, Uq[first:end], *part(clicked, first, end), workers)

    return lists_of_all(len(Uq), fill, stopped, portion)


def _lists_from(
    cluster: Cluster,
    titles: AllTitles | TitleClusters,
    Uq: np.ndarray,
    clicked: OfQueries,
    stopped: Callable[[], bool],
    portion: int,
) -> NDArray[np.int32]:
    """As `lists_of_all`, each portion of the queries by a worker of a cluster."""
    lists = np.full((len(Uq), HARD_AMONG), -1, np.int32)
    kept = cluster.keep(titles)
    each = -(-len(Uq) // (_PORTIONS_OF_WORKER * max(1, len(cluster.workers()))))
    size = min(portion, max(_LEAST, each))

    def portions() -> Iterator[tuple[Any, ...]]:
        for first in range(0, len(Uq), size):
            if stopped():
                return
            end = min(first + size, len(Uq))
            offsets, values = part(clicked, first, end)
            own = values[offsets[0] : offsets[-1]]
            yield kept, Uq[first:end], offsets - offsets[0], own

    end = 0
    for found in cluster.in_order(_highest_there, portions()):
        lists[end : end + len(found)] = found
        end += len(found)
    return lists


def _highest_there(
    titles: AllTitles | TitleClusters,
    Uq: np.ndarray,
    clicked_offsets: NDArray[np.int64],
    clicked: NDArray[np.int32],
) -> NDArray[np.int32]:
    """The lists of some queries, on a worker."""
    lists = np.full((len(Uq), HARD_AMONG), -1, np.int32)
    titles.highest(lists, Uq, clicked_offsets, clicked, Workers(1))
    return lists


@dataclass(frozen=True, eq=False)
class AllTitles:
    """Titles, each of which every query meets.

    Attributes
    ----------
    UdT : (dim, n_titles) float
        Normalised embeddings, one per column.
    """

    UdT: np.ndarray

    def highest(
        self,
        lists: NDArray[np.int32],
        Uq: np.ndarray,
        clicked_offsets: NDArray[np.int64],
        clicked: NDArray[np.int32],
        workers: Workers,
    ) -> None:
        """Write the titles with the highest cosines; see `TitleClusters.highest`."""
        arguments = lists, Uq, self.UdT, clicked_offsets, clicked
        workers.over(len(Uq), highest_titles, *arguments)


def lists_of_all(
    n_queries: int,
    fill: Callable[[NDArray[np.int32], int, int], None],
    stopped: Callable[[], bool],
    portion: int | None = None,
) -> NDArray[np.int32]:
    """A list of titles for every query, portion by portion.

    Parameters
    ----------
    n_queries : int
        How many queries there are.
    fill : function of an array and two int
        Writes the lists of the queries from the first to the second number.
    stopped : function
        Asked before every portion of the queries. After a yes the other queries have no titles.
    portion : int, optional
        Queries per portion.

    Returns
    -------
    (n_queries, HARD_AMONG) int32
        -1 where a query has fewer titles.
    """
    lists = np.full((n_queries, HARD_AMONG), -1, np.int32)
    size = portion or _PORTION
    for first in range(0, n_queries, size):
        if stopped():
            break
        end = min(first + size, n_queries)
        fill(lists[first:end], first, end)
    return lists


def part(of_queries: OfQueries, first: int, end: int) -> OfQueries:
    """``of_queries`` for some of the queries."""
    offsets, values = of_queries
    return offsets[first : end + 1], values


def draw(
    lists: NDArray[np.int32],
    queries: NDArray[np.integer],
    count: int,
    seed: int,
    epoch: int,
    step: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Draw titles from the lists of some queries, without drawing one twice.

    Parameters
    ----------
    lists : (n_queries, m) int32
        As `lists_of_all` returns them.
    queries : (n_pairs,) int
        The query of each pair.
    count : int
        Titles per pair. A pair whose list is shorter gets the whole list.
    seed, epoch, step : int
        They decide what is drawn.

    Returns
    -------
    offsets, titles : (n_pairs + 1,) int64, (n,) int32
        Pair p has ``titles[offsets[p]:offsets[p + 1]]``.
    """
    found = lists[queries]
    keys = np.random.default_rng([seed, epoch, step]).random(found.shape)
    keys[found < 0] = 1  # above all others
    order = np.argsort(keys, axis=1, kind="stable")[:, :count]
    drawn = np.take_along_axis(found, order, axis=1)
    offsets = np.cumsum([0, *np.count_nonzero(drawn >= 0, axis=1)], dtype=np.int64)
    return offsets, drawn[drawn >= 0]


def _unit_embeddings(side: str, corpus: Corpus, towers: _Towers, workers: Workers) -> np.ndarray:
    portions = [towers.embed(side, texts, workers) for texts in corpus.portions(side)]
    for Y in portions:
        normalise_rows(Y, np.empty(len(Y), Y.dtype), Y)
    return np.concatenate(portions)
