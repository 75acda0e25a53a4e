"""Fields of products, such as price and brand: a table of SQLite that is only read.

The file is written once, with the index, and never changed. Connections are opened when a thread
first needs one, also after a fork, and can only read the table.
"""

from __future__ import annotations

import math
import os
import sqlite3
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.search.filters import (
    BOOLEAN,
    FUNCTIONS,
    INTEGER,
    MOST_PATTERN,
    REAL,
    TEXT,
    checked_condition,
    known_column,
    sort_order,
)
from sentemb.search.left import Left
from sentemb.system.bounds import brief, is_finite, is_integer, plain
from sentemb.system.sqlite_watch import Watch
from sentemb.system.time_limits import check_time

Value = bool | int | float | str | None
TYPES = (INTEGER, REAL, TEXT, BOOLEAN)
# Names with a meaning of their own in results and in SQLite.
_RESERVED = ("id", "title", "score", "confidence", "rowid")
_MOST_COLUMNS, _MOST_NAME = 100, 64
# Answers of conditions that are remembered, one byte per product each.
_REMEMBERED = 32
# Seconds that a condition may take: per product, and for any number of them.
_SECONDS_PER_PRODUCT, _SECONDS = 1e-5, 1.0
# Seconds after which a file that is read must be one that has no end.
_READING_SECONDS = 60.0
_PORTION = 8192
# Values of a facet that are counted.
MOST_VALUES = 20
_FUNCTIONS = FUNCTIONS | {"like", "group_concat", "count"}
_DAMAGE = {
    sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN
}  # fmt: skip


def check_columns(names: Sequence[str]) -> None:
    """Refuse names of columns that could not be used.

    Raises `SentembError` for a name that is empty, long, repeated in any case, reserved, or holds a
    quote, a comma or a character that cannot be printed; for more than 100 of them.
    """
    if len(names) > _MOST_COLUMNS:
        raise SentembError(
            f"{len(names):,} columns of products; name at most {_MOST_COLUMNS}, as with --fields"
        )
    for k, name in enumerate(names):
        is_name = 0 < len(name) <= _MOST_NAME and name.isprintable() and name == name.strip()
        if not is_name or '"' in name or "," in name:
            raise SentembError(
                f"a column of products is named {brief(name)}; give a name of 1 to {_MOST_NAME} "
                "characters without quotes and commas"
            )
        if name.lower() in _RESERVED:
            raise SentembError(f"a column of products cannot be named {name}; rename it")
        if name.lower() in (earlier.lower() for earlier in names[:k]):
            raise SentembError(f"two columns of products are named {plain(name)}; rename one")


