"""Checkpoints: everything that the rest of a training depends on.

A checkpoint is a file. Large arrays that seldom change have files of their own, which checkpoints
refer to by name: such a file is written once, before the first checkpoint that refers to it, and
its name has the beginning of its checksum. A file is written under another name and then renamed,
so it is either whole or not there, and it holds its own checksum. The two newest checkpoints are
kept, with the files that they refer to.

A training of several seeds has a folder for each seed instead, with the checkpoints of this member,
and at the end of its training with its model.
"""

import contextlib
import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from sentemb.errors import SentembError
from sentemb.models.files.model_folder import CHECKPOINTS, LASTING, STEP, TENSORS, VECTORS
from sentemb.models.files.tensor_files import (
    Damaged,
    TensorFile,
    checksum,
    open_tensors,
    write_tensors,
)
from sentemb.system.contracts import Arrays
from sentemb.system.files import is_folder, names_in, status, unwritable
from sentemb.system.locks import remove_abandoned
from sentemb.system.paths import AnyPath

_KEEP = 2
# Where the metadata of a checkpoint name the files that it refers to.
_LASTING = "lasting"
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
    seeds = [int(match[1]) for name in names_in(folder) if (match := _MEMBER.fullmatch(name))]
    folders = {seed: member_folder(output, seed) for seed in sorted(seeds)}
    return [seed for seed, path in folders.items() if is_folder(path) and not path.is_symlink()]


class Checkpoint:
    """An open checkpoint with the files that it refers to; a `StoredState`.

    ``lasting`` has the file of each array that is in a file of its own. The attribute ``metadata``
    is that of the checkpoint itself; ``references`` has the names of the files that it refers to,
    by array.
    """

    def __init__(self, file: TensorFile, lasting: dict[str, TensorFile]) -> None:
        self.metadata, self.references = file.metadata, _references(file)
        self._file, self._lasting = file, lasting

    def _file_of(self, name: object) -> TensorFile:
        return self._lasting.get(str(name), self._file)

    def __contains__(self, name: object) -> bool:
        return name in self._file_of(name)

    def __getitem__(self, name: str) -> np.ndarray:
        return self._file_of(name)[name]

    def shape(self, name: str) -> tuple[int, ...] | None:
        """See `StoredState`."""
        return self._file_of(name).shape(name)

    def expect(self, name: str, shape: Sequence[int], dtype: DTypeLike) -> None:
        """See `StoredState`."""
        self._file_of(name).expect(name, shape, dtype)

    def check(self) -> None:
        """See `StoredState`."""
        for file in (self._file, *self._lasting.values()):
            file.check()

    def damaged(self, why: str) -> Damaged:
        """See `StoredState`."""
        return self._file.damaged(why)


@contextlib.contextmanager
def open_checkpoint(path: Path) -> Iterator[Checkpoint]:
    """Open a checkpoint.

    Raises `Damaged` if it is another file or not a whole one, or if one that it refers to is.
    """
    with contextlib.ExitStack() as stack:
        checkpoint = stack.enter_context(open_tensors(path))
        lasting = {}
        for name, file_name in _references(checkpoint).items():
            file = stack.enter_context(open_tensors(path.parent / file_name))
            match = LASTING.fullmatch(file_name)
            if not match or list(file) != [name] or not file.sha256.startswith(match[2]):
                raise file.damaged(f"it is not the one that {path.name} refers to")
            lasting[name] = file
        yield Checkpoint(checkpoint, lasting)


def _references(file: TensorFile) -> dict[str, str]:
    """The names of the files that a checkpoint refers to, by the array that each has."""
    references = file.metadata.get(_LASTING, {})
    if not isinstance(references, dict) or not all(
        isinstance(file_name, str) and (match := LASTING.fullmatch(file_name)) and match[1] == name
        for name, file_name in references.items()
    ):
        raise file.damaged("it does not say where the rest of it is")
    return references


