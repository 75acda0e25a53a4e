"""Rows of a Parquet file, one group of rows after the other; needs pyarrow."""

from collections.abc import Iterator

from sentemb.data.importers.columns import Row, TableFile, index_of, inner
from sentemb.data.parquet_files import parquet_batches
from sentemb.errors import SentembError


def parquet_rows(table: TableFile) -> Iterator[Row]:
    """The rows of a Parquet file, counted from 1."""
    if str(table.path) == "-":
        raise SentembError("Parquet cannot be read from standard input; give a file")
    steps: list[tuple[int, list[str]]] = []  # which column that is read, and the fields in it

    def choose(paths: dict[str, list[str]]) -> list[str]:
        names = list(paths)
        table.on_names(names)
        tops: list[str] = []
        for column in table.columns:
            top, *rest = paths[names[index_of(column, names, table.name)]]
            if top not in tops:
                tops.append(top)
            steps.append((tops.index(top), rest))
        return tops

    number = 0
    for lists in parquet_batches(table.path, choose):
        columns = [
            [inner(value, rest) for value in lists[top]] if rest else lists[top]
            for top, rest in steps
        ]
        for values in zip(*columns, strict=True):
            number += 1
            texts = table.texts(values, f"{table.name}: row {number}")
            if texts is not None:
                yield number, texts
