"""Titles that can be among the best of a catalogue, found without a look at most of them.

The cosine and the memory of a title are products of the query with rows of the title: the rows of
the nearest clusters are met (`sentemb.retrieval.cluster_rows`); an embedding has clusters of its
own. The other parts are lists of titles: for each word there is one, with the weighted sum of both
BM25. Words that all together add little are not walked, as in MaxScore (Turtle and Flood,
Information Processing & Management 31, 1995). The titles with the highest sums of lists, and those
of the rows with the highest sums of product and lists, are scored exactly: a title may be missed, a
score is the score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.shortlist import (
    add_entries,
    add_values,
    clear,
    meet_clusters,
    sums_of,
    walk,
)
from sentemb.kernels.top_k import highest
from sentemb.retrieval.bm25 import Lists
from sentemb.retrieval.cluster_rows import ClusterRows
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.row_products import LONGEST, QueryRows
from sentemb.search.ranking.part import Asked, Part
from sentemb.search.ranking.parts import Bm25, Cosine, Memory, Unclicked, bound_of_cosine
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    COSINE,
    EMBEDDING,
    MEMORY,
    OF_VECTORS,
    UNCLICKED,
    Recipe,
)
from sentemb.system.parallel import ALONE, Workers
from sentemb.system.paths import AnyPath

# The recall@10 that the breadth is chosen for.
RECALL_AT, LEAST_RECALL = 10, 0.99
# What recall is measured with.
OF_TITLES, OF_QUERIES = "titles", "queries"
# Words that together add at most this share of the weights of cosine and memory are not walked.
_SLACK = 0.25
# The most titles that are found: the recall is that of the first 10. A measurement up to rank 100
# looks one title further, to see whether its score is equal.
MOST_TITLES = 200
# Titles that are sorted and counted have at least this share of the highest score. Their clusters
# may not be so near: a query meets twice as many. It looks at five times as many titles as count at
# most, because many of the first have high sums of lists and no near row, or the reverse.
LEAST_SHARE, _WIDER, _DEEPER = 0.5, 2, 5
# With a larger share of the clusters, exact search is hardly slower. Where only some titles may be
# found, exact search takes longer, unless they are few.
MOST_PROBED, _MOST_OF_SOME = 0.25, 0.75
# The error of a float32 sum of some dozens of numbers, as a share of the largest.
_ERROR = 1e-5
# Vectors that are made integers at a time.
_PORTION = 65536
_ALL, _NONE = np.empty(0, np.bool_), np.empty(0, np.float32)


class Breadth(NamedTuple):
    """How much a query meets.

    probed : clusters
    retained : the titles with the highest sums of lists, and the rows with the highest sums of
        product and lists, that are looked at again for the 10 best titles
    """

    probed: int
    retained: int

    def of(self, k: int, matches: int = 0) -> Breadth:
        """The breadth for the ``k`` best titles: their recall falls slowly, or not at all.

        ``matches`` is how many titles are sorted and counted.
        """
        n_more = max(0, k - RECALL_AT)
        probed, retained = self.probed + self.probed * n_more // 100, self.retained + 4 * n_more
        if matches:
            return Breadth(_WIDER * probed, max(retained, _DEEPER * matches))
        return Breadth(probed, retained)


class Named(NamedTuple):
    """Titles that a part names for a query, (n,) int32, and what it adds to each, (n,) float32."""

    titles: NDArray[np.int32]
    added: NDArray[np.float32]


class _Words(NamedTuple):
    """The words of a query to walk, and the least and most that the others add to a title."""

    walked: NDArray[np.int32]
    least: float
    most: float


def least_of_matches(highest: float) -> float:
    """The least score of titles that are sorted and counted, by the highest."""
    return highest - (1 - LEAST_SHARE) * abs(highest)


@dataclass(frozen=True, eq=False)
class Shortlist:
    """Finds the titles of a catalogue that can be among the best, by one recipe.

    Attributes
    ----------
    parts : mapping
        Those of the catalogue.
    recipe : Recipe
        The weights.
    clusters : ClusterRows
        The rows of the memory or, without it, of the cosine.
    net : (n_entries,) float32
        The addition of each entry of the lists of words to a score.
    breadth : Breadth
        How much a query meets.
    recall : float
        The share of the 10 best titles that was found when the breadth was chosen.
    measured_with : {"titles", "queries"}
        The queries that it was measured with: titles, or queries of the log.
    embedded : ClusterRows or None
        The rows of the embedding, if a part is one.
    """

    parts: Mapping[str, Part]
    recipe: Recipe
    clusters: ClusterRows
    net: NDArray[np.float32]
    breadth: Breadth
    recall: float = 0.0
    measured_with: str = OF_TITLES
    embedded: ClusterRows | None = None
    # Sums of zeros that no search uses now.
    _unused: list[NDArray[np.float32]] = field(default_factory=list, repr=False)

    @classmethod
    def of(
        cls,
        parts: Mapping[str, Part],
        recipe: Recipe,
        workers: Workers,
        on_progress: Callable[[int, int], None] | None = None,
        scratch: AnyPath | None = None,
    ) -> Self:
        """Of the parts of a catalogue, in which some title has a row; the breadth is not chosen."""
        clusters = ClusterRows.of(*_rows(parts, recipe), workers, on_progress, scratch)
        embedded = None
        if recipe.weight(EMBEDDING):
            embedded = ClusterRows.of(*_rows_of(parts[EMBEDDING]), workers, on_progress, scratch)
        net = _net(parts, recipe)
        return cls(parts, recipe, clusters, net, Breadth(1, 1), embedded=embedded)

    def without(self, parts: Mapping[str, Part], is_kept: NDArray[np.bool_]) -> Self:
        """This one over the titles where ``is_kept`` is true, whose parts are ``parts``."""
        embedded = self.embedded and self.embedded.without(is_kept)
        return self._over(parts, self.clusters.without(is_kept), embedded)

    def joined(self, parts: Mapping[str, Part], behind: Mapping[str, Part]) -> Self:
        """This one with more titles, of the parts ``behind``; ``parts`` are those of all."""
        embedded = self.embedded
        with Workers() as workers:
            clusters = self._with_more(self.clusters, *_rows(behind, self.recipe), workers)
            if embedded is not None:
                embedded = self._with_more(embedded, *_rows_of(behind[EMBEDDING]), workers)
        return self._over(parts, clusters, embedded)

    def _with_more(
        self, clusters: ClusterRows, rows: Int8Rows, titles: NDArray[np.int32], workers: Workers
    ) -> ClusterRows:
        return clusters.joined(rows, titles + np.int32(self.n_titles), workers)

    def _over(
        self, parts: Mapping[str, Part], clusters: ClusterRows, embedded: ClusterRows | None
    ) -> Self:
        measured = self.breadth, self.recall, self.measured_with
        net = _net(parts, self.recipe)
        return type(self)(parts, self.recipe, clusters, net, *measured, embedded)

    def __reduce__(self) -> tuple[type[Shortlist], tuple[object, ...]]:
        arrays = self.parts, self.recipe, self.clusters, self.net
        return type(self), (*arrays, self.breadth, self.recall, self.measured_with, self.embedded)

    def __str__(self) -> str:
        of_what = "queries of the log" if self.measured_with == OF_QUERIES else "titles as queries"
        return (
            f"a query meets {self.breadth.probed:,} of {len(self.clusters.centres):,}; "
            f"recall@{RECALL_AT} {self.recall:.3f} for {of_what} when they were made"
        )

    @cached_property
    def n_titles(self) -> int:
        """The titles of the catalogue."""
        cosine = self.parts[COSINE]
        assert isinstance(cosine, Cosine)
        return len(cosine.rows)

    @cached_property
    def _lists(self) -> Lists | None:
        return _lists(self.parts, self.recipe)

    @cached_property
    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The least and the most that each word adds to a title, (n_words,); 0 included."""
        assert self._lists is not None
        starts = self._lists.offsets[:-1]
        if not starts.size:
            return _NONE, _NONE
        least, most = (of.reduceat(self.net, starts) for of in (np.minimum, np.maximum))
        return np.minimum(least, 0), np.maximum(most, 0)

    @cached_property
    def _constants(self) -> NDArray[np.float32]:
        """The additions to the titles whatever the query is, (n_titles,), or (0,)."""
        weight = self.recipe.weight(UNCLICKED)
        if not weight:
            return _NONE
        unclicked = self.parts[UNCLICKED]
        assert isinstance(unclicked, Unclicked)
        return np.float32(weight) * unclicked.values

    @property
    def _of_rows(self) -> float:
        """The weight of a product with a row."""
        return self.recipe.weight(COSINE) + self.recipe.weight(MEMORY)

    def can_rank(self, recipe: Recipe, k: int, share: float) -> bool:
        """Whether it finds the ``k`` best titles, where a ``share`` of all may be found."""
        if k > MOST_TITLES or not (self.recipe is recipe or self.recipe == recipe):
            return False
        most = min(MOST_PROBED, share * _MOST_OF_SOME) * len(self.clusters.centres)
        return self.breadth.probed <= most

    def candidates(
        self,
        asked: Asked,
        q: int,
        k: int,
        named: Sequence[Named],
        mask: NDArray[np.bool_] | None,
        share: float,
        matches: int = 0,
    ) -> NDArray[np.int64]:
        """The titles, rising, that can be among the ``k`` best for query ``q``.

        ``named`` are the titles that parts name; ``mask`` (n_titles,) those that may be found, a
        ``share`` of all. With ``matches`` they can also be among that many best that have
        `LEAST_SHARE` of the highest score.
        """
        allowed = _ALL if mask is None else mask
        breadth = self.breadth.of(k, matches)
        words, n = self._words(asked, q), 0
        try:
            sums = self._unused.pop()
        except IndexError:
            sums = np.zeros(self.n_titles, np.float32)
        met = np.empty(self.n_titles + 1, np.int32)
        if self._lists is not None:
            entries = self._lists.offsets, self._lists.titles, self.net
            n = walk(sums, met, n, words.walked, *entries, allowed)
        for titles, added in named:
            n = add_values(sums, met, n, titles, added, allowed)
        met = met[:n]
        values = np.empty(n, np.float32)
        sums_of(values, met, sums, self._constants)
        chosen = [met[_highest(values, breadth.retained)]]
        for clusters, rows, weight in self._near_rows(asked):
            if rows.exact[q].any():
                of_query = rows, q, np.float32(weight)
                chosen.append(self._near(clusters, *of_query, breadth, sums, allowed, share))
        titles = np.concatenate(chosen)
        titles.sort()
        titles = titles[np.diff(titles, prepend=-1) > 0]
        values = np.empty(titles.size, np.float32)
        sums_of(values, titles, sums, self._constants)
        clear(sums, met)
        self._unused.append(sums)
        of_titles = titles.astype(np.int64), values, (words.least, words.most)
        return possible(self.parts, self.recipe, asked, q, (k, matches), *of_titles)

    def _words(self, asked: Asked, q: int) -> _Words:
        if self._lists is None:
            return _Words(np.empty(0, np.int32), 0.0, 0.0)
        offsets, numbers = asked.words_in(self._lists)
        words = numbers[offsets[q] : offsets[q + 1]]
        least, most = (of_words[words] for of_words in self._bounds)
        reach = np.maximum(most, -least)
        order = np.argsort(reach, kind="stable")
        # A query that the model does not know has nothing but its words.
        slack = _SLACK * self._of_rows if asked.rows.exact[q].any() else 0.0
        n_left = np.searchsorted(np.cumsum(reach[order]), slack, "right")
        left = order[:n_left]
        return _Words(words[order[n_left:]], float(least[left].sum()), float(most[left].sum()))

    def _near_rows(self, asked: Asked) -> Iterator[tuple[ClusterRows, QueryRows, float]]:
        """Clusters, with the queries and the weight of a product."""
        yield self.clusters, asked.rows, self._of_rows
        if self.embedded is not None:
            yield self.embedded, asked.embedded, self.recipe.weight(EMBEDDING)

    def _near(
        self,
        clusters: ClusterRows,
        rows: QueryRows,
        q: int,
        weight: np.float32,
        breadth: Breadth,
        sums: NDArray[np.float32],
        mask: NDArray[np.bool_],
        share: float,
    ) -> NDArray[np.int32]:
        """The titles of the rows with the highest sums in the nearest clusters."""
        probed = min(int(breadth.probed / share), len(clusters.centres))
        nearest = clusters.nearest(rows.single[q], probed)
        size = int((clusters.offsets[nearest + 1] - clusters.offsets[nearest]).sum())
        values, met = np.empty(size, np.float32), np.empty(size, np.int32)
        codes = clusters.offsets, clusters.titles, clusters.rows.codes, clusters.rows.scales
        query = rows.integers[q], np.float32(rows.steps[q]), weight
        meet_clusters(values, met, nearest, *codes, *query, sums, self._constants, mask)
        best = _highest(values, breadth.retained)
        return met[best[values[best] != -np.inf]] if mask.size else met[best]


