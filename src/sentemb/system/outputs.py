"""What every command asks before it works: whether it may write where it was told to."""

import os
import stat
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import is_file, is_folder, place_name, status
from sentemb.system.paths import AnyPath


@dataclass(frozen=True)
class Output:
    """A file or a folder that a command writes.

    Attributes
    ----------
    path : str or path-like
        The file or folder.
    is_folder : bool
        Whether it is a folder; whether that may be replaced depends on what it holds.
    can_stream : bool
        Whether ``-`` is standard output.
    """

    path: AnyPath
    is_folder: bool = False
    can_stream: bool = False


def check_outputs(outputs: Sequence[Output], inputs: Iterable[AnyPath], force: bool) -> None:
    """Refuse an output that would destroy an input, another output or, without ``force``, a file.

    An output must not be an input, hold one or be inside one. Links are followed. An input that
    does not exist is left to its reader.

    Parameters
    ----------
    outputs : sequence of Output
        What is written.
    inputs : iterable of path
        The files and folders that are read; ``-`` is standard input.
    force : bool
        Whether files that exist may be replaced.

    Raises
    ------
    SentembError
        For the first output that must not be written. Nothing was done then.
    """
    read = [(path, found) for path in inputs if (found := _stored(path)) is not None]
    for place, output in enumerate(outputs):
        if str(output.path) == "-":
            if not output.can_stream:
                kind = "folder" if output.is_folder else "file"
                raise SentembError(f"standard output cannot hold this output; name a {kind}")
            continue
        _check_overlap(output, read)
        if any(_is_same(output.path, other.path) for other in outputs[:place]):
            raise SentembError(f"{output.path}: is named for two outputs; give two names")
        if not (output.is_folder or force) and is_file(output.path):
            raise SentembError(f"{output.path}: exists; name another file or use --force")


def _check_overlap(output: Output, read: Sequence[tuple[AnyPath, os.stat_result]]) -> None:
    above = [found for path in _with_parents(output.path) if (found := status(path)) is not None]
    written = _stored(output.path)
    for path, found in read:
        name = place_name(path)
        if written is not None and os.path.samestat(found, written):
            raise SentembError(f"{output.path}: is read by the command; name another place")
        if any(os.path.samestat(found, one) for one in above):
            raise SentembError(
                f"{output.path}: is inside {name}, which the command reads; name another place"
            )
        if written is not None and output.is_folder and str(path) != "-":
            for one in map(status, _with_parents(path)):
                if one is not None and os.path.samestat(one, written):
                    raise SentembError(
                        f"{output.path}: holds {name}, which the command reads; name another folder"
                    )


def _stored(path: AnyPath) -> os.stat_result | None:
    """The status of a file or folder; None for what is not there, pipes and devices."""
    if str(path) == "-":
        try:
            found: os.stat_result | None = os.fstat(sys.__stdin__.fileno())  # type: ignore[union-attr]
        except (AttributeError, OSError, ValueError):  # closed, or not a stream of the system
            return None
    else:
        found = status(path)
    kept = found is not None and (stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode))
    return found if kept else None


def _with_parents(path: AnyPath) -> list[Path]:
    """The folders above a path, with links followed, nearest first."""
    return list(Path(os.path.realpath(path)).parents)


def _is_same(one: AnyPath, other: AnyPath) -> bool:
    """Whether two names, which may not exist yet, are of one place that can be replaced."""
    real = os.path.realpath(one)
    is_stream = status(real) is not None and not (is_file(real) or is_folder(real))
    return real == os.path.realpath(other) and not is_stream
