"""Checkpoints: everything that the rest of a training depends on, in one file each.

A file is written beside and renamed, so it is whole or not there, and it knows its own checksum.
The two newest are kept.
"""

import re
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.model_files import read_tensors, write_tensors

_NAME = re.compile(r"step-(\d+)\.safetensors")
_KEEP = 2


def folder_of(output):
    """Where the checkpoints of the model ``output`` are."""
    return Path(output) / "checkpoints"


def write_checkpoint(output, update, arrays, progress):
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
    folder = folder_of(output)
    write_tensors(folder / f"step-{update:09d}.safetensors", arrays, progress)
    for old in _checkpoints(output)[_KEEP:]:
        old.unlink(missing_ok=True)


def read_checkpoint(output, note):
    """The newest whole checkpoint: (arrays, progress), or None.

    A damaged one is passed over, and ``note`` (a function of a message) told.
    """
    for path in _checkpoints(output):
        try:
            return read_tensors(path)
        except SentembError as error:
            note(f"{path} is damaged and passed over ({error})")
    return None


def remove_checkpoints(output):
    """Remove all checkpoints and leftovers of writing them."""
    folder = folder_of(output)
    if folder.is_dir():
        for path in [*folder.glob("step-*.safetensors"), *folder.glob(".step-*.tmp")]:
            path.unlink(missing_ok=True)
        if not any(folder.iterdir()):
            folder.rmdir()


def _checkpoints(output):
    """Paths, newest first."""
    folder = folder_of(output)
    found = [path for path in folder.glob("step-*.safetensors") if _NAME.fullmatch(path.name)]
    return sorted(found, reverse=True)
