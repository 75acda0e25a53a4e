"""Checkpoints: everything that the rest of a training depends on, in one file each.

A file is written under another name and renamed, so it is whole or not there, and it knows its own
checksum. The two newest are kept.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.storage.model_files import CHECKPOINTS, STEP
from sentemb.storage.tensor_files import Damaged, TensorFile, open_tensors, write_tensors
from sentemb.system.files import is_folder, names_in, status, unwritable
from sentemb.system.locks import remove_abandoned

_KEEP = 2


def folder_of(output) -> Path:
    """Where the checkpoints of the model ``output`` are."""
    return Path(output) / CHECKPOINTS


def write_checkpoint(output, update: int, arrays: dict, progress: dict) -> None:
    """Write the state before ``update`` and drop all but the two newest checkpoints.

    Parameters
    ----------
    output : path-like
        The model directory.
    update : int
    arrays : dict of arrays
    progress : dict
        Whatever JSON can hold.
    """
    write_tensors(folder_of(output) / f"step-{update:09d}.safetensors", arrays, progress)
    for old in _checkpoints(output)[_KEEP:]:
        with contextlib.suppress(OSError):  # one too many does no harm
            old.unlink()


def take_up_checkpoint(output, take_up: Callable[[TensorFile], None], note) -> bool:
    """Call ``take_up`` with the newest checkpoint that is whole; whether there was one.

    Parameters
    ----------
    output : path-like
        The model directory.
    take_up : function of a `TensorFile`
        Raises a `Damaged` before it has changed anything if the file cannot be used; the next
        one is tried then.
    note : function of a str
        Told of every file that is passed over.
    """
    for path in _checkpoints(output):
        try:
            with open_tensors(path) as file:
                take_up(file)
                return True
        except Damaged as error:
            note(f"{path} is damaged and passed over ({error})")
    return False


def has_checkpoints(output) -> bool:
    """Whether there is a checkpoint in the model directory ``output``."""
    return bool(_checkpoints(output))


def remove_checkpoints(output) -> None:
    """Remove all checkpoints and what killed processes left of them."""
    folder = folder_of(output)
    if not is_folder(folder):
        return
    remove_abandoned(folder)
    try:
        for path in [*_checkpoints(output), *folder.glob(".step-*.tmp")]:  # of version 0.1.0
            path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()
    except OSError as error:
        raise unwritable(folder, error) from error


def _checkpoints(output):
    """Paths, newest first."""
    folder = folder_of(output)
    if status(folder) is None:
        return []
    if not is_folder(folder) or folder.is_symlink():
        raise SentembError(f"{folder}: is not a folder; remove it or choose another place")
    found = {int(match[1]): name for name in names_in(folder) if (match := STEP.fullmatch(name))}
    return [folder / name for _, name in sorted(found.items(), reverse=True)]
