"""The titles of an index in portions, as every target that writes them reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.similarity import unit_rows

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.search.product_fields import Value

OnProgress = Callable[[int, int], None] | None

_PORTION = 8192
# How far the length of a stored vector may be from 1, by its type.
_TOLERANCE = {"float32": 1e-3, "float16": 1e-2, "int8": 0.1}


@dataclass(frozen=True, eq=False)
class Portion:
    """Titles that follow each other in an index.

    vectors : (n, dim), vectors of unit length; zero for a title of which the model knows no word
    known : (n,), whether the vector is not zero
    fields : the fields of each title by column, None for one that is empty
    """

    ids: list[str]
    titles: list[str]
    vectors: NDArray[np.float32]
    known: NDArray[np.bool_]
    fields: list[dict[str, Value]]


def portions(index: Index, on_progress: OnProgress, size: int = _PORTION) -> Iterator[Portion]:
    """All titles of an index, ``size`` at a time.

    ``on_progress`` is called with how many titles are done and how many there are. Raises
    `SentembError` if a vector is not of unit length: its file is damaged.
    """
    for first in range(0, len(index), size):
        span = slice(first, min(first + size, len(index)))
        vectors = _unit_vectors(index, span)
        known = np.asarray(vectors.any(axis=1))
        fields = index.fields.values(range(len(index))[span])
        yield Portion(list(index.ids[span]), list(index.titles[span]), vectors, known, fields)
        if on_progress is not None:
            on_progress(span.stop, len(index))


def _unit_vectors(index: Index, span: slice) -> NDArray[np.float32]:
    """Vectors as float32, of unit length even if they were rounded to fewer bits."""
    stored = index.vectors
    if isinstance(stored, Int8Rows):
        rows = stored.rows(span).vectors()
    else:
        rows = np.asarray(stored[span], np.float32)
    lengths = np.linalg.norm(rows, axis=1)
    is_sound = (np.abs(lengths - 1) <= _TOLERANCE[index.dtype]) | (lengths == 0)
    if not is_sound.all():
        raise SentembError(
            f"the index is damaged: the vector of title {span.start + int(np.argmin(is_sound)):,} "
            "is not of unit length; make the index again with `sentemb index`"
        )
    return rows if index.dtype == "float32" else unit_rows(rows)
