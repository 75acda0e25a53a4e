"""Arrays that grow while they are made: in memory or, once they are large, on a disk."""

from __future__ import annotations

import contextlib
import io
import math
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.system.files import is_file, is_folder, status, unwritable
from sentemb.system.paths import AnyPath

# Bytes of an array that stay in memory.
_LIMIT = 1 << 24
# Rows that are copied at a time.
_PORTION = 8192


class Growing:
    """Numbers that are appended, and then read as one array.

    Beyond a limit they are in a file of ``folder`` that has no name; without a folder everything
    stays in memory. The system removes the file together with the last array that maps it, also
    after a kill.
    """

    def __init__(self, folder: AnyPath | None = None) -> None:
        self._folder = folder
        self._file: IO[bytes] = io.BytesIO()

    def append(self, numbers: bytes | NDArray[Any]) -> None:
        """Append bytes, or the numbers of an array.

        Raises `SentembError` if the disk is full or the folder cannot be written.
        """
        # Written, not mapped: a full disk is then an error and not the end of the process.
        raw = numbers if isinstance(numbers, bytes) else np.ascontiguousarray(numbers).data
        try:
            self._file.write(raw)
            if self._folder is not None and isinstance(self._file, io.BytesIO):
                self._move_if_large()
        except OSError as error:
            raise unwritable(self._folder or "-", error) from error

    def _move_if_large(self) -> None:
        if self._file.tell() > _LIMIT:
            # Open as long as an array maps it.
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115
            assert isinstance(self._file, io.BytesIO)
            file.write(self._file.getbuffer())
            self._file = file

    def array(self, dtype: DTypeLike, *shape: int) -> NDArray[Any]:
        """All numbers that were appended, as an array, by default of one dimension.

        Nothing is appended after it. Raises `SentembError` if the disk is full or cannot be read.
        """
        values: NDArray[Any]
        if isinstance(self._file, io.BytesIO):
            raw = self._file.getbuffer()
            values = np.frombuffer(raw, dtype) if len(raw) else np.empty(0, dtype)
        else:
            try:
                self._file.flush()
                values = np.asarray(np.memmap(self._file, dtype, "r"))
            except OSError as error:
                raise unwritable(self._folder or "-", error) from error
        return values.reshape(shape) if shape else values


def joined_rows(
    arrays: Sequence[NDArray[Any]],
    folder: AnyPath | None,
    mask: NDArray[np.bool_] | None = None,
) -> NDArray[Any]:
    """The rows of some arrays, one after the other, with one portion of them in memory at a time.

    Parameters
    ----------
    arrays : sequence of arrays
        At least one; all of one dtype and of one shape but for the first axis.
    folder : path or None
        See `Growing`.
    mask : (n,) bool, optional
        Of the rows of all arrays, those that are taken.
    """
    rows, count, start = Growing(folder), 0, 0
    for array in arrays:
        for first in range(0, len(array), _PORTION):
            portion = array[first : first + _PORTION]
            if mask is not None:
                portion = portion[mask[start + first : start + first + len(portion)]]
            if portion.size:
                rows.append(portion)
            count += len(portion)
        start += len(array)
    return rows.array(arrays[0].dtype, count, *arrays[0].shape[1:])


def scratch_array(shape: tuple[int, ...], dtype: DTypeLike, folder: AnyPath | None) -> np.ndarray:
    """An array of zeros: in memory or, if it is large, in a file of ``folder`` that has no name.

    The space of the file is reserved: a disk that fills up later would end the process. Where the
    space cannot be had, and without a folder, the array is in memory.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if folder is not None and size > _LIMIT and hasattr(os, "posix_fallocate"):
        with contextlib.suppress(OSError), tempfile.TemporaryFile(dir=folder) as file:
            os.posix_fallocate(file.fileno(), 0, size)
            return np.asarray(np.memmap(file, dtype, "r+", shape=shape))
    return np.zeros(shape, dtype)


def scratch_folder(output: AnyPath) -> Path | None:
    """The folder of large arrays until ``output`` is written: the nearest one above it.

    For standard output and devices it is the system's folder of temporary files (``TMPDIR``); None
    if that cannot be written.
    """
    if str(output) == "-" or not (status(output) is None or is_file(output) or is_folder(output)):
        try:
            return Path(tempfile.gettempdir())
        except OSError:
            return None
    return next(path for path in Path(os.path.realpath(output)).parents if is_folder(path))
