"""Checkpoints: everything that the rest of a training depends on, one file per checkpoint.

A file is written under another name and then renamed, so it is either whole or not there, and it
holds its own checksum. The two newest files are kept.

A training of several seeds has a folder for each seed instead, with the checkpoints of this member,
and at the end of its training with its model.
"""

import contextlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.protocols import Arrays
from sentemb.storage.folder import CHECKPOINTS, STEP, TENSORS
from sentemb.storage.tensor_files import Damaged, TensorFile, open_tensors, write_tensors
from sentemb.system.files import is_folder, names_in, status, unwritable
from sentemb.system.locks import remove_abandoned
from sentemb.system.paths import AnyPath

_KEEP = 2
_MEMBER = re.compile(r"seed-(0|[1-9]\d{0,9})")


def folder_of(output: AnyPath) -> Path:
    """The folder of checkpoints in the model folder ``output``."""
    return Path(output) / CHECKPOINTS


def member_folder(output: AnyPath, seed: int) -> Path:
    """Where a training of several seeds that writes to ``output`` trains the member of ``seed``."""
    return folder_of(output) / f"seed-{seed}"


def member_seeds(output: AnyPath) -> list[int]:
    """The seeds whose members have begun to train in ``output``, ascending."""
    folder = _real_folder_of(output)
    if folder is None:
        return []
    found = [int(match[1]) for name in names_in(folder) if (match := _MEMBER.fullmatch(name))]
    places = {seed: member_folder(output, seed) for seed in sorted(found)}
    return [seed for seed, one in places.items() if is_folder(one) and not one.is_symlink()]


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
    """Whether there is a checkpoint of one seed in the model folder ``output``."""
    return bool(_checkpoints(output))


def is_started(output: AnyPath) -> bool:
    """Whether a training, of one seed or of several, was stopped in the model folder ``output``."""
    return has_checkpoints(output) or bool(member_seeds(output))


def remove_checkpoints(output: AnyPath) -> None:
    """Remove all checkpoints, complete or not, and the members of a training of several seeds."""
    folder = folder_of(output)
    if not is_folder(folder):
        return
    remove_abandoned(folder)
    try:
        for path in [*_checkpoints(output), *folder.glob(".step-*.tmp")]:  # of version 0.1.0
            path.unlink(missing_ok=True)
        for seed in member_seeds(output):
            _remove_member(member_folder(output, seed))
        _remove_if_empty(folder)
    except OSError as error:
        raise unwritable(folder, error) from error


def _remove_member(folder: Path) -> None:
    """Remove what training wrote to the folder of a member; other files belong to the user."""
    remove_checkpoints(folder)
    remove_abandoned(folder)
    (folder / TENSORS).unlink(missing_ok=True)
    _remove_if_empty(folder)


def _remove_if_empty(folder: Path) -> None:
    if not any(folder.iterdir()):
        folder.rmdir()


def _real_folder_of(output: AnyPath) -> Path | None:
    """The folder of checkpoints in ``output``; None if there is none."""
    folder = folder_of(output)
    if status(folder) is None:
        return None
    if not is_folder(folder) or folder.is_symlink():
        raise SentembError(f"{folder}: is not a folder; remove it or choose another place")
    return folder


def _checkpoints(output: AnyPath) -> list[Path]:
    """Paths, newest first."""
    folder = _real_folder_of(output)
    if folder is None:
        return []
    found = {int(match[1]): name for name in names_in(folder) if (match := STEP.fullmatch(name))}
    return [folder / name for _, name in sorted(found.items(), reverse=True)]
