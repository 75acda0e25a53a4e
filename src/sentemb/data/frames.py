"""Clicks in memory: tables of pandas, Polars or pyarrow, and sequences of pairs.

None of these packages is imported: a table is whatever has named columns.
"""

import math
import warnings
from collections.abc import Iterable, Iterator
from typing import Any

from sentemb.data.column_names import (
    CLICKS,
    EVENT,
    QUERY,
    TITLE,
    Meaning,
    is_no_click,
    letters_of,
    says_clicked,
)
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer

# How a column becomes a list: pyarrow, pandas and NumPy, Polars.
_TO_LIST = ("to_pylist", "tolist", "to_list")


def is_frame(value: object) -> bool:
    """Whether ``value`` is a table: pandas, Polars, pyarrow, or a dict of columns."""
    return isinstance(value, dict) or _names(value) is not None


def columns_of(frame: Any) -> list[str]:
    """The names of the columns; a `SentembError` if ``frame`` is not a table."""
    names = list(frame) if isinstance(frame, dict) else _names(frame)
    if names is None:
        raise SentembError(f"a table with named columns is needed, not {type(frame).__name__}")
    return names


def rows_of(
    frame: Any, query: str | None, title: str | None, clicks: str | None
) -> Iterator[tuple[str, str, int]]:
    """Query, title and clicks of each row of a table; without ``clicks``, each row is one click.

    A column that is not named is the one whose name is usual. Rows without clicks, or whose clicks
    are missing, are left out. Raises `SentembError` for a column that is missing; with the number
    of the row, counted from 0, for a query or title that is missing (None, NaN, NA), a text that is
    not a str, a count that is not an integer, and an event of another kind than a click.
    """
    names = columns_of(frame)
    chosen = [_column(query, QUERY, names), _column(title, TITLE, names)]
    if clicks is not None:
        chosen.append(_column(clicks, CLICKS, names))
    elif (unused := _unused_counts(frame)) is not None and unused not in chosen:
        warnings.warn(
            f"each row is one click; for the column {unused} give clicks={unused!r}", stacklevel=4
        )
    kinds = EVENT.columns([name for name in names if isinstance(name, str) and name not in chosen])
    events = [listed(frame[name]) for name in kinds[:1]]
    columns = [listed(frame[name]) for name in chosen]
    if len({len(column) for column in columns}) > 1:
        raise SentembError("the columns of the table have different lengths; give equal ones")
    for row, values in enumerate(zip(*columns, strict=True)):
        if clicks is not None and (is_missing(values[2]) or values[2] == 0):
            continue
        n_clicks = [1 if value is True else value for value in values[2:]]
        try:
            pair = checked_pair(*values[:2], *n_clicks, names=(chosen[0], chosen[1]))
        except SentembError as error:
            raise SentembError(f"row {row}: {error}") from None
        for kind in (column[row] for column in events):
            if isinstance(kind, str) and is_no_click(kind):
                raise SentembError(
                    f"row {row}: {kinds[0]} is {brief(kind)} and not a click; give a table of the "
                    "rows that are clicks"
                )
        yield pair


def clicks_column(frame: Any) -> str | None:
    """The column of a table that is usually named for a number of clicks, if there is one."""
    names = [name for name in columns_of(frame) if isinstance(name, str)]
    texts = (QUERY.column(names), TITLE.column(names))
    rest = [name for name in names if name not in texts]
    return CLICKS.column(rest) or EVENT.column(rest)


def _unused_counts(frame: Any) -> str | None:
    """`clicks_column`, or the first column of integers whose name has to do with clicks."""
    named = (name for name in columns_of(frame) if isinstance(name, str) and says_clicked(name))
    counts = (name for name in named if all(map(_may_count, listed(frame[name]))))
    return clicks_column(frame) or next(counts, None)


def _may_count(value: object) -> bool:
    is_whole = isinstance(value, float) and value.is_integer()
    return is_whole or is_integer(value) or is_missing(value)


def _column(name: str | None, meaning: Meaning, names: list[Any]) -> Any:
    """The column of this name, in any spelling, or the one that usually has the meaning."""
    texts = [column for column in names if isinstance(column, str)]
    if name in names:
        return name
    column = meaning.column(texts) if name is None else None
    if name is not None:
        column = next((text for text in texts if letters_of(text) == letters_of(name)), None)
    if column is None:
        there = ", ".join(map(str, names[:20]))
        raise SentembError(
            f"the table has no column {brief(name or meaning.what)}; its columns are {there}: "
            "rename one, or use ClickLog.from_frame(table, query=..., title=...)"
        )
    return column


def checked_pairs(pairs: Iterable[Any]) -> Iterator[tuple[str, str, int]]:
    """Query, title and clicks of each pair ``(query, title)`` or ``(query, title, clicks)``.

    A pair that is anything else raises a `SentembError` with its number, counted from 0.
    """
    for number, pair in enumerate(pairs):
        if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) not in (2, 3):
            raise SentembError(
                f"pair {number}: {brief(pair)} is not a pair; give (query, title) or "
                "(query, title, clicks)"
            )
        try:
            checked = checked_pair(*pair)
        except SentembError as error:
            raise SentembError(f"pair {number}: {error}") from None
        yield checked


def checked_pair(
    query: Any, title: Any, clicks: Any = 1, *, names: tuple[str, str] = ("query", "title")
) -> tuple[str, str, int]:
    """Query, title and clicks of one pair; ``names`` are those of the texts in messages.

    A value that is missing or of another type raises a `SentembError` without a place.
    """
    for name, value in zip(names, (query, title), strict=True):
        if not isinstance(value, str):
            raise SentembError(_no_text(name, value))
    return query, title, _count(clicks)


def _names(frame: Any) -> list[str] | None:
    # A pyarrow table has both, and its `columns` are the values.
    names = getattr(frame, "column_names", None)
    if names is None:
        names = getattr(frame, "columns", None)
    return None if names is None or callable(names) else list(names)


def listed(column: Any) -> list[Any]:
    """The values of a column of a table."""
    for name in _TO_LIST:
        if hasattr(column, name):
            return list(getattr(column, name)())
    return list(column)


def _no_text(name: str, value: object) -> str:
    if is_missing(value):
        return (
            f"the {name} is missing ({brief(value)}); drop such rows, in pandas with table.dropna()"
        )
    return f"the {name} is {brief(value)}, not a str; convert it with str()"


def is_missing(value: object) -> bool:
    """None, NaN or the NA and NaT of pandas, which equal nothing."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)


def _count(value: Any) -> int:
    # pandas stores integers as floats where a value is missing.
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if not is_integer(value) or value < 1:
        raise SentembError(
            f"the clicks are {brief(value)}; give an integer of at least 1 or leave the row out"
        )
    return int(value)
