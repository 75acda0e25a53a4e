"""Files and standard streams: reading text from anywhere, writing whole files or nothing.

An error of the operating system becomes a `SentembError` with the name of the file and the reason.
"""

import contextlib
import errno
import gzip
import os
import stat
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from io import BufferedIOBase, BytesIO
from pathlib import Path
from typing import AnyStr, TextIO, cast

from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.locks import UNSUPPORTED, is_staged, temporary_file
from sentemb.system.paths import AnyPath

# The longest line of a text file; a longer line suggests that it is not a text file.
MAX_LINE_BYTES = 16 << 20
# Bytes that are read at a time.
_BLOCK = 1 << 18

# What a file begins with that is not text in UTF-8, and what to do with it.
_FORMATS = {
    # "PAR16" is a lamp; the letters are followed by the header of a page.
    b"PAR1\x15": ("a Parquet file", "convert it with `sentemb import`"),
    b"\x1f\x8b": ("compressed with gzip", "let its name end in .gz"),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", "unpack it or compress it with gzip"),
    b"PK\x03\x04": ("a zip archive or an Excel file", "unpack it, or save it as text"),
    b"\xd0\xcf\x11\xe0": ("an old Excel workbook", "save it as text"),
    b"BZh91AY&SY": ("compressed with bzip2", "unpack it or compress it with gzip"),
    b"\xfd7zXZ": ("compressed with xz", "unpack it or compress it with gzip"),
    b"SQLite format 3\0": (
        "an SQLite database, such as a record of searches",
        "turn a record into a click log with `sentemb import`",
    ),
    b"\xff\xfe": ("UTF-16", "save it as UTF-8"),
    b"\xfe\xff": ("UTF-16", "save it as UTF-8"),
}
_STARTS = tuple(_FORMATS)

# -- looking ----------------------------------------------------------------------------------


def path_of(value: AnyPath) -> Path:
    """``value`` as `pathlib.Path`; a `SentembError` if it cannot be one."""
    try:
        path = Path(value)
    except TypeError:
        raise SentembError(f"a path is {brief(value)}; give a text") from None
    if "\0" in str(path):
        raise SentembError(f"a path is {brief(str(path))}; leave the NUL character out")
    return path


def status(path: AnyPath, follow: bool = True) -> os.stat_result | None:
    """`os.stat` of ``path``, of a link's target if ``follow`` is set; None if it does not exist.

    Raises `SentembError` if it cannot be examined: no permission, a name that is too long, a loop
    of links.
    """
    try:
        return os.stat(path, follow_symlinks=follow)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error


def is_folder(path: AnyPath) -> bool:
    """Whether ``path`` is a folder; fails as `status` does."""
    metadata = status(path)
    return metadata is not None and stat.S_ISDIR(metadata.st_mode)


def is_file(path: AnyPath, follow: bool = True) -> bool:
    """Whether ``path`` is a regular file; fails as `status` does."""
    metadata = status(path, follow)
    return metadata is not None and stat.S_ISREG(metadata.st_mode)


def names_in(folder: AnyPath) -> list[str]:
    """The names in ``folder``, sorted; none if it does not exist."""
    try:
        return sorted(os.listdir(folder))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise unreadable(folder, error) from error


def size_and_time(folder: Path, name: str) -> tuple[int, str]:
    """The bytes of all files in a folder, and when the file ``name`` in it was written."""
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    written = datetime.fromtimestamp((folder / name).stat().st_mtime)
    return size, f"{written:%Y-%m-%d %H:%M}"


def place_name(path: AnyPath, stream: str = "input") -> str:
    """The name of ``path`` in messages; "standard input" (or "output") for ``-``."""
    return f"standard {stream}" if str(path) == "-" else str(path) or "''"


# -- reading ----------------------------------------------------------------------------------


@contextlib.contextmanager
def reading(path: AnyPath, unpack: bool = True) -> Iterator[BufferedIOBase]:
    """Open ``path`` for reading bytes; ``-`` is standard input.

    A ``.gz`` file is unpacked, unless ``unpack`` says otherwise. Yields a binary file object. An
    unreadable or damaged file raises a `SentembError`.
    """
    try:
        if str(path) == "-":
            yield _standard("input", sys.stdin)
        elif unpack and str(path).endswith(".gz"):
            with gzip.open(path, "rb") as packed:
                yield packed
        else:
            with open(path, "rb") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SentembError(
            f"{place_name(path)}: not a whole gzip file ({error}); compress it again"
        ) from error
    except OSError as error:
        raise unreadable(path, error) from error


