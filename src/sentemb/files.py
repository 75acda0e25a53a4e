"""Text from files, ``.gz`` and standard input; files that are written whole or not at all."""

import contextlib
import gzip
import os
import sys
import tempfile
import zlib
from pathlib import Path

from sentemb.errors import SentembError


@contextlib.contextmanager
def reading(path):
    """Open ``path`` for reading bytes; ``-`` is standard input, ``.gz`` is unpacked on the way.

    Yields a binary file object. An unreadable or damaged file becomes a `SentembError`.
    """
    name = place_name(path)
    try:
        if str(path) == "-":
            yield sys.stdin.buffer
        elif str(path).endswith(".gz"):
            with gzip.open(path, "rb") as file:
                yield file
        else:
            with open(path, "rb") as file:
                yield file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise SentembError(f"{name}: not a whole gzip file ({error}); compress it again") from error
    except OSError as error:
        raise SentembError(f"{name}: cannot be read: {error.strerror or error}") from error


@contextlib.contextmanager
def replacing(path):
    """Write ``path`` so that readers see the old file or the whole new one, never a part.

    Yields the temporary `pathlib.Path` to write to, in the same folder. On leaving it is flushed
    to the disk and renamed to ``path``; on an error it is removed and the old file stays. A full
    disk or missing permission becomes a `SentembError`.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".tmp")
        os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from error
    temporary = Path(name)
    try:
        yield temporary
        # mkstemp makes private files; what users share should follow their umask.
        os.chmod(temporary, 0o666 & ~_umask())
        flush_to_disk(temporary)
        os.replace(temporary, path)
        flush_to_disk(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        temporary.unlink(missing_ok=True)


def write_text(path, text):
    """Write ``text`` (str) as UTF-8 to ``path`` in one piece, see `replacing`."""
    with replacing(path) as temporary:
        temporary.write_bytes(text.encode("utf-8"))


def unwritable(path, error):
    """The `SentembError` that says why ``path`` could not be written."""
    reason = getattr(error, "strerror", None) or str(error)
    return SentembError(f"{path}: cannot be written: {reason}; nothing was changed there")


def flush_to_disk(path):
    """fsync a file or a folder by its path."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def numbered_lines(path):
    """Yield ``(number, text)`` for each line of a UTF-8 text file, line ends removed.

    Lines end at ``\\n`` or ``\\r\\n`` only, so other separators of Unicode stay part of the text.
    Bytes that are not UTF-8 raise a `SentembError` with line and column.
    """
    name = place_name(path)
    with reading(path) as file:
        for number, raw in enumerate(file, 1):
            try:
                yield number, raw.decode("utf-8").rstrip("\n").removesuffix("\r")
            except UnicodeDecodeError as error:
                raise SentembError(
                    f"{name}:{number}:{error.start + 1}: not valid UTF-8; save the file as UTF-8"
                ) from error


def place_name(path):
    """How messages call ``path``: its name, or "standard input" for ``-``."""
    return "standard input" if str(path) == "-" else str(path)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask
