"""Rows of a table in a file: CSV and other delimited text, JSON lines, Parquet, recorded searches.

All formats give the same: the values of some columns as texts, row by row. Memory does not grow
with the file. A missing value is an empty text.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from sentemb.data.importers.columns import BadRows, Row, TableFile, Wanted, index_of
from sentemb.data.importers.delimited_rows import text_rows
from sentemb.data.importers.parquet_rows import parquet_rows
from sentemb.data.record_file import is_record
from sentemb.data.search_record import COLUMNS, record_rows
from sentemb.system.paths import AnyPath

_FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}


class Rows(TableFile):
    """The rows of a file, whatever its format."""

    def __iter__(self) -> Iterator[Row]:
        """Yield the number of each row and the values of the columns.

        The number is that of the row's first line; in Parquet that of the row, counted from 1.
        """
        if self._format == "parquet":
            return parquet_rows(self)
        if self._format == "record":
            return self._recorded()
        return text_rows(self, self._format)

    def noting(self, on_names: Callable[[list[str]], None]) -> "Rows":
        """The same rows; ``on_names`` is called with the names of all columns too."""
        first = self.on_names

        def both(names: list[str]) -> None:
            first(names)
            on_names(names)

        return replace(self, on_names=both)

    def again(self, columns: Sequence[Wanted], bad: BadRows) -> "Rows":
        """Other columns of the file, read once more without notes."""
        return Rows(self.path, columns, self.how, bad)

    def _recorded(self) -> Iterator[Row]:
        """The clicks of recorded searches; with their clicks as a column all results."""
        chosen = [index_of(column, list(COLUMNS), self.name) for column in self.columns]
        all_shown = COLUMNS.index("clicks") in chosen
        rows = record_rows(self.path, all_shown, self.how.since)
        for number, row in enumerate(rows, 1):
            texts = self.texts([row[k] for k in chosen], self.where(number))
            if texts is not None:
                yield number, texts

    def where(self, number: int) -> str:
        """Where a row is, for messages."""
        row = " row " if self._format in ("parquet", "record") else ""
        return f"{self.name}:{row}{number}"

    @cached_property
    def _format(self) -> str:
        """The format; "auto" if the first line of the text has to tell."""
        if self.how.format != "auto":
            return self.how.format
        if is_record(self.path):
            return "record"
        return format_of_name(self.path)


def format_of_name(path: AnyPath) -> str:
    """The format that the name of a file says, or "auto"."""
    suffix = re.search(r"\.\w+$", str(path).lower().removesuffix(".gz"))
    return _FORMAT_OF_SUFFIX.get(suffix[0], "auto") if suffix else "auto"