class ProductFields:
    """The fields of the titles of an index.

    types : "INTEGER", "REAL", "TEXT" or "BOOLEAN" for each column
    count : the number of products
    image : a database with one table of the fields, (n_bytes,) uint8; empty if there are no columns
    path : the file that ``image`` is mapped from, if there is one
    """

    def __init__(
        self,
        types: Mapping[str, str],
        count: int,
        image: NDArray[np.uint8],
        path: Path | None = None,
    ) -> None:
        self.types, self.count, self.image = dict(types), count, image
        self._file = None if path is None else (path, os.stat(path))
        self._local = threading.local()
        # By condition, the one asked last at the end. No cache of a method: connections are closed
        # as soon as nobody uses these fields.
        self._masks: OrderedDict[tuple[str, frozenset[str]], NDArray[np.bool_]] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return ProductFields, (self.types, self.count, np.array(self.image))

    @classmethod
    def of(
        cls, types: Mapping[str, str], count: int, rows: Iterable[Sequence[Value]]
    ) -> ProductFields:
        """The fields in ``rows``, one for each of ``count`` products, in the order of ``types``.

        Equal rows give the same bytes.
        """
        if not types:
            return cls({}, count, np.empty(0, np.uint8))
        check_columns(list(types))
        with sqlite3.connect(":memory:", isolation_level=None) as base:
            base.execute("PRAGMA page_size=8192")
            base.execute(_schema(types))
            base.execute("BEGIN")
            marks = ", ".join("?" * len(types))
            try:
                base.executemany(f"INSERT INTO products VALUES ({marks})", rows)
            except (UnicodeEncodeError, OverflowError, sqlite3.Error) as error:
                raise SentembError(f"a field cannot be stored: {error}; correct it") from error
            base.execute("COMMIT")
            image = base.serialize()
        base.close()
        return cls(types, count, np.frombuffer(image, np.uint8))

    @classmethod
    def given(
        cls, fields: ProductFields | Mapping[str, Sequence[Value]] | None, count: int
    ) -> ProductFields:
        """Fields as a caller gives them: one sequence of ``count`` values for each column.

        Raises `SentembError` for a column of another length, and for values that are not finite
        numbers, texts or None.
        """
        if fields is None:
            return cls.of({}, count, ())
        if isinstance(fields, ProductFields):
            if fields.count != count:
                raise SentembError(f"fields of {fields.count:,} products for {count:,} titles")
            return fields
        for name, values in fields.items():
            if len(values) != count:
                raise SentembError(
                    f"{len(values):,} values of {plain(name)} for {count:,} titles; give one each"
                )
        types = {name: _type_of(name, values) for name, values in fields.items()}
        columns = [
            [None if value is None else int(value) for value in values]  # SQLite takes no np.bool_
            if types[name] == BOOLEAN
            else values
            for name, values in fields.items()
        ]
        return cls.of(types, count, zip(*columns, strict=True))

    def with_types(self, types: Mapping[str, str]) -> ProductFields:
        """These fields with other types of the same kind, such as decimals for integers."""
        if types == self.types:
            return self
        fields = ProductFields(types, self.count, self.image)
        fields._file = self._file
        return fields

    def few_values(self, name: str, most: int, left: Left) -> set[Value] | None:
        """The values of a column in the rows that are left, if there are at most ``most``.

        None if there are more, or some are addresses.
        """
        at_most = most + left.removed.size
        counted = self._read(
            f'SELECT "{name}", count(*) FROM products WHERE "{name}" IS NOT NULL GROUP BY 1 '
            f"LIMIT {at_most + 1}"
        )
        counts = Counter(dict(counted))
        if left.removed.size:
            counts -= Counter(value for _, value in self._of(f'"{name}"', left.removed.tolist()))
        if len(counted) > at_most or len(counts) > most:
            return None
        are_addresses = any(isinstance(value, str) and "://" in value for value in counts)
        return None if are_addresses else set(counts)

    def has_value(self, name: str, left: Left | None = None) -> bool:
        """Whether a column has a value, in a row that is left: its type says nothing without."""
        n_removed = 0 if left is None else left.removed.size
        # More rows than were removed: one of them is left.
        rows = self._read(
            f'SELECT rowid - 1 FROM products WHERE "{name}" IS NOT NULL LIMIT {n_removed + 1}'
        )
        if left is None or len(rows) > n_removed:
            return bool(rows)
        return any(left.is_left[row] for (row,) in rows)

    def check(self) -> None:
        """Refuse a file that does not hold the one table that it must hold.

        Raises `SentembError` if the database is damaged or was made by something else.
        """
        if not self.types:
            return
        if not self.image.size:
            raise _damaged("it is empty")
        try:
            reader = self._opened()
            tables = reader.rows_of("SELECT type, name, sql FROM sqlite_schema")
            ((last,),) = reader.rows_of("SELECT max(rowid) FROM products")
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise _damaged(error) from error
        if tables != [("table", "products", _schema(self.types))] or (last or 0) != self.count:
            raise _damaged("it does not hold the table that index.json describes")

    # -- reading ------------------------------------------------------------------------------

    def mask(self, condition: str, empty: Collection[str] | None = None) -> NDArray[np.bool_]:
        """The products that meet a condition, (n,) bool, not to be changed; remembered.

        ``empty`` are the columns that may be compared with anything; by default those without a
        value here. Raises `SentembError` as `sentemb.search.filters.checked_condition` does, and if
        the condition takes too long.
        """
        if empty is None:
            empty = {name for name in self.types if not self.has_value(name)}
        key = condition, frozenset(empty)
        with self._lock:
            mask = self._masks.get(key)
            if mask is not None:
                self._masks.move_to_end(key)
                return mask
        mask = self._computed(condition, empty)
        with self._lock:
            self._masks[key] = mask
            if len(self._masks) > _REMEMBERED:
                self._masks.popitem(last=False)
        return mask

    def _computed(self, condition: str, empty: Collection[str]) -> NDArray[np.bool_]:
        """The products that meet a condition."""
        types = {name: None if name in empty else kind for name, kind in self.types.items()}
        checked = checked_condition(condition, types)
        statement = f"SELECT group_concat(rowid) FROM products WHERE {checked}"
        ((rows,),) = self._read(statement, _SECONDS + _SECONDS_PER_PRODUCT * self.count)
        mask = np.zeros(self.count, np.bool_)
        if rows is not None:
            numbers = np.fromstring(rows, np.int64, sep=",") - 1
            if not 0 <= numbers.min() <= numbers.max() < self.count:
                raise _damaged("it has a product that does not exist")
            mask[numbers] = True
        mask.flags.writeable = False
        return mask

    def values(self, rows: Sequence[int]) -> list[dict[str, Value]]:
        """The fields of some products, by column; None for one that is empty."""
        if not self.types:
            return [{} for _ in rows]
        by_row = {row - 1: values for row, *values in self._of("*", rows)}
        return [
            {
                name: _shown(value, kind)
                for (name, kind), value in zip(self.types.items(), by_row[row], strict=True)
            }
            for row in rows
        ]

    def facet(self, column: str, rows: Sequence[int]) -> dict[Value, int]:
        """How many of some products have each value of a column: the most frequent first.

        Values of equal counts are in the order of their letters' numbers in Unicode, here, in
        several indexes and on the page.
        """
        name = known_column(column, self.types)
        kind = self.types[name]
        shown = (_shown(field, kind) for _, field in self._of(f'"{name}"', rows))
        counts = Counter(value for value in shown if value is not None)
        most = sorted(counts, key=lambda value: (-counts[value], isinstance(value, str), value))
        return {value: counts[value] for value in most[:MOST_VALUES]}

    def ordered(self, order: str, rows: Sequence[int]) -> list[int]:
        """The positions of ``rows`` by a column; equal values as they are, none at the end.

        For ``order`` see `sentemb.search.filters.sort_order`. The rows are given best first.
        """
        name, falls = sort_order(order, self.types)
        kind = self.types[name]
        value_of = {row - 1: _shown(value, kind) for row, value in self._of(f'"{name}"', rows)}
        values = [value_of[row] for row in rows]
        there = [k for k, value in enumerate(values) if value is not None]
        there.sort(key=lambda k: _sortable(values[k]), reverse=falls)
        return there + [k for k, value in enumerate(values) if value is None]

    def _of(self, columns: str, rows: Sequence[int]) -> list[tuple[Any, ...]]:
        """The row, counted from 1, and the columns of some products, in any order."""
        numbers = ",".join(str(int(row) + 1) for row in rows)
        fields = self._read(f"SELECT rowid, {columns} FROM products WHERE rowid IN ({numbers})")
        if len(fields) != len(set(rows)):
            raise _damaged("a product is missing")
        return fields

    def _read(self, statement: str, seconds: float | None = None) -> list[tuple[Any, ...]]:
        """The rows of a statement; with ``seconds`` it has a condition, which may take them."""
        reader, is_condition = self._reader(), seconds is not None
        late = SentembError("the condition takes too long; shorten it")
        if seconds is None:
            seconds, late = _READING_SECONDS, _damaged("reading it takes too long")
        reader.clock.begin(seconds, late)
        try:
            return reader.rows_of(statement)
        except (sqlite3.Error, UnicodeError) as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            # Python gives no code for a text that is not UTF-8.
            if not is_condition or not code or code in _DAMAGE:
                raise _damaged(error) from error
            raise SentembError(
                f"the condition is wrong: {error}; write one such as stock > 0 and price < 50"
            ) from None

    def _reader(self) -> _ReadConnection:
        """The connection of this thread in this process."""
        reader: _ReadConnection | None = getattr(self._local, "reader", None)
        if reader is None or reader.process != os.getpid():
            reader = self._opened()
            reader.allow_products_alone()
            self._local.reader = reader
        return reader

    def _opened(self) -> _ReadConnection:
        if self._file is not None:
            path, status = self._file
            try:
                reader = _ReadConnection(f"{path.absolute().as_uri()}?mode=ro&immutable=1")
                reader.rows_of("PRAGMA schema_version")  # opens the file
                if os.path.samestat(os.stat(path), status):
                    return reader
            except (OSError, sqlite3.Error):
                pass
            # The folder was replaced since: the mapped file is the old one.
        reader = _ReadConnection(":memory:")
        reader.base.deserialize(self.image.tobytes())
        reader.base.execute("PRAGMA query_only=ON")
        return reader

    # -- other products -----------------------------------------------------------------------

    def rows(self, left: Left | None = None) -> Iterator[tuple[Value, ...]]:
        """The fields of all products, or of those that are left, in their order."""
        if not self.types:
            yield from repeat((), self.count if left is None else len(left))
            return
        for first in range(0, self.count, _PORTION):
            rows = self._rows_between(first, min(first + _PORTION, self.count))
            yield from rows if left is None else compress(rows, left.is_left[first:])

    def _rows_between(self, first: int, end: int) -> list[tuple[Value, ...]]:
        """The fields of products that follow each other."""
        rows = self._read(
            f"SELECT * FROM products WHERE rowid BETWEEN {first + 1} AND {end} ORDER BY rowid"
        )
        if len(rows) != end - first:
            raise _damaged("a product is missing")
        truths = {k for k, kind in enumerate(self.types.values()) if kind == BOOLEAN}
        if not truths:
            return rows
        return [
            tuple(_shown(value, BOOLEAN) if k in truths else value for k, value in enumerate(row))
            for row in rows
        ]

    def take(self, rows: NDArray[np.int64]) -> ProductFields:
        """The fields of the products at ``rows``, in this order."""
        return ProductFields.of(self.types, len(rows), self.rows_at(rows))

    def rows_at(self, rows: NDArray[np.int64]) -> Iterator[tuple[Value, ...]]:
        """The fields of some products, in any order."""
        if not self.types:
            yield from repeat((), len(rows))
            return
        for low in range(0, len(rows), _PORTION):
            portion = rows[low : low + _PORTION]
            first, end = int(portion.min()), int(portion.max()) + 1
            if end - first <= 2 * portion.size:  # less is parsed
                between = self._rows_between(first, end)
                yield from map(between.__getitem__, (portion - first).tolist())
                continue
            by_row = {row: values for row, *values in self._of("*", portion.tolist())}
            yield from (tuple(by_row[row + 1]) for row in portion.tolist())

    def as_types(self, types: Mapping[str, str]) -> ProductFields:
        """These fields in columns of other types; one that is not here is empty."""
        if list(types.items()) == list(self.types.items()):
            return self
        return ProductFields.of(types, self.count, in_columns(self.rows(), self.types, types))


