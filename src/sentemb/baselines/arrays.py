"""NumPy files of others: heads are checked before anything is allocated, and nothing is unpickled.

Only arrays of finite floating-point numbers are read. What else a file holds is a `SentembError`
that names the file and says what is wrong; the caller adds a remedy.
"""

import contextlib
import math
import zipfile
import zlib

import numpy as np

from sentemb.errors import SentembError
from sentemb.system.files import reading, status

# Products of two such numbers can still be added up.
_LARGEST = 1e12
# Rows of a table that are looked through at a time.
_ROWS = 1 << 14
# What reading damaged bytes may raise.
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


def shape_of(path):
    """The shape of the array in a ``.npy`` file, from its head."""
    with reading(path) as file:
        return _shape(file, status(path).st_size, path)


def read_array(path):
    """The array in a ``.npy`` file whose shape was checked."""
    with _faults_of(path), reading(path) as file:
        array = np.load(file, allow_pickle=False)
    for first in range(0, len(array), _ROWS):
        _as_float32(array[first : first + _ROWS], path)
    return array


class Archive:
    """The arrays of an ``.npz`` archive, each read on its own.

    Parameters
    ----------
    path : path
    """

    def __init__(self, path):
        self._path = path

    def __enter__(self):
        with _faults_of(self._path), reading(self._path) as file:
            file.read(1)  # a file that cannot be read is named as any other
            self._archive = zipfile.ZipFile(self._path)
        return self

    def __exit__(self, *exception):
        self._archive.close()

    def __contains__(self, name):
        return f"{name}.npy" in self._archive.namelist()

    def shape(self, name):
        """The shape of an array, from its head."""
        with self._opened(name) as file:
            size = self._archive.getinfo(f"{name}.npy").file_size
            return _shape(file, size, self._path, f"{name}: ")

    def read(self, name):
        """An array whose shape was checked, as float32."""
        with self._opened(name) as file:
            array = np.lib.format.read_array(file, allow_pickle=False)
        return _as_float32(array, self._path, f"{name}: ")

    @contextlib.contextmanager
    def _opened(self, name):
        if name not in self:
            raise SentembError(f"{self._path}: {name} is missing")
        with _faults_of(self._path), self._archive.open(f"{name}.npy") as file:
            yield file


def sizes(shape):
    """A shape in words, cut if it is long."""
    text = " x ".join(f"{size:,}" if abs(size) < 10**18 else "..." for size in shape[:4])
    return f"({text}{' ...' if len(shape) > 4 else ''})"


def _shape(file, size, path, name=""):
    """The shape of the array that ``file`` begins with, if it fills the ``size`` bytes."""
    with _faults_of(path):
        # Heads of later versions may be of any length.
        if np.lib.format.read_magic(file) != (1, 0):
            raise ValueError
        try:
            shape, _, dtype = np.lib.format.read_array_header_1_0(file)
        except Exception as error:  # Python's own parser reads it, and may raise anything
            raise ValueError from error
        at = file.tell()
    if dtype.hasobject:
        raise SentembError(f"{path}: {name}cannot be read without unpickling")
    if dtype.kind != "f" or dtype.itemsize > 8:
        raise SentembError(f"{path}: {name}its numbers are not floating-point numbers")
    if min(shape, default=0) < 0 or at + math.prod(shape) * dtype.itemsize != size:
        raise SentembError(f"{path}: {name}the size of the file is not that of {sizes(shape)}")
    return shape


def _as_float32(array, path, name=""):
    with np.errstate(over="ignore"):  # what is too large becomes infinity
        array = array.astype(np.float32)
    if array.size and not -_LARGEST <= array.min() <= array.max() <= _LARGEST:
        raise SentembError(f"{path}: {name}it holds NaN, infinity or too large a number")
    return array


@contextlib.contextmanager
def _faults_of(path):
    """Turn what damaged bytes raise into a `SentembError`."""
    try:
        yield
    except SentembError:
        raise
    except _FAULTS as error:
        raise SentembError(f"{path}: it is not a whole file of NumPy arrays") from error
    except OSError as error:
        raise SentembError(f"{path}: cannot be read: {error.strerror or error}") from error
