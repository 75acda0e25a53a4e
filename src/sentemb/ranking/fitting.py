"""Fit the ranker of a model: read what it learns from, tune it, say what came out."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.baselines.words_and_stems import words_of
from sentemb.bounds import MAX_SEED, whole
from sentemb.data.click_log import ClickLog, Clicks
from sentemb.data.overlap import in_log
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.face import keeping_text_warnings
from sentemb.loading import load
from sentemb.pair_scorer import PairScorer
from sentemb.ranking.clicked_pairs import clicked_pairs
from sentemb.ranking.opening import with_two_towers
from sentemb.ranking.parts import TitleParts, bm25_lists
from sentemb.ranking.ranker import HybridRanker
from sentemb.ranking.recipe import MEMORY, PARTS, Recipe
from sentemb.ranking.targets import ClicksTarget, JudgedTarget
from sentemb.ranking.tuning import n_points, tune_bm25, tune_weights
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.additions import Additions, Replayed
from sentemb.training.dev import ClicksDev, DevPlan, DevSource, JudgedDev
from sentemb.training.run import read_log

# The stemmer that is tried next to plain words.
STEM = "english"


def fit_ranker(
    model: AnyPath | SentenceEncoder,
    log: Clicks,
    dev: DevSource,
    *,
    replay: Replayed | None = None,
    catalogue: AnyPath | Sequence[str] | None = None,
    seed: int = 0,
    skip_bad_lines: bool = False,
    threads: int | None = None,
    on_progress: Callable[[int, int], None] | None = None,
    on_note: Callable[[str], None] | None = None,
) -> HybridRanker:
    """Fit the ranker of a model: the weights of cosine, BM25 and the memory of the log.

    On the dev set the ranker is never below the best of its parts. `HybridRanker.save` writes it
    into the folder of the model. Give ``dev``, ``replay`` and ``catalogue`` as the training of the
    model was given them: what it held out, the ranker may not learn from either.

    Parameters
    ----------
    model : path or SentenceEncoder
        A model with two towers, or its folder. It is not changed.
    log : path, ClickLog, table or list of pairs
        The click log that the model was trained on, as for `sentemb.train`.
    dev : path, share, JudgedSet or ClickLog
        What the weights are chosen on. A judged set is measured by NDCG@1 over its titles. For
        held-out clicks, or a share of the queries of the log such as 0.05, all titles of the log
        and of the clicks are ranked, measured by MRR@10; the ranker then learns nothing from these
        queries. Queries of a judged set that are in the log are left out while it is tuned.
    replay : path, ClickLog, table or list of pairs, or (one of these, float), optional
        An older log, as for `sentemb.train`.
    catalogue : path or sequence of str, optional
        More titles to rank for held-out clicks; for a judged set there are none.
    seed : int
        Draws the pairs of ``replay``, and 2,000 held-out queries if there are more.
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
        raise SentembError("the weights of a ranker are chosen on a dev set; give dev")
    assert isinstance(held_out, JudgedDev | ClicksDev)
    workers = Workers(threads)
    # What the ranker may see while it is tuned.
    clicks = clicked_pairs(read, without=held_out.queries)
    _note_left_out(read, held_out, note)
    target: JudgedTarget | ClicksTarget
    if isinstance(held_out, JudgedDev):
        kept = clicked_pairs(read)
        target = JudgedTarget(held_out.judged, workers, seed)
        measured: dict[str, Any] = {"kind": "judged set", "queries": target.n_queries}
    else:
        kept = clicks
        catalogue_titles = in_tie_order({title.strip() for title in held_out.titles})
        target = ClicksTarget(held_out.clicks, catalogue_titles, workers, seed)
        measured = {"kind": "held-out clicks", "queries": target.n_queries}
        if target.n_queries < target.n_all:
            note(
                f"the ranker is tuned on {target.n_queries:,} of the {target.n_all:,} held-out "
                "queries, drawn by the seed"
            )
    with keeping_text_warnings():
        # The warnings name texts that the model cannot read, as those of a training do.
        recipe, figures = _tuned(encoder, target, clicks, workers, note, on_progress or _ignore)
    if not any(value for own in figures.values() for value in own.values()):
        note(
            "no part ranks a right title high for any dev query, so dev says nothing about the "
            f"weights; the ranker is the {recipe}"
        )
    return HybridRanker(
        encoder,
        recipe,
        kept if recipe.needs_clicks else None,
        dev={**measured, "figures": _rounded(figures)},
        threads=threads,
    )


def _tuned(
    model: SentenceEncoder,
    target: JudgedTarget | ClicksTarget,
    clicks: ClickLog,
    workers: Workers,
    note: Callable[[str], None],
    progress: Callable[[int, int], None],
) -> tuple[Recipe, dict[str, dict[str, float]]]:
    """The best recipe and its figures, from what the ranker may see."""
    has_clicks = bool(clicks.queries)
    stems = _stems(note)
    total, done = n_points(len(stems)) + 2, 0

    def step() -> None:
        nonlocal done
        done += 1
        progress(min(done, total), total)

    def lists_of(recipe: Recipe) -> InvertedIndex:
        return bm25_lists(target.titles, clicks if has_clicks else None, recipe)

    lexical, lists = tune_bm25(target, lists_of, stems, has_clicks, step)
    parts = TitleParts(model, target.titles, lexical, clicks, workers, lists)
    names = [part for part in PARTS if has_clicks or part != MEMORY]
    tuned = tune_weights(target, parts, lexical, names)
    progress(total, total)
    return tuned.recipe, tuned.figures


def _stems(note: Callable[[str], None]) -> list[str | None]:
    """Plain words, and stems if their package is installed."""
    try:
        words_of(STEM)
    except SentembError as error:
        note(f"the BM25 of the ranker reads plain words: {error}")
        return [None]
    return [None, STEM]


def _note_left_out(
    log: ClickLog, held_out: JudgedDev | ClicksDev, note: Callable[[str], None]
) -> None:
    count = int(in_log(held_out.queries, log.queries).sum())
    if not count:
        return
    when = "while the ranker is tuned" if isinstance(held_out, JudgedDev) else "of the ranker"
    note(f"the pairs of {count:,} dev queries that are also in the log are left out {when}")


def _rounded(figures: dict[str, dict[str, float]]) -> dict[str, dict[str, float]]:
    """Figures as a training's history keeps them."""
    return {
        part: {name: round(value, 6) for name, value in own.items()}
        for part, own in figures.items()
    }


def _ignore(*report: object) -> None:
    pass
