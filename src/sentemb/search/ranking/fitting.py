"""Fit the ranker of a model: read what it learns from, fit its weights, say what came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import ClickLog, Clicks
from sentemb.data.seen_queries import in_log
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.models.loading import load
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.bm25 import K1, B
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.read_queries import ReadQueries
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.ranking import engine
from sentemb.search.ranking.floor import Floor, fit_floor, nonsense
from sentemb.search.ranking.opening import with_two_towers
from sentemb.search.ranking.parts import (
    PART_TYPES,
    Asked,
    Bm25,
    Bound,
    Fields,
    Material,
    Memory,
    Part,
)
from sentemb.search.ranking.ranker import Catalogue, HybridRanker
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    COSINE,
    MEMORY,
    MODEL_ALONE,
    UNCLICKED,
    Recipe,
)
from sentemb.search.ranking.weights import Candidates, Fit, fit_weights
from sentemb.system.bounds import MAX_SEED, whole
from sentemb.system.contracts import Runner
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.batches.additions import Additions, Replayed, Titles
from sentemb.training.dev import ClicksDev, DevPlan, DevSource, JudgedDev
from sentemb.training.run import read_log

# The stemmer that is tried next to plain words.
STEM = "english"
# The parameters of BM25 that are tried, one after the other.
GRID: dict[str, tuple[float, ...]] = {
    "k1": (0.3, 0.6, 0.9, 1.2, 1.8),
    "b": (0.0, 0.2, 0.4, 0.6, 0.75, 0.9),
}
FIGURES = ("mrr@10", "hit@1", "recall@10")
# With more dev queries than this, a sample is taken.
MAX_QUERIES = 2000
# Titles of each part, and of the sum, that are candidates.
_CANDIDATES = 20
# Clicks are held back where at least this share of the catalogue has none.
_FEW_UNCLICKED, _MOST_HELD_BACK = 0.1, 0.5
# With fewer dev queries than this that have a clicked right title, titles without clicks teach too.
_FEW_TEACHING = 50
_OF_WORDS = [BM25, CLICKED_BM25]
# Parameters of BM25 are compared by losses that are this near to the lowest.
_NEARLY = 1e-6
# Scores of the memory that are kept, 64 MB of them, and queries that are scored together.
_CELLS, _TOGETHER = 16_000_000, 128
# Indices of queries and of titles.
_Pairs: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int64]]
# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x72616E6B


def fit_ranker(
    model: AnyPath | SentenceEncoder,
    log: Clicks,
    dev: DevSource,
    *,
    replay: Replayed | None = None,
    catalogue: Titles | None = None,
    seed: int = 0,
    skip_bad_lines: bool = False,
    threads: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> HybridRanker:
    """Fit the ranker of a model: the weights of cosine, memory of the log and BM25.

    `HybridRanker.save` writes it into the folder of the model. Give ``dev``, ``replay`` and
    ``catalogue`` as the training of the model was given them: what it held out, the ranker may not
    learn from either.

    Parameters
    ----------
    model : path or SentenceEncoder
        A model with two towers, or its folder. It is not changed.
    log : path, ClickLog, table or list of pairs
        The click log that the model was trained on, as for `sentemb.train`.
    dev : path, share, JudgedSet or ClickLog
        The weights are fitted to these: the clicked titles of held-out queries, or the best titles
        of a judged set, among candidates from the whole catalogue. That is all titles of the log
        and of the clicks, or those of the judged set. Queries of a judged set that are in the log
        are left out of the ranker's clicks while it is fitted.
    replay : path, ClickLog, table or list of pairs, or (one of these, float), optional
        An older log, as for `sentemb.train`.
    catalogue : path, dict or sequence of str, optional
        More titles to rank for held-out clicks; for a judged set there are none. A file, or a dict
        {id: title}, also has the id of each title: the clicks of these titles then belong to the
        ids, and an index whose title for an id is a newer one has its clicks.
    seed : int
        Draws the pairs of ``replay``, 2,000 dev queries if there are more, and the titles whose
        clicks are held back.
    skip_bad_lines : bool
        Leave malformed lines of the log out instead of stopping at the first.
    threads : int, optional
        By default all processors. The result does not depend on it.
    on_progress : function, optional
        Called with the number of steps that are done and of all.
    on_note : function of a str, optional
        Called with each message about the fit.

    Returns
    -------
    HybridRanker

    Raises
    ------
    SentembError
        For a pair model, bad data, or a number out of range.

    Examples
    --------
    >>> import sentemb
    >>> ranker = sentemb.fit_ranker("model/", "pairs.tsv", "dev/")  # doctest: +SKIP
    >>> ranker.save("model/")  # doctest: +SKIP
    """
    whole("seed", seed, 0, MAX_SEED)
    note = on_note or _ignore
    opened = load(model, threads) if isinstance(model, str | os.PathLike) else model
    if not isinstance(opened, SentenceEncoder | PairScorer):
        raise SentembError(f"model must be a path or a SentenceEncoder, not {type(model).__name__}")
    encoder = with_two_towers(opened)
    additions = Additions.of(replay, catalogue)
    plan = DevPlan.of(dev)
    plan.check_catalogue(additions.titles)
    read = additions.with_replay(
        read_log(log, skip_bad_lines, "batch", note), seed, skip_bad_lines, note
    )
    read, held_out = plan.apply(read, _ignore, additions.titles or ())
    if held_out is None:
        raise SentembError("the weights of a ranker are fitted to a dev set; give dev")
    assert isinstance(held_out, JudgedDev | ClicksDev)
    served = ClickedQueries.of(read)
    # What the ranker may see while it is fitted.
    is_held_out = in_log(served.queries, held_out.queries)
    clicks = served.without_queries(is_held_out)
    _note_left_out(
        [served.queries[q] for q in np.flatnonzero(is_held_out).tolist()], held_out, note
    )
    if isinstance(held_out, JudgedDev):
        right, titles = best_graded(held_out.judged), list(held_out.judged.titles)
    else:
        served, right = clicks, held_out.clicks
        titles = in_tie_order({title.strip() for title in held_out.titles})
    ranker = fit_weights_of(
        encoder,
        right,
        titles,
        None,
        clicks,
        served,
        seed=seed,
        threads=threads,
        on_progress=on_progress,
        on_note=on_note,
    )
    if additions.titles is None or additions.ids is None:
        return ranker
    # A title that is another one when an index is built keeps the clicks of its id.
    return ranker.with_ids(additions.titles, additions.ids)


def fit_weights_of(
    model: SentenceEncoder,
    right: ClickLog,
    titles: Sequence[str],
    ids: Sequence[str] | None,
    clicks: ClickedQueries,
    served: ClickedQueries,
    *,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> HybridRanker:
    """Fit a ranker to the right titles of some queries; the model is not changed.

    ``titles`` and ``ids`` are the catalogue; without ids, clicks are known by titles. The ranker
    reads ``clicks``, without the queries of ``right``, while it is fitted, and ``served``
    afterwards. The other parameters are as for `fit_ranker`.
    """
    note = on_note or _ignore
    drawn = _drawn(right, seed, note)
    fitting = _Fitting(model, drawn, titles, ids, clicks, seed, Workers(threads))
    recipe, held_back = fitting.fit(_stems(note), on_progress or _ignore, note)
    fields = fitting.material(served, recipe.stem).fields
    ranker = HybridRanker(model, recipe, clicks, fields, titles, threads=threads)
    ranker.prepare(fitting.catalogue(recipe, fields))
    recipe, figures = _measured(ranker, drawn, ranker.titles, note)
    dev = {"queries": len(drawn.queries), "held_back": round(held_back, 4), "figures": figures}
    floor = None
    if recipe.weight(MEMORY) and recipe.weight(BM25):
        floor = _floor(ranker, drawn.queries, seed)
    return HybridRanker(model, recipe, served, fields, dev=dev, floor=floor, threads=threads)


def _floor(ranker: HybridRanker, queries: Sequence[str], seed: int) -> Floor:
    """The floor of a ranker over its titles, from what it finds for dev queries and nonsense."""
    whole_field, words = ranker.fields.whole, ranker.recipe.words
    unanswerable = nonsense(seed, whole_field, queries)
    ranked = [ranker.ranked(texts, 1) for texts in (queries, unanswerable)]
    return fit_floor(queries, ranked[0], unanswerable, ranked[1], whole_field, words)


@dataclass(frozen=True, eq=False)
class _DevMemory(Memory):
    """The memory of the log, computed once for all dev queries: the fit ranks them many times."""

    asked: Asked
    n_titles: int

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
        total += np.float32(weight) * self.__dict__["scores"][rows]
        return self.bound(weight, asked)


class _Fitting:
    """The weights and parameters of one ranker.

    ``right`` has the right titles of the dev queries; ``titles`` and ``ids`` are the catalogue;
    ``clicks`` are those of the log, without dev queries.
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
    ) -> None:
        self._model, self._right, self._titles, self._workers = model, right, titles, workers
        self._ids = ids
        self._clicks, self._seed = clicks, seed
        # By clicks, then by the language of the stemmer or the name of the part.
        self._materials: dict[tuple[ClickedQueries, str | None], Material] = {}
        self._shared: dict[tuple[ClickedQueries, str], Part] = {}
        self._read = ReadQueries(clicks.queries, self._embed)
        self._vectors = np.asarray(model.unit_vectors(titles, "document"), np.float32)
        position_of = {title.strip(): position for position, title in enumerate(titles)}
        self._right_places = np.array(
            [position_of.get(title.strip(), -1) for title in right.titles], np.int64
        )[right.title_index]

    def fit(
        self,
        stems: Sequence[str | None],
        progress: Callable[[int, int], None],
        note: Callable[[str], None],
    ) -> tuple[Recipe, float]:
        """The recipe, and the share of titles whose clicks were held back."""
        has_clicks = np.diff(self._clicks.of_titles(self._titles, self._ids).offsets) > 0
        fitted_clicks, held_back = self._hold_back(has_clicks)
        names = [
            part.name
            for part in PART_TYPES
            if (has_clicks.any() or not part.needs_clicks) and (held_back or part.name != UNCLICKED)
        ]
        allowed = self._allowed(has_clicks, note)
        total, done = len(stems) * sum(map(len, GRID.values())) + 2, 0

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

        # Each stem is fitted to its candidates alone, so that a stem that is not chosen, or whose
        # package is missing, changes nothing.
        without_words = best(stems[0], reads_words=False)
        pairs = {stem: without_words + best(stem, reads_words=True) for stem in stems}
        candidates = {stem: self._candidates(pairs[stem], allowed) for stem in stems}
        of_all = self._candidates([*chain.from_iterable(pairs.values())], allowed)
        if of_all is None or candidates[stems[0]] is None:
            return MODEL_ALONE, 0.0
        step()
        features = self._features(parts[stems[0]], names, asked[stems[0]], of_all, _OF_WORDS)
        fitted = {}
        for stem, of_stem in candidates.items():
            if of_stem is not None:
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
                fitted[stem] = recipe, self._parts(fitted_clicks, material, names)
        stem = min(fitted, key=lambda stem: self._loss(*fitted[stem], names, features, of_all))
        recipe, chosen = fitted[stem]
        # Once more, with the titles that the sum itself ranks high.
        pairs[stem].append(self._best(chosen, recipe, asked[stem], allowed))
        last = self._candidates(pairs[stem], allowed)
        assert last is not None
        fit = fit_weights(self._features(chosen, names, asked[stem], last), last)
        step()
        return _weighted(recipe, names, fit), held_back

    def _loss(
        self,
        recipe: Recipe,
        parts: dict[str, Part],
        names: Sequence[str],
        features: NDArray[np.float64],
        candidates: Candidates,
    ) -> float:
        """The loss of a recipe on the candidates of all: there it can be compared."""
        not_of_words = [name for name in names if name not in _OF_WORDS]
        of_words = self._features(parts, names, self._asked(recipe.stem), candidates, not_of_words)
        return fit_weights(features + of_words, candidates).loss

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
        drawn = np.random.default_rng([self._seed, _KEY, 1]).random(len(self._clicks.keys))
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
            self._materials[key] = Material(self._titles, self._vectors, of_titles, read, recipe)
        return self._materials[key]

    def catalogue(self, recipe: Recipe, fields: Fields) -> Catalogue:
        """The titles with all clicks, none of them held back."""
        material = self.material(self._clicks, recipe.stem).with_recipe(recipe, fields)
        parts = self._parts(self._clicks, material, recipe.parts)
        return Catalogue(list(self._titles), parts, material.is_empty)

    def _embed(self, texts: Sequence[str]) -> np.ndarray:
        return self._model.unit_vectors(texts, "query")

    def _asked(self, stem: str | None) -> Asked:
        return Asked(self._right.queries, self._embed, Recipe({COSINE: 1.0}, stem=stem))

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
        ranked = engine.best(parts, recipe, asked, _CANDIDATES, is_empty, self._workers, allowed)
        query_index = np.repeat(np.arange(len(asked)), ranked.titles.shape[1])
        is_there = ranked.titles.ravel() >= 0
        return query_index[is_there], ranked.titles.ravel()[is_there]

    def _candidates(
        self,
        pairs: Sequence[_Pairs],
        allowed: NDArray[np.bool_],
    ) -> Candidates | None:
        """Distinct candidates and the right titles; None if there is nothing to fit."""
        n = len(self._titles)
        usable = self._right_places >= 0
        usable[usable] = allowed[self._right_places[usable]]
        right = self._right.query_index[usable] * np.int64(n) + self._right_places[usable]
        cells = np.unique(np.concatenate([right, *(q * n + t for q, t in pairs)]))
        is_right = np.isin(cells, right)
        query_index = cells // n
        n_queries = len(self._right.queries)
        n_right = np.bincount(query_index, is_right, n_queries)
        n_all = np.bincount(query_index, minlength=n_queries)
        can_teach = ((n_right > 0) & (n_all > n_right))[query_index]
        if not can_teach.any():
            return None
        return Candidates(query_index[can_teach], cells[can_teach] % n, is_right[can_teach])

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
        features = np.zeros((candidates.is_right.size, len(names)))
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
                fit = fit_weights(features, candidates, start_from, _NEARLY)
                start_from = fit.weights
                if fit.loss < best[0]:
                    best = fit.loss, _weighted(tried, names, fit)
                step()
        return best[1]


