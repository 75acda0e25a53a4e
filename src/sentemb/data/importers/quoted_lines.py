r"""Lines of delimited text that other programs quote in other ways, as the csv module reads them.

A spreadsheet that knows another delimiter puts a whole row between quotes; Spark, R and MySQL write
``\"`` for a quote; SQLite writes texts between single quotes; R has a number before each row and
no name above it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from sentemb.data.importers.table_heads import DELIMITERS, cells_of

_WRAPPED = re.compile(r'"((?:[^"]|"")*)"[;\s]*')


def unwrapped(line: str) -> str:
    """The row in a line that is one quoted text; any other line as it is."""
    whole = _WRAPPED.fullmatch(line) if line[:1] == '"' else None
    if whole is None or not any(mark in whole[1] for mark in DELIMITERS):
        return line
    return whole[1].replace('""', '"') + "\n"


def doubled(delimiter: str) -> Callable[[str], str]:
    r"""A function that writes each ``\"`` of a quoted text as two quotes.

    A text may end in a backslash: before a delimiter the quote closes the text.
    """
    ends = rf"(?:{re.escape(delimiter)}|[\r\n]|$)"
    escaped = re.compile(rf'\\"(?!{ends})(?!"(?!{ends}))')
    opened = f'{delimiter}"'

    def double(line: str) -> str:
        if '\\"' not in line or not (line[:1] == '"' or opened in line):
            return line
        return escaped.sub('""', line)

    return double


def quote_of(head: str, delimiter: str) -> str:
    """The quote around the texts of a table, by its first line."""
    cells = cells_of(head, delimiter)
    is_single = all(len(cell) > 1 and cell[0] == cell[-1] == "'" for cell in cells)
    return "'" if is_single else '"'


def numbers_rows(lines: Sequence[str], delimiter: str) -> bool:
    """Whether the rows below the first line begin with their numbers, which have no name."""
    filled = map(doubled(delimiter), filter(str.strip, lines))
    head, *rows = (cells_of(line, delimiter) for line in filled)
    return bool(rows) and all(
        len(row) == len(head) + 1 and row[0] == str(number) and row[-1]
        for number, row in enumerate(rows[:2], 1)
    )
