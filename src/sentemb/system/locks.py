"""Locks that end with their process: one on a folder for its only writer, one on a temporary file.

The system releases a lock however its process ends. So a second writer into a folder is refused
only while the first one runs, and a temporary file without a lock was abandoned. Where such locks
do not exist (Windows, some network folders), nothing is locked, and nothing that another process
may be writing is removed.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.paths import AnyPath

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

# Errors of systems that cannot lock or flush a folder: Windows, some network folders.
UNSUPPORTED = {
    errno.EACCES,
    errno.EBADF,
    errno.EINVAL,
    errno.EISDIR,
    errno.ENOLCK,
    errno.ENOSYS,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.EPERM,
}
_TEMPORARY = re.compile(r"\.sentemb-[0-9a-f]{16}\.tmp")
_CLOSE_ON_EXEC = getattr(os, "O_CLOEXEC", 0)


@contextlib.contextmanager
def locked(folder: AnyPath) -> Iterator[None]:
    """Be the only process that writes into ``folder``, and remove what killed processes left there.

    Raises `SentembError` if another process is writing there, or the folder cannot be opened.
    """
    handle = None if fcntl is None else _lock_folder(folder)
    try:
        remove_abandoned(folder)
        yield
    finally:
        if handle is not None:
            # Closing is not enough: a process forked in the meantime shares the lock.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _lock_folder(folder: AnyPath) -> int | None:
    try:
        handle = os.open(folder, os.O_RDONLY | _CLOSE_ON_EXEC)
    except OSError as error:
        raise SentembError(f"{folder}: cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        if isinstance(error, BlockingIOError):
            raise SentembError(
                f"{folder}: another process is writing there; wait for it or choose another place"
            ) from error
        if error.errno not in UNSUPPORTED:
            raise SentembError(f"{folder}: cannot be locked: {error.strerror}") from error
        return None
    return handle


@contextlib.contextmanager
def temporary_file(folder: AnyPath, mode: int = 0o666) -> Iterator[Path]:
    """A new, empty file in ``folder``; removed at the end unless it was renamed.

    Temporary files that killed processes left there are removed first. The umask applies to the
    permissions ``mode``.
    """

    def make(path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOSE_ON_EXEC, mode)

    with _temporary(Path(folder), make) as path:
        yield path


@contextlib.contextmanager
def temporary_folder(folder: AnyPath) -> Iterator[Path]:
    """A new, empty folder in ``folder``, like `temporary_file`; removed with its contents."""

    def make(path: Path) -> int | None:
        os.mkdir(path)
        try:
            return None if fcntl is None else os.open(path, os.O_RDONLY | _CLOSE_ON_EXEC)
        except FileNotFoundError:
            raise _Swept from None
        except BaseException:
            os.rmdir(path)
            raise

    with _temporary(Path(folder), make) as path:
        yield path


class _Swept(Exception):
    """Another process saw it before it was locked and removed it."""


@contextlib.contextmanager
def _temporary(folder: Path, make: Callable[[Path], int | None]) -> Iterator[Path]:
    remove_abandoned(folder)
    path, handle = _made(folder, make)
    try:
        yield path
    finally:
        try:
            _remove(path)
        except KeyboardInterrupt:
            _remove(path)
            raise
        finally:
            if handle is not None:
                os.close(handle)


def _made(folder: Path, make: Callable[[Path], int | None]) -> tuple[Path, int | None]:
    """The path of a new file or folder and the handle that holds its lock; None without locks."""
    while True:
        path = folder / f".sentemb-{secrets.token_hex(8)}.tmp"
        try:
            handle = make(path)
        except _Swept:
            continue
        if fcntl is None or handle is None:
            if handle is not None:
                os.close(handle)  # Windows does not rename an open file
            return path, None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(handle).st_nlink:
                return path, handle
        except BlockingIOError:
            pass
        except OSError:
            return path, handle  # locks do not work here, so no process removes it
        os.close(handle)  # another process saw it before it was locked and removes it


def is_temporary(name: str) -> bool:
    """Whether ``name`` is the name of a temporary file or folder."""
    return _TEMPORARY.fullmatch(name) is not None


def is_staged(path: Path) -> bool:
    """Whether ``path`` is in a temporary folder."""
    return any(map(is_temporary, path.parent.parts))


def remove_abandoned(folder: AnyPath) -> None:
    """Remove temporary files and folders in ``folder`` whose writers were killed."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for name in filter(is_temporary, os.listdir(folder)):
            _remove_unlocked(os.path.join(folder, name))


def _remove_unlocked(path: str) -> None:
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | _CLOSE_ON_EXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)
        finally:
            os.close(handle)


def _remove(path: AnyPath) -> None:
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