def _highest(values: NDArray[np.float32], k: int) -> NDArray[np.intp]:
    """The places of the ``k`` highest values, rising, and of all that equal the last of these.

    What is not a number is among them, so that its exact score tells that a file is damaged; with
    fewer than ``k`` numbers all values are.
    """
    if values.size <= k:
        return np.arange(values.size)
    limit = values[highest(values, k)[-1]]
    return np.flatnonzero(~(values < limit))


def possible(
    parts: Mapping[str, Part],
    recipe: Recipe,
    asked: Asked,
    q: int,
    counts: tuple[int, int],
    titles: NDArray[np.int64],
    values: NDArray[np.floating],
    missing: tuple[float, float] = (0.0, 0.0),
    error: float = 0.0,
) -> NDArray[np.int64]:
    """Those of some titles whose scores can be among the highest for query ``q``.

    ``counts`` are k and the matches of `Shortlist.candidates`. ``values`` are what all parts but
    those of vectors add, within ``error``, but for the least and the most that is ``missing``.
    """
    k = counts[0]
    # Titles without evidence are not found for an unknown query, so they must not count here.
    if titles.size <= k or asked.is_unknown[q]:
        return titles
    memory = bound_of_cosine(parts, recipe)
    if memory is not None:
        # Most are left out by the memory alone, which reads no vectors but its own.
        most, error_of_most = _most(recipe, memory, asked, q, titles, values)
        first = np.argpartition(-most, max(1, k) - 1)[: max(1, k)]
        of_first = _total(parts, recipe, asked, q, titles[first], values[first])
        stays = ~(most < _least(of_first, counts, missing) - error_of_most - 2 * error)
        titles, values = titles[stays], values[stays]
    total = _total(parts, recipe, asked, q, titles, values)
    # What is not a number is not left out: its exact score tells that a file is damaged.
    chosen: NDArray[np.int64] = titles[~(total < _least(total, counts, missing) - 2 * error)]
    return chosen


