"""``--to parquet``: a table with a row per title, its vector and its fields."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sentemb.bridges.export.destination import new_file
from sentemb.bridges.export.targets import Exported
from sentemb.bridges.export.titles import portions
from sentemb.errors import SentembError
from sentemb.search.filters import BOOLEAN, INTEGER, REAL, TEXT
from sentemb.system.extras import package

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

# Titles per row group: one is in memory at a time.
_ROWS = 16_384


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    dtype: str = "float32",
) -> Exported:
    """Write the columns ``id``, ``title``, ``vector``, a list of ``dim`` numbers, and the fields.

    The vector of a title of which the model knows no word is null. Needs the package pyarrow.
    Raises `SentembError` for a field of the name ``vector``.
    ``force`` replaces the file ``out``. ``on_progress`` is called with how many titles are done and
    how many there are. ``dtype``, "float32" or "float16", is the type of the numbers.
    """
    arrow = package("pyarrow", "parquet", "--to parquet")
    tables = package("pyarrow.parquet", "parquet", "--to parquet")
    dim, unknown, types = source.model.dim, 0, source.fields.types
    if "vector" in types:
        raise SentembError("a field of the products is named vector, as the vectors are; rename it")
    kinds = {
        INTEGER: arrow.int64(),
        REAL: arrow.float64(),
        TEXT: arrow.string(),
        BOOLEAN: arrow.bool_(),
    }
    vector = arrow.list_(arrow.float16() if dtype == "float16" else arrow.float32(), dim)
    schema = arrow.schema(
        [
            arrow.field("id", arrow.string(), nullable=False),
            arrow.field("title", arrow.string(), nullable=False),
            arrow.field("vector", vector),
            *(arrow.field(name, kinds[kind]) for name, kind in types.items()),
        ]
    )
    with (
        new_file(out, force, can_stream=False) as file,
        # Numbers of vectors repeat too rarely for a dictionary.
        tables.ParquetWriter(file, schema, compression="zstd", use_dictionary=False) as writer,
    ):
        for portion in portions(source, on_progress, _ROWS):
            numbers = arrow.array(portion.vectors.astype(dtype, copy=False).ravel())
            missing = None if portion.known.all() else arrow.array(~portion.known)
            rows = arrow.FixedSizeListArray.from_arrays(numbers, type=vector, mask=missing)
            columns = [[fields[name] for fields in portion.fields] for name in types]
            writer.write_batch(
                arrow.record_batch([portion.ids, portion.titles, rows, *columns], schema=schema)
            )
            unknown += int(np.count_nonzero(~portion.known))
    return Exported([Path(out)], len(source), without_vector=unknown)
