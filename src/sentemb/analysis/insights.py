"""Insights into recorded searches: what users look for, what they do not find or do not open."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sentemb.data.record_file import reading_record
from sentemb.search.searcher import NO_PRODUCT, NO_TITLES, NOTHING_KNOWN
from sentemb.system.bounds import whole
from sentemb.system.paths import AnyPath
from sentemb.system.tables import aligned

_SHARES = (0.5, 0.95, 0.99)
# Reasons of searches that no title matches; all others say that titles are not good enough to show.
_NOTHING = (NOTHING_KNOWN, NO_TITLES, NO_PRODUCT)
# None for a search whose text is not kept.
_FOLDED = "CASE WHEN query IS NOT NULL THEN folded(query) END"
# One row per query, whatever its case. Grouped by search first: `shown` is sorted by it.
_BY_QUERY = f"""
SELECT {_FOLDED} AS one, count(*),
       sum(first IS NOT NULL), avg(coalesce(1.0 / first, 0)),
       sum(coalesce(no_match IN (?, ?, ?), 0)), sum(coalesce(no_match NOT IN (?, ?, ?), 0)),
       avg(milliseconds)
FROM searches LEFT JOIN (
    SELECT search AS of_search, min(CASE WHEN clicked IS NOT NULL THEN position END) AS first
    FROM shown GROUP BY search
) ON of_search = number
WHERE time >= ?
GROUP BY one
"""
# What was shown first for a query, as often as possible; of two as frequent the latest.
_SHOWN_FIRST = f"""
SELECT titles.title FROM searches
JOIN shown ON shown.search = searches.number AND position = 1
JOIN titles ON titles.number = shown.title
WHERE {_FOLDED} = ? AND time >= ?
GROUP BY titles.title ORDER BY count(*) DESC, max(time) DESC LIMIT 1
"""


@dataclass(frozen=True)
class SearchedQuery:
    """The searches for one query.

    query : in lower case
    searches : how often it was searched
    clicked : searches with a click
    reciprocal_rank : mean of 1 / position of the first title that was clicked, 0 without a click
    nothing_found, below_floor : searches without a result; those whose results were not good enough
        to show
    milliseconds : mean time of an answer
    shown_first : the title that was shown first, of the queries that lose most; None without one
    """

    query: str
    searches: int
    clicked: int
    reciprocal_rank: float
    nothing_found: int
    below_floor: int
    milliseconds: float
    shown_first: str | None = None

    @property
    def lost(self) -> int:
        """The searches without a click."""
        return self.searches - self.clicked

    def missed(self, clicked: int, searches: int) -> tuple[int, int]:
        """A measure of the clicks that it lacks to be clicked like all ``searches``.

        Of the searches for a query that finds what people want, some end without a click as well.
        """
        return self.searches * clicked - self.clicked * searches, self.lost


@dataclass(frozen=True)
class Insights:
    """The searches of a record in figures; each list has the most frequent queries first.

    searches, queries : searches, and distinct queries, whatever their case
    without_text : searches whose text an anonymous record dropped. They count in the totals alone.
    first, last : when the first and the last search was made, in UTC; empty without searches
    clicked : share of the searches with a click
    reciprocal_rank : mean of 1 / position of the first title that was clicked, 0 without a click
    milliseconds : time of an answer: half of the searches took less than ``p50``, and so on
    popular : the most frequent queries
    nothing_found : queries that no title matches
    below_floor : queries without a good match
    lost : queries that lack the most clicks to be clicked like the average, and what was shown
        first
    slow : queries with the longest mean time, longest first
    """

    searches: int
    queries: int
    without_text: int
    first: str
    last: str
    clicked: float
    reciprocal_rank: float
    milliseconds: dict[str, float]
    popular: list[SearchedQuery]
    nothing_found: list[SearchedQuery]
    below_floor: list[SearchedQuery]
    lost: list[SearchedQuery]
    slow: list[SearchedQuery]

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return asdict(self)

    def __str__(self) -> str:
        if not self.searches:
            return "no searches yet"
        dropped = f", {self.without_text:,} without their text" if self.without_text else ""
        times = ", ".join(f"{name} {value:.1f} ms" for name, value in self.milliseconds.items())
        lines = [
            f"searches {self.searches:,}, distinct queries {self.queries:,}{dropped}; "
            f"{self.first} to {self.last} UTC",
            f"{self.clicked:.1%} with a click, mean reciprocal rank {self.reciprocal_rank:.3f}; "
            f"time of an answer: {times}",
        ]
        for title, queries in (
            ("Most frequent", self.popular),
            ("Nothing found", self.nothing_found),
            ("No good match", self.below_floor),
            ("Slowest", self.slow),
        ):
            if queries:
                lines += ["", f"{title}:", *_table(queries)]
        if self.lost:
            lines += ["", "Searches without a click:", *table_of_lost(self.lost)]
        return "\n".join(lines)


def insights(path: AnyPath, top_k: int = 10, since: datetime | None = None) -> Insights:
    """Sum up the record of a server, which may still be running.

    ``path`` was written by ``sentemb serve --record``; each list has ``top_k`` queries. Searches
    before ``since`` are left out. Raises `SentembError` if the file is not a record of searches or
    cannot be read.
    """
    start = -math.inf if since is None else since.timestamp()
    whole("top_k", top_k, 1, 2**31 - 1)
    with reading_record(path) as connection:
        # A function in C: Python would handle a signal in one of its own, where SQLite drops it.
        connection.create_function("folded", 1, str.lower, deterministic=True)
        rows = connection.execute(_BY_QUERY, (*2 * _NOTHING, start))
        every = [SearchedQuery(*row) for row in rows]
        between = "SELECT min(time), max(time) FROM searches WHERE time >= ?"
        first, last = connection.execute(between, (start,)).fetchone()
        milliseconds = _quantiles(connection, sum(query.searches for query in every), start)
        lost = [query for query in every if query.query is not None and query.lost]
        totals = [sum(query.clicked for query in every), sum(query.searches for query in every)]
        lost = sorted(lost, key=lambda query: query.missed(*totals), reverse=True)[:top_k]
        lost = [
            replace(query, shown_first=(shown or (None,))[0])
            for query in lost
            for shown in [connection.execute(_SHOWN_FIRST, (query.query, start)).fetchone()]
        ]
    # SQLite groups all searches without a text together.
    n_searches = sum(query.searches for query in every)
    queries = [query for query in every if query.query is not None]

    def most(
        chosen: Callable[[SearchedQuery], bool],
        key: Callable[[SearchedQuery], float] = lambda query: query.searches,
    ) -> list[SearchedQuery]:
        return sorted(filter(chosen, queries), key=key, reverse=True)[:top_k]

    def mean(of: Callable[[SearchedQuery], float]) -> float:
        return sum(map(of, every)) / n_searches if n_searches else 0.0

    return Insights(
        n_searches,
        len(queries),
        n_searches - sum(query.searches for query in queries),
        _date(first),
        _date(last),
        mean(lambda query: query.clicked),
        mean(lambda query: query.reciprocal_rank * query.searches),
        milliseconds,
        most(lambda query: True),
        most(lambda query: query.nothing_found > 0),
        most(lambda query: query.below_floor > 0),
        lost,
        most(lambda query: True, lambda query: query.milliseconds),
    )


def _quantiles(connection: sqlite3.Connection, n_searches: int, start: float) -> dict[str, float]:
    """Milliseconds below which half, 95 % and 99 % of the searches were answered."""
    if not n_searches:
        return {}
    rows = {f"p{100 * share:.0f}": int(share * (n_searches - 1)) for share in _SHARES}
    at = "SELECT milliseconds FROM searches WHERE time >= ? ORDER BY milliseconds LIMIT 1 OFFSET ?"
    return {name: connection.execute(at, (start, row)).fetchone()[0] for name, row in rows.items()}


def _date(seconds: float | None) -> str:
    return "" if seconds is None else f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M}"


def table_of_lost(queries: list[SearchedQuery]) -> list[str]:
    """The queries that lose most, as lines of a table."""
    head = ["query", "without a click", "searches", "shown first"]
    rows = [
        [query.query, f"{query.lost:,}", f"{query.searches:,}", query.shown_first or "nothing"]
        for query in queries
    ]
    return list(aligned([head, *rows]))


def _table(queries: list[SearchedQuery]) -> list[str]:
    head = ["query", "searches", "with a click", "reciprocal rank", "ms"]
    rows = [
        [
            query.query,
            f"{query.searches:,}",
            f"{query.clicked / query.searches:.1%}",
            f"{query.reciprocal_rank:.3f}",
            f"{query.milliseconds:.1f}",
        ]
        for query in queries
    ]
    return list(aligned([head, *rows]))
