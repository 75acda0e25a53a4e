"""A folder of word vectors: words, counts and a description are read, the vectors are mapped."""

import hashlib
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.vectors.vector_limits import MAX_COUNT, MAX_DIM
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.bounds import is_integer
from sentemb.system.descriptions import check_format, parse_json
from sentemb.system.files import is_file, names_in, path_of, reading, status, unreadable
from sentemb.system.locks import is_temporary
from sentemb.system.numpy_files import shape_of
from sentemb.system.paths import AnyPath

DESCRIPTION, WORDS, VECTORS, COUNTS = "vectors.json", "words.txt", "vectors.npy", "counts.txt"
FORMAT = 1
DTYPES = ("float32", "float16")
_MAX_DESCRIPTION_BYTES = 65_536
_MAX_TEXT_BYTES = 1 << 30
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 20


@dataclass(frozen=True)
class VectorsDescription:
    """The contents of ``vectors.json``.

    words, dim : the shape of the vectors
    dtype : one of `DTYPES`
    sha256 : the checksum of each file, by its name; counts are there only if they are named here
    source, licence : see `WordVectors`
    """

    words: int
    dim: int
    dtype: str
    sha256: Mapping[str, str]
    source: str
    licence: str

    def as_json(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return {"format": FORMAT, **vars(self), "sha256": dict(self.sha256)}

    @property
    def identity(self) -> str:
        """One hash of the words and the vectors."""
        return hashlib.sha256(f"{self.sha256[WORDS]} {self.sha256[VECTORS]}".encode()).hexdigest()


def read_folder(folder: AnyPath, limit: int | None, words: Collection[str] | None) -> WordVectors:
    """Open a folder; see `sentemb.models.vectors.reading.read_word_vectors`."""
    path = path_of(folder)
    description = _description(path)
    known = _words(path / WORDS, description)
    counts = _counts(path / COUNTS, description) if COUNTS in description.sha256 else None
    vectors = WordVectors(
        known[:limit],
        _mapped(path / VECTORS, description)[:limit],
        counts=None if counts is None else counts[:limit],
        name=Path(folder).resolve().name,
        sha256=description.identity,
        source=description.source,
        licence=description.licence,
    )
    if words is None:
        return vectors
    rows = [row for row, word in enumerate(vectors.words) if word in words]
    if not rows:
        raise SentembError(f"{folder}: none of the words has a vector; give others")
    return vectors.take(rows)


def check_vectors(folder: AnyPath) -> None:
    """Read all vectors of a folder; a `SentembError` unless they have their checksum."""
    path = path_of(folder) / VECTORS
    expected = _description(path.parent).sha256[VECTORS]
    _check_regular(path)
    digest = hashlib.sha256()
    with reading(path) as file:
        for piece in iter(lambda: file.read(_PIECE), b""):
            digest.update(piece)
    if digest.hexdigest() != expected:
        raise _damaged(path, "its contents do not match their checksum")


def listed_files(folder: AnyPath) -> frozenset[str]:
    """The files of word vectors in a folder; also if a killed writer took their description."""
    names = names_in(folder)
    if DESCRIPTION in names:
        return frozenset([DESCRIPTION, *_description(path_of(folder)).sha256])
    complete = {name for name in names if not is_temporary(name)}
    is_left = len(complete) < len(names) and complete <= {WORDS, VECTORS, COUNTS}
    return frozenset(names if is_left else ())


def _description(folder: Path) -> VectorsDescription:
    path = folder / DESCRIPTION
    if status(path) is None:
        raise SentembError(
            f"{folder}: not a folder of word vectors, {DESCRIPTION} is missing; give a file of "
            "vectors or a folder that 'sentemb vectors' wrote"
        )
    raw = _contents(path, _MAX_DESCRIPTION_BYTES)
    try:
        content = parse_json(raw)
    except ValueError:
        raise _damaged(path, "it is not JSON") from None
    if not isinstance(content, dict):
        raise _damaged(path, "it is not a JSON object")
    check_format(path, content, FORMAT)
    for name, is_right in _IS_RIGHT.items():
        if not is_right(content.get(name)):
            raise _damaged(path, f'"{name}" is missing or wrong')
    return VectorsDescription(**{name: content[name] for name in _IS_RIGHT})


def _is_between(least: int, most: int) -> Callable[[Any], bool]:
    return lambda value: is_integer(value) and least <= value <= most


def _are_checksums(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and {WORDS, VECTORS} <= set(value) <= {WORDS, VECTORS, COUNTS}
        and all(
            isinstance(checksum, str) and _SHA256.fullmatch(checksum) for checksum in value.values()
        )
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_IS_RIGHT: dict[str, Callable[[Any], bool]] = {
    "words": _is_between(1, 2**31 - 1),
    "dim": _is_between(1, MAX_DIM),
    "dtype": lambda value: value in DTYPES,
    "sha256": _are_checksums,
    "source": _is_text,
    "licence": _is_text,
}


def _words(path: Path, description: VectorsDescription) -> list[str]:
    lines = _checked_lines(path, description)
    if len(set(lines)) != len(lines):
        raise _damaged(path, "a word occurs twice")
    return lines


def _counts(path: Path, description: VectorsDescription) -> NDArray[np.int64]:
    lines = _checked_lines(path, description)
    try:
        counts = list(map(int, lines))
    except ValueError:
        raise _damaged(path, "a line is not an integer") from None
    if not 0 <= min(counts) <= max(counts) <= MAX_COUNT:
        raise _damaged(path, "a count is negative or above 63 bits")
    return np.array(counts, np.int64)


def _checked_lines(path: Path, description: VectorsDescription) -> list[str]:
    """The lines of a small text file with a checksum, one for each word."""
    raw = _contents(path, _MAX_TEXT_BYTES)
    if hashlib.sha256(raw).hexdigest() != description.sha256[path.name]:
        raise _damaged(path, "its contents do not match their checksum")
    try:
        lines = raw.decode("utf-8").split("\n")
    except UnicodeDecodeError:
        raise _damaged(path, "it is not valid UTF-8") from None
    if lines.pop() or len(lines) != description.words:
        raise _damaged(path, f"it has not one line for each of {description.words:,} words")
    return lines


def _mapped(path: Path, description: VectorsDescription) -> np.ndarray:
    """The vectors, mapped and not read."""
    _check_regular(path)
    try:
        shape = shape_of(path)
    except SentembError as error:
        raise _damaged(path, str(error).removeprefix(f"{path}: ")) from None
    if shape != (description.words, description.dim):
        raise _damaged(path, f"its shape is not that of {DESCRIPTION}")
    try:
        vectors: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, MemoryError) as error:
        raise unreadable(path, error) from error
    if vectors.dtype != np.dtype(description.dtype).newbyteorder("<"):
        raise _damaged(path, f"its numbers are not {description.dtype} as in {DESCRIPTION}")
    if not vectors.flags.c_contiguous:
        raise _damaged(path, "it is in the order of Fortran")
    return vectors


def _contents(path: Path, most: int) -> bytes:
    """The bytes of a regular file of limited size."""
    _check_regular(path)
    metadata = status(path)
    if metadata is None or metadata.st_size > most:
        raise _damaged(path, f"it has more than {most:,} bytes")
    with reading(path) as file:
        # Python sets aside as many bytes as are asked for, so not `most`, which is gigabytes.
        return file.read(metadata.st_size)


def _check_regular(path: Path) -> None:
    if not is_file(path):
        missing = status(path) is None
        raise _damaged(path, "it is missing" if missing else "it is not a regular file")


def _damaged(path: Path, why: str) -> SentembError:
    return SentembError(
        f"{path}: the word vectors are damaged: {why}; restore the file from a copy or convert "
        "the vectors again"
    )
