"""Rows of a Parquet file, one group of rows after the other; needs pyarrow."""

from collections.abc import Iterator
from typing import Any

from sentemb.data.importers.columns import Row, TableFile, index_of, inner
from sentemb.errors import SentembError
from sentemb.system.extras import package
from sentemb.system.files import reading, unreadable

_BATCH_ROWS = 16_384


def parquet_rows(table: TableFile) -> Iterator[Row]:
    """The rows of a Parquet file, counted from 1."""
    if str(table.path) == "-":
        raise SentembError("Parquet cannot be read from standard input; give a file")
    pyarrow = package("pyarrow", "parquet", f"{table.name}: reading Parquet")
    parquet = package("pyarrow.parquet", "parquet")
    with reading(table.path):
        pass  # a missing file has the message of every other file
    try:
        with parquet.ParquetFile(table.path) as file:
            yield from _rows(table, file)
    except SentembError:
        raise
    except (pyarrow.ArrowException, ValueError, OverflowError) as error:
        # Texts that are not UTF-8 and dates that Python does not have come from pyarrow, too.
        raise SentembError(
            f"{table.name}: not a whole Parquet file ({error}); write it again"
        ) from error
    except OSError as error:
        raise unreadable(table.path, error) from error


def _rows(table: TableFile, file: Any) -> Iterator[Row]:
    names = list(file.schema_arrow.names)
    table.on_names(names)
    steps = []
    for column in table.columns:
        first, *rest = [column] if column in names else column.split(".")
        steps.append((names[index_of(first, names, table.name)], rest))
    tops = list(dict.fromkeys(top for top, _ in steps))
    number = 0
    # By default a batch may join rows of several groups.
    for group in range(file.num_row_groups):
        for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=tops):
            lists = {top: batch.column(index).to_pylist() for index, top in enumerate(tops)}
            columns = [
                [inner(value, rest) for value in lists[top]] if rest else lists[top]
                for top, rest in steps
            ]
            for values in zip(*columns, strict=True):
                number += 1
                texts = table.texts(values, f"{table.name}: row {number}")
                if texts is not None:
                    yield number, texts