def _weighted(recipe: Recipe, names: Sequence[str], fit: Fit) -> Recipe:
    # Seven digits: what is shown is what is stored.
    weights = zip(names, fit.weights.tolist(), strict=True)
    return recipe.weighted({name: float(f"{weight:.7g}") for name, weight in weights})


def _measured(
    ranker: HybridRanker, right: ClickLog, titles: list[str], note: Callable[[str], None]
) -> tuple[Recipe, dict[str, dict[str, float]]]:
    """The recipe, and the figures of the sum and of each part alone over the whole catalogue.

    If a part alone finds more right titles, it is the recipe.
    """
    held_out = HeldOutClicks(right, titles, FIGURES)

    def measured(measured_ranker: HybridRanker) -> dict[str, float]:
        mean = held_out.evaluate(measured_ranker).mean.tolist()
        return {name: round(value, 6) for name, value in zip(FIGURES, mean, strict=True)}

    figures = {"sum": measured(ranker)}
    recipe = ranker.recipe
    # After the sum: what has been prepared for it serves the parts.
    alone = [name for name in recipe.parts if name != UNCLICKED]
    figures |= {name: measured(ranker.alone(name)) for name in alone}
    best = max(alone, key=lambda name: figures[name][FIGURES[0]])
    if figures[best][FIGURES[0]] > figures["sum"][FIGURES[0]]:
        recipe = recipe.alone(best)
        note(f"on dev no sum ranks higher than {best} alone, so that is the ranker")
        figures["sum"] = figures[best]
    if not figures["sum"][FIGURES[0]]:
        note(
            "no part ranks a right title high for any dev query, so dev says nothing about the "
            f"weights; the ranker is the {recipe}"
        )
    return recipe, figures


