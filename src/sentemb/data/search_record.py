"""A record of searches and clicks: what a server was asked, what it showed, what was opened.

It is an SQLite file; see `sentemb.data.record_file`. Each search and each click is a transaction of
its own, so that a server that is killed loses nothing that it has answered. It has no addresses of
users and nothing that connects two searches.
"""

from __future__ import annotations

import math
import os
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from sentemb.data.record_file import RecordFile, errors_of, reading_record
from sentemb.errors import SentembError
from sentemb.system.files import place_name
from sentemb.system.paths import AnyPath
from sentemb.system.terminal import note

_T = TypeVar("_T")


# Seconds that a change waits for those of other threads.
_PATIENCE = 5.0
# A query that was asked fewer times is rare.
COMMON = 5
# Rare queries that are counted. Beyond that the one asked longest ago is forgotten.
_COUNTED = 1_000_000


@dataclass(frozen=True)
class Searched:
    """A search that was answered.

    query : as it was asked
    shown : ids and titles of the results, best first
    no_match : the reason why there was no good match, or None
    milliseconds : the duration of the answer
    first : the position of the first result, counted from 1
    scores : of the results; empty if they are not known
    answered_by : the fingerprint of the model that answered, and the identity of its index, empty
        for one without a folder; None if they are not known
    """

    query: str
    shown: Sequence[tuple[str, str]]
    no_match: str | None
    milliseconds: float
    first: int = 1
    scores: Sequence[float] = ()
    answered_by: tuple[str, str] | None = None


