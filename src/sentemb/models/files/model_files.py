"""Model folders: replaced in one step; reading checks every byte and executes nothing.

``model.safetensors`` is the model. It holds weights, vocabulary and configuration in one file, so
that a reader sees either the old or the new model, and a killed process leaves one of them. The
other files are copies for people and other programs, and the history of the training.
docs/formats.md describes them all.
"""

import hashlib
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.files.card import CARD, card_of
from sentemb.models.files.configuration import VECTORS, checked_config, configuration_of, shape_of
from sentemb.models.files.history import HISTORY, check_line, history_of, without_times
from sentemb.models.files.model_folder import (
    CONFIG,
    TENSORS,
    VOCABULARY,
    WORDS,
    check_place,
    is_model,
    remove_ranker,
)
from sentemb.models.files.saved_model import CLASSIFIER, KINDS, PAIR, TOWERS, SavedModel
from sentemb.models.files.sentence_transformers_files import remove_modules, write_modules
from sentemb.models.files.tensor_files import TensorFile, damaged, open_tensors, write_tensors
from sentemb.models.files.text_files import text_of
from sentemb.models.files.vocabulary_arrays import (
    WORD_FEATURES,
    arrays_of,
    stored_lines,
    stored_word_features,
)
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.towers import Towers
from sentemb.system.files import is_file, is_folder, made_folder, path_of, write_text
from sentemb.system.locks import locked
from sentemb.system.paths import AnyPath
from sentemb.text.vocabulary import Vocabulary

# -- writing ----------------------------------------------------------------------------------


def save_model(saved: SavedModel, path: AnyPath, force: bool = False) -> None:
    """Write a model to the folder ``path``: either all of it or, on a full disk, nothing.

    Raises `SentembError` if ``path`` holds a model and ``force`` is not set, if it holds something
    else, if another process is writing there, or if it cannot be written.
    """
    check_place(path)
    with made_folder(path), locked(path):
        if not force and is_model(path):
            raise SentembError(
                f"{path}: a model is there already; choose another place or use --force"
            )
        write_model(saved, path)


def write_model(saved: SavedModel, path: AnyPath, modules: bool = True) -> None:
    """`save_model` for a caller that has checked the place and locked the folder.

    Without ``modules``, the files of sentence-transformers are left as they are. A ranker in the
    folder was fitted for the model that was there, and is removed.
    """
    path, model = Path(path), saved.model
    write_tensors_of(saved, path)
    remove_ranker(path)
    config, vocabulary = configuration_of(saved), _vocabulary_of(model)
    write_text(path / CONFIG, json.dumps(config, indent=2, ensure_ascii=False) + "\n")
    write_text(path / VOCABULARY, vocabulary["vocabulary"])
    write_text(path / WORDS, vocabulary["words"])
    write_text(path / HISTORY, "".join(json.dumps(line) + "\n" for line in saved.history))
    if modules and model.kind == TOWERS:
        write_modules(path)
    elif modules:
        remove_modules(path)
    write_text(path / CARD, card_of(saved, path.resolve().name.encode(errors="replace").decode()))


def write_tensors_of(saved: SavedModel, path: AnyPath) -> None:
    """Write the one file that `load_model` needs to the folder ``path``, without the copies."""
    tensors = {
        name: np.frombuffer(text.encode("utf-8"), np.uint8)
        for name, text in _vocabulary_of(saved.model).items()
    }
    if saved.model.vocabulary.vectors is not None:
        tensors |= arrays_of(saved.model.vocabulary.vectors)
    for part, blocks in saved.model.blocks_by_part().items():
        for name, block in blocks.items():
            tensors[f"{part}.{name}"] = block
    metadata = {"config": configuration_of(saved), "history": without_times(saved.history)}
    write_tensors(Path(path) / TENSORS, tensors, metadata)


def _vocabulary_of(model: Towers | Matcher) -> dict[str, str]:
    """The texts of trigrams and words under the names of their tensors."""
    return {
        "vocabulary": text_of(model.vocabulary.trigrams),
        "words": text_of(model.vocabulary.words),
    }


def fingerprint(saved: SavedModel) -> str:
    """The SHA-256 of all that the vectors of a model depend on: shape, vocabulary and weights.

    It does not depend on how the model was trained, or on the version of the package.
    """
    config = configuration_of(saved)
    shape = {name: config[name] for name in config.keys() - {"format", "training", "sentemb"}}
    vocabulary = saved.model.vocabulary
    texts = [shape, list(vocabulary.trigrams), list(vocabulary.words)]
    digest = hashlib.sha256(json.dumps(texts, sort_keys=True).encode())
    if vocabulary.vectors is not None:
        digest.update(vocabulary.vectors.fingerprint().encode())
    for part, blocks in sorted(saved.model.blocks_by_part().items()):
        for name, block in sorted(blocks.items()):
            digest.update(f"{part}.{name} {block.dtype} {block.shape}\n".encode())
            digest.update(np.ascontiguousarray(block).data)
    return digest.hexdigest()


