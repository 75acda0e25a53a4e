"""NumPy arrays in files, mapped into memory instead of read."""

import contextlib
import io
import math
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.system.files import is_file, reading, status, unreadable, writing


def write_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write ``array`` as a ``.npy`` file, the whole file or nothing."""
    array = np.ascontiguousarray(array)
    with writing(path) as file:
        np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(array))
        # NumPy's own function writes past Python, and does not say why if that fails.
        file.write(bytes_of(array))


@contextlib.contextmanager
def growing_array(path: Path, dtype: str) -> Iterator[Callable[[NDArray[np.generic]], None]]:
    """Write an array of one dimension piece by piece as a ``.npy`` file, the whole file or nothing.

    Yields the function that appends a piece.
    """
    stored = np.dtype(dtype).newbyteorder("<")
    count = 0
    with writing(path) as file:
        file.write(_header(stored, 0))

        def append(piece: NDArray[np.generic]) -> None:
            nonlocal count
            count += piece.size
            file.write(bytes_of(piece.astype(stored, copy=False)))

        yield append
        # A header has room for any length.
        file.seek(0)
        file.write(_header(stored, count))


def _header(dtype: np.dtype[np.generic], count: int) -> bytes:
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": dtype.str, "fortran_order": False, "shape": (count,)}
    )
    return header.getvalue()


def bytes_of(array: NDArray[np.generic]) -> memoryview | bytes:
    """The bytes of an array, without a copy if they follow one another."""
    return np.ascontiguousarray(array).data.cast("B") if array.size else b""


def mapped_array(
    path: Path,
    dtype: str,
    shape: tuple[int | None, ...],
    read_only: bool = False,
    in_memory: bool = False,
) -> NDArray[np.generic]:
    """The array of a ``.npy`` file, mapped. Writing to it does not change the file.

    The file must have this little-endian dtype and this shape, in which None is any length.
    ``read_only`` shares the pages with other processes; by default they are private, so that
    kernels see the same type as for an array in memory. ``in_memory`` reads the file instead of
    mapping it: the system ends a process that looks at a part of a mapped file that is no longer
    there. Raises `SentembError` if the file is missing, is not such an array, or is longer or
    shorter than its header says.
    """
    if not is_file(path):
        missing = status(path) is None
        raise SentembError(f"{path}: {'is missing' if missing else 'is not a regular file'}")
    expected = np.dtype(dtype).newbyteorder("<")
    with reading(path) as file:
        try:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError
            actual, by_column, stored = np.lib.format.read_array_header_1_0(file)
        except Exception:  # the header is read by Python's parser, which may raise anything
            raise SentembError(f"{path}: is not a whole NumPy array") from None
        start = file.tell()
    is_right = len(actual) == len(shape) and all(
        size in (length, None) for size, length in zip(shape, actual, strict=True)
    )
    if stored != expected or not is_right or (by_column and len(actual) > 1):
        of = "" if None in shape else f" of shape {shape}"
        raise SentembError(f"{path}: is not an array of {dtype}{of}")
    now = status(path)
    if now is None or now.st_size != start + math.prod(actual) * expected.itemsize:
        raise SentembError(f"{path}: is longer or shorter than its header says")
    if 0 in actual:  # nothing to map
        return np.empty(actual, expected)
    try:
        if in_memory:
            array = np.fromfile(path, expected, math.prod(actual), offset=start).reshape(actual)
            array.flags.writeable = not read_only
            return array
        # Nothing that is written to private pages reaches the file.
        return np.asarray(np.memmap(path, expected, "r" if read_only else "c", start, actual))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
