"""Encoders by name: parameters, forward and backward of one tower each."""

import importlib
from typing import Any

from sentemb.models.towers.registry import ENCODERS, own_settings

__all__ = ["ENCODERS", "make_encoder"]


def make_encoder(name: str, **settings: Any) -> Any:
    """The encoder called ``name``.

    Parameters
    ----------
    name : str
        One of `ENCODERS`.
    **settings
        Its hyper-parameters, see `sentemb.models.towers.registry`.

    Raises
    ------
    SentembError
        For an unknown name, a setting that the encoder does not have, or a wrong value.
    """
    own = own_settings(name, settings)
    module, kind = ENCODERS[name].home.split(":")
    return getattr(importlib.import_module(module), kind)(**own)
