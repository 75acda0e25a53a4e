"""Rows of CSV and other delimited text.

Quotes are those of the csv module, but strict: a quote that fits no other is an error. Otherwise
one title that begins with a quote would swallow the rows up to the next quote.
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
from collections.abc import Callable, Iterator
from functools import partial
from html.entities import html5
from io import BufferedIOBase
from itertools import chain, islice
from operator import itemgetter
from typing import Any, TextIO, cast

from sentemb.data.importers.clean_texts import without_formula
from sentemb.data.importers.columns import (
    BadRows,
    Row,
    TableFile,
    check_names,
    index_of,
    is_number,
    same_names,
    shown,
)
from sentemb.data.importers.file_kinds import check_kind, encoding_in
from sentemb.data.importers.json_rows import json_rows
from sentemb.data.importers.known_exports import what_is_lacking
from sentemb.data.importers.missing import is_no_row
from sentemb.data.importers.quoted_lines import doubled, numbers_rows, quote_of, unwrapped
from sentemb.data.importers.table_heads import DELIMITERS, MOST_BEFORE, find_head
from sentemb.data.spreadsheets import is_header
from sentemb.errors import SentembError
from sentemb.system.amounts import amount
from sentemb.system.bounds import brief
from sentemb.system.files import MAX_LINE_BYTES, reading

_CUT_ENTITY = re.compile(r"&(?:(#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6})|[A-Za-z][A-Za-z0-9]{1,31})$")
# A first line with which Excel is told the delimiter.
_SEP = re.compile(r"sep=[,;\t|][\r\n]")
# Bytes that tell the kind of a file.
_PEEKED = 256

_WIDTH = (
    "{}, not {} as in the first row; put a text with delimiters between double quotes, or "
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
    with reading(table.path) as file, decoded(file, table) as text:
        lines = _lines(text, table.name)
        known_first = list(islice(lines, MOST_BEFORE))
        if not known_first:
            raise SentembError(f"{table.name}: the input is empty; give a table")
        _check_encoding(known_first[0], table)
        opening = next((line.lstrip("\ufeff \t") for line in known_first if line.strip()), "")
        is_json = table.how.delimiter is None and opening.startswith(
            ("{", "[{", "[[", "[\n", "[\r")
        )
        if format == "jsonl" or (format == "auto" and is_json):
            yield from json_rows(table, enumerate(chain(known_first, lines), 1))
            return
        if table.how.quotes:
            known_first, lines = list(map(unwrapped, known_first)), map(unwrapped, lines)
        before = 0
        known = "\t" if format == "tsv" else table.how.delimiter
        if _SEP.match(known_first[0]):
            before, known = 1, known or known_first[0][4]
        marks = DELIMITERS if known is None else (known,)
        head = find_head(known_first[before:], table.columns, marks, table.is_head)
        before += head.line
        if head.line:
            first = brief(known_first[before - head.line].strip())
            table.on_note(f"{table.name}: the header is in line {before + 1}; before it: {first}")
        comments = head.line > 0 and opening.startswith("#")
        is_numbered = numbers_rows(known_first[before:], head.delimiter)
        lines = islice(chain(known_first, lines), before, None)
        rows = _rows(table, lines, head.delimiter, before, comments, is_numbered)
        if any('="' in line for line in known_first):
            rows = ((number, tuple(map(without_formula, cells))) for number, cells in rows)
        yield from rows


def _rows(
    table: TableFile,
    lines: Iterator[str],
    delimiter: str,
    before: int,
    comments: bool,
    is_numbered: bool,
) -> Iterator[Row]:
    """The rows of the table that begins after ``before`` lines, and ends before ``comments``.

    If it ``is_numbered``, the first cell of a row has no name and is left out.
    """
    # The limit of the csv module is that of the whole process, and too low for descriptions.
    csv.field_size_limit(max(csv.field_size_limit(), MAX_LINE_BYTES))
    quotes, name = table.how.quotes, table.name
    reader = _reader(lines, delimiter, quotes)
    try:
        head: list[str] = next(reader, [])
    except csv.Error as error:
        raise SentembError(f"{name}:{before + 1}: {_csv_fault(error)}") from None
    if not head:
        raise SentembError(f"{name}:{before + 1}: the first line is empty; give a table")
    pick, has_header = _chosen(table, head)
    rows = _below(reader, is_numbered) if has_header else chain([head], reader)
    names = head if has_header else []
    width, last = len(head), reader.line_num if has_header else 0
    can_join = delimiter == "\t" and quotes
    while True:
        try:
            for row in rows:
                row = row if len(row) == width else _of_width(row, head, delimiter)
                fits = len(row) == width and row[0] != "" and row != names
                fault = None if fits else _width_fault(row, names, width, table.bad)
                if comments and row and row[0][:1] == "#" and not any(row[1:]):
                    where = f"{name}:{before + last + 1}"
                    table.on_note(f"{where}: other comments begin; what follows was left out")
                    return
                if can_join and reader.line_num > last + 1 and any(map(_is_joined, row)):
                    fault = fault or _JOINED.format(before + reader.line_num)
                if fault:
                    table.bad(f"{name}:{before + last + 1}", fault)
                elif fault is None:
                    yield before + last + 1, pick(row)
                last = reader.line_num
            return
        except csv.Error as error:  # the reader continues with the next line
            table.bad(f"{name}:{before + last + 1}", _csv_fault(error))
            last = reader.line_num


def _reader(lines: Iterator[str], delimiter: str, quotes: bool) -> Any:
    """A reader of the csv module for a table."""
    if not quotes:
        return csv.reader(lines, delimiter=delimiter, strict=True, quoting=csv.QUOTE_NONE)
    first = next(lines)
    lines, quote = map(doubled(delimiter), chain([first], lines)), quote_of(first, delimiter)
    return csv.reader(lines, delimiter=delimiter, strict=True, quotechar=quote)


def _below(reader: Iterator[list[str]], is_numbered: bool) -> Iterator[list[str]]:
    """The rows below the names, without their numbers; they continue after an error of one."""
    return map(itemgetter(slice(1, None)), reader) if is_numbered else reader


def _width_fault(row: list[str], names: list[str], width: int, bad: BadRows) -> str | None:
    """The fault of a row of another width; empty if it holds no clicks, None if it has none."""
    is_blank = not (row and row[0].strip()) and not any(map(str.strip, row))
    if is_blank or row == names:  # files that were joined have a line of names each
        return ""
    if len(row) == width:
        return None
    if is_no_row(row):
        bad.totals += 1
        return ""
    return _WIDTH.format(amount(len(row), "column"), width)


def _of_width(row: list[str], head: list[str], delimiter: str) -> list[str]:
    """A row of another width than the first with the cells of the table, if that is beyond doubt.

    It may be cut at the ``;`` of entities such as ``&quot;``, have blank cells at its end, or lack
    some that have no name: some programs write a delimiter there, in the header or below it.
    """
    row = _with_entities(row) if delimiter == ";" and len(row) > len(head) else row
    lacking = head[len(row) :]
    if any(map(str.strip, [*row[len(head) :], *lacking])) or not row:
        return row
    return row[: len(head)] + [""] * len(lacking)


def _with_entities(row: list[str]) -> list[str]:
    """A row without the cuts at the ``;`` of entities."""
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
    names = [without_formula(cell).strip() for cell in head]
    if len(names) == 1 and (advice := what_is_lacking(names)):
        raise SentembError(f"{table.name}: {advice}")
    header, columns = table.how.header, table.columns
    named = [column for column in columns if not is_number(column)]
    if header is False:
        if named:
            raise SentembError(
                f"{table.name}: the column {shown(named[0])} is a name, and there is no header; "
                "give a number from 1"
            )
        names = [""] * len(head)
    # Numbers are names where all of them are: the id of a first row may be one of the numbers.
    are_names = all(same_names(str(column), names) for column in columns if is_number(column))
    numbered = names if are_names else [""] * len(head)
    try:
        indices = [
            index_of(column, numbered if is_number(column) else names, table.name)
            for column in columns
        ]
    except SentembError:
        check_names(names, table.name)
        raise
    if header is None:
        is_named = bool(named) or are_names
        header = is_named or is_header([names[index] for index in indices])
    if header:
        table.on_names(names)
    return itemgetter(*indices), header


@contextlib.contextmanager
def decoded(file: BufferedIOBase, table: TableFile) -> Iterator[TextIO]:
    """``file`` as text; bytes that do not fit the encoding become lone surrogates.

    UTF-16 is recognised by its first bytes. Raises `SentembError` for what is not text at all.
    """
    buffered: Any = file if hasattr(file, "peek") else io.BufferedReader(cast(Any, file))
    start = buffered.peek(_PEEKED)[:_PEEKED]
    check_kind(table.path, start, table.name)
    encoding = encoding_in(start) or table.how.encoding
    text = io.TextIOWrapper(
        buffered, encoding_of(encoding, table.name), errors="surrogateescape", newline=""
    )
    try:
        with named_encoding(encoding, table.name):
            yield text
    finally:
        text.detach()  # standard input stays open
        if buffered is not file:
            buffered.detach()


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


def _check_encoding(first: str, table: TableFile) -> None:
    """Refuse text of which the first line shows that it has another encoding."""
    if "\0" in first or first.startswith(("\udcff\udcfe", "\udcfe\udcff")):
        raise SentembError(
            f"{table.name}:1: not text in {table.how.encoding}; if it is UTF-16, give --encoding "
            "utf-16"
        )
