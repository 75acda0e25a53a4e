"""The file of a record of searches: how it is made, opened, checked and read.

It is an SQLite file, which people move, copy and delete while a server writes to it, and which may
come from somebody else. So before each transaction its place is looked at, and the tables, and the
values that are read, must be those that we write.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TypeVar

from sentemb.errors import SentembError
from sentemb.system.files import is_file, is_folder, place_name, status
from sentemb.system.paths import AnyPath
from sentemb.system.sqlite_watch import STEPS, Watch
from sentemb.system.terminal import note

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_T = TypeVar("_T")

# Marks the file as ours: the letters "sent".
_APPLICATION = 0x73656E74
_VERSION = 2
_MAGIC = b"SQLite format 3\0"
# Bytes at the beginning that tell.
_MARKED = 72
# Seconds that a writer waits for another process that writes to the same file.
_PATIENCE = 5.0
# Errors of a place where SQLite may not make files.
_CANNOT_MAKE = (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN)
# Steps of SQLite's machine to read a record: what we read of our own takes less than one per byte.
_STEPS, _STEPS_PER_BYTE = 1_000_000, 20
# What SQLite keeps next to a record: changes that are not in it yet, and who reads and writes them.
_BESIDE = ("-wal", "-shm")

_FIRST_TABLES = (
    "CREATE TABLE searches (number INTEGER PRIMARY KEY, search TEXT NOT NULL UNIQUE, "
    "time REAL NOT NULL, query TEXT, no_match TEXT, milliseconds REAL NOT NULL)",
    "CREATE INDEX searches_of_query ON searches (query)",
    "CREATE TABLE shown (search INTEGER NOT NULL REFERENCES searches, "
    "position INTEGER NOT NULL, title INTEGER NOT NULL REFERENCES titles, clicked REAL, "
    "PRIMARY KEY (search, position)) WITHOUT ROWID",
    "CREATE TABLE titles (number INTEGER PRIMARY KEY, id TEXT NOT NULL, title TEXT NOT NULL, "
    "UNIQUE (id, title))",
)
# What version 2 has more: which index answered, and the scores.
_SINCE_FIRST = (
    "CREATE TABLE indexes (number INTEGER PRIMARY KEY, model TEXT NOT NULL, "
    "contents TEXT NOT NULL, UNIQUE (model, contents))",
    "ALTER TABLE searches ADD COLUMN answered_by INTEGER REFERENCES indexes",
    "ALTER TABLE shown ADD COLUMN score REAL",
)
_TABLES = {1: _FIRST_TABLES, 2: (*_FIRST_TABLES, *_SINCE_FIRST)}
_SCHEMA = "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name"
# What each row of a table must be; years up to 9999 have a date.
_VALUES = {
    "searches": "typeof(search) = 'text' AND typeof(query) IN ('text', 'null') "
    "AND typeof(no_match) IN ('text', 'null') "
    "AND typeof(time) = 'real' AND time BETWEEN 0 AND 253402300799 "
    "AND typeof(milliseconds) = 'real' AND milliseconds BETWEEN 0 AND 1e15",
    "shown": "typeof(search) = 'integer' AND typeof(title) = 'integer' "
    "AND typeof(position) = 'integer' AND position BETWEEN 1 AND 2147483647 "
    "AND typeof(clicked) IN ('real', 'null')",
    "titles": "typeof(id) = 'text' AND typeof(title) = 'text'",
}
_VALUES_SINCE_FIRST = {
    "searches": "typeof(answered_by) IN ('integer', 'null')",
    "shown": "typeof(score) IN ('real', 'null')",
    "indexes": "typeof(model) = 'text' AND typeof(contents) = 'text'",
}


class RecordFile:
    """A record that is open for writing, which one thread at a time may use.

    A file that does not exist, or is empty, becomes a record, readable by its owner alone. Raises
    `SentembError`, or an error of SQLite or of the system, if it is something else or cannot be
    written.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.process = path, os.getpid()
        self._end = time.monotonic() + _PATIENCE
        # Open for as long as the connection: closing it would release the locks of SQLite.
        self._handle = os.open(path, os.O_CREAT | os.O_RDWR | getattr(os, "O_CLOEXEC", 0), 0o600)
        try:
            with _alone(self._handle):
                if not self._size:
                    _put_aside(path)
                elif not _is_marked(os.pread(self._handle, _MARKED, 0)):
                    raise not_a_record(path)
                self.connection, self._watch = _writer(path, self._check)
            self._identity = self._identities()
            if self._identity[0] != _identity(self._handle):
                self.connection.close()
                raise SentembError(f"{place_name(path)}: is replaced just now; try again")
        except BaseException:
            os.close(self._handle)
            raise

    @property
    def _size(self) -> int:
        return os.fstat(self._handle).st_size

    def _identities(self) -> list[tuple[int, int] | None]:
        """The files at the path, and at those that SQLite keeps next to it."""
        return [_identity(self._path), *(_identity(f"{self._path}{end}") for end in _BESIDE)]

    @property
    def is_in_place(self) -> bool:
        """Whether what is written now goes into the files at the path, which nobody has emptied."""
        return self._size > 0 and self._identities() == self._identity

    @property
    def is_elsewhere(self) -> bool:
        """Whether the file has another name now."""
        return not self.is_deleted and _identity(self._path) != self._identity[0]

    @property
    def is_deleted(self) -> bool:
        """Whether the file has no name any more, so that nobody will read what is in it."""
        return os.fstat(self._handle).st_nlink == 0

    def change(self, change: Callable[[sqlite3.Connection], _T]) -> _T:
        """Make a change in a transaction, or none of it."""
        self.connection.execute("BEGIN IMMEDIATE")
        self._end = time.monotonic() + _PATIENCE
        try:
            with self._watch.watching():
                # A later sentemb may have changed the file meanwhile.
                _version(self.connection, self._path)
                result = change(self.connection)
                self.connection.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")
            raise
        return result

    def _check(self) -> None:
        """Raise a `SentembError` if a change takes longer than those of a record do."""
        if time.monotonic() > self._end:
            raise _damaged(self._path, "changing it takes too long")

    def settle(self) -> None:
        """Put all changes into the file, wherever it is now: who has moved it may miss the rest.

        Raises a `SentembError` if that is not possible now.
        """
        if not self._size or self.is_deleted:
            return
        busy, *_ = self.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy and not self.is_in_place:
            raise SentembError(
                f"{place_name(self._path)}: was moved while another program reads it; end that"
            )

    def close(self) -> None:
        """Close the file with all that was written to it.

        Raises a `SentembError` if that is not possible now; the file stays open then.
        """
        is_emptied = not self._size
        if self.process == os.getpid():
            self.settle()
            self.connection.close()
            if self.is_deleted:
                self._delete_changes()
            if is_emptied:  # SQLite has put changes into it, without the tables they belong to
                os.ftruncate(self._handle, 0)
        os.close(self._handle)

    def _delete_changes(self) -> None:
        """Delete what a deleted file has left next to it."""
        for end, ours in zip(_BESIDE, self._identity[1:], strict=True):
            if ours is not None and _identity(f"{self._path}{end}") == ours:
                os.unlink(f"{self._path}{end}")


