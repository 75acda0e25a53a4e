"""A record of searches and clicks: what a server was asked, what it showed, what was opened.

It is an SQLite file. Each search and each click is a transaction of its own, so that a server that
is killed loses nothing that it has answered. It has no addresses of users and nothing that connects
two searches.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from sentemb.errors import SentembError
from sentemb.system.files import is_file, place_name, status
from sentemb.system.paths import AnyPath

# Marks the file as ours: the letters "sent".
_APPLICATION = 0x73656E74
_VERSION = 1
_MAGIC = b"SQLite format 3\0"
# Seconds that a writer waits for another process that writes to the same file.
_PATIENCE = 5.0
# Errors of a place where SQLite may not make files.
_CANNOT_MAKE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
# A query that was asked fewer times is rare.
COMMON = 5
# Rare queries that are counted. Beyond that the one asked longest ago is forgotten.
_COUNTED = 1_000_000

_TABLES = (
    "CREATE TABLE searches (number INTEGER PRIMARY KEY, search TEXT NOT NULL UNIQUE, "
    "time REAL NOT NULL, query TEXT, no_match TEXT, milliseconds REAL NOT NULL)",
    "CREATE INDEX searches_of_query ON searches (query)",
    "CREATE TABLE shown (search INTEGER NOT NULL REFERENCES searches, "
    "position INTEGER NOT NULL, title INTEGER NOT NULL REFERENCES titles, clicked REAL, "
    "PRIMARY KEY (search, position)) WITHOUT ROWID",
    "CREATE TABLE titles (number INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, "
    "UNIQUE (id, title))",
)


@dataclass(frozen=True)
class Searched:
    """A search that was answered.

    query : as it was asked
    shown : ids and titles of the results, best first
    no_match : the reason why there was no good match, or None
    milliseconds : the duration of the answer
    """

    query: str
    shown: Sequence[tuple[str, str]]
    no_match: str | None
    milliseconds: float


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
        self._connection: sqlite3.Connection | None = None
        self._process = 0
        self._asked: OrderedDict[bytes, int] = OrderedDict()
        # So that the file of counts cannot be guessed from: they are in memory alone, and keyed.
        self._key = secrets.token_bytes(32)
        self._titles: dict[tuple[str, str], int] = {}
        with self._lock, _errors(self.path):
            os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
            if os.path.getsize(self.path) and not is_record(self.path):
                raise _not_a_record(self.path)
            self._opened()

    def add_searches(self, searches: Iterable[Searched]) -> list[str]:
        """Add searches, all or none; the result has a name for each, by which its clicks are added.

        Raises `SentembError` if the file cannot be written.
        """
        names = []
        with self._writing() as connection:
            for search in searches:
                name = secrets.token_urlsafe(12)
                number = connection.execute(
                    "INSERT INTO searches (search, time, query, no_match, milliseconds) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (
                        name,
                        time.time(),
                        self._storable(connection, search.query),
                        search.no_match,
                        search.milliseconds,
                    ),
                ).lastrowid
                connection.executemany(
                    "INSERT INTO shown (search, position, title) VALUES (?, ?, ?)",
                    [
                        (number, position, self._title(connection, *shown))
                        for position, shown in enumerate(search.shown, 1)
                    ],
                )
                names.append(name)
        return names

    def add_click(self, search: str, id: str) -> bool:
        """Add a click; a second one on the same title of the same search changes nothing.

        ``search`` is a name from `add_searches`, and ``id`` that of a title that the search showed.
        The result is False if there is no such search, or it did not show the title. Raises
        `SentembError` if the file cannot be written.
        """
        with self._writing() as connection:
            changed = connection.execute(
                "UPDATE shown SET clicked = coalesce(clicked, ?) "
                "WHERE search = (SELECT number FROM searches WHERE search = ?) "
                "AND title IN (SELECT number FROM titles WHERE id = ?)",
                (time.time(), search, id),
            ).rowcount
        return bool(changed)

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            if self._connection is not None and self._process == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        """A transaction."""
        with self._lock, _errors(self.path):
            connection = self._opened()
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                self._titles.clear()  # their rows may be undone
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def _opened(self) -> sqlite3.Connection:
        """The connection of this process: SQLite's must not be taken through a fork."""
        if self._connection is None or self._process != os.getpid():
            self._titles = {}
            self._connection = _made(self.path)
            self._process = os.getpid()
        return self._connection

    def _title(self, connection: sqlite3.Connection, id: str, title: str) -> int:
        key = id, title
        if key not in self._titles:
            connection.execute("INSERT OR IGNORE INTO titles (id, title) VALUES (?, ?)", key)
            (number,) = connection.execute(
                "SELECT number FROM titles WHERE id = ? AND title = ?", key
            ).fetchone()
            self._titles[key] = int(number)
        return self._titles[key]

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


