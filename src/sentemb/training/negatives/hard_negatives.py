"""Hard negatives: unclicked titles that rank high for a query, and how they are drawn.

The training of two towers takes them from the current model itself; `teachers` makes lists from
another model or from BM25.

Training soon tells most titles of a mini-batch from the clicked one. From epoch 3 on, every three
epochs, the highest unclicked titles of all queries of the log are looked up. Some of those of its
pairs then join the clicked titles of every mini-batch, as candidates like any other.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.kernels.hard_negatives import highest_titles
from sentemb.models.towers.encoder import Encoder
from sentemb.retrieval.clusters import n_clusters
from sentemb.system.growing import scratch_array
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.batch import TextBatch
from sentemb.training.batches.corpus import Corpus
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives.title_clusters import (
    PROBED,
    TitleClusters,
    n_comparisons,
)

# Offsets of every query, and what they divide: titles or words.
OfQueries: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32]]

# Queries between two calls of ``stopped``: a few seconds even with many titles.
_PORTION = 8_192
# With clusters, so that each thread has many queries of one cluster.
_PORTION_OF_CLUSTERS = 131_072

# Texts that are embedded at once.
_TEXTS = 16_384

# Up to this number of queries times titles each query is compared with every title.
EXACT_UP_TO = 50_000_000
# Of more titles than this a look-up draws this many, others at each look-up.
SAMPLED_FROM = 1_000_000

# Measured with the default settings: what takes as long as training on one pair.
_COMPARISONS_OF_PAIR, _TEXTS_OF_PAIR = 7_000, 7


class _Towers(Protocol):
    """The members of `TwoTowers` that a look-up uses."""

    @property
    def encoder(self) -> Encoder: ...
    def embed(self, side: str, texts: TextBatch, workers: Workers) -> np.ndarray: ...


class Titles(Protocol):
    """Titles that queries are compared with, or some of them."""

    def highest(
        self,
        lists: NDArray[np.int32],
        Uq: np.ndarray,
        clicked_offsets: NDArray[np.int64],
        clicked: NDArray[np.int32],
        workers: Workers,
    ) -> None:
        """Write the titles with the highest cosines; see `TitleClusters.highest`."""
        ...


@dataclass(frozen=True, eq=False)
class AllTitles:
    """Titles, each of which every query meets.

    ``UdT`` (dim, n_titles) float has normalised embeddings, one per column.
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


@dataclass(frozen=True, eq=False)
class SomeTitles:
    """A part of many titles, each with its number in the whole list.

    ``numbers`` (k,) ascend; title i of ``titles`` is ``numbers[i]``.
    """

    numbers: NDArray[np.int32]
    titles: Titles

    def highest(
        self,
        lists: NDArray[np.int32],
        Uq: np.ndarray,
        clicked_offsets: NDArray[np.int64],
        clicked: NDArray[np.int32],
        workers: Workers,
    ) -> None:
        """Write the titles with the highest cosines; see `TitleClusters.highest`."""
        clicked_titles = clicked[clicked_offsets[0] : clicked_offsets[-1]]
        positions = np.searchsorted(self.numbers, clicked_titles).astype(np.int32)
        there = self.numbers.take(positions, mode="clip") == clicked_titles
        offsets = np.concatenate([[0], np.cumsum(there)])[clicked_offsets - clicked_offsets[0]]
        self.titles.highest(lists, Uq, offsets, positions[there], workers)
        np.copyto(lists, self.numbers.take(lists, mode="clip"), where=lists >= 0)


def look_up(
    corpus: Corpus,
    towers: _Towers,
    workers: Workers,
    stopped: Callable[[], bool],
    *,
    seed: int = 0,
    epoch: int = 0,
    reached: Callable[[int], None] = lambda n_queries: None,
    scratch: AnyPath | None = None,
) -> NDArray[np.int32]:
    """The highest unclicked titles of every query; in a large log, among the nearest clusters.

    Up to `EXACT_UP_TO` the time is proportional to the number of queries times that of titles, and
    above it to the number of queries times the square root of that of titles. Of more titles than
    `SAMPLED_FROM` that number is drawn, by seed and epoch. Apart from the lists memory is needed
    for the embeddings of these titles and of some queries.

    ``towers`` are flushed. ``stopped`` is asked before every portion of the texts. After a yes the
    look-up ends, and the other queries have no titles. ``reached`` is called after every portion
    with the number of queries that have their titles. ``scratch`` is a folder for the lists, 120
    bytes a query, if they are large; see `sentemb.system.growing.scratch_array`. Returns
    (n_queries, HARD_AMONG), -1 where a query has fewer titles.
    """
    numbers = drawn_titles(corpus.n_titles, seed, epoch)
    Ud = _unit_embeddings("document", numbers, corpus, towers, workers, stopped)
    if stopped():
        return lists_of_all(corpus.n_queries, lambda *portion: None, stopped, scratch=scratch)
    titles, portion = _compared(corpus.n_queries, Ud, workers)
    del Ud  # clusters have a copy
    if numbers.size < corpus.n_titles:
        titles = SomeTitles(numbers, titles)
    clicked = corpus.query_offsets, corpus.query_titles

    def fill(lists: NDArray[np.int32], first: int, end: int) -> None:
        queries = np.arange(first, end, dtype=np.int32)
        Uq = _unit_embeddings("query", queries, corpus, towers, workers, stopped)
        if not stopped():
            titles.highest(lists, Uq, *part(clicked, first, end), workers)
            reached(end)

    return lists_of_all(corpus.n_queries, fill, stopped, portion, scratch)