class _Clock:
    """When the statement that runs has to end, and whether it may begin another SELECT."""

    def __init__(self) -> None:
        self.begin(_READING_SECONDS, _damaged("reading it takes too long"))

    def begin(self, seconds: float, late: SentembError) -> None:
        """Give a statement some seconds; ``late`` is the error after them."""
        self._end, self._late, self._selects = time.monotonic() + seconds, late, 0

    def check(self) -> None:
        """Raise an error once the time of the statement, or of the thread's work, is up."""
        check_time()
        if time.monotonic() > self._end:
            raise self._late

    def is_allowed(self, action: int, first: str | None, second: str | None, *_: Any) -> int:
        """Whether a statement may do something: it is one SELECT from the products."""
        self._selects += action == sqlite3.SQLITE_SELECT
        is_allowed = (
            (action == sqlite3.SQLITE_SELECT and self._selects == 1)
            or (action == sqlite3.SQLITE_READ and first == "products")
            or (action == sqlite3.SQLITE_FUNCTION and str(second).lower() in _FUNCTIONS)
        )
        return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


class _ReadConnection:
    """A connection that can only read; it is closed when nothing refers to it any more.

    So nothing that the connection calls may refer to it. ``process`` is the id of the process that
    opened it.
    """

    def __init__(self, address: str) -> None:
        self.process, self.clock = os.getpid(), _Clock()
        # Another thread than that of the last search may close it.
        self.base = sqlite3.connect(
            address, uri=True, isolation_level=None, cached_statements=0, check_same_thread=False
        )
        self._watch = Watch(self.base, self.clock.check)
        self.base.execute("PRAGMA trusted_schema=OFF")
        # In bytes.
        self.base.setlimit(sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 4 * MOST_PATTERN)
        self.base.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)

    def __del__(self) -> None:
        if hasattr(self, "base"):
            self.base.close()

    def allow_products_alone(self) -> None:
        """Refuse from now on whatever is not one SELECT from the products."""
        self.base.set_authorizer(self.clock.is_allowed)

    def rows_of(self, statement: str) -> list[tuple[Any, ...]]:
        """All rows of a statement."""
        with self._watch.watching():
            return self.base.execute(statement).fetchall()


