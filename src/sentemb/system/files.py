"""Files and standard streams: text read from anywhere, files that are written whole or not at all.

Whatever the system refuses becomes a `SentembError` with the name of the file and the reason.
"""

import contextlib
import errno
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from sentemb.bounds import brief
from sentemb.errors import SentembError
from sentemb.system.locks import UNSUPPORTED, temporary_file

# The longest line of a text file; a longer one is a sign that it is not a text file.
MAX_LINE_BYTES = 16 << 20

# -- looking ----------------------------------------------------------------------------------


def path_of(value) -> Path:
    """``value`` as `pathlib.Path`; a `SentembError` for what cannot be one."""
    try:
        path = Path(value)
    except TypeError:
        raise SentembError(f"a path is {brief(value)}; give a text") from None
    if "\0" in str(path):
        raise SentembError(f"a path is {brief(str(path))}; leave the NUL character out")
    return path


def status(path, follow: bool = True) -> os.stat_result | None:
    """`os.stat` of ``path``, None if nothing is there.

    Parameters
    ----------
    path : path
    follow : bool
        Whether a link is followed.

    Raises
    ------
    SentembError
        If it cannot be looked at: no permission, a name that is too long, a loop of links.
    """
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def is_folder(path) -> bool:
    """Whether ``path`` is a folder; fails as `status` does."""
    found = status(path)
    return found is not None and stat.S_ISDIR(found.st_mode)


def is_file(path, follow: bool = True) -> bool:
    """Whether ``path`` is a regular file; fails as `status` does."""
    found = status(path, follow)
    return found is not None and stat.S_ISREG(found.st_mode)


def names_in(folder) -> list[str]:
    """The names in ``folder``, sorted; none if it does not exist."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(folder, error) from error


def place_name(path, stream: str = "input") -> str:
    """How messages call ``path``: its name, or "standard input" (or "output") for ``-``."""
    return f"standard {stream}" if str(path) == "-" else str(path) or "''"


# -- reading ----------------------------------------------------------------------------------


@contextlib.contextmanager
def reading(path) -> Iterator[BinaryIO]:
    """Open ``path`` for reading bytes; ``-`` is standard input, ``.gz`` is unpacked on the way.

    Yields a binary file object. An unreadable or damaged file becomes a `SentembError`.
    """
    try:
        if str(path) == "-":
            yield _standard("input", sys.stdin)
        elif str(path).endswith(".gz"):
            with gzip.open(path, "rb") as file:
                yield file
        else:
            with open(path, "rb") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SentembError(
            f"{place_name(path)}: not a whole gzip file ({error}); compress it again"
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def raw_lines(path) -> Iterator[tuple[int, bytes]]:
    """Yield ``(number, bytes)`` for each line, counted from 1, its line end included.

    Lines end at ``\\n`` only. One of more than `MAX_LINE_BYTES` raises a `SentembError`, so that
    an endless input does not fill the memory.
    """
    with reading(path) as file:
        for number, raw in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
            if len(raw) > MAX_LINE_BYTES:
                raise SentembError(
                    f"{place_name(path)}:{number}: longer than {MAX_LINE_BYTES:,} bytes; "
                    "give a text file with shorter lines"
                )
            yield number, raw


def numbered_lines(path) -> Iterator[tuple[int, str]]:
    """Yield ``(number, text)`` for each line of a UTF-8 text file, line ends removed.

    Lines end at ``\\n`` or ``\\r\\n`` only, so other separators of Unicode stay part of the text.
    Bytes that are not UTF-8 raise a `SentembError` with line and column.
    """
    for number, raw in raw_lines(path):
        try:
            yield number, raw.decode("utf-8").rstrip("\n").removesuffix("\r")
        except UnicodeDecodeError as error:
            raise SentembError(
                f"{place_name(path)}:{number}:{error.start + 1}: not valid UTF-8; save the file as "
                "UTF-8"
            ) from error


def unreadable(path, error: BaseException) -> SentembError:
    """The `SentembError` that says why ``path`` could not be read."""
    return SentembError(f"{place_name(path)}: cannot be read: {reason_of(error)}")


# -- writing ----------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path) -> Iterator[Path]:
    """Write ``path`` so that readers see the old file or the whole new one, never a part.

    Yields the `pathlib.Path` to write to: a temporary file in the same folder. On leaving it is
    flushed to the disk and renamed to ``path``; on an error it is removed and the old file stays.
    The new file has the permissions of the old one. A link stays, and the file that it points to
    is replaced. To a device or a pipe the body writes directly.

    Raises
    ------
    SentembError
        For a full disk, a missing permission, a folder in the place of the file.
    """
    try:
        target, old = _target(path)
        if old is not None and not stat.S_ISREG(old.st_mode):
            yield target
            return
        with (
            _made_folder(target.parent),
            temporary_file(target.parent, 0o666 if old is None else 0o600) as temporary,
        ):
            yield temporary
            _flush_file(temporary)
            if old is not None:
                _copy_permissions(old, temporary)
            os.replace(temporary, target)
    except (OSError, MemoryError) as error:
        raise unwritable(path, error) from error
    try:
        flush_folder(target.parent)
    except OSError as error:
        raise SentembError(
            f"{path}: is written, and the disk did not confirm it: {reason_of(error)}; check the "
            "disk"
        ) from error


@contextlib.contextmanager
def writing(path) -> Iterator[BinaryIO]:
    """Write bytes to ``path`` in one piece, see `replacing`; ``-`` is standard output.

    Packed if the name ends in ``.gz``, without a time stamp: equal contents give equal files.
    """
    if str(path) == "-":
        output = _standard("output", sys.stdout)
        try:
            sys.stdout.flush()
            yield output
            output.flush()
        except BrokenPipeError:
            raise  # the reader has enough, which is not an error of the writer
        except OSError as error:
            raise unwritable(path, error) from error
        return
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if str(path).endswith(".gz"):
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed
        else:
            yield file


def write_text(path, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path`` in one piece, see `replacing`."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def make_folder(path) -> Path:
    """Make the folder ``path``, and those that it is in, unless it exists."""
    if not os.fspath(path):
        raise SentembError("the name of the folder is empty; give one")
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error
    return Path(path)


def unwritable(path, error: BaseException) -> SentembError:
    """The `SentembError` that says why ``path`` could not be written."""
    unchanged = "" if str(path) == "-" else "; nothing was changed there"
    return SentembError(
        f"{place_name(path, 'output')}: cannot be written: {reason_of(error)}{unchanged}"
    )


def reason_of(error: BaseException) -> str:
    """What went wrong, in the system's words."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return getattr(error, "strerror", None) or str(error)


