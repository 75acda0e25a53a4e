"""Model folders: replaced in one step; reading checks every byte and executes nothing.

``model.safetensors`` is the model. It holds weights, vocabulary and configuration in one file, so
that a reader sees either the old or the new model, and a killed process leaves one of them. The
other files are copies for people and other programs, and the history of the training.
docs/formats.md describes them all.
"""

import hashlib
import json
import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sentemb.errors import SentembError
from sentemb.hyperparameters import current_names
from sentemb.models import make_encoder
from sentemb.models.encoder import Encoder
from sentemb.models.registry import encoder_parameters, entry_of
from sentemb.models.towers import SIDES, Towers, distinct_sides
from sentemb.storage.history import HISTORY, best_epoch, check_line, history_line, without_times
from sentemb.storage.saved_model import TOWERS, SavedModel
from sentemb.storage.tensor_files import (
    TensorFile,
    check_regular,
    damaged,
    open_tensors,
    parse_json,
    write_tensors,
)
from sentemb.system.files import (
    is_folder,
    make_folder,
    names_in,
    path_of,
    reading,
    status,
    write_text,
)
from sentemb.system.locks import is_temporary, locked
from sentemb.system.paths import AnyPath
from sentemb.text.vocabulary import Vocabulary
from sentemb.version import __version__

# Formats 1 and 2 have the configuration and the vocabulary in files of their own.
FORMAT = 3
CONFIG, TENSORS, VOCABULARY, WORDS, CARD = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "words.txt",
    "README.md",
)
CHECKPOINTS = "checkpoints"
STEP = re.compile(r"step-(\d{9,18})\.safetensors")  # in that folder
# sentemb does not write a larger text file into a model folder.
_MAX_TEXT_BYTES = 64 << 20
# Configuration, encoder, vocabulary and history.
_Parts: TypeAlias = tuple[dict[str, Any], Encoder, Vocabulary, list[dict[str, Any]]]


# -- looking ----------------------------------------------------------------------------------


def is_model(path: AnyPath) -> bool:
    """Whether folder ``path`` holds a model, whole or damaged."""
    return any(status(Path(path) / name) is not None for name in (CONFIG, TENSORS))


def check_place(path: AnyPath) -> None:
    """Raise a `SentembError` unless a model may be written to ``path``.

    A model may be written to a new or empty folder, over another sentemb model, and into the folder
    of a training. Any other files belong to the user and are left alone.
    """
    folder = path_of(path)
    if not os.fspath(path):
        raise SentembError("the name of the model's folder is empty; give one")
    if status(folder) is None:
        return
    if not is_folder(folder):
        raise SentembError(f"{path}: is not a folder; choose another place")
    names = {name for name in names_in(folder) if not is_temporary(name)}
    if names and not (_is_training(folder, names) or _is_ours(folder)):
        raise SentembError(
            f"{path}: the folder holds other files and not a sentemb model; choose another place"
        )


def _is_training(folder: Path, names: set[str]) -> bool:
    """Whether a sentemb training began here: other programs write checkpoints too."""
    inside = folder / CHECKPOINTS
    return names == {CHECKPOINTS} or (
        is_folder(inside) and any(map(STEP.fullmatch, names_in(inside)))
    )


def _is_ours(folder: Path) -> bool:
    """Whether at least one of the two main files was written by sentemb."""
    try:
        with open_tensors(folder / TENSORS):
            return True
    except SentembError:
        pass
    try:
        config = parse_json(_read(folder / CONFIG))
        return isinstance(config, dict) and {"format", "sentemb"} <= config.keys()
    except (SentembError, ValueError):
        return False


# -- writing ----------------------------------------------------------------------------------


def save_model(saved: SavedModel, path: AnyPath, force: bool = False) -> None:
    """Write a model to the folder ``path``: either all of it or, on a full disk, nothing.

    Raises
    ------
    SentembError
        If ``path`` holds a model and ``force`` is not set, if it holds something else, if another
        process is writing there, or if it cannot be written.
    """
    check_place(path)
    with locked(make_folder(path)):
        if not force and is_model(path):
            raise SentembError(
                f"{path}: a model is there already; choose another place or use --force"
            )
        write_model(saved, path)


