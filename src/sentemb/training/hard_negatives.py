"""Hard negatives: unclicked titles that rank high for a query, and how they are drawn.

The training of two towers takes them from the current model itself; `teachers` makes lists from
another model or from BM25.

Training soon tells most titles of a mini-batch from the clicked one. From epoch 3 on, every three
epochs, the highest unclicked titles of all queries of the log are looked up. Some of those of its
pairs then join the clicked titles of every mini-batch, as candidates like any other.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

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

# Up to this number of queries times titles each query is compared with every title.
EXACT_UP_TO = 50_000_000


class _Towers(Protocol):
    """What a look-up needs of `TwoTowers`."""

    def embed(self, side: str, texts: TextBatch, workers: Workers) -> np.ndarray: ...


def look_up(
    corpus: Corpus, towers: _Towers, workers: Workers, stopped: Callable[[], bool]
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

    Returns
    -------
    (n_queries, HARD_AMONG) int32
        -1 where a query has fewer titles.
    """
    Uq = _unit_embeddings("query", corpus, towers, workers)
    Ud = _unit_embeddings("document", corpus, towers, workers)
    clicked = corpus.query_offsets, corpus.query_titles
    return nearest_titles(Uq, Ud, clicked, workers, stopped)


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
    """
    if len(Uq) * len(Ud) <= EXACT_UP_TO:
        UdT = np.ascontiguousarray(Ud.T)

        def fill(lists: NDArray[np.int32], first: int, end: int) -> None:
            arguments = lists, Uq[first:end], UdT, *part(clicked, first, end)
            workers.over(end - first, highest_titles, *arguments)

        return lists_of_all(len(Uq), fill, stopped)
    clusters = TitleClusters.of(Ud, workers)

    def fill_from_clusters(lists: NDArray[np.int32], first: int, end: int) -> None:
        clusters.highest(lists, Uq[first:end], *part(clicked, first, end), workers)

    return lists_of_all(len(Uq), fill_from_clusters, stopped, _PORTION_OF_CLUSTERS)


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
