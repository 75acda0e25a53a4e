"""What a ranker is tuned on: a judged set, or held-out clicks for which a catalogue is ranked.

A *target* measures BM25 alone for many parameters, and then sums of the parts with many weights,
from scores that it keeps. Where a catalogue is ranked it keeps only the scores of candidates, so
memory does not grow with the number of titles; the figures of single parts, and of the sum that is
chosen, are those of the whole catalogue.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.inverted_index import InvertedIndex, Lists
from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.evaluation.metrics import JudgedScores
from sentemb.kernels.top_k import top_k
from sentemb.ranking.parts import TitleParts, weighted_sum
from sentemb.ranking.recipe import Recipe
from sentemb.system.parallel import Workers

# Figures by name.
Figures: TypeAlias = dict[str, float]

_CUTOFFS = (1, 3, 10)
# Titles of which each part ranks highest that are candidates, per query.
_CANDIDATES = 100
_DEPTH = 10
# With more held-out queries than this, a sample is taken.
MAX_QUERIES = 2000
# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x72616E6B


class Target(Protocol):
    """A dev set, prepared for many rankings."""

    @property
    def titles(self) -> list[str]:
        """The catalogue."""
        ...

    @property
    def n_queries(self) -> int:
        """How many queries the figures are means over, or nearly so."""
        ...

    def words(self, lists: InvertedIndex) -> Lists:
        """The words of the queries, the same with all parameters of ``lists``."""
        ...

    def of_lists(self, lists: InvertedIndex, words: Lists) -> Figures:
        """The figures of BM25 alone over `titles`, with what `words` returned."""
        ...

    def prepare(self, parts: TitleParts, names: Sequence[str]) -> dict[str, Figures]:
        """Keep the scores of some parts over `titles`, and return the figures of each alone."""
        ...

    def of_sum(self, recipe: Recipe) -> Figures:
        """The figures of a sum of the prepared parts, to choose weights by."""
        ...

    def exactly(self, recipe: Recipe) -> Figures:
        """The figures of a sum of the prepared parts over all titles."""
        ...


class JudgedTarget:
    """A judged set: NDCG over the judged titles of each query, MRR@10 over all titles of the set.

    A ranker that is good at the judged titles alone may rank others above them, and a search ranks
    all. For MRR@10 the titles with the best grade of a query are right.

    Parameters
    ----------
    judged : JudgedSet
        At least one grade is above 0.
    workers : Workers
        Threads; no figure depends on their number.
    seed : int
        As for `ClicksTarget`.
    """

    def __init__(self, judged: JudgedSet, workers: Workers, seed: int = 0) -> None:
        self.titles, self.n_queries = judged.titles, len(judged.queries)
        self._judged, self._workers = judged, workers
        self._all = ClicksTarget(best_graded(judged), judged.titles, workers, seed)
        # Queries of the same words have the same best titles. Clicks have no tabs and the like.
        place_of = {" ".join(query.split()): place for place, query in enumerate(judged.queries)}
        of_all = [place_of[" ".join(query.split())] for query in self._all.queries]
        self._of_all = np.array(of_all, np.int64)
        self._scores = JudgedScores(judged, _CUTOFFS)
        query_index = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
        self._pairs = query_index, judged.title_index
        self._kept: dict[str, NDArray[np.float64]] = {}

    def words(self, lists: InvertedIndex) -> Lists:
        """See `Target`."""
        return lists.look_up(self._judged.queries)

    def of_lists(self, lists: InvertedIndex, words: Lists) -> Figures:
        """See `Target`."""
        depth = min(_DEPTH, len(self.titles))
        pairs = self._judged.offsets, self._judged.title_index
        # Division by the highest score of a query does not change its order.
        places, highest, scores = lists.find_and_score(words, pairs, depth, self._workers)
        own = self._of_all
        return self._of(scores, self._all.of_places(places[own], highest[own]))

    def prepare(self, parts: TitleParts, names: Sequence[str]) -> dict[str, Figures]:
        """See `Target`."""
        self._kept = parts.of_pairs(self._judged.queries, *self._pairs, names)
        over_all = self._all.prepare(parts, names)
        return {name: self._of(self._kept[name], over_all[name]) for name in names}

    def of_sum(self, recipe: Recipe) -> Figures:
        """See `Target`."""
        return self._of_recipe(recipe, self._all.of_sum(recipe))

    def exactly(self, recipe: Recipe) -> Figures:
        """See `Target`."""
        return self._of_recipe(recipe, self._all.exactly(recipe))

    def _of_recipe(self, recipe: Recipe, over_all: Figures) -> Figures:
        return self._of(np.asarray(weighted_sum(recipe, self._kept), np.float64), over_all)

    def _of(self, scores: NDArray[np.float64], over_all: Figures) -> Figures:
        mean = self._scores.mean(scores).tolist()
        return {f"ndcg@{k}": value for k, value in zip(_CUTOFFS, mean, strict=True)} | over_all


class ClicksTarget:
    """Held-out clicks, measured by MRR@10 and hit@1 over a whole catalogue.

    Parameters
    ----------
    clicks : ClickLog
        The held-out clicks.
    titles : list of str
        The catalogue, with the titles of ``clicks``. Equal scores rank in this order: that of
        `sentemb.evaluation.catalogue.in_tie_order` is that of an evaluation.
    workers : Workers
        Threads; no figure depends on their number.
    seed : int
        Draws `MAX_QUERIES` queries if there are more.

    Attributes
    ----------
    n_queries, n_all : int
        Queries that are measured, and those of ``clicks``.
    queries : list of str
        Those that are measured.
    """

    def __init__(
        self, clicks: ClickLog, titles: list[str], workers: Workers, seed: int = 0
    ) -> None:
        self.titles, self._workers = titles, workers
        self.n_all = len(clicks.queries)
        drawn = np.arange(self.n_all)
        if self.n_all > MAX_QUERIES:
            generator = np.random.default_rng([seed, _KEY])
            drawn = np.sort(generator.choice(self.n_all, MAX_QUERIES, replace=False))
        self.n_queries = drawn.size
        self.queries = [clicks.queries[q] for q in drawn.tolist()]
        places_of: dict[str, list[int]] = {}
        for place, title in enumerate(titles):
            places_of.setdefault(title.strip(), []).append(place)
        offsets, clicked = clicks.titles_of_queries()
        self._relevant = []
        for q in drawn.tolist():
            own = [places_of[clicks.titles[t]] for t in clicked[offsets[q] : offsets[q + 1]]]
            self._relevant.append(np.sort(np.concatenate(own)))
        # One number for query and relevant title, ascending.
        sizes = [own.size for own in self._relevant]
        of_query = np.repeat(np.arange(self.n_queries), sizes)
        self._relevant_keys = of_query * len(titles) + np.concatenate(self._relevant)
        self._parts: TitleParts | None = None
        self._kept: dict[str, NDArray[np.float32]] = {}
        self._limits: dict[str, NDArray[np.float32]] = {}
        self._is_relevant = np.empty((0, 0), bool)

    def words(self, lists: InvertedIndex) -> Lists:
        """See `Target`."""
        return lists.look_up(self.queries)

    def of_lists(self, lists: InvertedIndex, words: Lists) -> Figures:
        """See `Target`."""
        return self.of_places(*lists.find_words(words, _DEPTH, self._workers))

    def of_places(self, places: NDArray[np.int64], scores: NDArray[np.float64]) -> Figures:
        """The figures of the best titles of each query, as `sentemb.protocols.Retriever` has them.

        Parameters
        ----------
        places, scores : (n_queries, k) int64, (n_queries, k) float64
            k is 10, or the number of titles if there are fewer.
        """
        keys = np.arange(self.n_queries)[:, None] * len(self.titles) + places
        hits = np.isin(keys, self._relevant_keys) & np.isfinite(scores)
        ranks = np.where(hits.any(axis=1), np.argmax(hits, axis=1) + 1, _DEPTH + 1)
        return _of_ranks(ranks)

    def prepare(self, parts: TitleParts, names: Sequence[str]) -> dict[str, Figures]:
        """See `Target`."""
        self._parts = parts
        ranks = {name: np.empty(self.n_queries, np.int64) for name in names}
        candidates: list[NDArray[np.int64]] = []
        values: dict[str, list[NDArray[np.float32]]] = {name: [] for name in names}
        self._limits = {name: np.empty(self.n_queries, np.float32) for name in names}
        depth = min(_CANDIDATES, len(self.titles))
        for some, scores in parts.of_all(self.queries, names):
            is_relevant = self._relevant_among_all(self._relevant[some])
            best = np.empty((len(names), len(is_relevant), depth), np.int64)
            for name, highest in zip(names, best, strict=True):
                ranks[name][some] = _ranks(scores[name], is_relevant)
                self._workers.over(len(highest), top_k, highest, scores[name])
                last = np.take_along_axis(scores[name], highest[:, -1:], axis=1)[:, 0]
                # No title is left if all are candidates.
                self._limits[name][some] = last if depth < len(self.titles) else -np.inf
            for row, own in enumerate(self._relevant[some]):
                places = np.unique(np.concatenate([own, best[:, row].ravel()]))
                candidates.append(places)
                for name in names:
                    values[name].append(scores[name][row, places])
        self._keep(candidates, values)
        return {name: _of_ranks(ranks[name]) for name in names}

    def _keep(
        self, candidates: list[NDArray[np.int64]], values: dict[str, list[NDArray[np.float32]]]
    ) -> None:
        """Keep the scores of candidates as rows of equal length."""
        shape = len(candidates), max(map(len, candidates))
        self._is_relevant = np.zeros(shape, bool)
        self._kept = {name: np.full(shape, -np.inf, np.float32) for name in values}
        for row, places in enumerate(candidates):
            self._is_relevant[row, : places.size] = np.isin(places, self._relevant[row])
            for name, own in values.items():
                self._kept[name][row, : places.size] = own[row]

    def of_sum(self, recipe: Recipe) -> Figures:
        """See `Target`. Titles that are not candidates count as lower than the clicked one."""
        return _of_ranks(_ranks(weighted_sum(recipe, self._kept), self._is_relevant))

    def exactly(self, recipe: Recipe) -> Figures:
        """See `Target`."""
        assert self._parts is not None  # `prepare` comes first
        sums = weighted_sum(recipe, self._kept)
        ranks = _ranks(sums, self._is_relevant)
        # Other titles than the candidates are in each part at most as high as the last one of that
        # part, so their sums are at most this. If the clicked title is higher, its rank is exact.
        limits = weighted_sum(recipe, self._limits)
        own = np.max(sums, axis=1, where=self._is_relevant, initial=-np.inf)
        unsure = np.flatnonzero((ranks <= _DEPTH) & (own <= limits))
        queries = [self.queries[q] for q in unsure.tolist()]
        for some, scores in self._parts.of_all(queries, recipe.parts):
            is_relevant = self._relevant_among_all([self._relevant[q] for q in unsure[some]])
            ranks[unsure[some]] = _ranks(weighted_sum(recipe, scores), is_relevant)
        return _of_ranks(ranks)

    def _relevant_among_all(self, relevant: list[NDArray[np.int64]]) -> NDArray[np.bool_]:
        """Which titles are ``relevant``, a list of places for each row: (m, n_titles)."""
        found = np.zeros((len(relevant), len(self.titles)), bool)
        for row, own in enumerate(relevant):
            found[row, own] = True
        return found


def _ranks(scores: NDArray[np.floating], is_relevant: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The rank of the best relevant title of each row, from 1, equal scores by column.

    Parameters
    ----------
    scores, is_relevant : (m, n)
        At least one title of each row is relevant.
    """
    best = np.argmax(np.where(is_relevant, scores, -np.inf), axis=1)[:, None]
    own = np.take_along_axis(scores, best, axis=1)
    before = (scores == own) & (np.arange(scores.shape[1]) < best)
    return np.asarray(1 + np.count_nonzero((scores > own) | before, axis=1), np.int64)


def _of_ranks(ranks: NDArray[np.int64]) -> Figures:
    reciprocal = np.where(ranks <= _DEPTH, 1 / ranks, 0.0)
    return {"mrr@10": float(reciprocal.mean()), "hit@1": float((ranks == 1).mean())}