def raw_portions(path: AnyPath) -> Iterator[tuple[int, list[bytes]]]:
    """Yield ``(number, lines)`` for some lines at a time: that of the first, from 1, and the bytes.

    Lines have their ends, which are ``\\n`` alone. A line of more than `MAX_LINE_BYTES` raises a
    `SentembError`, so that an endless input does not fill the memory, and so does the beginning of
    a Parquet file or of another format that is often given by mistake; the lines before are yielded
    first.
    """
    with reading(path) as file:
        yield from portions_in(file, path)


def portions_in(file: BufferedIOBase, path: AnyPath) -> Iterator[tuple[int, list[bytes]]]:
    """The lines of an open file as `raw_portions` yields them; ``path`` is for messages."""
    number, rest = 1, b""
    while block := file.read1(_BLOCK):  # what is there: somebody may be typing
        whole, end, begun = block.rpartition(b"\n")
        if end:
            lines = BytesIO(rest + whole + end).readlines()
            rest = b""
            yield from _checked(number, lines, path)
            number += len(lines)
        rest += begun
        if len(rest) > MAX_LINE_BYTES:
            break
    if rest:
        yield from _checked(number, [rest], path)


def _checked(first: int, lines: list[bytes], path: AnyPath) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the lines as they are, if they can be those of a text."""
    if first == 1 and lines[0].startswith(_STARTS):
        raise _not_text(path, lines[0])
    # Only the first may have begun before this block.
    if len(lines[0]) > MAX_LINE_BYTES:
        raise SentembError(
            f"{place_name(path)}:{first}: longer than {MAX_LINE_BYTES:,} bytes; "
            "give a text file with shorter lines"
        )
    yield first, lines


def _not_text(path: AnyPath, start: bytes) -> SentembError:
    """The `SentembError` for a file that begins with a key of `_FORMATS`."""
    what, remedy = next(known for begin, known in _FORMATS.items() if start.startswith(begin))
    if str(path) == "-" and remedy.startswith("let its name"):
        remedy = "unpack it first, as with gunzip"
    return SentembError(f"{place_name(path)}: is {what}, not text; {remedy}")


def text_portions(path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(number, lines)`` for some lines of a UTF-8 text file at a time, line ends removed.

    Lines end at ``\\n`` or ``\\r\\n`` only, so other Unicode line separators stay part of the text.
    Bytes that are not UTF-8 raise a `SentembError` with line and column, once the lines before are
    yielded.
    """
    for first, raw in raw_portions(path):
        whole, fault = b"".join(raw), None
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError as error:
            begin = whole.rfind(b"\n", 0, error.start) + 1
            number, column = first + whole.count(b"\n", 0, begin), error.start - begin + 1
            fault = SentembError(
                f"{place_name(path)}:{number}:{column}: not valid UTF-8; save the file as UTF-8"
            )
            text = whole[:begin].decode("utf-8")
        if text:
            lines = text.removesuffix("\n").split("\n")
            yield first, [line.removesuffix("\r") for line in lines] if "\r" in text else lines
        if fault:
            raise fault


def numbered_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """Yield ``(number, text)`` for each line of a text file, as `text_portions` reads it."""
    return numbered(text_portions(path))


def numbered(portions: Iterable[tuple[int, list[AnyStr]]]) -> Iterator[tuple[int, AnyStr]]:
    """Yield ``(number, line)`` for each line of some portions."""
    for first, lines in portions:
        yield from enumerate(lines, first)


def unreadable(path: AnyPath, error: BaseException) -> SentembError:
    """The `SentembError` that says why ``path`` could not be read."""
    return SentembError(f"{place_name(path)}: cannot be read: {reason_of(error)}")


