"""Where the table begins in a text, and what separates its columns.

Exports of analytics and advertisements begin with titles, comments, dates and blank lines.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sentemb.data.column_names import Meaning
from sentemb.data.importers.columns import Wanted, is_number, same_names

DELIMITERS = (",", ";", "\t", "|")
# Lines among which the table begins.
MOST_BEFORE = 60


class TableHead(NamedTuple):
    """The first line of a table: the number of its line, from 0, and the delimiter."""

    line: int
    delimiter: str


def find_head(
    lines: Sequence[str],
    columns: Sequence[Wanted],
    delimiters: Sequence[str],
    is_head: Callable[[list[str]], bool] | None = None,
) -> TableHead:
    """The first line that has the columns asked for, or the first with as many cells as most lines.

    ``is_head`` decides instead of the columns, for a caller who does not know them yet.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    fits = _has(columns) if is_head is None else is_head
    for number in filled:
        fitting = [mark for mark in delimiters if fits(cells_of(lines[number], mark))]
        if fitting:
            return TableHead(
                number, max(fitting, key=lambda mark: len(cells_of(lines[number], mark)))
            )
    return _widest(lines, filled, delimiters)


def cells_of(line: str, delimiter: str) -> list[str]:
    """The cells of a line, without the white space around them."""
    try:
        row = next(csv.reader([line], delimiter=delimiter), [])
    except csv.Error:
        row = line.split(delimiter)
    return [cell.strip() for cell in row]


def _has(columns: Sequence[Wanted]) -> Callable[[list[str]], bool]:
    """Whether cells are a header with these columns, or have the columns of these numbers."""

    def has(cells: list[str], column: Wanted) -> bool:
        if isinstance(column, Meaning):
            return column.column(cells) is not None
        if is_number(column) and not same_names(column, cells):
            return int(column) <= len(cells) and len(cells) > 1
        return bool(same_names(column, cells))

    return lambda cells: all(has(cells, column) for column in columns)


def _widest(lines: Sequence[str], filled: Sequence[int], delimiters: Sequence[str]) -> TableHead:
    """The first line with as many cells as most lines have.

    A delimiter that cuts all lines into as many cells is surer than others, such as one of a list
    in a cell; then it is the one that cuts most.
    """
    best, most = TableHead(filled[0] if filled else 0, delimiters[0]), (False, 0)
    for mark in delimiters:
        widths = [len(cells_of(lines[number], mark)) for number in filled]
        usual = max(widths, key=lambda width: (width > 1, widths.count(width)), default=0)
        n_usual = widths.count(usual)
        if usual > 1 and (cut := (n_usual == len(widths), usual * n_usual)) > most:
            best, most = TableHead(filled[widths.index(usual)], mark), cut
    return best
