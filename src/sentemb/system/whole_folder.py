"""Folders of several files that are written as a whole or not at all."""

import contextlib
import os
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import flush_folder, is_folder, status, unwritable
from sentemb.system.locks import locked, temporary_folder


def check_free(folder, force):
    """Refuse a folder that has files already, unless ``force``, and what is not a folder."""
    if status(folder) is None:
        return
    if not is_folder(folder):
        raise SentembError(f"{folder}: is a file; name a folder to write to")
    try:
        is_empty = not os.listdir(folder)
    except OSError as error:
        raise unwritable(folder, error) from error
    if not (is_empty or force):
        raise SentembError(f"{folder}: is not empty; name another folder or use --force")


@contextlib.contextmanager
def filling(folder):
    """Write files into ``folder``, made if it is not there: all of them, or, on an error, none.

    Yields an empty temporary folder to write to. On leaving its files take their places, and files
    of the same names are replaced. After an error, Ctrl-C included, all is as it was before.
    """
    folder = Path(folder)
    is_new = status(folder) is None
    with contextlib.nullcontext() if is_new else locked(folder), _filling(folder, is_new) as new:
        yield new


@contextlib.contextmanager
def _filling(folder, is_new):
    # On the same disk, whatever is mounted where.
    home = folder.parent if is_new else folder
    missing = [path for path in (home, *home.parents) if status(path) is None]
    try:
        for path in reversed(missing):
            os.mkdir(path)
        with temporary_folder(home) as temporary:
            new, old = temporary / "new", temporary / "old"
            os.mkdir(new)
            yield new
            if is_new:
                _rename(new, folder)
            else:
                _exchange(new, folder, old)
        missing = []
    except OSError as error:
        raise unwritable(folder, error) from error
    except SentembError as error:
        raise SentembError(str(error).replace(f"{temporary}/new", str(folder))) from error
    finally:
        for path in missing:
            with contextlib.suppress(OSError):
                os.rmdir(path)


def _rename(new, folder):
    """Give ``new`` its name; on an error it keeps its own."""
    try:
        os.rename(new, folder)
        flush_folder(folder.parent)
    except BaseException:
        if status(new) is None:
            os.rename(folder, new)
        raise


def _exchange(new, folder, old):
    """Move all files of ``new`` to ``folder``, and those that were there to ``old``.

    On an error they are moved back.
    """
    moved, made = [], []
    names = [path.relative_to(new) for path in sorted(new.rglob("*")) if not path.is_dir()]
    for name in names:
        if is_folder(folder / name) and not os.path.islink(folder / name):
            raise SentembError(f"{folder / name}: is a folder; name another place to write to")
    try:
        for name in names:
            for path in ((folder / name).parent, (old / name).parent):
                _make_folders(path, made)
            had = status(folder / name, follow=False) is not None
            moved.append((name, had))
            if had:
                os.replace(folder / name, old / name)
            os.replace(new / name, folder / name)
        for path in {(folder / name).parent for name in names}:
            flush_folder(path)
    except BaseException:
        for name, had in reversed(moved):
            if not had:
                (folder / name).unlink(missing_ok=True)
            elif status(old / name, follow=False) is not None:
                os.replace(old / name, folder / name)
        for path in reversed(made):
            with contextlib.suppress(OSError):
                os.rmdir(path)
        raise


def _make_folders(path, made):
    """Make ``path`` and what is missing above it, and note in ``made`` what was."""
    missing = [one for one in (path, *path.parents) if status(one) is None]
    for one in reversed(missing):
        made.append(one)
        os.mkdir(one)
