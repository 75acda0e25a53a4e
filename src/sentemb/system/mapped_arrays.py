"""One-dimensional NumPy arrays in files, mapped into memory instead of read."""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.system.files import is_file, reading, status, unreadable, writing


def write_array(path: Path, array: NDArray[np.generic]) -> None:
    """Write ``array`` as a ``.npy`` file, the whole file or nothing."""
    with writing(path) as file:
        np.lib.format.write_array(file, np.ascontiguousarray(array), allow_pickle=False)


def mapped_array(path: Path, dtype: str, size: int | None = None) -> NDArray[np.generic]:
    """The array of a ``.npy`` file, mapped. Writing to it does not change the file.

    Parameters
    ----------
    path : Path
        The file.
    dtype : str
        The dtype that it must have, little-endian.
    size : int, optional
        The length that it must have.

    Returns
    -------
    (size,) array

    Raises
    ------
    SentembError
        If the file is missing, is not such an array, or is longer or shorter than its header says.
    """
    if not is_file(path):
        missing = status(path) is None
        raise SentembError(f"{path}: {'is missing' if missing else 'is not a regular file'}")
    wanted = np.dtype(dtype).newbyteorder("<")
    with reading(path) as file:
        try:
            if np.lib.format.read_magic(file) != (1, 0):
                raise ValueError
            shape, _, found = np.lib.format.read_array_header_1_0(file)
        except Exception:  # the header is read by Python's parser, which may raise anything
            raise SentembError(f"{path}: is not a whole NumPy array") from None
        start = file.tell()
    if found != wanted or len(shape) != 1 or (size is not None and shape != (size,)):
        length = "" if size is None else f" of length {size:,}"
        raise SentembError(f"{path}: is not an array of {dtype}{length}")
    now = status(path)
    if now is None or now.st_size != start + shape[0] * wanted.itemsize:
        raise SentembError(f"{path}: is longer or shorter than its header says")
    if shape[0] == 0:  # nothing to map
        return np.empty(0, wanted)
    try:
        # Private pages, so that kernels see the same type as for an array in memory. Nothing that
        # is written to them reaches the file.
        return np.asarray(np.memmap(path, wanted, "c", start, shape))
    except (OSError, ValueError) as error:
        raise unreadable(path, error) from error
