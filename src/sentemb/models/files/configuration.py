"""The configuration of a model: what ``config.json`` says, checked."""

from typing import Any

from sentemb.errors import SentembError
from sentemb.models.files.saved_model import PAIR, TOWERS, SavedModel
from sentemb.models.files.tensor_files import damaged
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.pairs.registry import PAIR_MODELS
from sentemb.models.towers import make_encoder
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.ensemble import Ensemble
from sentemb.models.towers.registry import ENCODERS, ENSEMBLE
from sentemb.system.bounds import brief
from sentemb.system.descriptions import check_format
from sentemb.text.words import SPLITTINGS
from sentemb.version import __version__

FORMAT = 1
VECTORS = "vectors"


def configuration_of(saved: SavedModel) -> dict[str, Any]:
    """The configuration of a model, as its folder holds it; `checked_config` checks it."""
    vocabulary = saved.model.vocabulary
    features = vocabulary.vectors
    vectors = {} if features is None else {VECTORS: {"words": len(features), "dim": features.dim}}
    return {
        "format": FORMAT,
        "kind": saved.model.kind,
        "model": saved.model.shape.name,
        **saved.model.settings(),
        "splitting": vocabulary.splitting,
        **vectors,
        "trigrams": len(vocabulary.trigrams),
        "words": len(vocabulary.words),
        "training": saved.training,
        "sentemb": __version__,
    }


def checked_config(source: object, config: Any) -> dict[str, Any]:
    """``config`` if this version can read it."""
    if not isinstance(config, dict):
        raise SentembError(f"{source}: this is not the configuration of a sentemb model")
    check_format(source, config, FORMAT)
    kind_of_model = config.get("kind")
    if kind_of_model not in (TOWERS, PAIR):
        raise SentembError(f"{source}: a model of kind {brief(kind_of_model)}; upgrade sentemb")
    needed: dict[str, type] = {"model": str, "training": dict}
    if kind_of_model == TOWERS:
        needed |= {"cells": int, "shared_towers": bool}
    for key, kind in needed.items():
        if type(config.get(key)) is not kind:
            raise damaged(source, f"{key} is missing or of the wrong kind")
    if config.get("splitting") not in tuple(SPLITTINGS):
        raise damaged(source, f"splitting is not one of {', '.join(SPLITTINGS)}")
    if VECTORS in config and not _are_vectors(config[VECTORS]):
        raise damaged(source, f"{VECTORS} is not a number of words and one of dimensions")
    return config


def _are_vectors(value: Any) -> bool:
    """Whether ``value`` describes word vectors that are features."""
    return (
        isinstance(value, dict)
        and value.keys() == {"words", "dim"}
        and all(type(number) is int and 0 < number < 2**31 for number in value.values())
    )


def shape_of(source: object, config: dict[str, Any]) -> Encoder | PairModel:
    """The encoder or pair model that a configuration describes; errors name ``source``."""
    if config["kind"] == TOWERS:
        return encoder_of(source, config)
    try:
        parameters = PAIR_MODELS.entry(config["model"]).parameters
        missing = [parameter.name for parameter in parameters if config.get(parameter.name) is None]
        if missing:
            raise SentembError(f"{missing[0]} is missing")
        made: PairModel = make_pair_model(
            config["model"], **{parameter.name: config[parameter.name] for parameter in parameters}
        )
        return made
    except SentembError as error:
        raise damaged(source, str(error)) from error


def encoder_of(source: object, config: dict[str, Any]) -> Encoder:
    """The encoder that a configuration describes; ``source`` is named if there is none."""
    try:
        name = config["model"]
        if name == ENSEMBLE:
            return Ensemble([encoder_of(source, member) for member in _members(config)])
        names = ENCODERS.entry(name).names
        missing = [key for key in names if config.get(key) is None]
        if missing:
            raise SentembError(f"{missing[0]} is missing")
        encoder: Encoder = make_encoder(name, **{key: config[key] for key in names})
        return encoder
    except SentembError as error:
        raise damaged(source, str(error)) from error


def _members(config: dict[str, Any]) -> list[dict[str, Any]]:
    members = config.get("members")
    if not isinstance(members, list) or not all(
        isinstance(member, dict) and type(member.get("model")) is str for member in members
    ):
        raise SentembError("members is missing or of the wrong kind")
    if any(member["model"] == ENSEMBLE for member in members):
        raise SentembError("an ensemble has a member that is one itself")
    return members