def _total(
    parts: Mapping[str, Part],
    recipe: Recipe,
    asked: Asked,
    q: int,
    titles: NDArray[np.int64],
    values: NDArray[np.floating],
) -> NDArray[np.float64]:
    """The scores of some titles, to which all parts but those of vectors add ``values``."""
    total = values.astype(np.float64)
    pairs = asked, np.full(titles.size, q), titles, ALONE
    for name in OF_VECTORS:
        if recipe.weight(name):
            total += recipe.weight(name) * parts[name].of_pairs(*pairs)
    return total


def _most(
    recipe: Recipe,
    memory: Memory,
    asked: Asked,
    q: int,
    titles: NDArray[np.int64],
    values: NDArray[np.floating],
) -> tuple[NDArray[np.float64], float]:
    """The most that the scores of some titles can be, and at least its error."""
    cosine, of_memory = recipe.weight(COSINE), recipe.weight(MEMORY)
    nearly, error = memory.memory.nearly(asked.rows, q, titles)
    most = values + of_memory * nearly.astype(np.float64)
    # The cosine of a title with zeros as vector is 0, whatever its other rows are.
    most += cosine * np.maximum(nearly, 0) + LONGEST * abs(recipe.weight(EMBEDDING))
    return most, (cosine + of_memory) * error + cosine * memory.most_below_cosine


