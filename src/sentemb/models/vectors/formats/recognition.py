"""The format of a file of word vectors by its contents: its name may say anything.

A file is unpacked if it begins as gzip does. A format that is not read is named, with what to do.
"""

import contextlib
import gzip
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from sentemb.errors import SentembError
from sentemb.models.vectors.formats.header import header_of
from sentemb.models.vectors.formats.number_fields import ends_in_numbers
from sentemb.system.files import place_name, reading
from sentemb.system.paths import AnyPath

_GZIP = b"\x1f\x8b"
_UNPACK = "unpack it, or compress it with gzip"
_AS_TEXT = "write its words and their numbers as text"
# What a file begins with that holds no vectors that we read, and what to do with it.
_OTHERS = {
    b"\xba\x16\x4f\x2f": (
        "a fastText model",
        "give the .vec file that was written next to it, or write the vectors of its words as text",
    ),
    b"PK\x03\x04": ("a zip archive", "unpack it and give the file of vectors in it"),
    b"BZh91AY&SY": ("compressed with bzip2", _UNPACK),
    b"\xfd7zXZ": ("compressed with xz", _UNPACK),
    b"\x28\xb5\x2f\xfd": ("compressed with zstd", _UNPACK),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "unpack it and give the file of vectors in it"),
    b"\x80": (
        "a pickle, such as a model of gensim",
        "load it there and write its vectors with save_word2vec_format",
    ),
    b"\x93NUMPY": ("an array of NumPy, which has no words", _AS_TEXT),
    b"\x89HDF": ("HDF5", _AS_TEXT),
    b"SQLite format 3\0": ("an SQLite database, such as one of Magnitude", _AS_TEXT),
}
# The first bytes that are looked at: the header and a vector.
_START = 1 << 20


class Contents(NamedTuple):
    """An open file of vectors, unpacked, and whether it is word2vec binary or text."""

    file: io.BufferedReader
    is_binary: bool


@contextlib.contextmanager
def opened(path: AnyPath) -> Iterator[Contents]:
    """Open a file of word vectors; ``-`` is standard input.

    Raises `SentembError` for a file of another format.
    """
    name = place_name(path)
    with reading(path, unpack=False) as packed, contextlib.ExitStack() as unpacked:
        start, file = _peeked(packed)
        if start.startswith(_GZIP):
            start, file = _peeked(unpacked.enter_context(gzip.GzipFile(fileobj=file)))
        for begin, (what, remedy) in _OTHERS.items():
            if start.startswith(begin):
                raise SentembError(
                    f"{name}: is {what}, not word vectors that can be read; {remedy}"
                )
        yield Contents(file, _is_binary(start, name))


def _is_binary(start: bytes, name: str) -> bool:
    """Whether a file that begins with ``start`` is word2vec binary."""
    first, _, rest = start.partition(b"\n")
    header = header_of(first)
    second = rest.partition(b"\n")[0]
    if header is None or not header.dim or ends_in_numbers(second.split(), header.dim):
        return False
    # A row of text that lacks a number is text nevertheless, and its reader says so.
    return name.removesuffix(".gz").endswith(".bin") or not _is_text(rest)


def _is_text(raw: bytes) -> bool:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        # The last letter may be cut.
        if error.start < len(raw) - 3 or error.reason != "unexpected end of data":
            return False
        text = ""
    return "\0" not in text


def _peeked(file: Any) -> tuple[bytes, io.BufferedReader]:
    """The first bytes of a file, and a file that still has them, even if it is a pipe."""
    pieces: list[bytes] = []
    missing = _START
    while missing and (piece := file.read(missing)):
        pieces.append(piece)
        missing -= len(piece)
    start = b"".join(pieces)
    return start, io.BufferedReader(_Rewound(start, file), _START)


class _Rewound(io.RawIOBase):
    """The bytes that were taken from a file, and then the others."""

    def __init__(self, start: bytes, file: Any) -> None:
        self._start, self._file = memoryview(start), file

    def readable(self) -> bool:
        """Whether it can be read: yes."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer; see `io.RawIOBase`."""
        if not self._start:
            return int(self._file.readinto(buffer) or 0)
        count = min(len(buffer), len(self._start))
        buffer[:count] = self._start[:count]
        self._start = self._start[count:]
        return count
