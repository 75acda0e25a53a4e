"""The file of a table, which of its columns are wanted, and what happens to its bad rows."""

from __future__ import annotations

import difflib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any, TypeAlias

from sentemb.data.column_names import Meaning, letters_of
from sentemb.data.importers.known_exports import what_is_lacking
from sentemb.data.importers.lists import flat
from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath

FORMATS = ("auto", "csv", "tsv", "jsonl", "parquet")

# The number of a row, and the values of its columns.
Row: TypeAlias = tuple[int, tuple[str, ...]]
# A column by its name or its number from 1, or the one whose name usually means this.
Wanted: TypeAlias = str | Meaning


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
        Encoding of text files, as Python names it. UTF-16 is recognised.
    header : bool, optional
        Whether the first row has the names of the columns. By default it has if a column is asked
        for by name, or if all of its values are usual names such as query, title or clicks.
    quotes : bool
        Whether a text between double quotes may hold delimiters, line ends and doubled quotes.
        Quotes that do not match are a bad row.
    since : float
        Of recorded searches, leave out those before this time, in seconds since 1970.
    """

    format: str = "auto"
    delimiter: str | None = None
    encoding: str = "utf-8"
    header: bool | None = None
    quotes: bool = True
    since: float = -math.inf

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            raise SentembError(
                f"there is no format {brief(self.format)}; choose from {', '.join(FORMATS)}"
            )
        delimiter = self.delimiter
        if delimiter is not None and (len(delimiter) != 1 or delimiter in '"\r\n\0'):
            raise SentembError(f"the delimiter is {brief(delimiter)}; give one character")


class BadRows:
    """Treatment of bad rows: the first one stops the import, or all are counted.

    count : number of bad rows so far
    first : the error of the first of them, or None
    totals : rows of totals that do not have the width of the table, which are not bad
    """

    def __init__(self, skip: bool) -> None:
        self._skip = skip
        self.count = self.totals = 0
        self.first: SentembError | None = None

    def __call__(self, where: str, reason: object) -> None:
        """Report a bad row; a `SentembError` with its place unless bad rows are skipped."""
        error = SentembError(f"{where}: {reason}")
        if not self._skip:
            raise error
        self.count += 1
        self.first = self.first or error


def _ignore(*_: object) -> None:
    """Do nothing."""


@dataclass(frozen=True)
class TableFile:
    """A file of rows, and the columns to read.

    path : text is unpacked if the name ends in ``.gz``; ``-`` is standard input
    columns : at least two names, numbers from 1 or meanings. In JSON lines and Parquet, ``a.b`` is
        the field ``b`` of ``a``, unless there is a column of that name.
    bad : receives the rows that cannot be read
    on_names : called once with the names of all columns, where the file has them
    optional : columns that all objects of JSON lines may lack
    on_note : called with what a user should know about the lines before and after the table
    is_head : tells the line of names in delimited text; by default the columns do
    on_unusable : called with a column of JSON or Parquet whose value is not a text, which is then
        empty; by default its row is bad
    """

    path: AnyPath
    columns: Sequence[Wanted]
    how: Reading
    bad: BadRows
    on_names: Callable[[list[str]], None] = _ignore
    optional: Sequence[str] = ()
    on_note: Callable[[str], None] = _ignore
    is_head: Callable[[list[str]], bool] | None = None
    on_unusable: Callable[[str], None] | None = None

    @property
    def name(self) -> str:
        """The file in messages."""
        return place_name(self.path)

    def texts(self, values: Sequence[Any], where: str) -> tuple[str, ...] | None:
        """Values of JSON or Parquet as texts; None, and a bad row, if one cannot be a text."""
        texts = []
        for column, value in zip(self.columns, values, strict=True):
            text = value if isinstance(value, str) else text_of(value)
            if text is None and self.on_unusable is not None:
                self.on_unusable(column.what if isinstance(column, Meaning) else column)
                text = ""
            elif text is None:
                self.bad(where, f"{shown(column)} is not a text or a number; name another column")
                return None
            texts.append(text)
        return tuple(texts)


def index_of(column: Wanted, names: list[str], name: str) -> int:
    """The index of a column, given by its name, its number from 1 or its meaning."""
    if isinstance(column, Meaning):
        return names.index(usual_name(column, names, name))
    same = same_names(column, names)
    if len(same) == 1:
        return names.index(same[0])
    if same:
        raise SentembError(
            f"{name}:1: {len(same)} columns are named {brief(column)}; give a number from 1"
        )
    if is_number(column) and 1 <= int(column) <= len(names):
        return int(column) - 1
    if is_number(column):
        raise SentembError(f"{name}:1: no column {column}; there are {len(names)}")
    raise SentembError(
        f"{name}:1: no column {brief(column)} among {listed(names)}; {remedy(column, names)}, or "
        "give a number from 1 if there is no header"
    )


def usual_name(meaning: Meaning, names: Sequence[str], name: str) -> str:
    """The one of ``names`` that usually has a meaning; a `SentembError` if none does."""
    column = meaning.column(names)
    if column is None:
        if advice := what_is_lacking(names):
            raise SentembError(f"{name}: {advice}")
        sign = "; if a sign separates columns there, give it with --delimiter"
        raise SentembError(
            f"{name}:1: no column looks like the {meaning.what} among {listed(list(names))}"
            f"{sign if len(names) == 1 else ''}; name it with --{meaning.what}-column, or, "
            "without a header, give its number, counted from 1"
        )
    if names.count(column) > 1:
        raise SentembError(
            f"{name}:1: {names.count(column)} columns are named {brief(column)}; give a number "
            "from 1"
        )
    return column


def check_names(names: Sequence[str], name: str) -> None:
    """Refuse names of columns with bytes that did not fit the encoding in which they were read."""
    try:
        "".join(names).encode()
    except UnicodeEncodeError:
        raise SentembError(
            f"{name}: the names of the columns are in another encoding; name it, such as "
            "--encoding cp1252 or, for Japanese, cp932"
        ) from None


def same_names(column: str, names: Sequence[str]) -> list[str]:
    """Those of ``names`` that are ``column``, else those in other case, else with other signs."""
    exact = [name for name in names if name == column]
    folded = exact or [name for name in names if name.casefold() == column.casefold()]
    return folded or [name for name in names if letters_of(name) == letters_of(column)]


def shown(column: Wanted) -> str:
    """A column as messages quote it."""
    return brief(column.what if isinstance(column, Meaning) else column)


def remedy(column: str, names: Sequence[str]) -> str:
    """The advice for a ``column`` that is not among ``names``."""
    folded = {name.casefold(): name for name in names}
    close = difflib.get_close_matches(column.casefold(), folded, 1)
    return f"did you mean {folded[close[0]]}? Name one of these" if close else "name one of these"


def listed(names: list[str]) -> str:
    """Names of columns as messages list them."""
    listed = ", ".join(names[:20])
    return listed if len(listed) <= 150 else f"{listed[:150]}..."


def is_number(column: Wanted) -> bool:
    """Whether a column is given by its number."""
    if isinstance(column, Meaning):
        return False
    return column.isascii() and column.isdigit() and len(column) < 10


def field_of(record: dict[str, Any], column: str, steps: list[str]) -> Any:
    """The value of a key, or at the end of the path ``steps``; None if there is none."""
    if column in record or len(steps) == 1:
        return record.get(column)
    return inner(record, steps)


def inner(value: Any, steps: list[str]) -> Any:
    """The value at the end of a path through nested objects; None where it breaks off.

    Of a list of objects it is the list of their values.
    """
    for number, step in enumerate(steps):
        if isinstance(value, list):
            return [inner(item, steps[number:]) for item in value]
        value = value.get(step) if isinstance(value, dict) else None
    return value


def text_of(value: Any) -> str | None:
    """A value of JSON or Parquet as text, empty if it is missing; None if it cannot be one.

    A list of texts and numbers, or of such lists, is one in JSON, as a cell of CSV would hold it.
    """
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
    if isinstance(value, Decimal):
        return str(int(value)) if value == int(value) else format(value, "f")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, list):
        texts = [text_of(item) for item in flat(value)]
        return None if None in texts else json.dumps(texts, ensure_ascii=False)
    return str(value) if isinstance(value, int) else None
