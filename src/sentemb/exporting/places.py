"""Where an export is written: a new place, or with force that of an earlier export."""

from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from io import BufferedIOBase
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import names_in, replacing, status, writing
from sentemb.system.locks import is_temporary
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, replacing_folder


@contextmanager
def new_folder(out: AnyPath, force: bool, *names: str) -> Iterator[Path]:
    """Write a folder of its own, all of it or nothing.

    Yields an empty temporary folder to write to, which takes the place of ``out``.

    Parameters
    ----------
    out : path
        A new or empty folder, or with ``force`` one that holds nothing but such files.
    force : bool
        Replace an earlier export, with all its files.
    *names : str
        The files of such a folder, with ``*`` for any part of a name.

    Raises
    ------
    SentembError
        If the folder holds other files, or cannot be written.
    """
    check_outputs([Output(out, is_folder=True)], [], force)
    check_free(out, force)
    there = [name for name in names_in(out) if not is_temporary(name)] if status(out) else []
    for name in there:
        if not any(fnmatchcase(name, pattern) for pattern in names):
            raise SentembError(
                f"{out}: holds other files than this export, such as {name}; name a new or empty "
                "folder"
            )
    with replacing_folder(out) as folder:
        yield folder


@contextmanager
def new_file(out: AnyPath, force: bool) -> Iterator[BufferedIOBase]:
    """Write bytes to a file, all of it or nothing; see `sentemb.system.files.writing`."""
    check_outputs([Output(out, can_stream=True)], [], force)
    with writing(out) as file:
        yield file


@contextmanager
def new_path(out: AnyPath, force: bool) -> Iterator[Path]:
    """As `new_file`, for a library that opens the file itself: yields where to write it."""
    check_outputs([Output(out)], [], force)
    with replacing(out) as path:
        yield path
