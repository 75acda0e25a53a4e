"""One function that measures whatever ranks, on judged sets and on held-out clicks."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeGuard

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines.clicked_queries import (
    BASELINES,
    LETTERS,
    LEXICAL,
    with_clicked_queries,
)
from sentemb.comparison.baselines.letters import LettersOfClicks
from sentemb.comparison.written_queries import measure_written
from sentemb.data.click_log import ClickLog
from sentemb.data.held_out_clicks import read_held_out
from sentemb.data.judged_set import JudgedSet, read_texts
from sentemb.data.product_tables import products_of
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import AllPairs, Evaluation, HeldOutClicks
from sentemb.evaluation.kinds import Kind, WrittenQueries, by_kind, next_clicks
from sentemb.evaluation.measures import JUDGED_METRICS, METRICS
from sentemb.evaluation.metrics import NDCG, ndcg
from sentemb.evaluation.trec import read_run
from sentemb.models.contracts import Ranker, Retriever
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.index import Index
from sentemb.search.index_files import is_index
from sentemb.search.ranking.opening import known_by_ids, load_best
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import CLICKS, MODEL_ALONE
from sentemb.system.bounds import brief
from sentemb.system.files import is_file, is_folder, path_of, place_name, status
from sentemb.system.paths import AnyPath

_TITLES = "titles.tsv"  # as `sentemb split` names it
# Queries between two reports of progress.
_PORTION = 512


class RankedTitles(NamedTuple):
    """The catalogue that is ranked for held-out clicks.

    Attributes
    ----------
    titles : list of str
    ids : list of str or None
        One per title: a ranker that knows products knows the titles by them.
    name : str or None
        The file or folder that the titles are from; None if they were given.
    is_whole : bool
        False if they are only the titles of the clicks.
    """

    titles: list[str]
    ids: list[str] | None = None
    name: str | None = None
    is_whole: bool = True


def evaluate(
    ranker: Index | Ranker | AnyPath,
    held_out: JudgedSet | ClickLog | AnyPath,
    titles: Sequence[str] | Mapping[str, str] | RankedTitles | AnyPath | None = None,
    metrics: Sequence[str] | None = None,
    gain: str = "exponential",
    *,
    compare_with: Sequence[AnyPath] | Mapping[str, Any] = (),
    log: ClickLog | None = None,
    parts: bool = False,
    cosine: bool = False,
    on_progress: Callable[[str, int, int], None] | None = None,
) -> NDCG | Evaluation:
    """Measure a ranking on a judged set or on held-out clicks, as ``sentemb evaluate`` does.

    Parameters
    ----------
    ranker : Index, HybridRanker, SentenceEncoder, PairScorer, or path
        A path is the folder of an index or of a model, whose ranker ranks if it has one; for a
        judged set also a TREC run. Anything else with ``score_pairs`` will do.
    held_out : JudgedSet, ClickLog, or path
        The judged titles of each query are ranked against each other; for held-out clicks the
        whole catalogue is.
    titles : sequence of str, dict of id to title, table or path, optional
        The catalogue for held-out clicks; a path is a file of lines id<TAB>title. By default the
        titles of the index, otherwise titles.tsv next to the file of clicks, otherwise, with a
        warning, the titles of the clicks. A log with ids knows a title by its id.
    metrics : sequence of str, optional
        ``"ndcg@k"`` for a judged set; also ``"hit@k"``, ``"mrr@k"`` and ``"recall@k"`` for held-out
        clicks.
    gain : {"exponential", "linear"}
        How much a grade of a judged set is worth: 2^grade - 1, or the grade.
    compare_with : sequence of path, or dict of name to ranker, optional
        For held-out clicks: measured too, as `Evaluation.rivals`. "bm25", "bm25-stem",
        "bm25-clicks" and "bm25-stem-clicks" rank by words, with stems, and with the queries of
        ``log`` that were clicked on a title; "letters-clicks" by pieces of letters and these.
    log : ClickLog, optional
        The clicks that bm25-clicks learns from.
    parts : bool
        Measure each part of a ranker alone too, before ``compare_with``.
    cosine : bool
        Measure models alone, without their rankers.
    on_progress : function, optional
        For held-out clicks: called with the name of what is measured, "" for ``ranker``, and the
        numbers of queries that are done and of all.

    Returns
    -------
    NDCG or Evaluation
        For a judged set, or for held-out clicks.

    Raises
    ------
    SentembError
        For a folder that holds neither a model nor an index, a metric that does not go with
        ``held_out``, titles next to an index, or an index of other titles in ``compare_with``.
    """
    judgments = read_held_out(held_out) if isinstance(held_out, str | os.PathLike) else held_out
    if isinstance(judgments, JudgedSet):
        cutoffs = cutoffs_of(metrics or JUDGED_METRICS)
        return _on_judged_set(ranker, judgments, cutoffs, gain, parts, cosine)
    rivals = _named(compare_with)
    opened = {"": ranker, **rivals}
    opened = {name: open_ranker(given, cosine) for name, given in opened.items()}
    catalogue = titles
    if not isinstance(catalogue, RankedTitles):
        name = str(ranker) if _is_path(ranker) else None
        catalogue = titles_to_rank(opened[""], name, held_out, judgments, titles)
        if not catalogue.is_whole:
            warnings.warn(
                f"without titles only the {len(catalogue.titles):,} of the clicks are ranked: the "
                "figures are higher than over a whole catalogue",
                stacklevel=2,
            )
    return _on_clicks(opened, judgments, catalogue, metrics or METRICS, log, parts, on_progress)


def open_ranker(given: Any, cosine: bool = False) -> Any:
    """The ranker that is named: an Index, a HybridRanker, another `Ranker`, or one of `BASELINES`.

    ``given`` is one of these, or the folder of a model or of an index. With ``cosine`` models are
    taken without their rankers.
    """
    if isinstance(given, str) and given in BASELINES:
        return given
    if _is_path(given):
        given = Index.open(given) if is_index(given) else load_best(given, cosine=cosine)
    if isinstance(given, Index):
        return given.model_alone() if cosine else given
    model = given.model if cosine and isinstance(given, HybridRanker) else given
    return HybridRanker(model, MODEL_ALONE) if isinstance(model, SentenceEncoder) else model


def titles_to_rank(
    ranker: Any, name: str | None, held_out: Any, clicks: ClickLog, given: Any
) -> RankedTitles:
    """The catalogue of held-out clicks; see `evaluate`.

    Parameters
    ----------
    ranker : Any
        A result of `open_ranker`.
    name : str or None
        The folder that it was opened from.
    held_out : path or ClickLog
        Where the clicks are from.
    clicks : ClickLog
        The clicks.
    given : sequence of str, dict of id to title, path or None
        The titles, if they are given.
    """
    if isinstance(ranker, Index):
        if given is not None:
            raise SentembError("an index has titles of its own; leave titles out")
        return RankedTitles(list(ranker.titles), list(ranker.ids), name)
    if given is None and _is_path(held_out) and str(held_out) != "-":
        next_to_it = path_of(held_out).parent / _TITLES
        given = next_to_it if is_file(next_to_it) else None
    if given is None:
        source = str(held_out) if _is_path(held_out) else None
        return RankedTitles(clicks.titles, None, source, is_whole=False)
    if _is_path(given):
        ids, titles = read_texts(given)
        if not ids:
            raise SentembError(f"{place_name(given)}: the input is empty; write lines id<TAB>text")
        return RankedTitles(titles, ids, str(given))
    products = products_of(given)
    return RankedTitles(list(products.titles), None if products.ids is None else list(products.ids))


def cutoffs_of(metrics: Sequence[str]) -> tuple[int, ...]:
    """The ranks k of metrics that must all be ndcg@k, as a judged set has no others."""
    for metric in metrics:
        if not re.fullmatch(r"ndcg@\d{1,9}", metric):
            raise SentembError(f"{brief(metric)} does not go with a judged set; give ndcg@k")
    return tuple(int(metric.removeprefix("ndcg@")) for metric in metrics)


def _is_path(given: object) -> TypeGuard[AnyPath]:
    return isinstance(given, str | os.PathLike)


def _named(rivals: Sequence[AnyPath] | Mapping[str, Any]) -> dict[str, Any]:
    """Rivals by their names; those in a list are paths or names, and named as they are."""
    if isinstance(rivals, Mapping):
        return dict(rivals)
    if isinstance(rivals, str) or not all(map(_is_path, rivals)):
        raise SentembError(
            "compare_with is not a list of folders and names; give rankers as a dict, such as "
            "{'old': ranker}"
        )
    return {str(rival): rival for rival in rivals}


# -- judged sets ----------------------------------------------------------------------------------


def _on_judged_set(
    given: Any, judged: JudgedSet, cutoffs: tuple[int, ...], gain: str, parts: bool, cosine: bool
) -> NDCG:
    if _is_path(given) and (str(given) == "-" or not is_folder(given)):
        if str(given) != "-" and status(given) is None:
            raise SentembError(f"{given}: no such model or run; give a folder, a file or -")
        return ndcg(judged, read_run(given), cutoffs, gain)
    opened = open_ranker(given, cosine)
    ranker = opened.ranker if isinstance(opened, Index) else opened
    alone = ranker.parts_alone() if parts and isinstance(ranker, HybridRanker) else {}
    of_parts = {name: evaluate_model(part, judged, cutoffs, gain) for name, part in alone.items()}
    return replace(evaluate_model(ranker, judged, cutoffs, gain), parts=of_parts)


# -- held-out clicks ------------------------------------------------------------------------------


def _on_clicks(
    opened: dict[str, Any],
    clicks: ClickLog,
    catalogue: RankedTitles,
    metrics: Sequence[str],
    log: ClickLog | None,
    parts: bool,
    on_progress: Callable[[str, int, int], None] | None,
) -> Evaluation:
    """Measure the ranker called "", and others next to it."""
    titles = catalogue.titles
    held_out = HeldOutClicks(clicks, titles, metrics)
    if catalogue.ids is not None:
        opened = {
            name: known_by_ids(ranker, titles, catalogue.ids) for name, ranker in opened.items()
        }
    first = opened[""]
    if isinstance(first, HybridRanker):
        # The parts follow the ranker, before all others.
        first = first.over(titles)
        opened = {**(first.parts_alone() if parts else {}), **opened, "": first}
    evaluations = {}
    for name, ranker in opened.items():
        retriever = _retriever(name, ranker, titles, log)
        if on_progress is not None:
            retriever = _Reporting(name, retriever, len(clicks.queries), on_progress)
        evaluations[name] = held_out.evaluate(retriever)
    kinds, written = _by_kind(first, clicks, evaluations, titles, log)
    return replace(
        evaluations.pop(""),
        rivals=evaluations,
        catalogue=catalogue.name,
        kinds=kinds,
        written=written,
    )


def _by_kind(
    ranker: Any,
    clicks: ClickLog,
    evaluations: Mapping[str, Evaluation],
    titles: Sequence[str],
    log: ClickLog | None,
) -> tuple[list[Kind], WrittenQueries | None]:
    """The clicks by kind of query, as far as the ranker, or ``log``, has clicks, and names."""
    hybrid = ranker.ranker if isinstance(ranker, Index) else ranker
    knows_clicks = isinstance(hybrid, HybridRanker) and bool(hybrid.recipe.weight(CLICKS))
    if knows_clicks:
        known = hybrid.clicks
    elif log is not None:
        known = ClickedQueries.of(log)
    else:
        return [], None
    of_queries = known.clicks_of(clicks.queries)
    is_circular = bool(of_queries.any()) and known.single_clicks(clicks) is None
    # What is measured comes first.
    ranks = {name: evaluations[name].ranks for name in dict.fromkeys(("", *evaluations))}
    shares = next_clicks(np.bincount(known.clicked, known.clicks).astype(np.int64))
    kinds = by_kind(clicks, ranks, of_queries, shares, is_circular)
    if not knows_clicks:
        return kinds, None

    def answer(queries: Sequence[str]) -> list[int]:
        return _first_places(ranker, list(queries))

    has_floor = hybrid.floor is not None
    return kinds, measure_written(answer, titles, known.queries, has_floor)


def _first_places(ranker: Index | HybridRanker, queries: list[str]) -> list[int]:
    """The place of the first title of each query, -1 where a search would show none."""
    ranked = ranker.ranked(queries, 1)
    if isinstance(ranker, Index):
        is_below = ranker.are_below_floor(queries, ranked)
    else:
        is_below = ranker.is_below_floor(queries, ranked) & ~ranker.are_answered(queries)
    first = [-1] * len(queries) if not ranked.titles.size else ranked.titles[:, 0].tolist()
    return [-1 if below else title for below, title in zip(is_below, first, strict=True)]


def _retriever(name: str, ranker: Any, titles: list[str], log: ClickLog | None) -> Retriever:
    if isinstance(ranker, str):
        stems, with_clicks = LEXICAL.get(ranker, (False, True))
        if with_clicks and log is None:
            raise SentembError(f"{ranker} learns from clicks; give the log of the training")
        if ranker == LETTERS and log is not None:
            return LettersOfClicks(titles, log)
        texts = with_clicked_queries(titles, log) if with_clicks and log is not None else titles
        return TitleWords(texts, words=words_of("english" if stems else None))
    if isinstance(ranker, Index):
        if list(ranker.titles) != titles:
            raise SentembError(
                f"{name}: an index of other titles; compare indexes of the same file, or measure "
                "the index itself, which ranks its own titles"
            )
        return ranker
    if isinstance(ranker, HybridRanker):
        # The first one has these titles, and has prepared them for its parts.
        return ranker if ranker.has_titles(titles) else ranker.over(titles)
    return AllPairs(ranker, titles)


class _Reporting:
    """A retriever that says how many queries it has looked up."""

    def __init__(
        self,
        name: str,
        retriever: Retriever,
        n_queries: int,
        on_progress: Callable[[str, int, int], None],
    ) -> None:
        self._name, self._retriever = name, retriever
        self._n_done, self._n_queries, self._on_progress = 0, n_queries, on_progress

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The best titles; see `sentemb.models.contracts.Retriever`."""
        portions = []
        for first in range(0, len(queries), _PORTION):
            portion = queries[first : first + _PORTION]
            portions.append(self._retriever.find(portion, k))
            # With equal titles some queries are looked up again.
            self._n_done = min(self._n_done + len(portion), self._n_queries)
            self._on_progress(self._name, self._n_done, self._n_queries)
        rows, scores = (np.concatenate(arrays) for arrays in zip(*portions, strict=True))
        return rows, scores
