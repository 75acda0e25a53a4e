"""Ranking titles by scores."""

from collections.abc import Callable

import numpy as np

from sentemb.bounds import is_integer
from sentemb.errors import SentembError
from sentemb.kernels.top_k import highest


def best_titles(
    score: Callable[[list[str]], np.ndarray], titles: list[str], top_k: int | None
) -> list[tuple[int, float]]:
    """Places in ``titles`` and scores of the best, equal scores in the order given.

    Parameters
    ----------
    score : function
        The scores of a list of titles, (k,) float.
    titles : list of str
        All titles.
    top_k : int or None
        How many to return; None for all.

    Raises
    ------
    SentembError
        If ``top_k`` is not an integer from 1.
    """
    if top_k is not None and (not is_integer(top_k) or top_k < 1):
        raise SentembError(f"top_k must be an integer of at least 1, not {top_k!r}")
    if not titles:
        return []
    scores = score(titles)
    best = highest(scores, len(titles) if top_k is None else top_k)
    return [(int(k), float(scores[k])) for k in best]
