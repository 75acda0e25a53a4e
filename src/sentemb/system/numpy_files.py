"""NumPy files from others: headers are checked before memory is allocated; nothing is unpickled.

Only arrays of finite floating-point numbers are read. Anything else raises a `SentembError` that
names the file and says what is wrong; the caller adds a remedy.
"""

import contextlib
import math
import zipfile
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.system.files import reading, status

# Sums of products of two such numbers stay finite.
_LARGEST = 1e12
# Rows of a table that are checked at a time.
_ROWS = 1 << 14
# Exceptions that reading damaged bytes may raise.
_FAULTS = (
    EOFError,
    LookupError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def shape_of(path: Path) -> tuple[int, ...]:
    """The shape of the array in a ``.npy`` file, from its header."""
    with reading(path) as file:
        metadata = status(path)
        return _shape(file, 0 if metadata is None else metadata.st_size, path)


def read_array(path: Path) -> np.ndarray:
    """The array in a ``.npy`` file whose shape was checked."""
    with _faults_of(path), reading(path) as file:
        array: np.ndarray = np.load(file, allow_pickle=False)
    for first in range(0, len(array), _ROWS):
        _as_float32(array[first : first + _ROWS], path)
    return array


class Archive:
    """The arrays of an ``.npz`` archive, each read on its own."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> "Archive":
        with _faults_of(self._path), reading(self._path) as file:
            file.read(1)  # an unreadable file gives the same message as elsewhere
            self._archive = zipfile.ZipFile(self._path)
        return self

    def __exit__(self, *exception: object) -> None:
        self._archive.close()

    def __contains__(self, name: str) -> bool:
        return f"{name}.npy" in self._archive.namelist()

    def shape(self, name: str) -> tuple[int, ...]:
        """The shape of an array, from its header."""
        with self._opened(name) as file:
            size = self._archive.getinfo(f"{name}.npy").file_size
            return _shape(file, size, self._path, f"{name}: ")

    def read(self, name: str) -> NDArray[np.float32]:
        """An array whose shape was checked, as float32."""
        with self._opened(name) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return _as_float32(array, self._path, f"{name}: ")

    @contextlib.contextmanager
    def _opened(self, name: str) -> Iterator[IO[bytes]]:
        if name not in self:
            raise SentembError(f"{self._path}: {name} is missing")
        with _faults_of(self._path), self._archive.open(f"{name}.npy") as file:
            yield file


def sizes(shape: tuple[int, ...]) -> str:
    """A shape in words, cut if it is long."""
    text = " x ".join(f"{size:,}" if abs(size) < 10**18 else "..." for size in shape[:4])
    return f"({text}{' ...' if len(shape) > 4 else ''})"


def _shape(
    file: BufferedIOBase | IO[bytes], size: int, path: Path, name: str = ""
) -> tuple[int, ...]:
    """The shape of the array at the start of ``file``, if it fills the ``size`` bytes."""
    with _faults_of(path):
        # Headers of later versions may have any length.
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError
        try:
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # it is read by Python's parser, which may raise anything
            raise ValueError from error
        at = file.tell()
    if dtype.hasobject:
        raise SentembError(f"{path}: {name}cannot be read without unpickling")
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise SentembError(f"{path}: {name}its numbers are not floating-point numbers")
    if min(shape, default=0) < 0 or at + math.prod(shape) * dtype.itemsize != size:
        raise SentembError(f"{path}: {name}the size of the file is not that of {sizes(shape)}")
    return shape


def _as_float32(array: np.ndarray, path: Path, name: str = "") -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # a number that is too large becomes infinity
        single = array.astype(np.float32)
    if single.size and not -_LARGEST <= single.min() <= single.max() <= _LARGEST:
        raise SentembError(f"{path}: {name}contains NaN, infinity or too large a number")
    return single


@contextlib.contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    """Turn an exception caused by damaged bytes into a `SentembError`."""
    try:
        yield
    except SentembError:
        raise
    except _FAULTS as error:
        raise SentembError(f"{path}: it is not a whole file of NumPy arrays") from error
    except OSError as error:
        raise SentembError(f"{path}: cannot be read: {error.strerror or error}") from error
