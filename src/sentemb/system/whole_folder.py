"""Folders of several files that are written completely or not at all."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.exchange import exchange
from sentemb.system.files import flush_folder, is_folder, names_in, status, unwritable
from sentemb.system.locks import is_temporary, locked, temporary_folder
from sentemb.system.paths import AnyPath


def check_free(folder: AnyPath, force: bool) -> None:
    """Refuse a file, an empty name, and, unless ``force``, a folder that is not empty."""
    if not str(folder):
        raise SentembError("the name of the output folder is empty; give one")
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
def filling(folder: AnyPath) -> Iterator[Path]:
    """Write files into ``folder``, created if missing: all of them or, on an error, none.

    Yields an empty temporary folder to write to. When the block ends, its files move to ``folder``
    and replace files with the same names. After an error or Ctrl-C, everything is as before.
    """
    place = Path(folder)
    is_new = status(place) is None
    with contextlib.nullcontext() if is_new else locked(place), _filling(place, is_new) as new:
        yield new


@contextlib.contextmanager
def _filling(folder: Path, is_new: bool) -> Iterator[Path]:
    # The temporary folder is on the same disk, whatever is mounted where.
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
        _remove_folders(missing[::-1])


@contextlib.contextmanager
def replacing_folder(folder: AnyPath) -> Iterator[Path]:
    """Write a folder that replaces ``folder`` as a whole, with all that is in it.

    Yields an empty temporary folder to write to. When the block ends, it takes the place of
    ``folder``. Where the system can exchange two names in one step (Linux), a reader sees the old
    folder or the new one and nothing else, also if the writer is killed. After an error or Ctrl-C,
    everything is as before.

    Raises
    ------
    SentembError
        If the folder cannot be written, or `check_exchangeable` refuses it.
    """
    check_exchangeable(folder)
    place = Path(os.path.realpath(folder))
    if _is_free(place):
        with filling(place) as new:
            yield new
        return
    with locked(place):
        try:
            with temporary_folder(place.parent) as temporary:
                new = temporary / "new"
                os.mkdir(new)
                yield new
                _swap(new, place, temporary / "old")
                flush_folder(place.parent)
        except OSError as error:
            raise unwritable(folder, error) from error
        except SentembError as error:
            raise SentembError(str(error).replace(f"{temporary}/new", str(folder))) from error


def check_exchangeable(folder: AnyPath) -> None:
    """Refuse a folder with files that must keep its place on the disk: a mount point, or one that
    the process is in, which would be left in the old folder. Free ones are filled instead.
    """
    place = Path(os.path.realpath(folder))
    if _is_free(place):
        return
    if os.path.ismount(place):
        raise SentembError(
            f"{folder}: is a mount point, which cannot be replaced; name a folder in it"
        )
    with contextlib.suppress(FileNotFoundError):  # the current folder may be gone
        if Path.cwd().is_relative_to(place):
            raise SentembError(
                f"{folder}: has the current folder, which would be removed; run the command from "
                f"the folder above, with the name {place.name}"
            )


def _is_free(place: Path) -> bool:
    """Whether ``place`` is not there, or an empty folder."""
    if not is_folder(place):
        return status(place) is None
    return all(is_temporary(name) for name in names_in(place))


def _swap(new: Path, folder: Path, old: Path) -> None:
    """Give ``new`` the name ``folder``, and what was there a name in the temporary folder."""
    if exchange(new, folder):
        return
    os.rename(folder, old)
    try:
        os.rename(new, folder)
    except BaseException:
        os.rename(old, folder)
        raise


def _rename(new: Path, folder: Path) -> None:
    """Rename ``new`` to ``folder``; on an error it keeps its name."""
    try:
        os.rename(new, folder)
        flush_folder(folder.parent)
    except BaseException:
        if status(new) is None:
            os.rename(folder, new)
        raise


def _exchange(new: Path, folder: Path, old: Path) -> None:
    """Move all files of ``new`` to ``folder``, and the files that they replace to ``old``.

    On an error they are moved back. The folder never holds files of both, so one whose writer was
    killed lacks files, but those that are there belong together.
    """
    names = [path.relative_to(new) for path in sorted(new.rglob("*")) if not path.is_dir()]
    for name in names:
        if is_folder(folder / name) and not os.path.islink(folder / name):
            raise SentembError(f"{folder / name}: is a folder; name another place to write to")
    # Each name, and whether the folder had a file of that name; noted before anything is moved.
    moved: list[tuple[Path, bool]] = []
    made: list[Path] = []
    try:
        for name in names:
            for path in ((folder / name).parent, (old / name).parent):
                _make_folders(path, made)
            had = status(folder / name, follow=False) is not None
            moved.append((name, had))
            if had:
                os.replace(folder / name, old / name)
        for name in names:
            os.replace(new / name, folder / name)
        for path in {(folder / name).parent for name in names}:
            flush_folder(path)
    except BaseException:
        _move_back(moved, folder, old)
        _remove_folders(made)
        raise


def _move_back(moved: list[tuple[Path, bool]], folder: Path, old: Path) -> None:
    for name, had in reversed(moved):
        if not had:
            (folder / name).unlink(missing_ok=True)
        elif status(old / name, follow=False) is not None:
            os.replace(old / name, folder / name)


def _make_folders(path: Path, made: list[Path]) -> None:
    """Create ``path`` and its missing parents, and append to ``made`` what was created."""
    missing = [one for one in (path, *path.parents) if status(one) is None]
    for one in reversed(missing):
        made.append(one)
        os.mkdir(one)


def _remove_folders(paths: list[Path]) -> None:
    """Remove the folders that exist and are empty, starting with the last."""
    for path in reversed(paths):
        with contextlib.suppress(OSError):
            os.rmdir(path)
