"""Fit the ranker of a model: read what it learns from, fit its weights, say what came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.data.best_graded import best_graded
from sentemb.data.click_log import ClickLog, Clicks
from sentemb.data.examinations import read_examinations
from sentemb.data.seen_queries import in_log
from sentemb.data.text_array import taken
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.models.loading import load
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.text_encoder import TextEncoder
from sentemb.retrieval.believed_clicks import BelievedClicks
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.ranking.base_fit import KEY, BaseFit
from sentemb.search.ranking.direct_fit import (
    FEW_TYPED,
    fitted_to_clicks,
    outweighing,
    with_examinations,
)
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.floor_fit import fitted_floor
from sentemb.search.ranking.opening import with_two_towers
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import EXAMINED, NAME, UNCLICKED, Recipe
from sentemb.system.bounds import MAX_SEED, whole
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.words import exact_key
from sentemb.training.batches.additions import Additions, Replayed, Titles
from sentemb.training.dev import ClicksDev, DevPlan, DevSource, JudgedDev
from sentemb.training.run import read_log

# The stemmer that is tried next to plain words.
STEM = "english"
FIGURES = ("mrr@10", "hit@1", "recall@10")
# With more dev queries than this, a sample is taken.
MAX_QUERIES = 1000


def fit_ranker(
    model: AnyPath | SentenceEncoder,
    log: Clicks,
    dev: DevSource,
    *,
    replay: Replayed | None = None,
    catalogue: Titles | None = None,
    record: Sequence[AnyPath] = (),
    embedding: AnyPath | TextEncoder | None = None,
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
    record : sequence of path
        Records of searches: what was shown says how often titles were looked at for a query.
    embedding : str, path or object, optional
        Another embedding, whose cosine is one more part: a folder or name for
        sentence-transformers, an ONNX file (``.onnx``) with ``tokenizer.json`` next to it or one
        folder above, or any object with ``encode_query`` and ``encode_document``.
    seed : int
        Draws the pairs of ``replay``, 1,000 dev queries if there are more, and the titles whose
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
        For a pair model, bad data, a number out of range, or an embedding that cannot be opened.

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
    read = read_log(log, skip_bad_lines, "batch", note, names=additions.names)
    read = additions.with_replay(read, seed, skip_bad_lines, note)
    examinations = read_examinations(record)
    served = replace(ClickedQueries.of(read), examinations=examinations)
    left, held_out = plan.apply(read, _ignore, additions.titles or ())
    if held_out is None:
        raise SentembError("the weights of a ranker are fitted to a dev set; give dev")
    assert isinstance(held_out, JudgedDev | ClicksDev)
    # What the ranker may see while it is fitted; afterwards it serves all clicks of the log.
    known = served
    if left is not read:
        known = replace(ClickedQueries.of(left), examinations=examinations)
    typed: ClickLog | None = None
    if isinstance(held_out, JudgedDev):
        right, titles = best_graded(held_out.judged), list(held_out.judged.titles)
    else:
        believed = BelievedClicks.of(served)
        right, typed = believed.judging(held_out.clicks), held_out.typed
        typed = None if typed is None else believed.judging(typed)
        titles = in_tie_order({title.strip() for title in held_out.titles})
    ranker = fit_weights_of(
        encoder,
        right,
        titles,
        None,
        known,
        served,
        typed,
        embedding=None if embedding is None else Embedding.of(embedding),
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
    known: ClickedQueries,
    served: ClickedQueries,
    typed: ClickLog | None = None,
    *,
    embedding: Embedding | None = None,
    seed: int = 0,
    threads: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> HybridRanker:
    """Fit a ranker to the right titles of some queries; the model is not changed.

    ``titles`` and ``ids`` are the catalogue; without ids, clicks are known by titles. While it is
    fitted the ranker reads ``known`` without the queries of ``right``, and ``served`` afterwards.
    ``typed`` are held-out clicks of queries that ``known`` has; those that it has too are not used.
    The other parameters are as for `fit_ranker`.
    """
    note = on_note or _ignore
    is_of_dev = in_log(known.queries, right.queries)
    if is_of_dev.any():
        count = np.count_nonzero(in_log(right.queries, taken(known.queries, is_of_dev)))
        note(
            f"the pairs of {count:,} dev queries that are also in the log are left out while the "
            "ranker is fitted"
        )
    clicks = known.without_queries(is_of_dev)
    drawn = _drawn(right, seed, note)
    examined = known.examinations.without_queries(right.queries)
    if examined is not known.examinations:
        clicks = replace(clicks, examinations=examined)
    single = None if typed is None else known.single_clicks(typed)
    fitting = BaseFit(model, drawn, titles, ids, clicks, seed, Workers(threads), embedding)
    base = fitting.fit(_stems(note), on_progress or _ignore, note)
    # Statistics of held-out queries are unknown too while the weights are fitted and measured.
    fields = fitting.material(clicks, base.recipe.stem).fields
    given: dict[str, Any] = {"threads": threads, "embedding": embedding}
    ranker = HybridRanker(model, base.recipe, clicks, fields, titles, **given)
    ranker.prepare(fitting.catalogue(base.recipe, fields, base.spread))
    held_out = HeldOutClicks(drawn, titles, FIGURES)
    recipe, without_names, figures = _chosen(ranker, held_out, base.spread, note)
    dev = {"queries": len(drawn.queries), "held_back": round(base.held_back, 4), "figures": figures}
    if served.queries:
        recipe = outweighing(recipe, base.spread)
    ranker = HybridRanker(model, recipe, clicks, fields, titles, **given)
    ranker.prepare(fitting.catalogue(recipe, fields, [EXAMINED] if examined.times.size else []))
    if served.examinations.times.size:
        ranker = ranker.weighted(with_examinations(recipe).weights)
    elif single is not None and len(single.queries) >= FEW_TYPED:
        knowing = ranker
        if known is not clicks:
            knowing = HybridRanker(model, recipe, known, fields, titles, **given)
        drawn_single = _drawn(single, seed, note)
        recipe = fitted_to_clicks(knowing, drawn_single)
        dev["typed_queries"] = len(drawn_single.queries)
        ranker = ranker.weighted(recipe.weights)
    # The others have neither a name nor clicks, so they are ranked as without.
    is_answered = ranker.are_answered(drawn.queries)
    of_sum = without_names.copy()
    if is_answered.any():
        answered = HeldOutClicks(drawn.part(is_answered), titles, FIGURES)
        of_sum[is_answered] = answered.evaluate(ranker).values
    if _is_ahead(without_names, of_sum, 2):
        note("on dev titles with all words of a query are mostly wrong, so names do not count")
        ranker, of_sum = ranker.weighted({**ranker.recipe.weights, NAME: 0.0}), without_names
    figures["sum"] = _figures(of_sum)
    floor = fitted_floor(ranker, drawn.queries, seed, note, _without_clicks(served, right, seed))
    fields = fitting.material(served, base.recipe.stem).fields
    return HybridRanker(model, ranker.recipe, served, fields, dev=dev, floor=floor, **given)


def _chosen(
    ranker: HybridRanker,
    held_out: HeldOutClicks,
    fitted: Collection[str],
    note: Callable[[str], None],
) -> tuple[Recipe, NDArray[np.float64], dict[str, dict[str, float]]]:
    """The recipe, how it ranks dev, and the figures of each of the ``fitted`` parts alone.

    How dev is ranked are the `FIGURES` of each query, (n_queries, n_figures).

    If a part alone finds more right titles, beyond one standard error, it is the recipe.
    """
    of_sum = held_out.evaluate(ranker).values
    # After the sum: what has been prepared for it serves the parts.
    parts = [name for name in fitted if name != UNCLICKED]
    alone = {name: held_out.evaluate(ranker.alone(name)).values for name in parts}
    recipe, best = ranker.recipe, max(alone, key=lambda name: alone[name][:, 0].mean())
    if _is_ahead(alone[best], of_sum):
        recipe, of_sum = recipe.alone(best), alone[best]
        note(f"on dev {best} alone ranks higher than the sum, so that is the ranker")
    if not of_sum[:, 0].any():
        note(
            "no part ranks a right title high for any dev query, so dev says nothing about the "
            f"weights; the ranker is the {recipe}"
        )
    return recipe, of_sum, {name: _figures(each) for name, each in alone.items()}


def _figures(values: NDArray[np.float64]) -> dict[str, float]:
    mean = values.mean(axis=0).tolist()
    return {name: round(value, 6) for name, value in zip(FIGURES, mean, strict=True)}


def _is_ahead(first: NDArray[np.float64], second: NDArray[np.float64], errors: float = 1) -> bool:
    """Whether the first figure is higher by more than some standard errors of the difference."""
    differences = first[:, 0] - second[:, 0]
    return bool(differences.mean() > errors * differences.std() / np.sqrt(differences.size))


def _drawn(right: ClickLog, seed: int, note: Callable[[str], None]) -> ClickLog:
    """The clicks of at most `MAX_QUERIES` queries."""
    n = len(right.queries)
    if n <= MAX_QUERIES:
        return right
    drawn = np.random.default_rng([seed, KEY]).choice(n, MAX_QUERIES, replace=False)
    note(f"the ranker is fitted to {MAX_QUERIES:,} of the {n:,} dev queries, drawn by the seed")
    return right.part(np.isin(np.arange(n), drawn))


def _without_clicks(served: ClickedQueries, right: ClickLog, seed: int) -> list[str]:
    """Queries that were searched again and again and never clicked, at most `MAX_QUERIES`."""
    repeated = served.examinations.repeated()
    clicked = set(map(exact_key, [*served.queries, *right.queries])) if repeated else ()
    queries = [query for query in repeated if query not in clicked]
    drawn = np.random.default_rng([seed, KEY, 3]).permutation(len(queries))[:MAX_QUERIES]
    return [queries[q] for q in sorted(drawn.tolist())]


def _stems(note: Callable[[str], None]) -> list[str | None]:
    """Plain words, and stems if their package is installed."""
    try:
        words_of(STEM)
    except SentembError as error:
        note(f"the BM25 of the ranker reads plain words: {error}")
        return [None]
    return [None, STEM]


def _ignore(*report: object) -> None:
    pass
