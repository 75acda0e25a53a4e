"""Rows of CSV and other delimited text.

Quotes are those of the csv module, but strict: a quote that fits no other is an error. Otherwise
one title that begins with a quote would swallow the rows up to the next quote.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html.entities import html5
from io import BufferedIOBase
from itertools import chain
from operator import itemgetter
from typing import BinaryIO, Literal, TextIO, cast

from sentemb.data.importers.columns import Row, TableFile, index_of, is_number, same_names
from sentemb.data.importers.json_rows import json_rows
from sentemb.data.spreadsheets import is_header
from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.files import MAX_LINE_BYTES, reading

_CUT_ENTITY = re.compile(r"&(?:(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6})|[A-Za-z][A-Za-z0-9]{1,31})$")
# A first line with which Excel is told the delimiter.
_SEP = re.compile(r"sep=[,;\t|][\r\n]")
_DELIMITERS = (",", ";", "\t", "|")

_WIDTH = (
    "{} columns, not {} as in the first row; put a text with delimiters between double quotes, or "
    "name the --delimiter"
)
_JOINED = (
    "a quoted text with tabs ends in line {}; if the quotes are part of the texts, give --no-quotes"
)


def _is_joined(text: str) -> bool:
    """Whether a quoted text has swallowed the rest of its line, tabs included."""
    return "\t" in text and "\n" in text


def _csv_fault(error: csv.Error) -> str:
    if "field larger" in str(error) or "unexpected end" in str(error):
        return (
            "a double quote opens a text that does not end; give --no-quotes if it is part of the "
            "text"
        )
    return (
        f"the quotes do not match ({error}); write a quote inside a quoted text twice, or give "
        "--no-quotes if they are part of the texts"
    )


def text_rows(table: TableFile, format: str) -> Iterator[Row]:
    """The rows of a text file; with the format "auto" the first line tells whether it is JSON."""
    encoding, is_known = table.how.encoding, format != "auto"
    with reading(table.path) as file, _decoded(file, encoding, table.name) as text:
        lines = _lines(text, table.name)
        first = next(lines, "")
        _check_first(first, table.name, encoding, is_known)
        lines = chain([first], lines)
        if format == "jsonl" or (not is_known and first.lstrip().startswith("{")):
            yield from json_rows(table, enumerate(lines, 1))
            return
        known = first[4] if _SEP.match(first) else "\t" if format == "tsv" else None
        delimiter = table.how.delimiter or known or _delimiter(first, table.columns)
        yield from _rows(table, lines, delimiter)


def _rows(table: TableFile, lines: Iterator[str], delimiter: str) -> Iterator[Row]:
    # The limit of the csv module is that of the whole process, and too low for descriptions.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    quotes, name = table.how.quotes, table.name
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE
    reader = csv.reader(lines, delimiter=delimiter, strict=True, quoting=quoting)
    head, before = _head(reader, name)
    pick, has_header = _chosen(table, head)
    rows = reader if has_header else chain([head], reader)
    width, last = len(head), reader.line_num if has_header else before
    can_join = delimiter == "\t" and quotes
    while True:
        try:
            for row in rows:
                fault = None
                row = _with_entities(row, width, delimiter)
                if len(row) != width:
                    fault = _WIDTH.format(len(row), width) if row else ""
                elif can_join and reader.line_num > last + 1 and any(map(_is_joined, row)):
                    fault = _JOINED.format(reader.line_num)
                if fault is None:
                    yield last + 1, pick(row)
                elif fault:  # a blank line is none
                    table.bad(f"{name}:{last + 1}", fault)
                last = reader.line_num
            return
        except csv.Error as error:  # the reader continues with the next line
            table.bad(f"{name}:{last + 1}", _csv_fault(error))
            last = reader.line_num


def _head(reader: Iterator[list[str]], name: str) -> tuple[list[str], int]:
    """The first row, and the number of lines before it: 1 if Excel is told the delimiter there."""
    try:
        head = next(reader, [])
        before = int(head == ["sep=", ""])
        head = next(reader, []) if before else head
    except csv.Error as error:
        raise SentembError(f"{name}:1: {_csv_fault(error)}") from None
    if not head:
        raise SentembError(f"{name}:1: the first line is empty; give a table")
    return head, before


def _with_entities(row: list[str], width: int, delimiter: str) -> list[str]:
    """A row; if it is too long, without the cuts at the ``;`` of entities such as ``&quot;``."""
    if len(row) <= width or delimiter != ";":
        return row
    cells = row[:1]
    for cell in row[1:]:
        entity = _CUT_ENTITY.search(cells[-1])
        if entity is not None and (entity[1] or f"{entity[0][1:]};" in html5):
            cells[-1] += f";{cell}"
        else:
            cells.append(cell)
    return cells


def _chosen(
    table: TableFile, head: list[str]
) -> tuple[Callable[[list[str]], tuple[str, ...]], bool]:
    """A function that takes the chosen columns from a row; whether the first row is a header."""
    names = [cell.strip() for cell in head]
    header, columns = table.how.header, table.columns
    named = [column for column in columns if not is_number(column)]
    if header is False:
        if named:
            raise SentembError(
                f"{table.name}: the column {brief(named[0])} is a name, and there is no header; "
                "give a number from 1"
            )
        names = [""] * len(head)
    indices = [index_of(column, names, table.name) for column in columns]
    if header is None:
        is_named = any(same_names(column, names) for column in columns)
        header = is_named or is_header([names[index] for index in indices])
    if header:
        table.on_names(names)
    return itemgetter(*indices), header


def _delimiter(first: str, columns: Sequence[str]) -> str:
    """The delimiter that splits the first line into the columns asked for, or into most cells."""
    named = {column.casefold() for column in columns if not is_number(column)}
    cells_of = {delimiter: first.rstrip("\r\n").split(delimiter) for delimiter in _DELIMITERS}

    def fitness(delimiter: str) -> tuple[bool, int]:
        cells = cells_of[delimiter]
        names = {cell.strip().strip('"').strip().casefold() for cell in cells}
        return bool(named) and named <= names, len(cells)

    return max(_DELIMITERS, key=fitness)


@contextlib.contextmanager
def _decoded(file: BufferedIOBase, encoding: str, name: str) -> Iterator[TextIO]:
    """``file`` as text; bytes that do not fit the encoding become lone surrogates."""
    text = io.TextIOWrapper(
        cast(BinaryIO, file), encoding_of(encoding, name), errors="surrogateescape", newline=""
    )
    try:
        with named_encoding(encoding, name):
            yield text
    finally:
        text.detach()  # standard input stays open


@contextlib.contextmanager
def named_encoding(encoding: str, where: str) -> Iterator[None]:
    """Name the encoding and the place in the error of a text that is not in it.

    A codec of another kind of text, such as idna, fails in the same way.
    """
    try:
        yield
    except UnicodeError as error:
        reason = getattr(error, "reason", error)
        raise SentembError(
            f"{where}: not in {encoding} ({reason}); name another --encoding"
        ) from error


def encoding_of(encoding: str, name: str) -> str:
    """The encoding to decode with: UTF-8 drops a byte-order mark."""
    try:
        io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    except (LookupError, ValueError):
        raise SentembError(
            f"{name}: there is no encoding {brief(encoding)}; give one such as utf-8, cp1252 or "
            "utf-16"
        ) from None
    return "utf-8-sig" if encoding.lower().replace("_", "-") in ("utf-8", "utf8") else encoding


def _lines(text: TextIO, name: str) -> Iterator[str]:
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
    if first.startswith(("\x1f\udc8b", "(\udcb5/\udcfd")):
        raise SentembError(
            f"{name}: is compressed; unpack it, or let the name of a gzip file end in .gz"
        )
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
