"""Vectors in fewer bits, as ``quantize_embeddings`` of sentence-transformers makes them."""

import warnings

import numpy as np

from sentemb.errors import SentembError

FLOATS = ("float32", "float16")
INTEGERS = ("int8", "uint8")
BITS = ("binary", "ubinary")
PRECISIONS = (*FLOATS, *INTEGERS, *BITS)

_STEPS = 255
_FEW = 100


def in_precision(vectors: np.ndarray, precision: str, depth: int = 2) -> np.ndarray:
    """Vectors, (k, dim) float, in another precision, one of `PRECISIONS`.

    ``int8`` and ``uint8`` cut the range of each column, from its smallest to its largest value in
    these vectors, into 255 steps. So the vectors of two calls have different scales. ``ubinary``
    packs one bit per column, whether the value is above 0, into bytes, (k, ceil(dim / 8)) uint8;
    the last byte is filled up with zeros. ``binary`` subtracts 128 from these bytes, which gives
    int8.

    Warnings are in the name of the caller if ``depth`` is 2, of its caller if it is 3, and so on.
    Raises `SentembError` for one vector in ``int8`` or ``uint8``: its columns have no range.
    """
    if precision in FLOATS:
        return vectors.astype(precision)
    if precision in BITS:
        packed = np.packbits(vectors > 0, axis=-1)
        return packed if precision == "ubinary" else (packed - 128).astype(np.int8)
    if len(vectors) == 0:
        return np.zeros(vectors.shape, precision)
    if len(vectors) == 1:
        raise SentembError(
            f"{precision} is scaled by the values of all texts of a call, and this call has one "
            "text; give all texts at once, or use float16"
        )
    if len(vectors) < _FEW:
        warnings.warn(
            f"{precision} is scaled by the values of all texts of a call, and this call has only "
            f"{len(vectors)}",
            UserWarning,
            stacklevel=depth,
        )
    lowest, highest = (
        ends(vectors, axis=0).astype(np.float32, copy=False) for ends in (np.min, np.max)
    )
    step = (highest - lowest) / _STEPS
    step = np.where(step == 0, 1, step)
    steps = np.clip(np.floor((vectors - lowest) / step), 0, _STEPS)
    return steps.astype(np.uint8) if precision == "uint8" else (steps - 128).astype(np.int8)