def _identity(path: AnyPath | int) -> tuple[int, int] | None:
    """The identity of a file, whatever its name; None if there is none."""
    try:
        status_there = os.stat(path)
    except OSError:
        return None
    return status_there.st_dev, status_there.st_ino


@contextmanager
def _alone(handle: int) -> Iterator[None]:
    """Be the only process that makes tables in a file, where the system can lock one."""
    if fcntl is None:
        yield
        return
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_EX)
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(handle, fcntl.LOCK_UN)


def _put_aside(path: Path) -> None:
    """Remove what SQLite kept next to a record that was moved away: it would go into a new one.

    Changes that are not in that record yet are kept under another name.
    """
    for end in (*_BESIDE, "-journal"):
        left = Path(f"{path}{end}")
        with contextlib.suppress(FileNotFoundError):
            if end in _BESIDE[1:] or not left.stat().st_size:
                left.unlink()
                continue
            aside = Path(f"{path}.{secrets.token_hex(4)}{end}")
            left.rename(aside)
            note(
                f"{place_name(aside)}: changes of a record that was moved away; give them the name "
                f"of that record with {end} at the end"
            )


def _writer(path: Path, check: Callable[[], None]) -> tuple[sqlite3.Connection, Watch]:
    """A connection that writes to a record, and what asks ``check`` while it does.

    An empty file becomes a record.
    """
    # The threads of a server take turns.
    connection = sqlite3.connect(
        path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )
    watch = Watch(connection, check)
    try:
        with watch.watching():
            _make(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection, watch


@contextmanager
def changing_record(path: AnyPath) -> Iterator[sqlite3.Connection]:
    """A connection whose changes of a record are all made when the body ends, or none.

    A file that does not exist becomes a record, readable by its owner alone. Raises `SentembError`
    if it is something else or cannot be written, and for an error of SQLite or of the system.
    """
    with errors_of(path):
        os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        if os.path.getsize(path) and not is_record(path):
            raise not_a_record(path)
        connection, watch = _writer(Path(path), lambda: None)
        with closing(connection), watch.watching():
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")


def _make(connection: sqlite3.Connection, path: Path) -> None:
    """Make the tables of a record in an empty file, and refuse one that has others."""
    connection.execute("PRAGMA trusted_schema=OFF")
    connection.execute("BEGIN IMMEDIATE")
    if not connection.execute("SELECT 1 FROM sqlite_schema").fetchone():
        connection.execute(f"PRAGMA application_id={_APPLICATION}")
        lacking = _TABLES[_VERSION]
    else:
        lacking = _TABLES[_VERSION][len(_TABLES[_check_tables(connection, path)]) :]
    for statement in lacking:
        connection.execute(statement)
    connection.execute(f"PRAGMA user_version={_VERSION}")
    _check_tables(connection, path)
    connection.execute("COMMIT")
    # Readers do not stop the writer. What was answered survives the end of the process; a
    # machine that loses its power can lose the last searches, and never the file. Only after
    # the tables: until the log of changes is merged, the marks of a new file would be in there.
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=NORMAL")
    connection.execute("SELECT 1 FROM searches LIMIT 1").fetchone()  # makes the files next to it


def is_record(path: AnyPath) -> bool:
    """Whether a regular file is a record of searches; one that cannot be read is not."""
    if not os.path.isfile(path):
        return False  # a pipe can be read only once
    try:
        with open(path, "rb") as file:
            return _is_marked(file.read(_MARKED))
    except (OSError, ValueError):
        return False


def _is_marked(head: bytes) -> bool:
    """Whether the beginning of a file says that it is a record."""
    return head.startswith(_MAGIC) and head[68:_MARKED] == _APPLICATION.to_bytes(4, "big")


@contextmanager
def reading_record(path: AnyPath) -> Iterator[sqlite3.Connection]:
    """A connection that can only read a record, which a server may be writing.

    Its tables and values are those of a record; statements in the body of the ``with`` end when
    they have taken more steps than the size of the file explains, and on a signal.

    Raises `SentembError` if the file cannot be read, is not a record or has another version, and
    for an error of SQLite or of the system in the body of the ``with``.
    """
    if is_folder(path):
        raise SentembError(f"{place_name(path)}: is a folder; give the record in it")
    if status(path) is None:
        raise SentembError(f"{place_name(path)}: no such file; check the path")
    if is_file(path) and not is_record(path):
        raise not_a_record(path)
    with errors_of(path):
        real_path = os.path.realpath(path)
        address = f"{Path(real_path).as_uri()}?mode=ro"
        try:
            connection, watch = _reader(address, path)
        except sqlite3.OperationalError as error:
            # To read, SQLite makes files next to the record. Where it cannot, the record alone is
            # read, unless one of those files has changes that are not in the record yet.
            logs = (status(f"{real_path}{end}") for end in ("-wal", "-journal"))
            has_changes = any(log is not None and log.st_size for log in logs)
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            if has_changes or code not in _CANNOT_MAKE:
                raise
            connection, watch = _reader(f"{address}&immutable=1", path)
        with closing(connection), watch.watching():
            # One snapshot for all that is read, also while a server is writing.
            connection.execute("BEGIN")
            _check_values(connection, path)
            yield connection


def _reader(address: str, path: AnyPath) -> tuple[sqlite3.Connection, Watch]:
    """A connection that can only read a record, and what ends its statements."""
    connection = sqlite3.connect(address, uri=True, timeout=_PATIENCE, isolation_level=None)
    try:
        left = [_STEPS + _STEPS_PER_BYTE * _bytes_of(path)]

        def check() -> None:
            left[0] -= STEPS
            if left[0] < 0:
                raise _damaged(path, "reading it does not end")

        watch = Watch(connection, check)
        with watch.watching():
            # A file that somebody made may have views and triggers in place of tables.
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("PRAGMA query_only=ON")
            _check_tables(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection, watch


def _bytes_of(path: AnyPath) -> int:
    """The size of a record with the changes that are not in it yet."""
    files = (status(f"{os.path.realpath(path)}{end}") for end in ("", _BESIDE[0]))
    return sum(file.st_size for file in files if file is not None)


def _check_values(connection: sqlite3.Connection, path: AnyPath) -> None:
    """Refuse a record with a value that no server has written."""
    since_first = _VALUES_SINCE_FIRST if _version(connection, path) > 1 else {}
    for table, is_right in (*_VALUES.items(), *since_first.items()):
        wrong = f"SELECT 1 FROM {table} WHERE NOT coalesce({is_right}, 0) LIMIT 1"
        if connection.execute(wrong).fetchone():
            raise _damaged(path, f"a value in its table {table} cannot be")


def _check_tables(connection: sqlite3.Connection, path: AnyPath) -> int:
    """The version of a record.

    Raises `SentembError` for a file with other tables, which may have views, triggers and more.
    """
    version = _version(connection, path)
    if connection.execute(_SCHEMA).fetchall() != _schema(version):
        raise not_a_record(path)
    return version


def _version(connection: sqlite3.Connection, path: AnyPath) -> int:
    """The version of a record; a `SentembError` if it is none of ours."""
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if version not in _TABLES:
        raise SentembError(
            f"{place_name(path)}: a record of version {version}, and this sentemb knows versions "
            f"up to {_VERSION}; use the sentemb that wrote it, or name another file"
        )
    return int(version)


@functools.cache
def _schema(version: int) -> list[tuple[str, str, str, str | None]]:
    """The tables and indexes of a record, as SQLite lists them."""
    with closing(sqlite3.connect(":memory:")) as base:
        for statement in _TABLES[version]:
            base.execute(statement)
        return base.execute(_SCHEMA).fetchall()


def not_a_record(path: AnyPath) -> SentembError:
    """The error for a file that is something else."""
    return SentembError(f"{place_name(path)}: not a record of searches; name another file")


def _damaged(path: AnyPath, why: object) -> SentembError:
    return SentembError(f"{place_name(path)}: is damaged: {why}; name another file")


@contextmanager
def errors_of(path: AnyPath) -> Iterator[None]:
    """Turn errors of SQLite and of the system into a `SentembError` with the file."""
    name = place_name(path)
    try:
        yield
    except sqlite3.OperationalError as error:
        # Python gives the error for a text that is not UTF-8 no code.
        if getattr(error, "sqlite_errorcode", 0) in (0, sqlite3.SQLITE_ERROR):
            raise _damaged(path, error) from error
        raise SentembError(
            f"{name}: cannot be used: {error}; check the path, its permissions and the disk"
        ) from error
    except (sqlite3.DatabaseError, OverflowError, UnicodeDecodeError) as error:
        raise _damaged(path, error) from error
    except OSError as error:
        raise SentembError(
            f"{name}: cannot be written: {error.strerror}; check the folder and its permissions"
        ) from error
