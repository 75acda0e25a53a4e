"""Rows of tables in files: CSV and other delimited text, JSON lines, Parquet.

All formats give the same: the values of some columns as texts, row by row. Memory does not grow
with the file. A missing value is an empty text.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import BufferedIOBase
from itertools import chain
from operator import itemgetter
from typing import Any, TypeAlias

from sentemb.bounds import brief
from sentemb.errors import SentembError
from sentemb.system.files import MAX_LINE_BYTES, place_name, raw_lines, reading, unreadable
from sentemb.system.paths import AnyPath

FORMATS = ("auto", "csv", "tsv", "jsonl", "parquet")
_FORMAT_OF_SUFFIX = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".pq": "parquet",
}
_DELIMITERS = (",", ";", "\t", "|")

# If columns are given by number, a first row of only such names is a header. They are compared in
# lower case, without blanks, hyphens and underscores.
_HEADER_WORDS = frozenset(
    "query q search searchterm searchquery keyword keywords term title name producttitle "
    "productname product item text clickedtitle clicked click clicks count clickcount nclicks "
    "id productid itemid sku asin docid position rank searchid sessionid url".split()
)

Row: TypeAlias = tuple[int, tuple[str, ...]]


@dataclass(frozen=True)
class Reading:
    """How files are read.

    Attributes
    ----------
    format : {"auto", "csv", "tsv", "jsonl", "parquet"}
        "auto" goes by the name of each file, and by its first line if the name says nothing.
    delimiter : str, optional
        One character between the columns of delimited text. By default a tab in TSV; elsewhere
        whichever of comma, semicolon, tab and bar splits the first line into the columns asked for.
    encoding : str
        Encoding of text files, as Python names it.
    header : bool, optional
        Whether the first row has the names of the columns. By default it has if a column is asked
        for by name, or if all of its values are usual names such as query, title or clicks.
    quotes : bool
        Whether a text between double quotes may hold delimiters, line ends and doubled quotes.
    """

    format: str = "auto"
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool | None = None
    quotes: bool = True

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise SentembError(
                f"there is no format {brief(self.format)}; choose from {', '.join(FORMATS)}"
            )
        delimiter = self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0'):
            raise SentembError(f"the delimiter is {brief(delimiter)}; give one character")


class BadRows:
    """What happens to bad rows: the first one stops the import, or all are counted.

    Attributes
    ----------
    count : int
        Number of bad rows so far.
    first : SentembError or None
        The first of them.
    """

    def __init__(self, skip: bool) -> None:
        self._skip = skip
        self.count = 0
        self.first: SentembError | None = None

    def __call__(self, place: str, reason: object) -> None:
        """Report a bad row; a `SentembError` with its place unless bad rows are skipped."""
        error = SentembError(f"{place}: {reason}")
        if not self._skip:
            raise error
        self.count += 1
        self.first = self.first or error


@dataclass(frozen=True)
class Rows:
    """The rows of one file.

    Attributes
    ----------
    path : str or path-like
        A file; text is unpacked if the name ends in ``.gz``; ``-`` is standard input.
    columns : sequence of str
        At least two names or numbers from 1. In JSON lines and Parquet, ``a.b`` is the field ``b``
        of ``a``, unless there is a column of that name.
    how : Reading
    bad : BadRows
        Told about rows that cannot be read.
    on_names : function of a list of str
        Called once with the names of all columns, where the file has them.
    """

    path: AnyPath
    columns: Sequence[str]
    how: Reading
    bad: BadRows
    on_names: Callable[[list[str]], None] = lambda names: None

    def __iter__(self) -> Iterator[Row]:
        """Yield the number of each row, and the values of the columns.

        The number is that of the row's first line, in Parquet that of the row, counted from 1.
        """
        format = self._format()
        if format == "parquet":
            return self._parquet()
        if format == "jsonl":
            return self._json()
        return self._text("\t" if format == "tsv" else None, is_known=format != "auto")

    def place(self, number: int) -> str:
        """Where a row is, for messages."""
        name = place_name(self.path)
        return f"{name}: row {number}" if self._format() == "parquet" else f"{name}:{number}"

    def _format(self) -> str:
        if self.how.format != "auto":
            return self.how.format
        suffix = re.search(r"\.\w+$", str(self.path).lower().removesuffix(".gz"))
        return _FORMAT_OF_SUFFIX.get(suffix[0], "auto") if suffix else "auto"

    # -- delimited text ---------------------------------------------------------------------------

    def _text(self, delimiter: str | None, is_known: bool) -> Iterator[Row]:
        name = place_name(self.path)
        with reading(self.path) as file, _decoded(file, self.how.encoding, name) as text:
            lines = _lines(text, name)
            first = next(lines, "")
            _check_first(first, name, self.how.encoding, is_known)
            if not is_known and first.lstrip().startswith("{"):
                numbered = enumerate(chain([first], lines), 1)
                yield from self._records((number, line) for number, line in numbered)
                return
            delimiter = self.how.delimiter or delimiter or self._delimiter(first)
            yield from self._delimited(chain([first], lines), delimiter, name)

    def _delimited(self, lines: Iterator[str], delimiter: str, name: str) -> Iterator[Row]:
        # The limit of the csv module is that of the whole process, and too low for descriptions.
        csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
        # strict: a quote that does not belong to a pair is reported; otherwise it would join rows.
        quoting = csv.QUOTE_MINIMAL if self.how.quotes else csv.QUOTE_NONE
        reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
        try:
            head = next(reader, [])
        except csv.Error as error:
            raise SentembError(f"{name}:1: {_csv_fault(error)}") from None
        if not head:
            raise SentembError(f"{name}: the first line is empty; give a table")
        pick, has_header = self._chosen(head, name)
        rows = reader if has_header else chain([head], reader)
        width, last = len(head), reader.line_num if has_header else 0
        swallows = delimiter == "\t" and self.how.quotes
        while True:
            try:
                for row in rows:
                    if len(row) == width:
                        values = pick(row)
                        if swallows and reader.line_num > last + 1 and any(map(_is_joined, row)):
                            self.bad(f"{name}:{last + 1}", _JOINED.format(reader.line_num))
                        else:
                            yield last + 1, values
                    elif row:
                        self.bad(
                            f"{name}:{last + 1}",
                            f"{len(row)} columns, not {width} as in the first row; put a text with "
                            "delimiters between double quotes, or name the --delimiter",
                        )
                    last = reader.line_num
                return
            except csv.Error as error:
                self.bad(f"{name}:{last + 1}", _csv_fault(error))
                last = reader.line_num

    def _chosen(
        self, head: list[str], name: str
    ) -> tuple[Callable[[list[str]], tuple[str, ...]], bool]:
        """What takes the chosen columns from a row, and whether the first row is a header."""
        names = [cell.strip() for cell in head]
        named = [column for column in self.columns if not _is_number(column)]
        if self.how.header is False:
            if named:
                raise SentembError(
                    f"{name}: the column {brief(named[0])} is a name, and there is no header; give "
                    "a number from 1"
                )
            places = [_place(column, [""] * len(head), name) for column in self.columns]
            return itemgetter(*places), False
        places = [_place(column, names, name) for column in self.columns]
        is_header = self.how.header or any(column in names for column in self.columns)
        is_header = is_header or all(_bare(names[place]) in _HEADER_WORDS for place in places)
        if is_header:
            self.on_names(names)
        return itemgetter(*places), is_header

    def _delimiter(self, first: str) -> str:
        """The delimiter that splits the first line into the columns asked for, or into most."""
        named = {column for column in self.columns if not _is_number(column)}
        best, most = ",", 0
        for delimiter in _DELIMITERS:
            cells = first.rstrip("\r\n").split(delimiter)
            names = {cell.strip().removeprefix('"').removesuffix('"') for cell in cells}
            n_cells = len(cells) + (
                len(_DELIMITERS) * len(first) if named and named <= names else 0
            )
            if n_cells > most:
                best, most = delimiter, n_cells
        return best

    # -- JSON lines -------------------------------------------------------------------------------

    def _json(self) -> Iterator[Row]:
        name = place_name(self.path)
        encoding = _checked_encoding(self.how.encoding, name)
        lines = (
            (number, raw.decode(encoding, "surrogateescape"))
            for number, raw in raw_lines(self.path)
        )
        return self._records(lines)

    def _records(self, lines: Iterator[tuple[int, str]]) -> Iterator[Row]:
        name = place_name(self.path)
        steps = [(column, column.split(".")) for column in self.columns]
        never = dict.fromkeys(self.columns)
        names: list[str] | None = None
        for number, line in lines:
            if line.isspace() or not line:
                continue
            try:
                record = json.loads(line.removeprefix("\ufeff"))
                if not isinstance(record, dict):
                    raise ValueError("not an object")
            except (ValueError, RecursionError) as error:
                reason = getattr(error, "msg", None) or "not an object that can be read"
                self.bad(f"{name}:{number}", f"not JSON ({reason}); write one object on each line")
                continue
            if names is None:
                names = list(record)
                self.on_names(names)
            found = [_field(record, *step) for step in steps]
            if never:
                for column, value in zip(self.columns, found, strict=True):
                    if value is not None:
                        never.pop(column, None)
            values = tuple(map(_text_of, found))
            if None in values:
                column = self.columns[values.index(None)]
                self.bad(f"{name}:{number}", f"{brief(column)} is not a text or a number")
            else:
                yield number, values  # type: ignore[misc]
        if never and names is not None:
            raise SentembError(
                f"{name}: no line has a value for {brief(next(iter(never)))}; the first line has "
                f"{_listed(names)}"
            )

    # -- Parquet ----------------------------------------------------------------------------------

    def _parquet(self) -> Iterator[Row]:
        name = place_name(self.path)
        if str(self.path) == "-":
            raise SentembError("Parquet cannot be read from standard input; give a file")
        try:
            import pyarrow
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise SentembError(
                f"{name}: reading Parquet needs pyarrow; install sentemb[parquet]"
            ) from None
        try:
            with ParquetFile(self.path) as file:
                yield from self._batches(file, name)
        except OSError as error:
            raise unreadable(self.path, error) from error
        except pyarrow.ArrowException as error:
            raise SentembError(f"{name}: not a whole Parquet file ({error}); write it again") from (
                error
            )

    def _batches(self, file: Any, name: str) -> Iterator[Row]:
        names = list(file.schema_arrow.names)
        self.on_names(names)
        steps = []
        for column in self.columns:
            first, *rest = [column] if column in names else column.split(".")
            steps.append((names[_place(first, names, name)], rest))
        read = list(dict.fromkeys(top for top, _ in steps))
        number = 0
        # By default a batch may join rows of several groups.
        for group in range(file.num_row_groups):
            for batch in file.iter_batches(_BATCH_ROWS, row_groups=[group], columns=read):
                lists = []
                for top, rest in steps:
                    values = batch.column(read.index(top)).to_pylist()
                    lists.append([_inner(value, rest) for value in values] if rest else values)
                for found in zip(*lists, strict=True):
                    number += 1
                    texts = tuple(map(_text_of, found))
                    if None in texts:
                        column = self.columns[texts.index(None)]
                        self.bad(
                            f"{name}: row {number}", f"{brief(column)} is not a text or a number"
                        )
                    else:
                        yield number, texts


_BATCH_ROWS = 16_384
_JOINED = (
    "a quoted text with tabs ends in line {}; if the quotes are part of the texts, give --no-quotes"
)


def _is_joined(text: str) -> bool:
    """Whether a quoted text has swallowed the rest of its line, tabs included."""
    return "\t" in text and "\n" in text


def _csv_fault(error: csv.Error) -> str:
    if "field larger" in str(error) or "unexpected end" in str(error):
        return "a double quote opens a text that does not end; give --no-quotes if it is a letter"
    return (
        f"the quotes do not match ({error}); write a quote inside a quoted text twice, or give "
        "--no-quotes if they are letters"
    )


@contextlib.contextmanager
def _decoded(file: BufferedIOBase, encoding: str, name: str) -> Iterator[io.TextIOWrapper]:
    """``file`` as text; bytes that do not fit the encoding become lone surrogates."""
    text = io.TextIOWrapper(
        file,  # type: ignore[type-var]
        encoding=_checked_encoding(encoding, name),
        errors="surrogateescape",
        newline="",
    )
    try:
        yield text
    except UnicodeDecodeError as error:
        raise SentembError(
            f"{name}: not in {encoding} ({error.reason}); name another --encoding"
        ) from error
    finally:
        text.detach()  # standard input stays open


def _checked_encoding(encoding: str, name: str) -> str:
    """The encoding to decode with: UTF-8 drops a byte-order mark."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    except (LookupError, ValueError):
        raise SentembError(
            f"{name}: there is no encoding {brief(encoding)}; give one such as utf-8, cp1252 or "
            "utf-16"
        ) from None
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _lines(text: io.TextIOWrapper, name: str) -> Iterator[str]:
    """The lines of a text with their ends, none of them endless."""
    for line in iter(partial(text.readline, MAX_LINE_BYTES + 1), ""):
        if len(line) > MAX_LINE_BYTES:
            raise SentembError(
                f"{name}: a line is longer than {MAX_LINE_BYTES:,} characters; give a text file "
                "with shorter lines"
            )
        yield line