def _schema(types: Mapping[str, str]) -> str:
    columns = ", ".join(f'"{name}" {kind}' for name, kind in types.items())
    return f"CREATE TABLE products ({columns})"


def _type_of(name: str, values: Sequence[Value]) -> str:
    there = [value for value in values if value is not None]
    if all(isinstance(value, str) for value in there):
        return TEXT
    truths = [isinstance(value, bool | np.bool_) for value in there]
    if all(truths):
        return BOOLEAN
    if any(truths):
        raise SentembError(
            f"{plain(name)} is true or false for some titles, and something else for others; give "
            "values of one kind"
        )
    for value in there:
        if not (is_integer(value) or is_finite(value) or isinstance(value, str)):
            raise SentembError(
                f"a value of {plain(name)} is {brief(value)}; give finite numbers, texts, True, "
                "False or None"
            )
    if any(isinstance(value, str) for value in there):
        return TEXT
    return INTEGER if all(map(is_integer, there)) else REAL


def in_columns(
    rows: Iterable[tuple[Value, ...]], before: Mapping[str, str], types: Mapping[str, str]
) -> Iterable[tuple[Value, ...]]:
    """Rows of columns with types as those of other ones; a column that is not here is empty."""
    if list(before.items()) == list(types.items()):
        return rows
    numbers = {name.lower(): k for k, name in enumerate(before)}
    order = [(numbers.get(name.lower()), kind) for name, kind in types.items()]
    return (
        tuple(None if k is None else _written(row[k], kind) for k, kind in order) for row in rows
    )


def kind_of(kind: str) -> str:
    """The type that a column has in common with those of its kind: integers are decimals."""
    return REAL if kind == INTEGER else kind


def _written(value: Value, kind: str) -> Value:
    """A value in a column of a type: in one of texts SQLite would write a truth as a number."""
    return str(value).lower() if isinstance(value, bool) and kind == TEXT else value


def _shown(value: Any, kind: str) -> Value:
    """A field that can be shown; a crafted file may hold infinity or bytes, which are None."""
    if kind == BOOLEAN:
        return bool(value) if value in (0, 1) else None
    if kind == REAL and isinstance(value, int):
        return float(value)
    is_value = isinstance(value, str | int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_value else None


def _sortable(value: Value) -> tuple[bool, Any]:
    """Numbers before texts, which are compared without case."""
    return isinstance(value, str), value.casefold() if isinstance(value, str) else value


def _damaged(why: object) -> SentembError:
    return SentembError(
        f"the fields of the products are damaged: {why}; restore the index from a copy or make it "
        "again with `sentemb index`"
    )
