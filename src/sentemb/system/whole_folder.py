"""Folders of several files that are written completely or not at all.

Only the files of an earlier result are replaced or removed, those that its format lists. What else
is in the folder belongs to the user: it stays, and a result that needs its name is refused.
"""

import contextlib
import json
import os
import shutil
import stat
from collections.abc import Collection, Iterator
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.descriptions import parse_json
from sentemb.system.exchange import exchange
from sentemb.system.files import (
    flush_file,
    flush_folder,
    is_file,
    is_folder,
    names_in,
    reading,
    status,
    unreadable,
    unwritable,
    write_text,
)
from sentemb.system.locks import UNSUPPORTED, is_temporary, locked, temporary_folder
from sentemb.system.paths import AnyPath

# Names the files of a result whose format has no description that does.
LIST = "files.json"
_FORMAT = 1
_MOST_BYTES = 1 << 20


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


def listed_files(folder: AnyPath) -> frozenset[str]:
    """The files that `LIST` names in ``folder``, itself included; none without it.

    A name that leads out of the folder is left out.
    """
    path = Path(folder) / LIST
    if not is_file(path, follow=False):
        return frozenset()
    try:
        with reading(path) as file:
            content = parse_json(file.read(_MOST_BYTES))
    except ValueError:
        return frozenset()
    names = (
        content.get("files")
        if isinstance(content, dict) and content.get("format") == _FORMAT
        else None
    )
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return frozenset()
    home = Path(os.path.realpath(folder))
    inside = (Path(os.path.realpath((home / name).parent)).is_relative_to(home) for name in names)
    return frozenset([LIST, *(name for name, is_in in zip(names, inside, strict=True) if is_in)])


def write_list(folder: Path) -> None:
    """Write `LIST` for all files that are in ``folder``."""
    names = sorted(path.relative_to(folder).as_posix() for path in _files_in(folder))
    write_text(folder / LIST, json.dumps({"format": _FORMAT, "files": names}, indent=1) + "\n")


@contextlib.contextmanager
def filling_listed(folder: AnyPath) -> Iterator[Path]:
    """As `filling`, with a `LIST` of the files, which are what the next such result replaces."""
    with filling(folder, listed_files(folder)) as new:
        yield new
        write_list(new)


@contextlib.contextmanager
def filling(folder: AnyPath, listed: Collection[str] = ()) -> Iterator[Path]:
    """Write files into ``folder``, created if missing: all of them or, on an error, none.

    Yields an empty temporary folder to write to. When the block ends, its files move to ``folder``
    in place of those in ``listed``. After an error or Ctrl-C, everything is as before. Raises
    `SentembError` if the folder cannot be written, or has a file of the same name that is not
    listed.
    """
    path = Path(folder)
    is_new = status(path) is None
    locking = contextlib.nullcontext() if is_new else locked(path)
    with locking, _filling(path, is_new, listed) as new:
        yield new


@contextlib.contextmanager
def _filling(folder: Path, is_new: bool, listed: Collection[str]) -> Iterator[Path]:
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
            _flush(new)
            if is_new:
                _rename(new, folder)
            else:
                _exchange(new, folder, old, listed)
        missing = []
    except OSError as error:
        raise unwritable(folder, error) from error
    except SentembError as error:
        raise SentembError(str(error).replace(f"{temporary}/new", str(folder))) from error
    finally:
        _remove_folders(missing[::-1])


@contextlib.contextmanager
def replacing_folder(folder: AnyPath, listed: Collection[str]) -> Iterator[Path]:
    """Write a folder that replaces ``folder`` as a whole, but for files that are not ``listed``.

    Yields an empty temporary folder to write to. When the block ends, it takes the place of
    ``folder``, with the other files of that. Where the system can exchange two names in one step
    (Linux), a reader sees the old folder or the new one and nothing else, also if the writer is
    killed. After an error or Ctrl-C, everything is as before. Raises `SentembError` if the folder
    cannot be written, has a file of the same name that is not listed, or `check_exchangeable`
    refuses it.
    """
    check_exchangeable(folder)
    path = Path(os.path.realpath(folder))
    if _is_free(path):
        with filling(path) as new:
            yield new
        return
    with locked(path):
        try:
            with temporary_folder(path.parent) as temporary:
                new = temporary / "new"
                os.mkdir(new)
                yield new
                _keep_others(path, new, listed)
                _flush(new)
                _swap(new, path, temporary / "old")
                flush_folder(path.parent)
        except OSError as error:
            raise unwritable(folder, error) from error
        except SentembError as error:
            raise SentembError(str(error).replace(f"{temporary}/new", str(folder))) from error