# -- writing ----------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path: AnyPath) -> Iterator[Path]:
    """Write ``path`` so that readers see the old file or the whole new one, never a part.

    Yields the `pathlib.Path` to write to: a temporary file in the same folder. When the block ends,
    it is flushed to the disk and renamed to ``path``; on an error it is removed and the old file
    stays. The new file has the permissions of the old one. A link stays a link, and the file that
    it points to is replaced. If ``path`` is a device or a pipe, the block writes to it directly; in
    a temporary folder as well, which nobody reads before its maker has flushed all of it. Raises
    `SentembError` for a full disk, a missing permission, a folder in the place of the file.
    """
    try:
        target, old = _target(path)
        if old is not None and not stat.S_ISREG(old.st_mode):
            yield target
            return
        if is_staged(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.unlink(missing_ok=True)  # it may be a second name of a file of another folder
            yield target
            return
        with (
            _made_folder(target.parent),
            temporary_file(target.parent, 0o666 if old is None else 0o600) as temporary,
        ):
            yield temporary
            flush_file(temporary)
            if old is not None:
                _copy_permissions(old, temporary)
            os.replace(temporary, target)
    except (OSError, MemoryError) as error:
        raise unwritable(path, error) from error
    try:
        flush_folder(target.parent)
    except OSError as error:
        raise SentembError(
            f"{path}: was written, but the disk did not confirm it: {reason_of(error)}; check "
            "the disk"
        ) from error


@contextlib.contextmanager
def writing(path: AnyPath) -> Iterator[BufferedIOBase]:
    """Write bytes to ``path``, the whole file or nothing (see `replacing`); ``-`` is stdout.

    On a terminal control characters are escaped, see `sentemb.system.terminal.escaped`.

    A ``.gz`` file is compressed without a time stamp: equal contents give equal files.
    """
    if str(path) == "-":
        output = _standard("output", sys.stdout)
        try:
            sys.stdout.flush()
            yield _for_terminal(output) if output.isatty() else output
            output.flush()
        except BrokenPipeError:
            raise  # the reader stopped early, which is not the writer's error
        except OSError as error:
            raise unwritable(path, error) from error
        return
    with replacing(path) as temporary, open(temporary, "wb") as file:
        if str(path).endswith(".gz"):
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed
        else:
            yield file


def write_text(path: AnyPath, text: str) -> None:
    """Write ``text`` as UTF-8 to ``path``, the whole file or nothing; see `writing`."""
    with writing(path) as file:
        file.write(text.encode("utf-8"))


@contextlib.contextmanager
def held(folder: AnyPath) -> Iterator[Callable[[], bool]]:
    """Tell whether the folder in a place is still the one that was there at first.

    The function that it yields returns True if no other folder has taken the place; always True
    where a system cannot tell.
    """
    try:
        handle = os.open(path_of(folder), os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except OSError:
        yield lambda: True
        return
    # While it is open, the system does not give its number to another folder.
    first = os.fstat(handle)
    try:
        yield lambda: (now := status(folder)) is not None and os.path.samestat(first, now)
    finally:
        os.close(handle)


def make_folder(path: AnyPath) -> Path:
    """Create the folder ``path`` and its parents unless they exist."""
    if not os.fspath(path):
        raise SentembError("the name of the folder is empty; give one")
    try:
        Path(path).mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise unwritable(path, error) from error
    return Path(path)


@contextlib.contextmanager
def made_folder(path: AnyPath) -> Iterator[None]:
    """As `make_folder`; after an error, folders that were created and are empty are removed."""
    try:
        with _made_folder(Path(path)):
            yield
    except OSError as error:
        raise unwritable(path, error) from error


def unwritable(path: AnyPath, error: BaseException) -> SentembError:
    """The `SentembError` that says why ``path`` could not be written."""
    unchanged = "" if str(path) == "-" else "; nothing was changed there"
    return SentembError(
        f"{place_name(path, 'output')}: cannot be written: {reason_of(error)}{unchanged}"
    )


def reason_of(error: BaseException) -> str:
    """The reason of an error, in the words of the operating system."""
    if isinstance(error, MemoryError):
        return "not enough memory"
    return getattr(error, "strerror", None) or str(error)


def _standard(name: str, stream: TextIO | None) -> BufferedIOBase:
    """The binary side of a standard stream; Python has None if it was closed at the start."""
    if stream is None:
        raise SentembError(f"standard {name}: is closed; give a file instead")
    return cast(BufferedIOBase, stream.buffer)


def _for_terminal(output: BufferedIOBase) -> BufferedIOBase:
    from sentemb.system.terminal import (
        EscapedOutput,  # loads click, which the package does not need
    )

    return EscapedOutput(output)


def _target(path: AnyPath) -> tuple[Path, os.stat_result | None]:
    """The file to write for ``path``, with links followed, and its status or None."""
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
        return Path(name), old  # /dev/stdout may be a link that does not lead to a path
    return Path(os.path.realpath(name)), old


@contextlib.contextmanager
def _made_folder(folder: Path) -> Iterator[None]:
    """Create ``folder`` and its parents; on an error remove those that were created."""
    missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield
    except BaseException:
        for parent in missing:
            with contextlib.suppress(OSError):
                parent.rmdir()
        raise


def _copy_permissions(old: os.stat_result, path: Path) -> None:
    try:
        os.chown(path, old.st_uid, old.st_gid)
    except AttributeError:  # no owners on Windows
        pass
    except OSError as error:  # another user's file, or an owner that a container does not know
        if error.errno not in UNSUPPORTED:
            raise
    os.chmod(path, stat.S_IMODE(old.st_mode))


def flush_file(path: AnyPath) -> None:
    """Flush a file to the disk, where the system can."""
    # Windows only flushes a file that is open for writing.
    with open(path, "rb+") as file:
        _flush(file.fileno())


def flush_folder(path: AnyPath) -> None:
    """Flush the names in a folder to the disk, where the system can."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return
    try:
        _flush(handle)
    finally:
        os.close(handle)


def _flush(handle: int) -> None:
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