# -- reading ----------------------------------------------------------------------------------


# Where the folders of shops and of indexes have it.
_IN_SHOP = "model"


def load_model(path: AnyPath) -> SavedModel:
    """The model in folder ``path``.

    Raises `SentembError` if there is no model, it is damaged, or a newer version wrote it.
    """
    path = path_of(path)
    if not is_folder(path) or not is_model(path):
        remedy = "train one with `sentemb train`, or make one from word vectors with `sentemb sif`"
        if is_folder(path / _IN_SHOP) and is_model(path / _IN_SHOP):
            remedy = f"did you mean {path / _IN_SHOP}?"
        raise SentembError(f"{path}: there is no model here ({TENSORS} is missing); {remedy}")
    with open_tensors(path / TENSORS) as file:
        config, shape, vocabulary, history = _parts(path, file)
        kind: Any = KINDS[config["kind"]]
        parts_of_model = kind.parts(config)
        dtype = _check_shapes(file, shape, vocabulary, parts_of_model)
        shapes = shape.shapes(len(vocabulary))
        weights = {
            part: {name: np.zeros(size, dtype) for name, size in shapes.items()}
            for part in parts_of_model
        }
        blocks = {
            f"{part}.{name}": block
            for part, arrays in weights.items()
            for name, block in shape.blocks(arrays).items()
        }
        for name, array in file.checked():
            if name in blocks:
                blocks[name][...] = array
    return SavedModel(kind.of_parts(shape, vocabulary, weights), config["training"], history)


def stored_pair_model(path: AnyPath) -> str | None:
    """The name of the pair model in folder ``path``; None if there is none."""
    file = path_of(path) / TENSORS
    if not is_file(file):
        return None
    with open_tensors(file) as tensors:
        config = tensors.metadata.get("config")
    if not isinstance(config, dict) or config.get("kind") != PAIR:
        return None
    name = config.get("model")
    return name if isinstance(name, str) else None


def _parts(
    path: Path, file: TensorFile
) -> tuple[dict[str, Any], Encoder | PairModel, Vocabulary, list[dict[str, Any]]]:
    """Configuration, shape, vocabulary and history of the model in folder ``path``."""
    if CLASSIFIER in file.metadata:
        raise SentembError(
            f"{path}: holds a classifier of the papers' laboratory; give a "
            "folder of `sentemb train` or `sentemb sif`"
        )
    config = checked_config(file.path, file.metadata.get("config"))
    shape = shape_of(file.path, config)
    trigrams, words = (stored_lines(file, name) for name in ("vocabulary", "words"))
    vectors = stored_word_features(file, config[VECTORS]) if VECTORS in config else None
    vocabulary = Vocabulary(trigrams, words, config["splitting"], vectors)
    history: Any = file.metadata.get("history")
    try:
        for line in history:
            check_line(line)
    except (SentembError, TypeError) as error:
        raise damaged(file.path, f"its history: {error}") from error
    return config, shape, vocabulary, _with_times(history, path / HISTORY)


def _with_times(history: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """The copy of ``history`` in file ``path``, which also has times; ``history`` if it differs."""
    try:
        copied = history_of(path)
    except SentembError:
        return history
    return copied if without_times(copied) == history else history


def _check_shapes(
    file: TensorFile, shape: Encoder | PairModel, vocabulary: Vocabulary, parts: Sequence[str]
) -> np.dtype:
    """The dtype of the weights, after a check that the arrays are those of the model."""
    # Stand-ins that take no memory: only the shapes of their views are used.
    hollow = {
        name: np.lib.stride_tricks.as_strided(np.zeros(1, np.float32), size, [0] * len(size))
        for name, size in shape.shapes(len(vocabulary)).items()
    }
    blocks = {
        f"{part}.{name}": block.shape
        for part in parts
        for name, block in shape.blocks(hollow).items()
    }
    dtype = file.dtype(next(iter(blocks)))
    if dtype not in (np.float32, np.float64):
        raise damaged(file.path, "its weights are not floating-point numbers")
    for name, size in blocks.items():
        file.expect(name, size, dtype)
    known = {*blocks, "vocabulary", "words", *(WORD_FEATURES if vocabulary.vectors else ())}
    strange = next((name for name in file if name not in known), None)
    if strange is not None:
        raise damaged(file.path, f"it holds {strange}, which this model does not have")
    return dtype