class SearchRecord:
    """A record that is written; several threads and processes may write to one file.

    A record at ``path`` is continued; a file that does not exist is made, readable by its owner
    alone. With ``anonymous`` the text of a query is kept only once it has been asked `COMMON` times
    since the server was started, or is in the record already. Raises `SentembError` if the file is
    something else, or cannot be written.
    """

    def __init__(self, path: AnyPath, anonymous: bool = False) -> None:
        self.path, self.anonymous = Path(path), anonymous
        self._lock = threading.Lock()
        # The file at the path; and the one that was there before, to which late clicks belong.
        self._file: RecordFile | None = None
        self._earlier: RecordFile | None = None
        self._asked: OrderedDict[bytes, int] = OrderedDict()
        # So that the file of counts cannot be guessed from: they are in memory alone, and keyed.
        self._key = secrets.token_bytes(32)
        self._titles: dict[tuple[str, str], int] = {}
        self._indexes: dict[tuple[str, str], int] = {}
        with self._turn():
            self._opened()

    def add_searches(self, searches: Iterable[Searched]) -> list[str]:
        """Add searches, all or none; the result has a name for each, by which its clicks are added.

        Raises `SentembError` if the file cannot be written.
        """
        given = list(searches)
        return self._write(lambda connection: [self._add(connection, each) for each in given])

    def _add(self, connection: sqlite3.Connection, search: Searched) -> str:
        """Add a search; its name."""
        name = secrets.token_urlsafe(12)
        query = self._storable(connection, search.query)
        number = connection.execute(
            "INSERT INTO searches (search, time, query, no_match, milliseconds, answered_by) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (
                name,
                time.time(),
                query,
                search.no_match,
                search.milliseconds,
                self._index(connection, search.answered_by),
            ),
        ).lastrowid
        scores = zip_longest(search.shown, search.scores[: len(search.shown)])
        connection.executemany(
            "INSERT INTO shown (search, position, title, score) VALUES (?, ?, ?, ?)",
            [
                (number, position, self._title(connection, *shown), score)
                for position, (shown, score) in enumerate(scores, search.first)
            ],
        )
        return name

    def add_click(self, search: str, id: str) -> bool:
        """Add a click; a second one on the same title of the same search changes nothing.

        ``search`` is a name from `add_searches`, and ``id`` that of a title that the search showed.
        The result is False if there is no such search, or it did not show the title. Raises
        `SentembError` if the file cannot be written.
        """
        statement = (
            "UPDATE shown SET clicked = coalesce(clicked, ?) "
            "WHERE search = (SELECT number FROM searches WHERE search = ?) "
            "AND title IN (SELECT number FROM titles WHERE id = ?)"
        )
        values = time.time(), search, id

        def add(connection: sqlite3.Connection) -> bool:
            return connection.execute(statement, values).rowcount > 0

        if self._write(add):
            return True
        with self._turn():
            # The search may be in the file that was moved away since.
            file = self._earlier
            if file is None or file.process != os.getpid() or file.is_deleted:
                return False
            is_added = file.change(add)
            file.settle()
        return is_added

    def close(self) -> None:
        """Close the file."""
        with self._turn():
            for file in (self._earlier, self._file):
                if file is not None:
                    file.close()
            self._earlier = self._file = None

    def _write(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        """Make a change in the file that is at the path, also if it was moved or deleted."""
        with self._turn():
            while True:
                file = self._opened()
                result = file.change(change)
                if not file.is_deleted:  # meanwhile; else it goes into the next file too
                    return result

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """The turn of one thread."""
        if not self._lock.acquire(timeout=_PATIENCE):
            raise SentembError(f"{place_name(self.path)}: others write to it; try again later")
        try:
            with errors_of(self.path):
                yield
        except BaseException:
            self._titles.clear()  # their rows may be undone
            self._indexes.clear()
            raise
        finally:
            self._lock.release()

    def _opened(self) -> RecordFile:
        """The file of this process: SQLite's connections must not be taken through a fork."""
        file = self._file
        if file is not None and file.process == os.getpid():
            if file.is_in_place:
                return file
            if file.is_elsewhere:
                file.settle()
                if self._earlier is not None:
                    self._earlier.close()
                self._earlier = file
            else:
                file.close()
            note(f"{place_name(self.path)}: was moved, emptied or deleted; opened again")
        self._titles, self._indexes, self._file = {}, {}, None
        self._file = RecordFile(self.path)
        return self._file

    def _title(self, connection: sqlite3.Connection, id: str, title: str) -> int:
        key = id, title
        if key not in self._titles:
            connection.execute("INSERT OR IGNORE INTO titles (id, title) VALUES (?, ?)", key)
            (number,) = connection.execute(
                "SELECT number FROM titles WHERE id = ? AND title = ?", key
            ).fetchone()
            self._titles[key] = int(number)
        return self._titles[key]

    def _index(
        self, connection: sqlite3.Connection, answered_by: tuple[str, str] | None
    ) -> int | None:
        """The number of the index that answered."""
        if answered_by is not None and answered_by not in self._indexes:
            insert = "INSERT OR IGNORE INTO indexes (model, contents) VALUES (?, ?)"
            connection.execute(insert, answered_by)
            select = "SELECT number FROM indexes WHERE model = ? AND contents = ?"
            self._indexes[answered_by] = int(connection.execute(select, answered_by).fetchone()[0])
        return None if answered_by is None else self._indexes[answered_by]

    def _storable(self, connection: sqlite3.Connection, query: str) -> str | None:
        """The text of a query that may be stored."""
        query = " ".join(query.replace("\0", " ").split())
        if not self.anonymous:
            return query
        key = blake2b(query.lower().encode(), key=self._key, digest_size=16).digest()
        count = self._asked.pop(key, 0) + 1
        self._asked[key] = count
        if len(self._asked) > _COUNTED:
            self._asked.popitem(last=False)
        if count >= COMMON:
            return query
        is_stored = "SELECT 1 FROM searches WHERE query = ? LIMIT 1"
        return query if connection.execute(is_stored, (query,)).fetchone() else None


# The columns of a record as a table of clicks.
COLUMNS = ("query", "title", "id", "clicks", "search", "position", "time")
_ROWS = (
    "SELECT searches.query, titles.title, titles.id, shown.clicked IS NOT NULL, searches.search, "
    "shown.position, searches.time FROM searches JOIN shown ON shown.search = searches.number "
    "JOIN titles ON titles.number = shown.title WHERE searches.query IS NOT NULL "
    "AND searches.time >= ? {}ORDER BY searches.number, shown.position"
)


def record_rows(
    path: AnyPath, all_shown: bool, since: float = -math.inf
) -> Iterator[tuple[object, ...]]:
    """The results of a record in the order of the searches, one row each, with `COLUMNS`.

    They are clicks alone unless ``all_shown``, which adds the titles that were shown and not
    clicked. A search whose query was not stored has none, nor has one before ``since``, in seconds
    since 1970. Raises `SentembError` if the file cannot
    be read or is not a record.
    """
    with reading_record(path) as connection:
        only = "" if all_shown else "AND shown.clicked IS NOT NULL "
        yield from connection.execute(_ROWS.format(only), (since,))
