"""Several records of searches as one, in which each search is counted once.

A search has a name that no other has (`sentemb.data.search_record`). So a copy of a record, or one
that has been continued since, adds the searches and clicks that are new and nothing else.
"""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from sentemb.data.record_file import changing_record, reading_record
from sentemb.system.paths import AnyPath

_TITLES = (
    "INSERT OR IGNORE INTO titles (id, title) VALUES (?, ?)",
    "SELECT DISTINCT titles.id, titles.title FROM searches JOIN shown ON shown.search = "
    "searches.number JOIN titles ON titles.number = shown.title WHERE searches.time >= ?",
)
_INDEXES = (
    "INSERT OR IGNORE INTO indexes (model, contents) VALUES (?, ?)",
    "SELECT model, contents FROM indexes WHERE ? IS NOT NULL",
)
_SEARCHES = (
    "INSERT OR IGNORE INTO searches (search, time, query, no_match, milliseconds, answered_by) "
    "VALUES (?, ?, ?, ?, ?, (SELECT number FROM indexes WHERE model = ? AND contents = ?))",
    "SELECT search, time, query, no_match, milliseconds, model, contents FROM searches "
    "LEFT JOIN indexes ON indexes.number = answered_by WHERE time >= ? ORDER BY searches.number",
)
_SHOWN = (
    "INSERT INTO shown (search, position, title, clicked, score) VALUES ("
    "(SELECT number FROM searches WHERE search = ?), ?, "
    "(SELECT number FROM titles WHERE id = ? AND title = ?), ?, ?) "
    "ON CONFLICT (search, position) DO UPDATE SET clicked = coalesce(clicked, excluded.clicked)",
    "SELECT searches.search, position, titles.id, titles.title, clicked, {score} FROM searches "
    "JOIN shown ON shown.search = searches.number JOIN titles ON titles.number = shown.title "
    "WHERE time >= ? ORDER BY searches.number, position",
)
# What a record of version 1 lacks.
_OF_VERSION_1 = (
    "SELECT search, time, query, no_match, milliseconds, NULL, NULL FROM searches "
    "WHERE time >= ? ORDER BY number"
)


class Merged(NamedTuple):
    """The searches and the clicks that were new in some records."""

    searches: int
    clicks: int


def merge_records(paths: Sequence[AnyPath], into: AnyPath, since: float = -math.inf) -> Merged:
    """Add the searches of records to another one, all or none; return what was new.

    A record ``into`` that does not exist is made. ``since`` leaves earlier searches out, in seconds
    since 1970. A search that is there already gets the clicks that it lacks. Raises `SentembError`
    if a file is something else or cannot be read or written.
    """
    with changing_record(into) as target:
        before = _counts(target)
        for path in paths:
            with reading_record(path) as source:
                (version,) = source.execute("PRAGMA user_version").fetchone()
                searches = _SEARCHES[0], _OF_VERSION_1 if version == 1 else _SEARCHES[1]
                shown = _SHOWN[0], _SHOWN[1].format(score="NULL" if version == 1 else "score")
                indexes = () if version == 1 else (_INDEXES,)
                for insert, select in (_TITLES, *indexes, searches, shown):
                    target.executemany(insert, source.execute(select, (since,)))
        after = _counts(target)
    return Merged(after[0] - before[0], after[1] - before[1])


@contextmanager
def one_record(paths: Sequence[AnyPath]) -> Iterator[AnyPath]:
    """A record with the searches of several, as long as the context lasts; of one, itself."""
    if len(paths) == 1:
        yield paths[0]
        return
    with TemporaryDirectory() as folder:
        merged = Path(folder) / "searches.sqlite"
        merge_records(paths, merged)
        yield merged


def _counts(connection: sqlite3.Connection) -> tuple[int, int]:
    """The searches and the clicks of a record."""
    counts = "SELECT (SELECT count(*) FROM searches), (SELECT count(clicked) FROM shown)"
    searches, clicks = connection.execute(counts).fetchone()
    return searches, clicks
