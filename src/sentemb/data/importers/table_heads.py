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
# What is before a table, such as a date and its name, has no more cells.
_FEW_CELLS = 3


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

    ``is_head`` decides instead of the columns, for a caller who does not know them yet. Where no
    column is asked for by name, two more lines are looked at: the first one, because the cells of
    a row may be usual names, such as "search" and "click"; and the one below, because the names of
    groups of columns, with blank cells between them, may be above those of the columns.
    """
    filled = [number for number, line in enumerate(lines) if line.strip()]
    fits = _has(columns) if is_head is None else is_head
    for number in filled:
        fitting = [mark for mark in delimiters if fits(cells_of(lines[number], mark))]
        if fitting:
            mark = max(fitting, key=lambda mark: len(cells_of(lines[number], mark)))
            if is_head is not None or all(isinstance(column, Meaning) for column in columns):
                number = _beside(lines, filled, number, mark, fits)
            return TableHead(number, mark)
    return _widest(lines, filled, delimiters)


def _beside(
    lines: Sequence[str],
    filled: Sequence[int],
    number: int,
    mark: str,
    fits: Callable[[list[str]], bool],
) -> int:
    """The line ``number``, or the first or the next one if that is more likely to have names."""
    cells, first = cells_of(lines[number], mark), cells_of(lines[filled[0]], mark)
    are_names = len(set(first)) > _FEW_CELLS and all(cell[:1].isalpha() for cell in first)
    if are_names and len(first) == len(set(first)) == len(cells):
        return filled[0]
    below = next((line for line in filled if line > number), number)
    inner = cells_of(lines[below], mark)
    is_group = "" in cells and len(inner) == len(cells) and "" not in inner
    return below if is_group and fits(inner) else number


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
