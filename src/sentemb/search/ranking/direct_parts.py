"""The parts that look a query up as it is written: its clicks, its searches, titles with its words.

All are exact for the queries that a model may get wrong: those that were typed before, and names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.retrieval.postings import Postings
from sentemb.search.ranking.part import UNIT, Asked, Bound, Material, check, check_offsets
from sentemb.search.ranking.recipe import CLICKS, EXAMINED, NAME
from sentemb.system.contracts import Arrays, Runner
from sentemb.system.paths import AnyPath
from sentemb.text.batch import tokenize
from sentemb.text.hashes import hashes_of
from sentemb.text.words import folded_words

# Clicks by which a title gains ln 2, and examinations by which it loses as much.
KAPPA = 2.0
EXAMINATIONS = 6.0


@dataclass(frozen=True, eq=False)
class Clicks:
    """The clicks for exactly this query: ln(1 + c / `KAPPA`), by `sentemb.text.words.exact_key`.

    ``queries`` has the keys of all queries of the log, also of those without clicks on these
    titles: whether a query has clicks does not depend on the titles that are scored. Of an index
    with several segments one has them all, and another those with clicks on its own titles.
    ``clicks`` (n_entries,) are those of its entries, and ``totals`` (n_keys,) those of each query
    on whatever title.
    """

    queries: Postings
    clicks: NDArray[np.int64]
    totals: NDArray[np.int64]
    name: ClassVar[str] = CLICKS
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = True

    @classmethod
    def build(cls, material: Material) -> Self:
        clicks, (keys, key_of) = material.clicks, material.queries.distinct_keys
        title_of = np.repeat(np.arange(len(material.titles)), np.diff(clicks.offsets))
        n = len(material.titles)
        postings, entry = Postings.of_numbers(keys, key_of[clicks.queries], title_of, n)
        counts = np.bincount(entry, clicks.clicks, postings.titles.size)
        totals = np.bincount(key_of, clicks.totals, keys.size)
        return cls(postings, counts.astype(np.int64), totals.astype(np.int64))

    def knows(self, asked: Asked) -> NDArray[np.bool_]:
        """Which queries the log has clicks for, on whatever title; (m,)."""
        return asked.numbers_in(self.queries) >= 0

    def mark_typed(self, asked: Asked) -> None:
        """Let names not add their scores for the queries that the log has clicks for."""
        asked.is_typed |= asked.numbers_in(self.queries) >= 0

    def with_totals_of(self, every: Clicks) -> Self:
        """These with the totals of ``every``, which has all queries of the log."""
        return replace(self, totals=every.totals[every.queries.numbers(self.queries.keys)])

    def of_query(self, asked: Asked, q: int) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The titles that were clicked for query ``q``, ascending, and their clicks."""
        entries = self.queries.entries(int(asked.numbers_in(self.queries)[q]))
        return self.queries.titles[entries], self.clicks[entries]

    def scores_of(self, asked: Asked, q: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The titles that were clicked for query ``q``, ascending, and their scores."""
        titles, clicks = self.of_query(asked, q)
        return titles, np.log1p(clicks / KAPPA)

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        return _add_of_queries(total, weight, [self.scores_of(asked, q) for q in range(len(asked))])

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        return np.log1p(self.counts(asked, query_index, title_index) / KAPPA)

    def counts(
        self, asked: Asked, query_index: NDArray[np.int64], title_index: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The clicks of pairs, (k,)."""
        counts = np.zeros(query_index.size, np.int64)
        for q in (asked.numbers_in(self.queries) >= 0).nonzero()[0].tolist():
            _fill(counts, query_index == q, title_index, *self.of_query(asked, q))
        return counts

    def majorities(
        self, asked: Asked, query_index: NDArray[np.int64], title_index: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """How far most clicks of a query are on a title, (k,): 2 c / C - 1 of C clicks, from 0."""
        numbers, totals = asked.numbers_in(self.queries), np.ones(len(asked), np.int64)
        is_known = numbers >= 0
        totals[is_known] = self.totals[numbers[is_known]]
        clicks = self.counts(asked, query_index, title_index)
        return np.asarray(np.maximum(2 * clicks / totals[query_index] - 1, 0.0))

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        queries, stays = self.queries.without(is_kept)
        return type(self)(queries, self.clicks[stays], self.totals)

    def joined(self, behind: Clicks, scratch: AnyPath | None = None) -> Self:
        queries, order = self.queries.joined(behind.queries)
        totals = np.zeros(queries.keys.size, np.int64)
        for part in (self, behind):  # of one log, so equal where both have a query
            totals[queries.numbers(part.queries.keys)] = part.totals
        return type(self)(queries, np.concatenate([self.clicks, behind.clicks])[order], totals)

    def arrays(self) -> Arrays:
        return {**_arrays(self.queries), "clicks": self.clicks, "totals": self.totals}

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        queries, clicks = _postings(arrays, n_titles), arrays["clicks"]
        check("clicks", clicks.shape == queries.titles.shape and clicks.dtype == np.int64)
        check("clicks", not clicks.size or int(clicks.min()) > 0, "a count is not above 0")
        totals = arrays["totals"]
        check("totals", totals.shape == queries.keys.shape and totals.dtype == np.int64)
        check("totals", not totals.size or int(totals.min()) > 0, "a count is not above 0")
        return cls(queries, clicks, totals)


@dataclass(frozen=True, eq=False)
class Examined:
    """How often a title was looked at for exactly this query, n: -ln(1 + n / `EXAMINATIONS`).

    Together with `Clicks`, with the same weight, it is the logarithm of clicks over examinations:
    ln((c + a p) / (n + a)) - ln p with a = `EXAMINATIONS` and p = `KAPPA` / a.
    """

    queries: Postings
    times: NDArray[np.float32]
    name: ClassVar[str] = EXAMINED
    is_evidence: ClassVar[bool] = False
    needs_clicks: ClassVar[bool] = True

    @classmethod
    def build(cls, material: Material) -> Self:
        keys, titles, times = material.clicks.examined
        postings, entry = Postings.of(keys, titles, len(material.titles))
        summed = np.bincount(entry, times, postings.titles.size)
        return cls(postings, summed.astype(np.float32))

    def of_query(self, asked: Asked, q: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The titles that were looked at for query ``q``, ascending, and how often."""
        entries = self.queries.entries(int(asked.numbers_in(self.queries)[q]))
        return self.queries.titles[entries], self.times[entries]

    def scores_of(self, asked: Asked, q: int) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """The titles that were looked at for query ``q``, ascending, and their scores."""
        titles, times = self.of_query(asked, q)
        return titles, -np.log1p(times.astype(np.float64) / EXAMINATIONS)

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        return _add_of_queries(total, weight, [self.scores_of(asked, q) for q in range(len(asked))])

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        return -np.log1p(self.of(asked, query_index, title_index) / EXAMINATIONS)

    def of(
        self, asked: Asked, query_index: NDArray[np.int64], title_index: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """How often the titles of pairs were looked at, (k,)."""
        times = np.zeros(query_index.size)
        for q in (asked.numbers_in(self.queries) >= 0).nonzero()[0].tolist():
            _fill(times, query_index == q, title_index, *self.of_query(asked, q))
        return times

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        queries, stays = self.queries.without(is_kept)
        return type(self)(queries, self.times[stays])

    def joined(self, behind: Examined, scratch: AnyPath | None = None) -> Self:
        queries, order = self.queries.joined(behind.queries)
        return type(self)(queries, np.concatenate([self.times, behind.times])[order])

    def arrays(self) -> Arrays:
        return {**_arrays(self.queries), "times": self.times}

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        queries, times = _postings(arrays, n_titles), arrays["times"]
        check("times", times.shape == queries.titles.shape and times.dtype == np.float32)
        check("times", bool(((times > 0) & np.isfinite(times)).all()), "one is not above 0")
        return cls(queries, times)


@dataclass(frozen=True, eq=False)
class Name:
    """Whether a title has all words of a query: 1 or 0.

    ``words`` are the folded words of the titles themselves and of their searched fields. What it
    counts for queries with clicks, the engine says.
    """

    words: Postings
    name: ClassVar[str] = NAME
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = False

    @classmethod
    def build(cls, material: Material) -> Self:
        texts = zip(material.titles, *(field.texts for field in material.searched), strict=True)
        folded = tokenize(map(" ".join, texts), folded_words)
        return cls(Postings.of_tokens(hashes_of(folded.words), folded))

    def titles(self, asked: Asked, q: int) -> NDArray[np.int32]:
        """The titles with all words of query ``q``, ascending, whether it has clicks or not."""
        return asked.titles_in(self.words, q)

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        for q in np.flatnonzero(~asked.is_typed).tolist():
            total[q, self.titles(asked, q)] += np.float32(weight)
        return Bound(UNIT * abs(weight), abs(weight), 1)

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        values = np.zeros(query_index.size)
        for q in range(len(asked)):
            titles = asked.titles_in(self.words, q)
            if titles.size:
                _fill(values, query_index == q, title_index, titles, None)
        return values

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        return type(self)(self.words.without(is_kept)[0])

    def joined(self, behind: Name, scratch: AnyPath | None = None) -> Self:
        return type(self)(self.words.joined(behind.words)[0])

    def arrays(self) -> Arrays:
        return _arrays(self.words)

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        return cls(_postings(arrays, n_titles))


def _add_of_queries(
    total: NDArray[np.float32],
    weight: float,
    of_queries: Sequence[tuple[NDArray[np.int32], NDArray[np.float64]]],
) -> Bound:
    """Add ``weight`` times the scores of some titles of each query; see `Part.add`."""
    reach = np.zeros(len(of_queries))
    for q, (titles, scores) in enumerate(of_queries):
        if titles.size:
            added = weight * scores
            total[q, titles] += added.astype(np.float32)
            reach[q] = np.abs(added).max()
    return Bound(2 * UNIT * reach, reach, 1)


def _fill(
    values: np.ndarray,
    is_of_query: NDArray[np.bool_],
    title_index: NDArray[np.int64],
    titles: NDArray[np.int32],
    of_titles: np.ndarray | None,
) -> None:
    """Write the values of ``titles``, ascending, or 1, to the pairs of one query with these."""
    if titles.size:
        (pairs,) = is_of_query.nonzero()
        asked = title_index[pairs]
        at = np.minimum(titles.searchsorted(asked), titles.size - 1)
        is_there = titles[at] == asked
        values[pairs[is_there]] = 1 if of_titles is None else of_titles[at[is_there]]


def _arrays(postings: Postings) -> dict[str, np.ndarray]:
    return {"keys": postings.keys, "offsets": postings.offsets, "titles": postings.titles}


def _postings(arrays: Arrays, n_titles: int) -> Postings:
    keys, offsets, titles = (arrays[name] for name in ("keys", "offsets", "titles"))
    check("keys", keys.ndim == 1 and keys.dtype == np.int64)
    check("keys", bool((keys[1:] > keys[:-1]).all()), "they do not rise")
    check("titles", titles.ndim == 1 and titles.dtype == np.int32)
    check("offsets", offsets.dtype == np.int64)
    check_offsets(offsets, keys.size, titles.size)
    if titles.size:
        is_there = 0 <= int(titles.min()) <= int(titles.max()) < n_titles
        check("titles", is_there, "it names a title that does not exist")
        rises = titles[1:] > titles[:-1]
        first = offsets[1:-1]
        rises[first[(first > 0) & (first < titles.size)] - 1] = True
        check("titles", bool(rises.all()), "a key has a title twice")
    return Postings(keys, offsets, titles, n_titles)
