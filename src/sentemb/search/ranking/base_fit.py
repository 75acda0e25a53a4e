"""The weights of the parts that a model has, for queries that nobody typed before."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.bm25 import K1, B
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.read_queries import ReadQueries
from sentemb.search.ranking import engine
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.part import Asked, Bound, Fields, Material, Part
from sentemb.search.ranking.parts import PART_TYPES, Bm25, Memory
from sentemb.search.ranking.ranker import Catalogue
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    COSINE,
    DIRECT,
    EMBEDDING,
    MEMORY,
    MODEL_ALONE,
    UNCLICKED,
    Recipe,
)
from sentemb.search.ranking.weights import Candidates, Fit, fit_weights, losses_of
from sentemb.system.contracts import Runner
from sentemb.system.parallel import Workers

# The parameters of BM25 that are tried, one after the other.
GRID: dict[str, tuple[float, ...]] = {
    "k1": (0.3, 0.6, 0.9, 1.2, 1.8),
    "b": (0.0, 0.2, 0.4, 0.6, 0.75, 0.9),
}
# Titles of each part, and of the sum, that are candidates.
CANDIDATES = 20
# Titles that are drawn for each query where a part would count against the titles it ranks high.
_DRAWN = 200
# A part of the key of the random numbers, so that no other draw shares them.
KEY = 0x72616E6B
# Clicks are held back where at least this share of the catalogue has none.
_FEW_UNCLICKED, _MOST_HELD_BACK = 0.1, 0.5
# With fewer dev queries than this that have a clicked right title, titles without clicks teach too.
_FEW_TEACHING = 50
_OF_WORDS = [BM25, CLICKED_BM25]
# What speaks for a title may not be fitted to count against it, as few dev queries would have it.
_NOT_NEGATIVE = (COSINE, MEMORY, EMBEDDING, BM25)
# Parameters of BM25 are compared by losses that are this near to the lowest.
_NEARLY = 1e-6
# Scores of the memory that are kept, 192 MB of them, and queries that are scored together.
_CELLS, _TOGETHER = 48_000_000, 128
# Indices of queries and of titles.
_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]


class Base(NamedTuple):
    """A recipe without the parts that look a query up as it is written.

    held_back : the share of titles whose clicks were held back
    spread : by part the largest difference between the scores of two candidates
    """

    recipe: Recipe
    held_back: float
    spread: dict[str, float]


@dataclass(frozen=True, eq=False)
class _DevMemory(Memory):
    """The memory of the log, computed once for all dev queries: the fit ranks them many times."""

    asked: Asked
    n_titles: int
    is_read_for_cosine: ClassVar[bool] = False

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {query: row for row, query in enumerate(self.asked.queries)}

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        rows = [self._row_of.get(query, -1) for query in asked.queries]
        if min(rows) < 0:
            return super().add(total, weight, asked, workers)
        if "scores" not in self.__dict__:
            scores = np.zeros((len(self.asked), self.n_titles), np.float32)
            for low in range(0, len(scores), _TOGETHER):
                which = slice(low, low + _TOGETHER)
                super().add(scores[which], 1.0, self.asked.part(which), workers)
            self.__dict__["scores"] = scores
        scores, factor = self.__dict__["scores"], np.float32(weight)
        for of_query, row in zip(total, rows, strict=True):  # a row fits into the cache
            of_query += factor * scores[row]
        return self.bound(weight, asked)


class BaseFit:
    """The weights and parameters of one ranker.

    ``right`` has the right titles of the dev queries; ``titles`` and ``ids`` are the catalogue;
    ``clicks`` are those of the log, without dev queries; ``embedding`` is one more part.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        right: ClickLog,
        titles: Sequence[str],
        ids: Sequence[str] | None,
        clicks: ClickedQueries,
        seed: int,
        workers: Workers,
        embedding: Embedding | None = None,
    ) -> None:
        self._model, self._right, self._titles, self._workers = model, right, titles, workers
        self._ids = ids
        self._clicks, self._seed = clicks, seed
        # By clicks, then by the language of the stemmer or the name of the part.
        self._materials: dict[tuple[ClickedQueries, str | None], Material] = {}
        self._shared: dict[tuple[ClickedQueries, str], Part] = {}
        self._read = ReadQueries(clicks.queries, self._embed)
        self._vectors = np.asarray(model.unit_vectors(titles, "document"), np.float32)
        self._embedding = embedding
        self._embedded = None if embedding is None else embedding.titles(titles)
        position_of = {title.strip(): position for position, title in enumerate(titles)}
        self._right_places = np.array(
            [position_of.get(title.strip(), -1) for title in right.titles], np.int64
        )[right.title_index]

    def fit(
        self,
        stems: Sequence[str | None],
        progress: Callable[[int, int], None],
        note: Callable[[str], None],
    ) -> Base:
        """The recipe with the lowest loss on the dev queries."""
        has_clicks = np.diff(self._clicks.of_titles(self._titles, self._ids).offsets) > 0
        fitted_clicks, held_back = self._hold_back(has_clicks)
        names = [
            part.name
            for part in PART_TYPES
            if part.name not in DIRECT
            and (has_clicks.any() or not part.needs_clicks)
            and (held_back or part.name != UNCLICKED)
            and (self._embedding is not None or part.name != EMBEDDING)
        ]
        allowed = self._allowed(has_clicks, note)
        total, done = sum(map(len, GRID.values())) + 2, 0

        def step() -> None:
            nonlocal done
            done += 1
            progress(min(done, total), total)

        by_stem = {stem: self.material(fitted_clicks, stem) for stem in stems}
        parts = {stem: self._parts(fitted_clicks, by_stem[stem], names) for stem in stems}
        asked = {stem: self._asked(stem) for stem in stems}

        def best(stem: str | None, reads_words: bool) -> list[_Pairs]:
            return [
                self._best(parts[stem], Recipe({name: 1.0}), asked[stem], allowed)
                for name in names
                if parts[stem][name].is_evidence and (name in _OF_WORDS) == reads_words
            ]

        # A stem is fitted to its candidates alone, so that one that is not chosen, or whose
        # package is missing, changes nothing.
        without_words = best(stems[0], reads_words=False)
        pairs = {stem: without_words + best(stem, reads_words=True) for stem in stems}
        of_all = self._candidates([*chain.from_iterable(pairs.values())], allowed)
        if of_all is None or self._candidates(pairs[stems[0]], allowed) is None:
            return Base(MODEL_ALONE, 0.0, {COSINE: 2.0})
        step()
        features = self._features(parts[stems[0]], names, asked[stems[0]], of_all, _OF_WORDS)
        stem = stems[0]
        if len(stems) > 1:
            stem = self._best_stem(parts, names, features, of_all)
        of_stem = self._candidates(pairs[stem], allowed)
        assert of_stem is not None
        recipe = self._best_parameters(
            by_stem[stem],
            parts[stem],
            names,
            asked[stem],
            of_stem,
            features[self._rows(of_stem, of_all)],
            step,
        )
        material = by_stem[stem].with_recipe(recipe)
        chosen = self._parts(fitted_clicks, material, names)
        # Once more, with the titles that the sum itself ranks high.
        pairs[stem].append(self._best(chosen, recipe, asked[stem], allowed))
        last = self._candidates(pairs[stem], allowed)
        assert last is not None
        features = self._features(chosen, names, asked[stem], last)
        fit = fit_weights(features, last, not_negative=_signs(names))
        if (fit.weights[_signs(names)] == 0).any():
            # The candidates are what each part ranks high, most of it wrong. Where that speaks
            # against the part itself, titles drawn at random show what it is worth.
            pairs[stem].append(self._drawn(allowed))
            last = self._candidates(pairs[stem], allowed)
            assert last is not None
            features = self._features(chosen, names, asked[stem], last)
            fit = fit_weights(features, last, not_negative=_signs(names))
        step()
        # What was made of clicks without those held back takes memory and is not asked for again.
        self._shared = {key: part for key, part in self._shared.items() if key[0] is self._clicks}
        spread = dict(zip(names, np.ptp(features, axis=0).tolist(), strict=True))
        return Base(_weighted(recipe, names, fit), held_back, spread)

    def _best_stem(
        self,
        parts: Mapping[str | None, dict[str, Part]],
        names: Sequence[str],
        features: NDArray[np.float64],
        candidates: Candidates,
    ) -> str | None:
        """The last stem, unless plain words are as good or better by two standard errors.

        Stems rank better on most logs, and few dev queries tell the two apart. The parameters of
        BM25 are the defaults; the candidates are those of all stems.
        """
        losses = []
        not_of_words = [name for name in names if name not in _OF_WORDS]
        for stem, of_stem in parts.items():
            of_words = self._features(of_stem, names, self._asked(stem), candidates, not_of_words)
            both = features + of_words
            fit = fit_weights(both, candidates, None, _NEARLY, _signs(names))
            losses.append(losses_of(both @ fit.weights, candidates))
        behind = losses[-1] - losses[0]
        is_plain = behind.mean() >= 2 * behind.std() / np.sqrt(behind.size)
        return list(parts)[0 if is_plain else -1]

    def _allowed(
        self, has_clicks: NDArray[np.bool_], note: Callable[[str], None]
    ) -> NDArray[np.bool_]:
        """Which titles may be candidates, (n_titles,).

        Titles that never had clicks are left out, because whether they are right says how dev was
        made, unless too few queries would remain.
        """
        every = np.ones(len(self._titles), np.bool_)
        if not has_clicks.any():
            return every
        is_known = self._right_places >= 0
        of_clicked = has_clicks[self._right_places] & is_known
        n_teaching, n_all = (
            np.unique(self._right.query_index[pairs]).size for pairs in (of_clicked, is_known)
        )
        if not n_teaching:
            note("no dev query has a right title with clicks, so dev says nothing about the parts")
        if not n_teaching or n_teaching == n_all or n_teaching >= _FEW_TEACHING:
            return has_clicks
        note(
            f"only {n_teaching:,} of {n_all:,} dev queries have a right title with clicks, so the "
            "ranker is fitted to titles without clicks too"
        )
        return every

    def _hold_back(self, has_clicks: NDArray[np.bool_]) -> tuple[ClickedQueries, float]:
        """Clicks without those of a random share of titles, if a catalogue has many without."""
        share = min(1 - float(has_clicks.mean()), _MOST_HELD_BACK)
        if share < _FEW_UNCLICKED or not has_clicks.any():
            return self._clicks, 0.0
        drawn = np.random.default_rng([self._seed, KEY, 1]).random(len(self._clicks.keys))
        return self._clicks.without_products(drawn < share), share

    def material(self, clicks: ClickedQueries, stem: str | None) -> Material:
        """The material of parts over the catalogue; it is made once."""
        key = clicks, stem
        if key not in self._materials:
            of_titles = clicks.of_titles(self._titles, self._ids)
            read = self._read
            if clicks.queries is not read.texts:
                read = ReadQueries(clicks.queries, self._embed)
            recipe = Recipe({COSINE: 1.0}, stem=stem)
            of_log = of_titles, read, recipe
            self._materials[key] = Material(
                self._titles, self._vectors, *of_log, embedded=self._embedded
            )
        return self._materials[key]

    def catalogue(self, recipe: Recipe, fields: Fields, also: Collection[str] = ()) -> Catalogue:
        """The titles with all clicks, none of them held back, and the parts of ``also`` as well."""
        material = self.material(self._clicks, recipe.stem).with_recipe(recipe, fields)
        parts = self._parts(self._clicks, material, [*recipe.parts, *also])
        return Catalogue(list(self._titles), parts, material.is_empty)

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.unit_vectors(texts, "query")

    def _asked(self, stem: str | None) -> Asked:
        recipe = Recipe({COSINE: 1.0}, stem=stem)
        embed_too = None if self._embedding is None else self._embedding.queries
        return Asked(self._right.queries, self._embed, recipe, embed_too)

    def _parts(
        self, clicks: ClickedQueries, material: Material, names: Sequence[str]
    ) -> dict[str, Part]:
        """Parts over the titles; those that read no words are made once."""
        parts = {}
        for part in PART_TYPES:
            if part.name in _OF_WORDS and part.name in names:
                parts[part.name] = part.build(material)
            elif part.name in names:
                if (clicks, part.name) not in self._shared:
                    self._shared[clicks, part.name] = self._for_dev(part.build(material))
                parts[part.name] = self._shared[clicks, part.name]
        return parts

    def _for_dev(self, part: Part) -> Part:
        n = len(self._titles)
        if isinstance(part, Memory) and len(self._right.queries) * n <= _CELLS:
            return _DevMemory(part.memory, self._asked(None), n)
        return part

    def _best(
        self,
        parts: dict[str, Part],
        recipe: Recipe,
        asked: Asked,
        allowed: NDArray[np.bool_],
    ) -> _Pairs:
        is_empty = np.logical_not(self._vectors.any(axis=1))
        ranked = engine.best(parts, recipe, asked, CANDIDATES, is_empty, self._workers, allowed)
        query_index = np.repeat(np.arange(len(asked)), ranked.titles.shape[1])
        is_there = ranked.titles.ravel() >= 0
        return query_index[is_there], ranked.titles.ravel()[is_there]

    def _drawn(self, allowed: NDArray[np.bool_]) -> _Pairs:
        """Titles drawn at random for each query."""
        n_queries, draw = len(self._right.queries), np.random.default_rng([self._seed, KEY, 2])
        titles = draw.choice(np.flatnonzero(allowed), (n_queries, _DRAWN))
        return np.repeat(np.arange(n_queries), _DRAWN), titles.ravel()

    def _candidates(
        self,
        pairs: Sequence[_Pairs],
        allowed: NDArray[np.bool_],
    ) -> Candidates | None:
        """Distinct candidates and the right titles; None if there is nothing to fit."""
        n = len(self._titles)
        usable = self._right_places >= 0
        usable[usable] = allowed[self._right_places[usable]]
        cells = np.unique(
            self._right.query_index[usable] * np.int64(n) + self._right_places[usable]
        )
        right = cells // max(n, 1), cells % max(n, 1)
        return Candidates.of(right, np.ones(cells.size), pairs, n)

    def _rows(self, candidates: Candidates, every: Candidates) -> NDArray[np.intp]:
        """The places of candidates among all."""
        n = len(self._titles)
        return np.searchsorted(
            every.query_index * n + every.title_index,
            candidates.query_index * n + candidates.title_index,
        )

    def _features(
        self,
        parts: dict[str, Part],
        names: Sequence[str],
        asked: Asked,
        candidates: Candidates,
        left_out: Sequence[str] = (),
    ) -> NDArray[np.float64]:
        """The score of each part for each candidate, (n, n_parts); 0 for parts left out."""
        features = np.zeros((candidates.right.size, len(names)))
        pairs = candidates.query_index, candidates.title_index
        for column, name in enumerate(names):
            if name not in left_out:
                features[:, column] = parts[name].of_pairs(asked, *pairs, self._workers)
        return features

    def _best_parameters(
        self,
        material: Material,
        parts: dict[str, Part],
        names: Sequence[str],
        asked: Asked,
        candidates: Candidates,
        features: NDArray[np.float64],
        step: Callable[[], None],
    ) -> Recipe:
        """The recipe with the best parameters of BM25, one after the other.

        ``features`` (n, n_parts) are those of the other parts; the columns of BM25 are written.
        """
        pairs = candidates.query_index, candidates.title_index
        entries = {}
        for name in _OF_WORDS:
            if name in names:
                part = parts[name]
                assert isinstance(part, Bm25)
                words = asked.words_in(part.lists)
                entries[name] = part.lists.entries(words, *pairs, self._workers)
        best = np.inf, replace(material.recipe, k1=K1, b=B)
        start_from = None
        lists = [part for part in PART_TYPES if part.name in entries]
        for parameter, values in GRID.items():
            start = best[1]
            for value in values:
                changed: dict[str, Any] = {parameter: value}
                tried = replace(start, **changed)
                changed_material = material.with_recipe(tried)
                for part_type in lists:
                    part = part_type.build(changed_material)
                    assert isinstance(part, Bm25)
                    pair, entry = entries[part.name]
                    weights = part.lists.weights[entry].astype(np.float64)
                    sums = np.bincount(pair, weights, len(features))
                    features[:, names.index(part.name)] = sums
                fit = fit_weights(features, candidates, start_from, _NEARLY, _signs(names))
                start_from = fit.weights
                if fit.loss < best[0]:
                    best = fit.loss, _weighted(tried, names, fit)
                step()
        return best[1]


def _signs(names: Sequence[str]) -> NDArray[np.bool_]:
    """Which weights may not be negative."""
    return np.isin(names, _NOT_NEGATIVE)


def _weighted(recipe: Recipe, names: Sequence[str], fit: Fit) -> Recipe:
    # Seven digits: what is shown is what is stored.
    weights = zip(names, fit.weights.tolist(), strict=True)
    rounded = {name: float(f"{weight:.7g}") for name, weight in weights}
    return recipe.weighted(rounded if any(rounded.values()) else MODEL_ALONE.weights)