def _standard(name, stream):
    """The bytes of a standard stream; Python has None for one that was closed at the start."""
    if stream is None:
        raise SentembError(f"standard {name}: is closed; give a file instead")
    return stream.buffer


def _target(path):
    """The file to write for ``path``, links followed, and its `os.stat_result` or None."""
    name = os.fspath(path)
    if not name or "\0" in name:
        raise SentembError(f"{name!r} cannot be the name of a file; give another")
    try:
        old = os.stat(name)
    except FileNotFoundError:
        old = None
    if name.endswith("/") or (old is not None and stat.S_ISDIR(old.st_mode)):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if old is not None and not os.access(name, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if old is not None and not stat.S_ISREG(old.st_mode):
        return Path(name), old  # /dev/stdout may be a link that leads to no path
    return Path(os.path.realpath(name)), old


@contextlib.contextmanager
def _made_folder(folder):
    """Make ``folder`` and those that it is in; on an error remove those that were made."""
    missing = [one for one in (folder, *folder.parents) if not one.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for one in missing:
            with contextlib.suppress(OSError):
                one.rmdir()
        raise


def _copy_permissions(old, path):
    try:
        os.chown(path, old.st_uid, old.st_gid)
    except AttributeError:  # no owners on Windows
        pass
    except OSError as error:  # somebody else's file, or an owner that a container does not know
        if error.errno not in UNSUPPORTED:
            raise
    os.chmod(path, stat.S_IMODE(old.st_mode))


def _flush_file(path):
    """Write a file through to the disk, where the system can."""
    # Windows flushes only what is open for writing.
    with open(path, "rb+") as file:
        _flush(file.fileno())


def flush_folder(path):
    """Write the names in a folder through to the disk, where the system can."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        _flush(handle)
    finally:
        os.close(handle)


def _flush(handle):
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
