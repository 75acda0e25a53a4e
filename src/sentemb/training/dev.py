"""The dev set: a judged set that is measured after every epoch."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.data.judged_set import JudgedSet, read_judged_set
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.protocols import Ranker
from sentemb.system.paths import AnyPath

DEV_CUTOFFS = (1, 3, 10)


class _Zeros:
    """A ranker that gives every pair the score 0."""

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        return np.zeros(len(query_index))


def read_dev(dev: AnyPath | JudgedSet) -> JudgedSet:
    """The dev set, read if it is a path.

    Raises
    ------
    SentembError
        If it cannot be read, or NDCG cannot be computed on it.
    """
    judged = dev if isinstance(dev, JudgedSet) else read_judged_set(dev)
    try:
        evaluate_model(_Zeros(), judged, DEV_CUTOFFS)
    except SentembError as error:
        name = "the dev set" if dev is judged else dev
        raise SentembError(f"{name}: {error}") from error
    return judged


def measure(model: Ranker, dev: JudgedSet) -> dict[str, float]:
    """NDCG by name, such as ``{"ndcg@1": 0.8}``, rounded as a training's history keeps it."""
    mean = evaluate_model(model, dev, DEV_CUTOFFS).mean
    return {f"ndcg@{k}": round(float(value), 6) for k, value in zip(DEV_CUTOFFS, mean, strict=True)}
