"""Pair models: two texts in, one score out."""

from typing import Any

from sentemb.models.pairs.registry import PAIR_MODELS

__all__ = ["PAIR_MODELS", "make_pair_model"]


def make_pair_model(name: str, **settings: Any) -> Any:
    """The pair model called ``name``, such as "arc1", without weights.

    Parameters
    ----------
    name : str
        One of those that ``sentemb train --help`` lists.
    **settings
        Its shape, such as ``embedding`` and ``maps``; the others have their defaults.

    Returns
    -------
    PairModel

    Raises
    ------
    SentembError
        For an unknown name, a setting that the model does not have, a wrong value, or settings that
        do not go together.
    """
    return PAIR_MODELS.make(name, **settings)
