"""Pair models: two texts in, one score out."""

import importlib
from typing import TYPE_CHECKING, Any

from sentemb.models.pairs.registry import PAIR_MODELS, own_settings

if TYPE_CHECKING:
    from sentemb.models.pairs.pair_model import PairModel

__all__ = ["PAIR_MODELS", "make_pair_model"]


def make_pair_model(name: str, **settings: Any) -> "PairModel":
    """The pair model called ``name``.

    Parameters
    ----------
    name : str
        One of `PAIR_MODELS`.
    **settings
        Its hyper-parameters, see `sentemb.models.pairs.registry`.

    Raises
    ------
    SentembError
        For an unknown name, a setting that the model does not have, a wrong value, or settings that
        do not go together.
    """
    own = own_settings(name, settings)
    module, kind = PAIR_MODELS[name].home.split(":")
    made: PairModel = getattr(importlib.import_module(module), kind)(**own)
    return made
