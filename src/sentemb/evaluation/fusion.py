"""Two rankings as one: the weighted sum of their scores, query by query."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.evaluation.metrics import Run
from sentemb.system.bounds import number


def fuse(
    first: Run, second: Run, weight: float = 1.0, standardise: bool = True
) -> dict[str, dict[str, float]]:
    """The sum of the scores of two runs, query id -> title id -> score.

    A title that only one of them ranks for a query counts in the other as much as the last title
    there; a query that only one of them has keeps its order. The result has every query and title
    of both: those of ``first`` in its order, then the others.

    The scores of ``second`` are multiplied by ``weight``; at 0 only ``first`` counts. With
    ``standardise`` the scores of each query first lose their mean and are divided by their standard
    deviation, so that runs with scores of different size count alike. Equal scores become 0. Raises
    `SentembError` if the weight is not a number from 0.
    """
    weight = number("weight", weight, 0, math.nextafter(math.inf, 0))
    fused = {}
    for query_id in [*first, *(id for id in second if id not in first)]:
        first_scores, second_scores = first.get(query_id, {}), second.get(query_id, {})
        title_ids = [*first_scores, *(id for id in second_scores if id not in first_scores)]
        total = _scores(first_scores, title_ids, standardise)
        total += weight * _scores(second_scores, title_ids, standardise)
        fused[query_id] = dict(zip(title_ids, total.tolist(), strict=True))
    return fused


def _scores(
    ranked: Mapping[str, float], title_ids: Sequence[str], standardise: bool
) -> NDArray[np.float64]:
    """The scores of ``title_ids`` for one query; all 0 if the run does not rank any of them."""
    if not ranked:
        return np.zeros(len(title_ids))
    scores = np.array(list(ranked.values()), np.float64)
    if standardise:
        # Rounding would give equal scores a deviation that is not exactly 0.
        varied = scores.max() > scores.min()
        scores = (scores - scores.mean()) / scores.std() if varied else np.zeros(scores.size)
    score_of = dict(zip(ranked, scores.tolist(), strict=True))
    lowest = float(scores.min())
    return np.array([score_of.get(id, lowest) for id in title_ids])
