"""How well a ranker, a model or a baseline, orders the titles of a judged set."""

from collections.abc import Iterable

import numpy as np

from sentemb.data.judged_set import JudgedSet
from sentemb.evaluation.metrics import NDCG, ndcg
from sentemb.models.contracts import ByProduct, Ranker


def judged_run(ranker: Ranker, judged: JudgedSet) -> dict[str, dict[str, float]]:
    """Score every judged title for its query: a run, query id -> title id -> score.

    A ranker that knows products knows the titles by their ids.
    """
    if isinstance(ranker, ByProduct):
        ranker = ranker.with_ids(judged.titles, judged.title_ids)
    query_of_each = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
    scores = ranker.score_pairs(
        judged.queries, judged.titles, query_of_each, judged.title_index
    ).tolist()
    run = {}
    for q, query_id in enumerate(judged.query_ids):
        span = range(judged.offsets[q], judged.offsets[q + 1])
        run[query_id] = {judged.title_ids[judged.title_index[k]]: scores[k] for k in span}
    return run


def evaluate_model(
    ranker: Ranker,
    judged: JudgedSet,
    cutoffs: Iterable[int] = (1, 3, 10),
    gain: str = "exponential",
) -> NDCG:
    """`NDCG` of ``ranker`` on ``judged``: for each query it ranks the judged titles."""
    return ndcg(judged, judged_run(ranker, judged), cutoffs, gain)