def _drawn(right: ClickLog, seed: int, note: Callable[[str], None]) -> ClickLog:
    """The clicks of at most `MAX_QUERIES` queries."""
    n = len(right.queries)
    if n <= MAX_QUERIES:
        return right
    drawn = np.random.default_rng([seed, _KEY]).choice(n, MAX_QUERIES, replace=False)
    note(f"the ranker is fitted to {MAX_QUERIES:,} of the {n:,} dev queries, drawn by the seed")
    is_drawn = np.isin(right.query_index, drawn)
    pairs = zip(
        right.query_index[is_drawn].tolist(), right.title_index[is_drawn].tolist(), strict=True
    )
    return ClickLog.from_pairs((right.queries[q], right.titles[t]) for q, t in pairs)


def _stems(note: Callable[[str], None]) -> list[str | None]:
    """Plain words, and stems if their package is installed."""
    try:
        words_of(STEM)
    except SentembError as error:
        note(f"the BM25 of the ranker reads plain words: {error}")
        return [None]
    return [None, STEM]


def _note_left_out(
    left_out: Sequence[str], held_out: JudgedDev | ClicksDev, note: Callable[[str], None]
) -> None:
    count = int(in_log(held_out.queries, left_out).sum())
    if not count:
        return
    when = "while the ranker is fitted" if isinstance(held_out, JudgedDev) else "of the ranker"
    note(f"the pairs of {count:,} dev queries that are also in the log are left out {when}")


def _ignore(*report: object) -> None:
    pass