def drawn_titles(n_titles: int, seed: int, epoch: int) -> NDArray[np.int32]:
    """The numbers of the titles that a look-up compares with queries, ascending.

    All of them, or `SAMPLED_FROM` that seed and epoch decide.
    """
    if n_titles <= SAMPLED_FROM:
        return np.arange(n_titles, dtype=np.int32)
    # No mini-batch draws from these four numbers.
    rng = np.random.default_rng([seed, epoch, 0, 1])
    drawn = rng.choice(n_titles, SAMPLED_FROM, replace=False, shuffle=False)
    return np.sort(drawn).astype(np.int32)


def in_pairs(n_queries: int, n_titles: int) -> float:
    """How many pairs are trained on while a look-up takes place: an estimate."""
    n_titles = min(n_titles, SAMPLED_FROM)
    comparisons = n_queries * n_titles
    if comparisons > EXACT_UP_TO:
        comparisons = n_comparisons(n_queries, n_titles)
    return comparisons / _COMPARISONS_OF_PAIR + (n_queries + n_titles) / _TEXTS_OF_PAIR


def described(n_queries: int, n_titles: int) -> str:
    """A look-up for queries among titles, in words."""
    what, among = "looking up hard negatives", min(n_titles, SAMPLED_FROM)
    if among < n_titles:
        what += f" among {among:,} of {n_titles:,} titles,"
    if n_queries * among <= EXACT_UP_TO:
        return what.rstrip(",")
    of_titles = "" if among < n_titles else " of titles"
    return f"{what} in the {PROBED} nearest of {n_clusters(among):,} clusters{of_titles}"


def nearest_titles(
    Uq: np.ndarray,
    Ud: np.ndarray,
    clicked: OfQueries,
    workers: Workers,
    stopped: Callable[[], bool],
) -> NDArray[np.int32]:
    """The unclicked titles with the highest cosines, in any order; see `lists_of_all`.

    With more than `EXACT_UP_TO` queries times titles they are the highest in the `PROBED` clusters
    of titles that are nearest to the query. ``Uq`` (n_queries, dim) and ``Ud`` (n_titles, dim)
    float are normalised; ``clicked`` are offsets (n_queries + 1,) and the clicked titles (n,) of
    every query.
    """
    titles, portion = _compared(len(Uq), Ud, workers)

    def fill(lists: NDArray[np.int32], first: int, end: int) -> None:
        titles.highest(lists, Uq[first:end], *part(clicked, first, end), workers)

    return lists_of_all(len(Uq), fill, stopped, portion)


def _compared(n_queries: int, Ud: np.ndarray, workers: Workers) -> tuple[Titles, int]:
    """Titles as that many queries are compared with them, and how many queries at once."""
    if n_queries * len(Ud) <= EXACT_UP_TO:
        return AllTitles(np.ascontiguousarray(Ud.T)), _PORTION
    return TitleClusters.of(Ud, workers), _PORTION_OF_CLUSTERS


def lists_of_all(
    n_queries: int,
    fill: Callable[[NDArray[np.int32], int, int], None],
    stopped: Callable[[], bool],
    portion: int | None = None,
    scratch: AnyPath | None = None,
) -> NDArray[np.int32]:
    """A list of titles for every query, portion by portion.

    ``fill`` writes the lists of the queries from the first to the second number. ``stopped`` is
    asked before every portion; after a yes the other queries have no titles. ``portion`` is in
    queries; ``scratch`` is as in `look_up`. Returns (n_queries, HARD_AMONG), -1 where a query has
    fewer titles.
    """
    lists = no_lists(n_queries, scratch)
    size = portion or _PORTION
    for first in range(0, n_queries, size):
        if stopped():
            break
        end = min(first + size, n_queries)
        fill(lists[first:end], first, end)
    return lists


def no_lists(n_queries: int, scratch: AnyPath | None = None) -> NDArray[np.int32]:
    """Lists without titles, (n_queries, HARD_AMONG) int32; ``scratch`` as in `look_up`."""
    lists = scratch_array((n_queries, HARD_AMONG), np.int32, scratch)
    lists.fill(-1)
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

    ``lists`` (n_queries, m) are from `lists_of_all`; ``queries`` (n_pairs,) has the query of each
    pair. Seed, epoch and step decide the draw. A pair gets ``count`` titles, or its whole list if
    that is shorter: pair p has ``titles[offsets[p]:offsets[p + 1]]`` of the offsets and titles
    returned.
    """
    of_pairs = lists[queries]
    keys = np.random.default_rng([seed, epoch, step]).random(of_pairs.shape)
    keys[of_pairs < 0] = 1  # above all others
    order = np.argsort(keys, axis=1, kind="stable")[:, :count]
    drawn = np.take_along_axis(of_pairs, order, axis=1)
    offsets = np.cumsum([0, *np.count_nonzero(drawn >= 0, axis=1)], dtype=np.int64)
    return offsets, drawn[drawn >= 0]


def _unit_embeddings(
    side: str,
    numbers: NDArray[np.int32],
    corpus: Corpus,
    towers: _Towers,
    workers: Workers,
    stopped: Callable[[], bool],
) -> np.ndarray:
    """Normalised embeddings of some texts; anything after a yes of ``stopped``."""
    U = np.empty((numbers.size, towers.encoder.dim), np.float32)
    for first in range(0, numbers.size, _TEXTS):
        if stopped():
            break
        portion = slice(first, first + _TEXTS)
        Y = towers.embed(side, corpus.texts(side, numbers[portion]), workers)
        normalise_rows(Y, np.empty(len(Y), Y.dtype), Y)
        U[portion] = Y
    return U
