"""One function that measures whatever ranks, on judged sets and on held-out clicks."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Any

from sentemb.data.click_log import ClickLog
from sentemb.data.held_out_clicks import read_held_out
from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.held_out import METRICS, AllPairs, Evaluation, evaluate_clicks
from sentemb.evaluation.metrics import NDCG
from sentemb.models.contracts import Ranker
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.index import Index
from sentemb.search.index_files import is_index
from sentemb.search.ranking.opening import load_best
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.system.bounds import brief
from sentemb.system.paths import AnyPath

JUDGED_METRICS = ("ndcg@1", "ndcg@3", "ndcg@10")


def evaluate(
    ranker: Index | Ranker | AnyPath,
    held_out: JudgedSet | ClickLog | AnyPath,
    titles: Sequence[str] | None = None,
    metrics: Sequence[str] | None = None,
    gain: str = "exponential",
) -> NDCG | Evaluation:
    """Measure a ranking on a judged set or on held-out clicks.

    Parameters
    ----------
    ranker : Index, HybridRanker, SentenceEncoder, PairScorer, or path
        A path is the folder of an index or of a model, whose ranker ranks if it has one. Anything
        else with ``score_pairs`` will do.
    held_out : JudgedSet, ClickLog, or path
        The judged titles of each query are ranked against each other; for held-out clicks the
        whole catalogue is.
    titles : sequence of str, optional
        The catalogue for held-out clicks. By default the titles of the index, otherwise those of
        the clicks.
    metrics : sequence of str, optional
        ``"ndcg@k"`` for a judged set; also ``"hit@k"``, ``"mrr@k"`` and ``"recall@k"`` for held-out
        clicks.
    gain : {"exponential", "linear"}
        How much a grade of a judged set is worth: 2^grade - 1, or the grade.

    Returns
    -------
    NDCG or Evaluation
        For a judged set, or for held-out clicks.

    Raises
    ------
    SentembError
        For a folder that holds neither a model nor an index, a metric that does not go with
        ``held_out``, or titles next to an index.
    """
    opened: Any = ranker
    if isinstance(ranker, str | os.PathLike):
        opened = Index.open(ranker) if is_index(ranker) else load_best(ranker)
    judgments = read_held_out(held_out) if isinstance(held_out, str | os.PathLike) else held_out
    if isinstance(judgments, JudgedSet):
        scorer = opened.ranker if isinstance(opened, Index) else opened
        return evaluate_model(scorer, judgments, cutoffs_of(metrics or JUDGED_METRICS), gain)
    if isinstance(opened, Index):
        if titles is not None:
            raise SentembError("an index has titles of its own; leave titles out")
        return evaluate_clicks(opened, judgments, list(opened.titles), metrics or METRICS)
    catalogue = list(judgments.titles if titles is None else titles)
    if isinstance(opened, SentenceEncoder):
        opened = HybridRanker(opened, MODEL_ALONE)
    retriever = (
        opened.over(catalogue) if isinstance(opened, HybridRanker) else AllPairs(opened, catalogue)
    )
    return evaluate_clicks(retriever, judgments, catalogue, metrics or METRICS)


def cutoffs_of(metrics: Sequence[str]) -> tuple[int, ...]:
    """The ranks k of metrics that must all be ndcg@k, as a judged set has no others."""
    for metric in metrics:
        if not re.fullmatch(r"ndcg@\d{1,9}", metric):
            raise SentembError(f"{brief(metric)} does not go with a judged set; give ndcg@k")
    return tuple(int(metric.removeprefix("ndcg@")) for metric in metrics)
