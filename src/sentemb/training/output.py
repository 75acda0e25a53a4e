"""The model folder of a training: whether it can be written, is finished, and fits on the disk."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.models.files.model_files import load_model
from sentemb.models.files.model_folder import check_place, is_model
from sentemb.system.files import make_folder
from sentemb.system.paths import AnyPath
from sentemb.training.checkpoints import folder_of, is_started, remove_checkpoints
from sentemb.training.identity import Identity


def check_output(output: AnyPath, resume: bool, force: bool) -> None:
    """Raise a `SentembError` if a training must not write to the folder ``output``."""
    if resume and force:
        raise SentembError("resume continues what is there and force replaces it; choose one")
    check_place(output)
    if resume or force:
        return
    if is_model(output):
        raise SentembError(
            f"{output}: a model is there already; use --resume to continue its training, --force "
            "to replace it, or choose another place"
        )
    if is_started(output):
        raise SentembError(
            f"{output}: a training that was stopped is there; use --resume to continue it, "
            "--force to start again, or choose another place"
        )


def is_finished(output: Path, identity: Identity, read: Callable[[Path], Any] = load_model) -> bool:
    """Whether ``output`` holds the finished model of training ``identity``, as ``read`` reads it.

    Raises `SentembError` if it holds the model of another training, or a damaged one, and no
    checkpoints.
    """
    if not is_model(output):
        return False
    started = is_started(output)
    try:
        record = read(output).training
    except SentembError:
        if started:  # the end of the training writes the model again
            return False
        raise
    finished = bool(record.get("finished"))
    if started:
        # The checkpoints may belong to a later training that is to replace the model.
        return finished and identity.in_record(record) == identity.as_dict()
    identity.check(identity.in_record(record), output)
    return finished


def make_room(output: Path, n_bytes: int) -> None:
    """Remove old checkpoints, then check that ``n_bytes`` are free.

    Vectors of an embedding stay, because the training that begins has just encoded them. Raises
    `SentembError` if there is too little room.
    """
    remove_checkpoints(output, but_vectors=True)
    make_folder(folder_of(output))
    free = shutil.disk_usage(output).free
    if free < n_bytes:
        remove_checkpoints(output)
        if not any(output.iterdir()):
            output.rmdir()
        raise SentembError(
            f"{output}: the model needs {n_bytes / 1e6:.1f} MB and {free / 1e6:.1f} MB are "
            "free there; make room or choose another place"
        )