def _least(
    total: NDArray[np.float64], counts: tuple[int, int], missing: tuple[float, float]
) -> float:
    """The least of some totals with which a title can be chosen; see `possible`."""
    k, matches = counts
    falling = missing[0] - np.sort(-total)
    limit = float(falling[k - 1]) if k else np.inf
    if matches:
        last = falling[matches - 1] if matches <= falling.size else -np.inf
        limit = min(limit, max(least_of_matches(falling[0]), last))
    return limit - missing[1] - 2 * _ERROR * max(1.0, float(np.abs(total).max()))


def _rows(parts: Mapping[str, Part], recipe: Recipe) -> tuple[Int8Rows, NDArray[np.int32]]:
    """The rows of a catalogue that queries are multiplied with, and their titles."""
    memory, cosine = parts.get(MEMORY), parts[COSINE]
    if recipe.weight(MEMORY):
        assert isinstance(memory, Memory)
        lengths = np.diff(memory.memory.offsets)
        return memory.memory.rows, np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
    return _rows_of(cosine)


def _rows_of(part: Part) -> tuple[Int8Rows, NDArray[np.int32]]:
    """The rows of vectors that are not zero, and their titles."""
    assert isinstance(part, Cosine)
    rows = part.rows if isinstance(part.rows, Int8Rows) else _coded(part.rows)
    there = np.flatnonzero(rows.scales > 0)
    return rows.rows(there), there.astype(np.int32)


