"""Checks before a command begins: whether it may write to its output paths."""

import os
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath


@dataclass(frozen=True)
class Output:
    """A file or a folder that a command writes.

    is_folder : whether it is a folder; whether that may be replaced depends on its contents
    can_stream : whether ``-`` is standard output
    """

    path: AnyPath
    is_folder: bool = False
    can_stream: bool = False


def check_outputs(outputs: Sequence[Output], inputs: Iterable[AnyPath], force: bool) -> None:
    """Refuse an output that would destroy an input, another output or, without ``force``, a file.

    An output must not be an input, hold one or be inside one. Links are followed. An input that
    does not exist is left to its reader; the input ``-`` is standard input. Raises `SentembError`
    for the first output that must not be written. Nothing was done then.
    """
    read = [(path, metadata) for path in inputs if (metadata := _stored(path)) is not None]
    for number, output in enumerate(outputs):
        if str(output.path) == "-":
            if not output.can_stream:
                kind = "folder" if output.is_folder else "file"
                raise SentembError(f"standard output cannot hold this output; name a {kind}")
            continue
        _check_overlap(output, read)
        if any(_is_same(output.path, earlier.path) for earlier in outputs[:number]):
            raise SentembError(f"{output.path}: is named for two outputs; give two names")
        if not (output.is_folder or force) and _is_file(output.path):
            raise SentembError(f"{output.path}: exists; name another file or use --force")


def _check_overlap(output: Output, read: Sequence[tuple[AnyPath, os.stat_result]]) -> None:
    above = [
        metadata for path in _with_parents(output.path) if (metadata := _stored(path)) is not None
    ]
    written = _stored(output.path)
    for path, metadata in read:
        name = place_name(path)
        if written is not None and os.path.samestat(metadata, written):
            raise SentembError(f"{output.path}: is read by the command; name another place")
        if any(os.path.samestat(metadata, parent) for parent in above):
            raise SentembError(
                f"{output.path}: is inside {name}, which the command reads; name another place"
            )
        if written is not None and output.is_folder and str(path) != "-":
            for parent in map(_stored, _with_parents(path)):
                if parent is not None and os.path.samestat(parent, written):
                    raise SentembError(
                        f"{output.path}: holds {name}, which the command reads; name another folder"
                    )


def _stored(path: AnyPath) -> os.stat_result | None:
    """The status of a file or folder; None for pipes, devices and paths that give an error.

    The error is left to its reader or writer.
    """
    try:
        metadata = os.fstat(0) if str(path) == "-" else os.stat(path)
    except (OSError, ValueError):
        return None
    return metadata if stat.S_ISREG(metadata.st_mode) or stat.S_ISDIR(metadata.st_mode) else None


def _is_file(path: AnyPath) -> bool:
    metadata = _stored(path)
    return metadata is not None and stat.S_ISREG(metadata.st_mode)


def _with_parents(path: AnyPath) -> list[Path]:
    """The folders above a path, with links followed, nearest first."""
    return list(Path(_real(path)).parents)


def _real(path: AnyPath) -> str:
    try:
        return os.path.realpath(path)
    except ValueError:  # a NUL character, which the writer refuses
        return os.fspath(path)


def _is_same(first: AnyPath, second: AnyPath) -> bool:
    """Whether two names, which may not exist yet, are of one file that can be replaced."""
    real = _real(first)
    is_stream = os.path.lexists(real) and _stored(real) is None
    return real == _real(second) and not is_stream
