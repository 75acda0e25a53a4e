"""The best titles of a catalogue for many queries, with exact scores.

All titles are scored in float32, part by part, with a proven bound on the error. Titles that can be
among the best are scored again as pairs, in float64 in a fixed order. Only these scores are
compared and returned: they have the same bits for one query, for many, and for a pair alone,
whatever the number of threads. Vectors are read last: where words and clicks already tell that all
but few titles are not among the best, as in MaxScore (Turtle and Flood, Information Processing &
Management 31, 1995), only the vectors of those few are read. With a `Shortlist` most titles are
never looked at; the scores of those that are found are the same.

A ranking that counts the clicks of the very query keeps two rules for queries of the log, so that a
click never lowers its title. A name counts as far as most clicks are on the title, because clicks
say more: 2 c / C - 1 for c of C clicks, and nothing without a majority. And BM25 of clicked
queries, whose weight is mostly negative, does not count against a title that was clicked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.dense import titles_from
from sentemb.kernels.top_k import top_k
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.ranking.direct_parts import Clicks, Examined, Name
from sentemb.search.ranking.part import UNIT, Asked, Part
from sentemb.search.ranking.parts import Bm25, Cosine, Embedded, Memory, bound_of_cosine
from sentemb.search.ranking.recipe import (
    CLICKED_BM25,
    CLICKS,
    COSINE,
    EXAMINED,
    MEMORY,
    NAME,
    OF_VECTORS,
    Recipe,
)
from sentemb.search.ranking.shortlist import Named, Shortlist, possible
from sentemb.system.contracts import Runner
from sentemb.system.parallel import ALONE, Workers

# float32 scores in memory at a time: 128 MB of them.
_CELLS = 32_000_000
_QUERIES = 128
# As many where nothing but lists is added, which is as fast for one query at a time.
_CELLS_OF_LISTS = 4_000_000
# From this many titles on, lists are added first: the best of fewer have scores that vectors alone
# could reach. They settle a query if they leave at most one title in 8: others are sooner scored
# together.
_MANY_TITLES, _SHARE_LEFT = 50_000, 8
# Each title is scored where a mask leaves one fiftieth of them, or at most this number.
_SHARE_OF_FEW, _FEW_TITLES = 50, 64
# Pairs of `_Request.rank_all` at a time; how many are not worth another thread, and how many where
# nothing but lists is looked up.
_PAIRS, _FEW_PAIRS, _FEW_OF_LISTS = 1_000_000, 2000, 20_000
# The most titles for which parts bound others: with more, too many are scored again.
_MOST_BOUNDED = 500
# Places for candidates in addition to twice the titles that are asked for.
_ROOM = 64


class Ranked(NamedTuple):
    """The best titles of some queries, best first, equal scores in the order of the titles.

    titles, scores : (m, k), -1 and -inf where fewer titles are found
    values : the scores of each part of the recipe, (m, k); 0 where no title is
    """

    titles: NDArray[np.int64]
    scores: NDArray[np.float64]
    values: dict[str, NDArray[np.float64]]


def of_pairs(
    parts: Mapping[str, Part],
    recipe: Recipe,
    asked: Asked,
    query_index: NDArray[np.int64],
    title_index: NDArray[np.int64],
    workers: Runner,
) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
    """The scores of pairs, and what each part of the recipe scores, (k,) float64 each."""
    pairs, values = (asked, query_index, title_index), {}
    for name in recipe.terms:
        values[name] = parts[name].of_pairs(*pairs, workers)
    clicks = _clicks(parts, recipe)
    if clicks is not None:
        clicks.mark_typed(asked)
        if NAME in values and asked.is_typed.any():
            majorities = clicks.majorities(*pairs)
            values[NAME] *= np.where(asked.is_typed[query_index], majorities, 1.0)
        if recipe.weight(CLICKED_BM25) < 0:
            values[CLICKED_BM25][values[CLICKS] > 0] = 0
    return weighted_sum(recipe, values), values


def _clicks(parts: Mapping[str, Part], recipe: Recipe) -> Clicks | None:
    """The clicks of the very query, if the recipe counts them."""
    clicks = parts[CLICKS] if CLICKS in recipe.terms else None
    return clicks if isinstance(clicks, Clicks) else None


def are_answered(
    parts: Mapping[str, Part], asked: Asked, mask: NDArray[np.bool_] | None = None
) -> NDArray[np.bool_]:
    """Which queries have clicks on a title that is there, or all words in one; (m,).

    ``mask`` (n_titles,) are the titles that count. Without the parts that know it, none.
    """
    clicks, name = parts.get(CLICKS), parts.get(NAME)
    is_answered = np.zeros(len(asked), np.bool_)
    for q in range(len(asked)):
        lists = [clicks.of_query(asked, q)[0]] if isinstance(clicks, Clicks) else []
        lists += [name.titles(asked, q)] if isinstance(name, Name) else []
        is_answered[q] = any(
            titles.size if mask is None else mask[titles].any() for titles in lists
        )
    return is_answered


def weighted_sum(recipe: Recipe, values: Mapping[str, NDArray[np.float64]]) -> NDArray[np.float64]:
    """The scores of the parts, each times its weight, added in the order of the recipe."""
    # Not a product of matrices, nor a sum in pairs: both would add in another order.
    weights = np.array(list(recipe.terms.values()))
    terms = weights[:, None] * np.array([values[part] for part in recipe.terms])
    total: NDArray[np.float64] = np.add.accumulate(terms)[-1]
    return total


def best(
    parts: Mapping[str, Part],
    recipe: Recipe,
    asked: Asked,
    k: int,
    is_empty: NDArray[np.bool_],
    workers: Workers,
    mask: NDArray[np.bool_] | None = None,
    shortlist: Shortlist | None = None,
    matches: int = 0,
) -> Ranked:
    """The ``k`` titles, from 0, with the highest scores.

    A title with no known words, or any title for a query with no known words, is found only where a
    part finds evidence. ``is_empty`` (n_titles,) are the titles with no known words; ``mask``
    (n_titles,) those that may be found. With a ``shortlist`` by the same recipe some of the best
    may be missed, and less time is needed. No score depends on the number of threads.

    ``matches`` is for what sorts and counts titles: at most this number are found, if they have
    `sentemb.search.ranking.shortlist.LEAST_SHARE` of the highest score.
    """
    m, n = len(asked), is_empty.size
    shown, k = min(k, n), min(max(k, matches), n)
    values = dict(zip(recipe.terms, np.zeros((len(recipe.terms), m, k)), strict=True))
    ranked = Ranked(np.full((m, k), -1), np.full((m, k), -np.inf), values)
    if not m or not k:
        return ranked
    _read(parts, recipe, asked)
    request = _Request(parts, recipe, k, shown, is_empty, workers, mask)
    n_allowed = n if mask is None else int(np.count_nonzero(mask))
    if n_allowed <= max(k, _FEW_TITLES) or n_allowed * _SHARE_OF_FEW <= n:
        request.rank_all(ranked, asked)
    elif shortlist is not None and shortlist.can_rank(recipe, shown, n_allowed / n):
        request.rank_shortlists(ranked, asked, shortlist, n_allowed / n)
    elif recipe.parts == (COSINE,) and recipe.weight(COSINE) > 0:
        request.rank_nearest(ranked, asked)
    else:
        request.rank_exactly(ranked, asked, np.arange(m))
    return ranked


def _read(parts: Mapping[str, Part], recipe: Recipe, asked: Asked) -> None:
    """Embed and split the queries once, before several threads ask for all of them at a time."""
    _ = asked.rows
    for name in recipe.terms:
        part = parts[name]
        if isinstance(part, Embedded):
            _ = asked.embedded
        elif isinstance(part, Bm25):
            asked.words_in(part.lists)


@dataclass(frozen=True)
class _Request:
    """A search in the titles of a catalogue; its fields are the arguments of `best`.

    ``k`` are the titles that are found at most; of these, the best ``shown`` in any case.
    """

    parts: Mapping[str, Part]
    recipe: Recipe
    k: int
    shown: int
    is_empty: NDArray[np.bool_]
    workers: Workers
    mask: NDArray[np.bool_] | None

    def rank_nearest(self, ranked: Ranked, asked: Asked) -> None:
        """The model alone."""
        cosine, allowed = self.parts[COSINE], self.mask
        assert isinstance(cosine, Cosine)
        if self.is_empty.any():
            allowed = ~self.is_empty if allowed is None else allowed & ~self.is_empty
        queries = asked.rows.exact
        titles, cosines = nearest(queries, cosine.rows, self.k, allowed, self.workers)
        titles[~queries.any(axis=1)] = -1
        is_there = titles >= 0
        ranked.titles[:] = titles
        ranked.values[COSINE][is_there] = cosines[is_there]
        ranked.scores[is_there] = self.recipe.weight(COSINE) * cosines[is_there]

    def rank_exactly(self, ranked: Ranked, asked: Asked, numbers: NDArray[np.int64]) -> None:
        """All titles for the queries ``numbers``: in float32, then those that can be the best."""
        if self.k <= _MOST_BOUNDED and self.is_empty.size >= _MANY_TITLES:
            numbers = self._rank_by_lists(ranked, asked, numbers)
        bound = bound_of_cosine(self.parts, self.recipe) if self.k <= _MOST_BOUNDED else None
        for rows, block in self._blocks(asked, numbers, _CELLS):
            of_titles = self.parts, self.recipe, block, self.is_empty, bound, self.workers
            total, errors, excess = _approximate(*of_titles)
            if self.mask is not None:
                total[:, ~self.mask] = -np.inf
            if self._is_of_lists:
                _leave_out_ties(total, self.k)
            limits, n_ranked = self._limits(ranked, rows, total, errors, excess, block)
            pairs = _titles_from(total, limits, self.k, self.workers)
            if pairs[0].size > n_ranked:
                self._rank_pairs(ranked, rows, block, *pairs)

    def _rank_by_lists(
        self, ranked: Ranked, asked: Asked, numbers: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Rank the queries for which all parts but those of vectors leave few titles.

        Returns the numbers of the other queries, and of all that follow where most of the queries
        so far are such.
        """
        weights = dict(self.recipe.terms)
        excess = LONGEST * sum(abs(weights.pop(name, 0.0)) for name in OF_VECTORS)
        if not excess or not weights:
            return numbers
        n = self.is_empty.size
        room, left, n_asked, n_settled = n // _SHARE_LEFT, [], 0, 0
        for rows, block in self._blocks(asked, numbers, _CELLS_OF_LISTS):
            if 2 * n_settled < n_asked:
                left.append(rows)
                continue
            total, errors = _added(self.parts, self.recipe, weights, block, n, self.workers)
            if self.mask is not None:
                total[:, ~self.mask] = -np.inf
            limits, _ = self._limits(ranked, rows, total, errors, excess, block)
            titles, counts = np.empty((len(block), room), np.int32), np.empty(len(block), np.int64)
            self.workers.over(len(block), titles_from, titles, counts, total, limits)
            # Of a query that the model does not know, not every title can be found.
            is_settled = (counts <= room) & block.rows.exact.any(axis=1)
            of_queries = []
            for q, count in enumerate(np.where(is_settled, counts, 0).tolist()):
                of_query = titles[q, :count].astype(np.int64)
                of_queries.append((of_query, total[q, of_query], errors[q]))
            self._rank_pairs(ranked, rows, block, *self._possible(block, of_queries))
            left.append(rows[~is_settled])
            n_asked, n_settled = n_asked + rows.size, n_settled + int(is_settled.sum())
        return np.concatenate(left)

    def _possible(
        self, asked: Asked, of_queries: Sequence[tuple[NDArray[np.int64], np.ndarray, float]]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of a query and a title that can be among the best.

        ``of_queries`` are titles of each query, what all parts but those of vectors add to them,
        and the error of that.
        """
        chosen = [titles for titles, _, _ in of_queries]

        def choose(first: int, end: int) -> None:
            for q in range(first, end):
                titles, values, error = of_queries[q]
                is_known = ~self.is_empty[titles]  # others may not be found, whatever their scores
                of_known = (self.k, 0), titles[is_known], values[is_known], (0.0, 0.0), error
                best_known = possible(self.parts, self.recipe, asked, q, *of_known)
                chosen[q] = np.concatenate([best_known, titles[~is_known]])

        self.workers.over(len(asked), choose)
        return np.repeat(np.arange(len(asked)), list(map(len, chosen))), np.concatenate(chosen)

    def _blocks(
        self, asked: Asked, numbers: NDArray[np.int64], cells: int
    ) -> Iterator[tuple[NDArray[np.int64], Asked]]:
        """The queries ``numbers``, as many at a time as have ``cells`` scores of titles."""
        size = max(1, min(_QUERIES, cells // self.is_empty.size))
        for low in range(0, numbers.size, size):
            rows = numbers[low : low + size]
            yield rows, asked if rows.size == len(asked) else asked.part(rows)

    @property
    def _is_of_lists(self) -> bool:
        """Whether a title without a word, or a click, of the query scores 0, and any other more."""
        names = [name for name in self.recipe.parts if isinstance(self.parts[name], Bm25 | Clicks)]
        return len(names) == len(self.recipe.parts) == 1 and self.recipe.weight(names[0]) > 0

    def _limits(
        self,
        ranked: Ranked,
        rows: NDArray[np.int64],
        total: NDArray[np.float32],
        errors: NDArray[np.float64],
        excess: float,
        asked: Asked,
    ) -> tuple[NDArray[np.float64], int]:
        """The least that the k best titles of each query have in ``total``, (m,).

        With an ``excess`` some titles are ranked to know it, mostly all that have as much. The
        second result is how many of these have.
        """
        m, k = len(asked), self.k
        n_scored = min(total.shape[1], 2 * k + _ROOM) if excess else k
        best = np.empty((m, n_scored), np.int64)
        self.workers.over(m, top_k, best, total)
        scores = np.take_along_axis(total, best, axis=1).astype(np.float64)
        if not excess:
            return scores[:, -1] - 2 * errors, 0
        query_index, rank = (scores > -np.inf).nonzero()
        self._rank_pairs(ranked, rows, asked, query_index, best[query_index, rank])
        limits = ranked.scores[rows, k - 1] - errors - excess
        return limits, int(np.count_nonzero((scores >= limits[:, None]) & (scores > -np.inf)))

    def rank_all(self, ranked: Ranked, asked: Asked) -> None:
        """Every title that may be found, as a pair with each query.

        Of many, those are left out whose memory and other parts tell that they are not the best.
        """
        titles = np.arange(self.is_empty.size) if self.mask is None else np.flatnonzero(self.mask)
        size, m = max(1, _PAIRS // max(1, titles.size)), len(asked)
        are_many = 2 * self.k + _ROOM < titles.size and self.k <= _MOST_BOUNDED
        is_bounded = are_many and bound_of_cosine(self.parts, self.recipe) is not None
        for low in range(0, m, size):
            block = asked if size >= m else asked.part(slice(low, low + size))
            numbers = np.arange(min(size, m - low))
            pairs = numbers.repeat(titles.size), np.concatenate([titles] * numbers.size)
            if is_bounded:
                values = self._without_vectors(block, *pairs).reshape(-1, titles.size)
                pairs = self._possible(block, [(titles, of_query, 0.0) for of_query in values])
            self._rank_pairs(ranked, low + numbers, block, *pairs)

    def _without_vectors(
        self, asked: Asked, query_index: NDArray[np.int64], title_index: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The sums of all parts but those of vectors for pairs, (k,)."""
        weights = {name: of for name, of in self.recipe.terms.items() if name not in OF_VECTORS}
        if not weights:
            return np.zeros(query_index.size)
        runner = self.workers if query_index.size > _FEW_OF_LISTS else ALONE
        pairs = asked, query_index, title_index, runner
        return of_pairs(self.parts, self.recipe.weighted(weights), *pairs)[0]

    def rank_shortlists(
        self, ranked: Ranked, asked: Asked, shortlist: Shortlist, share: float
    ) -> None:
        """The titles of shortlists; ``share`` of all may be found."""
        candidates: list[NDArray[np.int64]] = [np.empty(0, np.int64)] * len(asked)
        clicks = _clicks(self.parts, self.recipe)
        if clicks is not None:
            clicks.mark_typed(asked)
        named = _named(self.parts, self.recipe, asked, clicks)

        matches = self.k if self.k > self.shown else 0

        def find(first: int, end: int) -> None:
            for q in range(first, end):
                of_query = asked, q, self.shown, named[q], self.mask, share, matches
                candidates[q] = shortlist.candidates(*of_query)

        self.workers.over(len(asked), find)
        query_index = np.repeat(np.arange(len(asked)), list(map(len, candidates)))
        rows = np.arange(len(asked))
        self._rank_pairs(ranked, rows, asked, query_index, np.concatenate(candidates))
        # Where fewer titles are found than there may be, all are looked at.
        least = max(1, min(self.shown, int(share * self.is_empty.size)))
        lacks = (ranked.titles[:, least - 1] < 0) & asked.rows.exact.any(axis=1)
        if lacks.any():
            self.rank_exactly(ranked, asked, np.flatnonzero(lacks))

    def _rank_pairs(
        self,
        ranked: Ranked,
        rows: NDArray[np.int64],
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
    ) -> None:
        """The best of some pairs, query by query; ``rows`` are those of all in ``ranked``."""
        runner = self.workers if query_index.size > _FEW_PAIRS else ALONE
        scores, values = of_pairs(self.parts, self.recipe, asked, query_index, title_index, runner)
        has_nothing = self.is_empty[title_index] | asked.is_unknown[query_index]
        if has_nothing.any():
            for name in self.recipe.terms:
                if self.parts[name].is_evidence:
                    has_nothing &= values[name] == 0
        # A score that is not a number comes first, so that the caller sees it.
        falling = -scores
        falling[np.isnan(scores)] = -np.inf
        ends = query_index.searchsorted(np.arange(rows.size), "right").tolist()
        for row, (begin, end) in zip(rows.tolist(), pairwise([0, *ends]), strict=True):
            order = begin + np.lexsort((title_index[begin:end], falling[begin:end]))
            order = order[~has_nothing[order]][: self.k]
            ranked.titles[row, : order.size] = title_index[order]
            ranked.scores[row, : order.size] = scores[order]
            for name, of_part in values.items():
                ranked.values[name][row, : order.size] = of_part[order]


def _named(
    parts: Mapping[str, Part], recipe: Recipe, asked: Asked, clicks: Clicks | None
) -> list[list[Named]]:
    """The titles that the parts name which look a query up, and what is added to their scores."""
    named: list[list[Named]] = [[] for _ in range(len(asked))]
    name = parts[NAME] if recipe.weight(NAME) else None
    if isinstance(name, Name):
        for q in np.flatnonzero(~asked.is_typed).tolist():
            titles = name.titles(asked, q)
            named[q].append(Named(titles, np.full(titles.size, recipe.weight(NAME), np.float32)))
    if clicks is not None:
        query_index, title_index, added = _settled(clicks, parts, recipe, asked, ALONE)
        added += recipe.weight(CLICKS) * clicks.of_pairs(asked, query_index, title_index, ALONE)
        for q in np.unique(query_index).tolist():
            of_query = query_index == q
            titles = title_index[of_query].astype(np.int32)
            named[q].append(Named(titles, added[of_query].astype(np.float32)))
    examined = parts[EXAMINED] if recipe.weight(EXAMINED) else None
    if isinstance(examined, Examined):
        for q in range(len(asked)):
            titles, scores = examined.scores_of(asked, q)
            of_titles = (recipe.weight(EXAMINED) * scores).astype(np.float32)
            named[q].append(Named(titles, of_titles))
    return named


def _approximate(
    parts: Mapping[str, Part],
    recipe: Recipe,
    asked: Asked,
    is_empty: NDArray[np.bool_],
    bound: Memory | None,
    workers: Workers,
) -> tuple[NDArray[np.float32], NDArray[np.float64], float]:
    """The scores of all titles in float32, -inf without evidence, and bounds on their errors.

    No exact score is higher by more than its error, (m,), and the third value, the excess. Without
    ``bound``, the memory in place of the cosine, that is 0; with it an exact score may be much
    lower.
    """
    weights, excess = dict(recipe.terms), 0.0
    if bound is not None:  # so that its vectors are not read
        # At the end: what follows the look at all rows finds nothing in the processor's caches.
        weights[MEMORY] = weights.pop(MEMORY) + weights.pop(COSINE)
        excess = recipe.weight(COSINE) * bound.most_below_cosine

    def leave_out(total: NDArray[np.float32]) -> None:
        if bound is not None and is_empty.any():
            _leave_out_cosine(total, recipe.weight(COSINE), bound, asked, is_empty, workers)
        _leave_out_without_evidence(total, is_empty, asked)

    of_titles = asked, is_empty.size, workers
    total, errors = _added(parts, recipe, weights, *of_titles, leave_out)
    return total, errors, excess


def _added(
    parts: Mapping[str, Part],
    recipe: Recipe,
    weights: Mapping[str, float],
    asked: Asked,
    n: int,
    workers: Workers,
    leave_out: Callable[[NDArray[np.float32]], None] = lambda _: None,
) -> tuple[NDArray[np.float32], NDArray[np.float64]]:
    """The sums of some parts for ``n`` titles in float32, (m, n), and their errors, (m,).

    ``leave_out`` is called once all evidence is added.
    """
    total = np.zeros((len(asked), n), np.float32)
    errors, reach, steps = np.zeros(len(asked)), np.zeros(len(asked)), 0
    clicks = _clicks(parts, recipe)
    if clicks is not None:
        clicks.mark_typed(asked)
        if asked.is_typed.any():
            query_index, title_index, settled = _settled(clicks, parts, recipe, asked, workers)
            total[query_index, title_index] += settled.astype(np.float32)
    for is_evidence in (True, False):
        for name, weight in weights.items():
            if parts[name].is_evidence == is_evidence:
                added = parts[name].add(total, weight, asked, workers)
                errors += added.error
                reach += added.reach
                steps += added.steps
        if is_evidence:
            leave_out(total)
    # Every sum was rounded `steps` times, and of a clicked title three times more, each time by at
    # most this share of `reach`.
    return total, errors + 2 * (steps + 4) * UNIT * reach


def _leave_out_cosine(
    total: NDArray[np.float32],
    weight: float,
    memory: Memory,
    asked: Asked,
    is_empty: NDArray[np.bool_],
    workers: Workers,
) -> None:
    """Take the bound of the cosine away where it is 0: from titles with zeros as vectors."""
    titles = np.flatnonzero(is_empty)
    titles = titles[memory.memory.offsets[titles + 1] > memory.memory.offsets[titles]]
    query_index = np.repeat(np.arange(len(asked)), titles.size)
    values = memory.of_pairs(asked, query_index, np.tile(titles, len(asked)), workers)
    total[:, titles] -= (weight * values).astype(np.float32).reshape(len(asked), titles.size)


def _settled(
    clicks: Clicks, parts: Mapping[str, Part], recipe: Recipe, asked: Asked, workers: Runner
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Clicked titles, as pairs, and what the rules of this module add to their scores."""
    of_queries = [clicks.of_query(asked, q)[0] for q in range(len(asked))]
    title_index = np.concatenate(of_queries).astype(np.int64)
    query_index = np.repeat(np.arange(len(asked)), list(map(len, of_queries)))
    pairs = asked, query_index, title_index
    added = np.zeros(title_index.size)
    if recipe.weight(NAME):
        named = parts[NAME].of_pairs(*pairs, workers)
        added += recipe.weight(NAME) * named * clicks.majorities(*pairs)
    if recipe.weight(CLICKED_BM25) < 0:
        added -= recipe.weight(CLICKED_BM25) * parts[CLICKED_BM25].of_pairs(*pairs, workers)
    return query_index, title_index, added


def _leave_out_without_evidence(
    total: NDArray[np.float32], is_empty: NDArray[np.bool_], asked: Asked
) -> None:
    if is_empty.any():
        columns = np.flatnonzero(is_empty)
        of_empty = total[:, columns]
        total[:, columns] = np.where(of_empty == 0, np.float32(-np.inf), of_empty)
    for q in np.flatnonzero(~asked.rows.exact.any(axis=1)).tolist():
        total[q, total[q] == 0] = -np.inf


def _leave_out_ties(total: NDArray[np.float32], k: int) -> None:
    """Leave out titles that score 0, but for the first ``k``: they come in order of the titles."""
    for row in total:
        row[np.flatnonzero(row == 0)[k:]] = -np.inf


def _titles_from(
    total: NDArray[np.float32], limits: NDArray[np.float64], k: int, workers: Workers
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of a query and a title with a score from the limit of the query on."""
    m, n = total.shape
    room = min(n, 2 * k + _ROOM)
    while True:
        titles, counts = np.empty((m, room), np.int32), np.empty(m, np.int64)
        workers.over(m, titles_from, titles, counts, total, limits)
        if counts.max() <= room:
            break
        room = int(counts.max())  # many titles have nearly equal scores
    query_index = np.repeat(np.arange(m), counts)
    return query_index, titles[np.arange(room) < counts[:, None]].astype(np.int64)