def _check_first(first: str, name: str, encoding: str, is_known: bool) -> None:
    """Refuse what is not a table of text, by its first line."""
    if not first:
        raise SentembError(f"{name}: the input is empty; give a table")
    if first.startswith("PAR1"):
        raise SentembError(f"{name}: is Parquet; give --format parquet")
    if first.startswith("PK\x03\x04"):
        raise SentembError(f"{name}: is a spreadsheet or archive; save the table as CSV")
    if "\0" in first or first.startswith(("\udcff\udcfe", "\udcfe\udcff")):
        raise SentembError(
            f"{name}:1: not text in {encoding}; if it is UTF-16, give --encoding utf-16"
        )
    if not is_known and first.lstrip().startswith("["):
        raise SentembError(
            f"{name}:1: looks like a JSON array; write one object on each line (jq -c '.[]')"
        )


def _place(column: str, names: list[str], name: str) -> int:
    """The place of a column, given by its name or its number from 1."""
    if names.count(column) == 1:
        return names.index(column)
    if column in names:
        raise SentembError(
            f"{name}:1: {names.count(column)} columns are named {brief(column)}; give a number "
            "from 1"
        )
    if _is_number(column) and 1 <= int(column) <= len(names):
        return int(column) - 1
    if _is_number(column):
        raise SentembError(f"{name}:1: no column {column}; there are {len(names)}")
    raise SentembError(f"{name}:1: no column {brief(column)}; the columns are {_listed(names)}")


def _listed(names: list[str]) -> str:
    listed = ", ".join(names[:20])
    return listed if len(listed) <= 150 else f"{listed[:150]}..."


def _is_number(column: str) -> bool:
    return column.isascii() and column.isdigit() and len(column) < 10


def _bare(name: str) -> str:
    return re.sub(r"[\s_-]", "", name).lower()


def _field(record: dict[str, Any], column: str, steps: list[str]) -> Any:
    if column in record or len(steps) == 1:
        return record.get(column)
    return _inner(record, steps)


def _inner(value: Any, steps: list[str]) -> Any:
    """The value at the end of a path through nested objects; None where it breaks off."""
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _text_of(value: Any) -> str | None:
    """A value of JSON or Parquet as text, empty if it is missing; None if it cannot be one."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if math.isnan(value):
            return ""
        # A table with missing values often stores integers as floats.
        return str(int(value)) if value.is_integer() else str(value)
    return str(value) if isinstance(value, int) else None
