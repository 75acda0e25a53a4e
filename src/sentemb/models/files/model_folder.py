"""The files of a model folder, and where one may be written."""

import contextlib
import os
import re
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.models.files.card import CARD
from sentemb.models.files.history import HISTORY
from sentemb.models.files.sentence_transformers_files import MODULE_FILES
from sentemb.models.files.tensor_files import open_tensors
from sentemb.models.files.text_files import contents_of
from sentemb.system.descriptions import parse_json
from sentemb.system.files import is_folder, names_in, path_of, status, unwritable
from sentemb.system.locks import is_temporary, remove_abandoned
from sentemb.system.paths import AnyPath

CONFIG, TENSORS, VOCABULARY, WORDS = (
    "config.json",
    "model.safetensors",
    "vocabulary.txt",
    "words.txt",
)
# A folder in the folder of a model: the ranker, and a copy of its description for people.
RANKER, RANKER_FILE, RANKER_COPY = "ranker", "ranker.safetensors", "ranker.json"
# All that is written of a model, and the ranker that may be next to it.
FILES = (
    *(CONFIG, TENSORS, VOCABULARY, WORDS, HISTORY, CARD, *MODULE_FILES),
    *(f"{RANKER}/{name}" for name in (RANKER_FILE, RANKER_COPY)),
)
CHECKPOINTS = "checkpoints"
# The description of an index, which holds a model.
_INDEX = "index.json"
# In that folder: a checkpoint, an array that several checkpoints have, and vectors of an embedding.
STEP = re.compile(r"step-(\d{9,18})\.safetensors")
LASTING = re.compile(r"([a-z_]+)-([0-9a-f]{16})\.safetensors")
VECTORS = re.compile(r"vectors-(query|document)-\d{6}\.safetensors")


def is_model(path: AnyPath) -> bool:
    """Whether folder ``path`` holds a model, whole or damaged."""
    return any(status(Path(path) / name) is not None for name in (CONFIG, TENSORS))


def remove_ranker(path: Path) -> None:
    """Remove the ranker in the model folder ``path``, if there is one; other files there stay."""
    folder = path / RANKER
    if not is_folder(folder):
        return
    try:
        # Removed first: a folder without it has no ranker.
        for name in (RANKER_FILE, RANKER_COPY):
            (folder / name).unlink(missing_ok=True)
        remove_abandoned(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    with contextlib.suppress(OSError):
        folder.rmdir()


def check_place(path: AnyPath) -> None:
    """Raise a `SentembError` unless a model may be written to ``path``.

    A model may be written to a new or empty folder, over another sentemb model that is not part
    of an index, and into the folder of a training. Any other files belong to the user and are left
    alone.
    """
    folder = path_of(path)
    if not os.fspath(path):
        raise SentembError("the name of the model's folder is empty; give one")
    if status(folder) is None:
        return
    if not is_folder(folder):
        raise SentembError(f"{path}: is not a folder; choose another place")
    if _is_part_of_index(folder):
        raise SentembError(f"{path}: is the model of an index; choose another place")
    names = {name for name in names_in(folder) if not is_temporary(name)}
    if not names or is_ours(folder):
        return
    # Before its end a training writes none of them.
    if not _is_training(folder, names) or names.intersection(FILES):
        raise SentembError(
            f"{path}: the folder holds other files and not a sentemb model; choose another place"
        )


def _is_part_of_index(folder: Path) -> bool:
    """Whether the folder above has the description of an index, which needs its very model."""
    try:
        description = parse_json(contents_of(Path(os.path.realpath(folder)).parent / _INDEX))
        return isinstance(description, dict) and "model_sha256" in description
    except (SentembError, ValueError):
        return False


def _is_training(folder: Path, names: set[str]) -> bool:
    """Whether a sentemb training began here: other programs write checkpoints too."""
    inside = folder / CHECKPOINTS
    return names == {CHECKPOINTS} or (
        is_folder(inside) and any(map(STEP.fullmatch, names_in(inside)))
    )


def is_ours(folder: Path) -> bool:
    """Whether at least one of the two main files was written by sentemb."""
    try:
        with open_tensors(folder / TENSORS):
            return True
    except SentembError:
        pass
    try:
        config = parse_json(contents_of(folder / CONFIG))
        return isinstance(config, dict) and {"format", "sentemb"} <= config.keys()
    except (SentembError, ValueError):
        return False
