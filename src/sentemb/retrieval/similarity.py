"""Cosines of embeddings."""

import numpy as np
from numpy.typing import ArrayLike

from sentemb.errors import SentembError
from sentemb.kernels.dense import products_of_pairs
from sentemb.kernels.unit_rows import divide_by_lengths


def unit_rows(vectors: np.ndarray) -> np.ndarray:
    """Each row of ``vectors``, (k, dim) float32 or float64, divided by its length; a copy.

    Zero rows stay zero. A row with a number that is not finite becomes NaN.
    """
    units = np.array(vectors, order="C")
    divide_by_lengths(units)
    return units


def cosines(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Cosine of every row of ``a`` with every row of ``b``: (k, dim), (l, dim) -> (k, l)."""
    A, B = _rows(a, "a"), _rows(b, "b")
    if A.shape[1] != B.shape[1]:
        raise SentembError(f"vectors of {A.shape[1]} and {B.shape[1]} numbers have no cosine")
    return unit_rows(A) @ unit_rows(B).T


def pairwise_cosines(a: ArrayLike, b: ArrayLike) -> np.ndarray:
    """Cosine of each row of ``a`` with the same row of ``b``: (k, dim) twice -> (k,)."""
    A, B = _rows(a, "a"), _rows(b, "b")
    if A.shape != B.shape:
        raise SentembError(f"pairs need equal shapes, not {A.shape} and {B.shape}")
    return np.sum(unit_rows(A) * unit_rows(B), axis=1)


def indexed_dots(
    A: np.ndarray, B: np.ndarray, a_index: np.ndarray, b_index: np.ndarray
) -> np.ndarray:
    """Dot products of ``A[a_index[j]]`` with ``B[b_index[j]]``: (k,) float64.

    Sums are in float64 in a fixed order, so a product has the same bits in every call, and those of
    a ranking.
    """
    dots = np.empty(len(a_index))
    queries, rows = np.ascontiguousarray(A, np.float64), np.ascontiguousarray(B)
    numbers = np.asarray(a_index, np.int64), np.asarray(b_index, np.int64)
    products_of_pairs(dots, queries, *numbers, rows, np.empty(0, np.float32), 0, len(dots))
    return dots


def _rows(vectors: ArrayLike, name: str) -> np.ndarray:
    """``vectors`` as rows of finite floats."""
    try:
        rows = np.atleast_2d(np.asarray(vectors))
        if rows.dtype.kind not in "fiub":
            raise TypeError
    except (TypeError, ValueError):
        raise SentembError(f"{name} must be an array of numbers, one row per vector") from None
    if rows.ndim != 2:
        raise SentembError(f"{name} must be one vector or rows of vectors, not {rows.ndim} axes")
    if rows.dtype not in (np.float32, np.float64):
        rows = rows.astype(np.float32 if rows.dtype == np.float16 else np.float64)
    if not np.isfinite(rows).all():
        row = np.flatnonzero(~np.isfinite(rows).all(axis=1))[0]
        raise SentembError(f"row {row} of {name} has a value that is not a finite number")
    return rows
