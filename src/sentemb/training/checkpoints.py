"""Checkpoints: everything that the rest of a training depends on, one file per checkpoint.

A file is written under another name and then renamed, so it is either whole or not there, and it
holds its own checksum. The two newest files are kept.
"""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.protocols import Arrays
from sentemb.storage.folder import CHECKPOINTS, STEP
from sentemb.storage.tensor_files import Damaged, TensorFile, open_tensors, write_tensors
from sentemb.system.files import is_folder, names_in, status, unwritable
from sentemb.system.locks import remove_abandoned
from sentemb.system.paths import AnyPath

_KEEP = 2


def folder_of(output: AnyPath) -> Path:
    """The folder of checkpoints in the model folder ``output``."""
    return Path(output) / CHECKPOINTS


def write_checkpoint(
    output: AnyPath, update: int, arrays: Arrays, progress: dict[str, Any]
) -> None:
    """Write a checkpoint and remove all but the two newest.

    Parameters
    ----------
    output : path
        The model folder.
    update : int
        The number of the next update, from 0.
    arrays : dict of arrays
        Everything that training needs to continue.
    progress : dict
        Anything that JSON can hold.
    """
    write_tensors(folder_of(output) / f"step-{update:09d}.safetensors", arrays, progress)
    for old in _checkpoints(output)[_KEEP:]:
        with contextlib.suppress(OSError):  # an extra file does no harm
            old.unlink()


def take_up_checkpoint(
    output: AnyPath, take_up: Callable[[TensorFile], None], note: Callable[[str], None]
) -> bool:
    """Call ``take_up`` with the newest checkpoint that is complete.

    Parameters
    ----------
    output : path
        The model folder.
    take_up : function of a `TensorFile`
        If the file cannot be used it raises a `Damaged`, before it changes anything. Then the
        next file is tried.
    note : function of a str
        Called for every file that is skipped.

    Returns
    -------
    bool
        Whether there was a usable checkpoint.
    """
    for path in _checkpoints(output):
        try:
            with open_tensors(path) as file:
                take_up(file)
                return True
        except Damaged as error:
            note(f"{path} is damaged and passed over ({error})")
    return False


def has_checkpoints(output: AnyPath) -> bool:
    """Whether there is a checkpoint in the model folder ``output``."""
    return bool(_checkpoints(output))


def remove_checkpoints(output: AnyPath) -> None:
    """Remove all checkpoints, complete or not."""
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


def _checkpoints(output: AnyPath) -> list[Path]:
    """Paths, newest first."""
    folder = folder_of(output)
    if status(folder) is None:
        return []
    if not is_folder(folder) or folder.is_symlink():
        raise SentembError(f"{folder}: is not a folder; remove it or choose another place")
    found = {int(match[1]): name for name in names_in(folder) if (match := STEP.fullmatch(name))}
    return [folder / name for _, name in sorted(found.items(), reverse=True)]