def _coded(vectors: np.ndarray) -> Int8Rows:
    """Vectors as 8-bit integers, some at a time: they may be mapped, and the others not fit."""
    rows = Int8Rows(np.empty(vectors.shape, np.int8), np.empty(len(vectors), np.float32))
    for low in range(0, len(vectors), _PORTION):
        portion = slice(low, low + _PORTION)
        coded = Int8Rows.of(vectors[portion].astype(np.float32))
        rows.codes[portion], rows.scales[portion] = coded.codes, coded.scales
    return rows


def _lists(parts: Mapping[str, Part], recipe: Recipe) -> Lists | None:
    """The lists of words of which the shortlist weighs the entries; None without BM25.

    Those of BM25 have all entries of the clicked queries alone.
    """
    for name in (BM25, CLICKED_BM25):
        part = parts.get(name)
        if recipe.weight(name):
            assert isinstance(part, Bm25)
            return part.lists
    return None


def entries_of(parts: Mapping[str, Part], recipe: Recipe) -> int:
    """How many entries of lists a shortlist weighs."""
    lists = _lists(parts, recipe)
    return 0 if lists is None else lists.titles.size


def _net(parts: Mapping[str, Part], recipe: Recipe) -> NDArray[np.float32]:
    """The addition of each entry of `_lists` to a score."""
    lists = _lists(parts, recipe)
    if lists is None:
        return _NONE
    weight, of_clicked = recipe.weight(BM25), recipe.weight(CLICKED_BM25)
    if not weight:
        return np.float32(of_clicked) * lists.weights
    net = np.float32(weight) * lists.weights
    if of_clicked:
        clicked = parts[CLICKED_BM25]
        assert isinstance(clicked, Bm25)
        few = clicked.lists
        numbers = lists.numbers_of(few.words)
        entries = lists.offsets, lists.titles, numbers, few.offsets, few.titles, few.weights
        add_entries(net, np.float32(of_clicked), *entries)
    return net
