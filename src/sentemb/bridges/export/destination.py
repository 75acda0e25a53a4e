"""Where an export is written: a new place, or with force that of an earlier export."""

from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedIOBase
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import names_in, status, writing
from sentemb.system.locks import is_temporary
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, listed_files, replacing_folder, write_list


@contextmanager
def new_folder(out: AnyPath, force: bool) -> Iterator[Path]:
    """Write a folder of its own, all of it or nothing.

    Yields an empty temporary folder to write to, which takes the place of ``out``: a new or empty
    folder, or with ``force`` one that an earlier export wrote, whose files are replaced; others
    stay. Raises `SentembError` if the folder is that of no export, or cannot be written.
    """
    check_outputs([Output(out, is_folder=True)], [], force)
    check_free(out, force)
    listed = listed_files(out)
    there = [name for name in names_in(out) if not is_temporary(name)] if status(out) else []
    if there and not listed:
        raise SentembError(
            f"{out}: holds other files than an export, such as {there[0]}; name a new or empty "
            "folder"
        )
    with replacing_folder(out, listed) as folder:
        yield folder
        write_list(folder)


@contextmanager
def new_file(out: AnyPath, force: bool, can_stream: bool = True) -> Iterator[BufferedIOBase]:
    """Write bytes to a file, all of it or nothing; see `sentemb.system.files.writing`."""
    check_outputs([Output(out, can_stream=can_stream)], [], force)
    with writing(out) as file:
        yield file
