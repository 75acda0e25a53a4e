"""Locks that leave nothing behind: on a folder for its one writer, on a temporary file.

The system releases a lock however its process ends. So a second writer into a folder is refused
only while the first one runs, and a temporary file without a lock is one that nobody will finish.
Without such locks (Windows, some network folders) nothing is locked, and nothing that
another process may be writing is removed.
"""

import contextlib
import errno
import os
import re
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from sentemb.errors import SentembError

try:
    import fcntl
except ImportError:
    fcntl = None

# What systems answer that cannot lock or flush a folder: Windows, some network folders.
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
def locked(folder) -> Iterator[None]:
    """Be the one process that writes into ``folder``, and remove what killed ones left there.

    Raises
    ------
    SentembError
        If another process is writing there, or the folder cannot be opened.
    """
    handle = None if fcntl is None else _lock_folder(folder)
    try:
        remove_abandoned(folder)
        yield
    finally:
        if handle is not None:
            # Closing is not enough: a process forked meanwhile shares the lock.
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)
            os.close(handle)


def _lock_folder(folder):
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
def temporary_file(folder, mode: int = 0o666) -> Iterator[Path]:
    """A new, empty file in ``folder``; removed in the end, if it still has its name then.

    Parameters
    ----------
    folder : path
        Temporary files of killed processes in it are removed first.
    mode : int
        Permissions, to which the umask applies.
    """

    def make(path):
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOSE_ON_EXEC, mode)

    with _temporary(Path(folder), make) as path:
        yield path


@contextlib.contextmanager
def temporary_folder(folder) -> Iterator[Path]:
    """A new, empty folder in ``folder``, as `temporary_file`; removed with all that is in it."""

    def make(path):
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
    """Another process saw it before it was locked, and removed it."""


@contextlib.contextmanager
def _temporary(folder, make):
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


def _made(folder, make):
    """The path of something new and the handle that holds its lock, None where there is none."""
    while True:
        path = folder / f".sentemb-{secrets.token_hex(8)}.tmp"
        try:
            handle = make(path)
        except _Swept:
            continue
        if fcntl is None:
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
            return path, handle  # no locks here, so no process removes it
        os.close(handle)  # another process saw it before it was locked, and removes it


def is_temporary(name: str) -> bool:
    """Whether ``name`` is that of a temporary file or folder."""
    return _TEMPORARY.fullmatch(name) is not None


def remove_abandoned(folder) -> None:
    """Remove temporary files and folders in ``folder`` whose writers were killed."""
    if fcntl is None:
        return
    with contextlib.suppress(OSError):
        for name in filter(is_temporary, os.listdir(folder)):
            _remove_unlocked(os.path.join(folder, name))


def _remove_unlocked(path):
    with contextlib.suppress(OSError):
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | _CLOSE_ON_EXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(path)
        finally:
            os.close(handle)


def _remove(path):
    with contextlib.suppress(OSError):
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
