"""The configuration of a model: what ``config.json`` says, checked."""

from typing import Any

from sentemb.errors import SentembError
from sentemb.hyperparameters import current_names
from sentemb.models import make_encoder
from sentemb.models.encoder import Encoder
from sentemb.models.registry import encoder_parameters, entry_of
from sentemb.storage.saved_model import TOWERS, SavedModel
from sentemb.storage.tensor_files import damaged
from sentemb.text.words import SPLITTINGS, WHITE_SPACE
from sentemb.version import __version__

# Formats 1 and 2 have the configuration and the vocabulary in files of their own. Format 4 is
# format 3 with `splitting`, which earlier versions would ignore.
FORMAT = 4


def configuration_of(saved: SavedModel) -> dict[str, Any]:
    """What `checked_config` will find in the folder of a model."""
    model = saved.model
    splitting = model.vocabulary.splitting
    # Without a splitting of its own, a model can be read by the version before too.
    own = {} if splitting == WHITE_SPACE else {"splitting": splitting}
    return {
        "format": FORMAT if own else 3,
        "kind": saved.kind,
        "model": model.encoder.name,
        **model.encoder.settings(),
        **own,
        "shared_towers": model.shared,
        "dim": model.encoder.dim,
        "trigrams": len(model.vocabulary.trigrams),
        "words": len(model.vocabulary.words),
        "training": saved.training,
        "sentemb": __version__,
    }


def checked_config(place: object, config: Any, first: int = 1) -> dict[str, Any]:
    """``config`` if this version can read it and its format is ``first`` or later."""
    if not isinstance(config, dict) or type(config.get("format")) is not int:
        raise SentembError(f"{place}: this is not the configuration of a sentemb model")
    if config["format"] > FORMAT:
        raise SentembError(
            f"{place}: written by a newer sentemb (format {config['format']}, this one reads up to "
            f"{FORMAT}); upgrade sentemb"
        )
    if config["format"] < first:
        raise damaged(place, f"a configuration of format {config['format']} does not belong there")
    if config.get("kind", TOWERS) != TOWERS:
        raise SentembError(f"{place}: a model of kind {config['kind']!r}; upgrade sentemb")
    needed = {"model": str, "cells": int, "shared_towers": bool, "training": dict}
    for key, kind in needed.items():
        if type(config.get(key)) is not kind:
            raise damaged(place, f"{key} is missing or of the wrong kind")
    if config.get("splitting", WHITE_SPACE) not in tuple(SPLITTINGS):
        raise damaged(place, f"splitting is not one of {', '.join(SPLITTINGS)}")
    return {"splitting": WHITE_SPACE, **config}


def encoder_of(place: object, config: dict[str, Any]) -> Encoder:
    """The encoder that a configuration describes; ``place`` is named if there is none."""
    try:
        # Earlier versions may have called a setting something else, or not have had it.
        config = current_names(config, encoder_parameters())
        name = config["model"]
        own = [key for key in entry_of(name).names if key in config]
        missing = [key for key in own if config[key] is None]
        if missing:
            raise SentembError(f"{missing[0]} is missing")
        encoder: Encoder = make_encoder(name, **{key: config[key] for key in own})
        return encoder
    except SentembError as error:
        raise damaged(place, str(error)) from error