def is_record(path: AnyPath) -> bool:
    """Whether a regular file is a record of searches; one that cannot be read is not."""
    if not os.path.isfile(path):
        return False  # a pipe can be read only once
    try:
        with open(path, "rb") as file:
            head = file.read(72)
    except (OSError, ValueError):
        return False
    return head.startswith(_MAGIC) and head[68:72] == _APPLICATION.to_bytes(4, "big")


@contextmanager
def reading_record(path: AnyPath) -> Iterator[sqlite3.Connection]:
    """A connection that can only read a record, which a server may be writing.

    Raises `SentembError` if the file cannot be read, is not a record or has another version, and
    for an error of SQLite or of the system in the body of the ``with``.
    """
    name = place_name(path)
    if is_file(path) and not is_record(path):
        raise _not_a_record(path)
    with _errors(path):
        real_path = os.path.realpath(path)
        address = f"{Path(real_path).as_uri()}?mode=ro"
        try:
            connection, version = _reader(address)
        except sqlite3.OperationalError as error:
            # To read, SQLite makes files next to the record. Where it cannot, the record alone is
            # read, unless one of those files has changes that are not in the record yet.
            logs = (status(f"{real_path}{end}") for end in ("-wal", "-journal"))
            has_changes = any(log is not None and log.st_size for log in logs)
            if has_changes or error.sqlite_errorcode & 0xFF not in _CANNOT_MAKE:
                raise
            connection, version = _reader(f"{address}&immutable=1")
        with closing(connection):
            if version != _VERSION:
                raise SentembError(
                    f"{name}: its version is {version}; this sentemb reads version {_VERSION}"
                )
            yield connection


def _reader(address: str) -> tuple[sqlite3.Connection, int]:
    """A connection that can only read, and the version of the record."""
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
    try:
        # A file that somebody made may have views and triggers in place of tables.
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("PRAGMA query_only=ON")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection, version


# The columns of a record as a table of clicks.
COLUMNS = ("query", "title", "id", "clicks", "search", "position", "time")
_ROWS = (
    "SELECT searches.query, titles.title, titles.id, shown.clicked IS NOT NULL, searches.search, "
    "shown.position, searches.time FROM searches JOIN shown ON shown.search = searches.number "
    "JOIN titles ON titles.number = shown.title WHERE searches.query IS NOT NULL {}"
    "ORDER BY searches.number, shown.position"
)


def record_rows(path: AnyPath, all_shown: bool) -> Iterator[tuple[object, ...]]:
    """The results of a record in the order of the searches, one row each, with `COLUMNS`.

    They are clicks alone unless ``all_shown``, which adds the titles that were shown and not
    clicked. A search whose query was not stored has none. Raises `SentembError` if the file cannot
    be read or is not a record.
    """
    with reading_record(path) as connection:
        only = "" if all_shown else "AND shown.clicked IS NOT NULL "
        yield from connection.execute(_ROWS.format(only))


def _made(path: Path) -> sqlite3.Connection:
    """A connection that writes to a record; an empty file becomes one."""
    # The threads of a server take turns.
    connection = sqlite3.connect(
        path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA trusted_schema=OFF")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
            for table in _TABLES:
                connection.execute(table)
            connection.execute(f"PRAGMA application_id={_APPLICATION}")
            connection.execute(f"PRAGMA user_version={_VERSION}")
        elif version != _VERSION:
            raise _not_a_record(path)
        connection.execute("COMMIT")
        # Readers do not stop the writer. What was answered survives the end of the process; a
        # machine that loses its power can lose the last searches, and never the file. Only after
        # the tables: until the log of changes is merged, the marks of a new file would be in there.
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=NORMAL")
    except BaseException:
        connection.close()
        raise
    return connection


def _not_a_record(path: AnyPath) -> SentembError:
    return SentembError(
        f"{place_name(path)}: not a record of searches of this version; name another file"
    )


@contextmanager
def _errors(path: AnyPath) -> Iterator[None]:
    """Turn errors of SQLite and of the system into a `SentembError` with the file."""
    name = place_name(path)
    try:
        yield
    except sqlite3.OperationalError as error:
        raise SentembError(
            f"{name}: cannot be used: {error}; check the path, its permissions and the disk"
        ) from error
    except (sqlite3.DatabaseError, OverflowError) as error:
        raise SentembError(f"{name}: is damaged: {error}; name another file") from error
    except OSError as error:
        raise SentembError(
            f"{name}: cannot be written: {error.strerror}; check the folder and its permissions"
        ) from error