def check_exchangeable(folder: AnyPath) -> None:
    """Refuse a folder with files that must keep its place on the disk: a mount point, or one that
    the process is in, which would be left in the old folder. Free ones are filled instead.
    """
    path = Path(os.path.realpath(folder))
    if _is_free(path):
        return
    if os.path.ismount(path):
        raise SentembError(
            f"{folder}: is a mount point, which cannot be replaced; name a folder in it"
        )
    with contextlib.suppress(FileNotFoundError):  # the current folder may be gone
        if Path.cwd().is_relative_to(path):
            raise SentembError(
                f"{folder}: has the current folder, which would be removed; run the command from "
                f"the folder above, with the name {path.name}"
            )


def _flush(folder: Path) -> None:
    """Flush all that was written into ``folder`` to the disk, each file and folder once."""
    for inside, _, names in os.walk(folder):
        for path in (Path(inside, name) for name in names):
            # A second name of a file of another folder, which was flushed with that.
            if path.lstat().st_nlink == 1 and not path.is_symlink():
                flush_file(path)
        flush_folder(inside)


def _is_free(path: Path) -> bool:
    """Whether ``path`` is not there, or an empty folder."""
    if not is_folder(path):
        return status(path) is None
    return all(is_temporary(name) for name in names_in(path))


def _swap(new: Path, folder: Path, old: Path) -> None:
    """Give ``new`` the name ``folder``; the old folder stays in the temporary folder."""
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


def _keep_others(folder: Path, new: Path, listed: Collection[str]) -> None:
    """Give the files of ``folder`` that are not ``listed`` a second name in ``new``."""
    for path in _files_in(folder):
        name = path.relative_to(folder)
        if name.as_posix() in listed:
            continue
        if is_folder(path) and not path.is_symlink():  # an empty one
            (new / name).mkdir(parents=True, exist_ok=True)
            continue
        if status(new / name, follow=False) is not None:
            raise _not_ours(path)
        (new / name).parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(path, new / name, follow_symlinks=False)
        except OSError as error:  # a system without hard links
            if error.errno not in UNSUPPORTED:
                raise
            shutil.copy2(path, new / name, follow_symlinks=False)


def _files_in(folder: Path) -> Iterator[Path]:
    """All files and links in ``folder`` and below, and empty folders; no temporary ones."""

    def fail(error: OSError) -> None:
        raise unreadable(error.filename, error) from error

    for inside, folders, names in os.walk(folder, onerror=fail):
        path = Path(inside)
        folders[:] = sorted(name for name in folders if not is_temporary(name))
        links = [name for name in folders if (path / name).is_symlink()]
        if path != folder and not folders and not names:
            yield path
        if path != folder and os.path.ismount(path):
            raise SentembError(f"{path}: is a mount point, which cannot be moved; unmount it")
        yield from (path / name for name in (*links, *sorted(names)) if not is_temporary(name))


def _not_ours(path: Path) -> SentembError:
    return SentembError(
        f"{path}: would be replaced, and was not written by this command; rename it or name "
        "another folder"
    )


def _exchange(new: Path, folder: Path, old: Path, listed: Collection[str]) -> None:
    """Move all files of ``new`` to ``folder``, and those that are ``listed`` there to ``old``.

    On an error they are moved back. The folder never holds files of both, so one whose writer was
    killed lacks files, but those that are there belong together.
    """
    names = [path.relative_to(new) for path in sorted(new.rglob("*")) if not path.is_dir()]
    for name in names:
        if is_folder(folder / name) and not os.path.islink(folder / name):
            raise SentembError(f"{folder / name}: is a folder; name another place to write to")
        if name.as_posix() not in listed and status(folder / name, follow=False) is not None:
            raise _not_ours(folder / name)
    gone = [name for name in map(Path, sorted(listed)) if _is_left(folder / name, new / name)]
    # The list leaves last and comes first, so that what a killed writer leaves is known.
    names.sort(key=lambda name: name.name != LIST)
    # Each name, and whether the folder had a file of that name; noted before anything is moved.
    moved: list[tuple[Path, bool]] = []
    made: list[Path] = []
    try:
        for name in [*gone, *reversed(names)]:
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
    _remove_folders(sorted({(folder / name).parent for name in gone} - {folder}))


def _is_left(there: Path, written: Path) -> bool:
    """Whether a listed file of an earlier result is there, and none takes its place."""
    metadata = status(there, follow=False)
    return metadata is not None and not stat.S_ISDIR(metadata.st_mode) and not written.exists()


def _move_back(moved: list[tuple[Path, bool]], folder: Path, old: Path) -> None:
    for name, had in reversed(moved):
        if not had:
            (folder / name).unlink(missing_ok=True)
        elif status(old / name, follow=False) is not None:
            os.replace(old / name, folder / name)


def _make_folders(path: Path, made: list[Path]) -> None:
    """Create ``path`` and its missing parents, and append the created ones to ``made``."""
    missing = [parent for parent in (path, *path.parents) if status(parent) is None]
    for parent in reversed(missing):
        made.append(parent)
        os.mkdir(parent)


def _remove_folders(paths: list[Path]) -> None:
    """Remove the folders that exist and are empty, starting with the last."""
    for path in reversed(paths):
        with contextlib.suppress(OSError):
            os.rmdir(path)