def write_model(saved: SavedModel, path: AnyPath) -> None:
    """`save_model` for a caller that has checked the place and locked the folder."""
    path, model = Path(path), saved.model
    vocabulary = {
        "vocabulary": _lines(model.vocabulary.trigrams),
        "words": _lines(model.vocabulary.words),
    }
    config = {
        "format": FORMAT,
        "kind": saved.kind,
        "model": model.encoder.name,
        **model.encoder.settings(),
        "shared_towers": model.shared,
        "dim": model.encoder.dim,
        "trigrams": len(model.vocabulary.trigrams),
        "words": len(model.vocabulary.words),
        "training": saved.training,
        "sentemb": __version__,
    }
    tensors = {
        name: np.frombuffer(text.encode("utf-8"), np.uint8) for name, text in vocabulary.items()
    }
    for side, weights in model.each.items():
        prefix = "shared" if model.shared else side
        for name, block in model.encoder.blocks(weights).items():
            tensors[f"{prefix}.{name}"] = np.ascontiguousarray(block)
    metadata = {"config": config, "history": without_times(saved.history)}
    write_tensors(path / TENSORS, tensors, metadata)
    write_text(path / CONFIG, json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    write_text(path / VOCABULARY, vocabulary["vocabulary"])
    write_text(path / WORDS, vocabulary["words"])
    write_text(path / HISTORY, "".join(json.dumps(line) + "\n" for line in saved.history))
    write_text(path / CARD, _card(saved, path.resolve().name.encode(errors="replace").decode()))


# -- reading ----------------------------------------------------------------------------------


def load_model(path: AnyPath) -> SavedModel:
    """The model in folder ``path``.

    Raises
    ------
    SentembError
        If there is no model, it is damaged, or a newer version wrote it.
    """
    path = path_of(path)
    if not is_folder(path) or not is_model(path):
        raise SentembError(
            f"{path}: there is no model here ({TENSORS} is missing); train one with `sentemb train`"
        )
    with open_tensors(path / TENSORS) as file:
        old = "config_sha256" in file.metadata
        parts = _old_parts(path, file) if old else _parts(path, file)
        config, encoder, vocabulary, history = parts
        shared = config["shared_towers"]
        sides = ("shared",) if shared else SIDES
        dtype = _check_shapes(file, encoder, len(vocabulary), sides)
        shapes = encoder.shapes(len(vocabulary))
        weights = {
            side: {name: np.zeros(shape, dtype) for name, shape in shapes.items()} for side in sides
        }
        blocks = {
            f"{side}.{name}": block
            for side, tower in weights.items()
            for name, block in encoder.blocks(tower).items()
        }
        for name, array in file.checked():
            if name in blocks:
                blocks[name][...] = array
    by_side = dict(zip(distinct_sides(shared), weights.values(), strict=True))
    towers = Towers.of(encoder, vocabulary, by_side)
    return SavedModel(towers, config["training"], history)


def _parts(path: Path, file: TensorFile) -> _Parts:
    config = _checked_config(file.path, file.metadata.get("config"), first=3)
    encoder = _encoder_of(file.path, config)
    vocabulary = Vocabulary(_lines_of(file, "vocabulary"), _lines_of(file, "words"))
    history: Any = file.metadata.get("history")
    try:
        for line in history:
            check_line(line)
    except (SentembError, TypeError) as error:
        raise damaged(file.path, f"its history: {error}") from error
    return config, encoder, vocabulary, _with_times(history, path / HISTORY)


def _with_times(history: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The copy of ``history`` in file ``path``, which also has times; ``history`` if it differs."""
    try:
        copied = _history(path)
    except SentembError:
        return history
    return copied if without_times(copied) == history else history


def _checked_config(place: object, config: Any, first: int = 1) -> dict[str, Any]:
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
    return config


def _encoder_of(place: object, config: dict[str, Any]) -> Encoder:
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


def _check_shapes(
    file: TensorFile, encoder: Encoder, n_features: int, sides: Sequence[str]
) -> np.dtype:
    """The dtype of the weights, after a check that the arrays are those of the encoder."""
    # Stand-ins that take no memory: only the shapes of their views are used.
    hollow = {
        name: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), shape, [0] * len(shape))
        for name, shape in encoder.shapes(n_features).items()
    }
    blocks = {
        f"{side}.{name}": block.shape
        for side in sides
        for name, block in encoder.blocks(hollow).items()
    }
    dtype = file.dtype(next(iter(blocks)))
    if dtype not in (np.float32, np.float64):
        raise damaged(file.path, "its weights are not floating-point numbers")
    for name, shape in blocks.items():
        file.expect(name, shape, dtype)
    strange = next((name for name in file if name not in {*blocks, "vocabulary", "words"}), None)
    if strange is not None:
        raise damaged(file.path, f"it holds {strange}, which this model does not have")
    return dtype


def _lines_of(file: TensorFile, name: str) -> list[str]:
    """The lines of a text that is stored as an array of bytes."""
    if file.dtype(name) != np.uint8:
        raise damaged(file.path, f"{name} is missing or not a text")
    return _split_lines(file.path, file[name].tobytes())


def _split_lines(place: object, raw: bytes) -> list[str]:
    try:
        return raw.decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError:
        raise damaged(place, "it is not valid UTF-8") from None


def _history(path: Path) -> list[dict[str, Any]]:
    if status(path) is None:
        return []
    lines = []
    raw = _read(path)
    if raw and not raw.endswith(b"\n"):
        raise damaged(path, "its last line has no line end")
    for number, text in enumerate(_split_lines(path, raw), 1):
        try:
            lines.append(history_line(text))
        except SentembError as error:
            raise damaged(f"{path}:{number}", str(error)) from error
    return lines


def _read(path: Path) -> bytes:
    """The contents of a small regular file. A device may have no end and is refused."""
    check_regular(path)
    with reading(path) as file:
        contents = file.read(_MAX_TEXT_BYTES + 1)
    if len(contents) > _MAX_TEXT_BYTES:
        raise damaged(path, f"it has more than {_MAX_TEXT_BYTES:,} bytes")
    return contents


# -- formats 1 and 2 --------------------------------------------------------------------------


def _old_parts(path: Path, file: TensorFile) -> _Parts:
    """`_parts` with the configuration and both vocabularies in files of their own."""
    raw = _read(path / CONFIG)
    try:
        config = _checked_config(path / CONFIG, parse_json(raw))
    except SentembError:
        raise
    except ValueError as error:
        raise damaged(path / CONFIG, f"it is not JSON ({error})") from error
    encoder = _encoder_of(path / CONFIG, config)
    texts = {"vocabulary": path / VOCABULARY}
    if config["format"] > 1:  # models of format 1 have no words
        texts["words"] = path / WORDS
    for name in texts:
        if type(config.get(f"{name}_sha256")) is not str:
            raise damaged(path / CONFIG, f"{name}_sha256 is missing or of the wrong kind")
    lines = [_old_lines(text, config[f"{name}_sha256"]) for name, text in texts.items()]
    if file.metadata.get("config_sha256") != _sha256(raw):
        raise damaged(file.path, f"it belongs to another {CONFIG}")
    return config, encoder, Vocabulary(*lines), _history(path / HISTORY)


def _old_lines(path: Path, sha256: str) -> list[str]:
    raw = _read(path)
    if _sha256(raw) != sha256:
        raise damaged(path, "it is not the file that the model was saved with")
    return _split_lines(path, raw)


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


# -- the card ---------------------------------------------------------------------------------


def _lines(items: Iterable[str]) -> str:
    return "".join(f"{item}\n" for item in items)


def _card(saved: SavedModel, name: str) -> str:
    """The README.md of a model folder."""
    model = saved.model
    shape = ", ".join(f"{key} {value}" for key, value in model.encoder.settings().items())
    lines = [
        f"# {name}",
        "",
        f"A sentence-embedding model: {model.encoder.name} ({shape}), "
        f"{'one shared tower' if model.shared else 'a query and a title tower'}, "
        f"{model.vocabulary}, {model.encoder.dim} dimensions.",
        "",
        "```python",
        "from sentemb import SentenceEncoder",
        "",
        f'model = SentenceEncoder.from_pretrained("{name}")',
        'model.score("a query", "a title")',
        "```",
        "",
    ]
    if saved.training:
        lines += ["| training setting | value |", "| --- | --- |"]
        lines += [f"| {key} | {value} |" for key, value in saved.training.items()]
        lines.append("")
    best = best_epoch(saved.history)
    if best is not None:
        figures = ", ".join(f"{key} {value:.3f}" for key, value in best["dev"].items())
        lines += [f"Best on the dev set after epoch {best['epoch']}: {figures}.", ""]
    return "\n".join(lines)