def write_lasting(output: AnyPath, name: str, array: np.ndarray) -> str:
    """Write an array that several checkpoints have; the result is the name of its file."""
    named = {name: array}
    file_name = f"{name}-{checksum(named, {})[:16]}.safetensors"
    write_tensors(folder_of(output) / file_name, named, {})
    return file_name


def write_checkpoint(
    output: AnyPath,
    update: int,
    arrays: Arrays,
    progress: dict[str, Any],
    lasting: dict[str, str] | None = None,
) -> None:
    """Write a checkpoint, and remove all but it, the one before and the files that they refer to.

    ``output`` is the model folder, and ``update`` the number of the next update, from 0. ``arrays``
    are everything that training needs to continue; ``progress`` is anything that JSON can hold.
    ``lasting`` has, for each array that `write_lasting` has written, its result.
    """
    contents = {**progress, **({_LASTING: lasting} if lasting else {})}
    write_tensors(folder_of(output) / f"step-{update:09d}.safetensors", arrays, contents)
    # Later ones are damaged: this training would have continued from them.
    newest = _checkpoints(output, update)[:_KEEP]
    outdated = [path for path in _checkpoints(output) if path not in newest]
    needed: set[str] = set()
    for path in newest:
        with contextlib.suppress(Damaged), open_tensors(path) as file:
            needed.update(_references(file).values())
    for path in [*outdated, *_lasting_files(output)]:
        if path.name not in needed:
            with contextlib.suppress(OSError):  # an extra file does no harm
                path.unlink()


def take_up_checkpoint(
    output: AnyPath, take_up: Callable[[Checkpoint], None], note: Callable[[str], None]
) -> bool:
    """Call ``take_up`` with the newest complete checkpoint; whether there was a usable one.

    If a checkpoint cannot be used, ``take_up`` raises a `Damaged` before it changes anything. Then
    the next file of the model folder ``output`` is tried. ``note`` is called for every file that is
    skipped.
    """
    for path in _checkpoints(output):
        try:
            with open_checkpoint(path) as checkpoint:
                take_up(checkpoint)
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


def vectors_file(output: AnyPath, side: str, number: int) -> Path:
    """Where a training keeps a portion of the vectors that an embedding has for texts of ``side``.

    They are encoded before the first checkpoint and needed until the model is finished.
    """
    return folder_of(output) / f"vectors-{side}-{number:06d}.safetensors"


def remove_vectors(output: AnyPath) -> None:
    """Remove the files of `vectors_file`."""
    folder = folder_of(output)
    for name in names_in(folder) if is_folder(folder) else ():
        if VECTORS.fullmatch(name):
            try:
                (folder / name).unlink(missing_ok=True)
            except OSError as error:
                raise unwritable(folder, error) from error


def remove_checkpoints(output: AnyPath, *, but_vectors: bool = False) -> None:
    """Remove all checkpoints, complete or not, and the members of a training of several seeds.

    ``but_vectors`` keeps the files of `vectors_file`.
    """
    folder = folder_of(output)
    if not is_folder(folder):
        return
    remove_abandoned(folder)
    if not but_vectors:
        remove_vectors(output)
    try:
        for path in [*_checkpoints(output), *_lasting_files(output)]:
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


def _checkpoints(output: AnyPath, last: float = math.inf) -> list[Path]:
    """Paths, newest first, from that of update ``last`` on."""
    folder = _real_folder_of(output)
    if folder is None:
        return []
    name_of = {int(match[1]): name for name in names_in(folder) if (match := STEP.fullmatch(name))}
    return [
        folder / name for update, name in sorted(name_of.items(), reverse=True) if update <= last
    ]


def _lasting_files(output: AnyPath) -> list[Path]:
    """The files of arrays that several checkpoints have."""
    folder = _real_folder_of(output)
    names = () if folder is None else names_in(folder)
    return [folder_of(output) / name for name in names if LASTING.fullmatch(name)]
