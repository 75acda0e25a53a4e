"""Clicks summed pair by pair in bounded memory."""

from collections import Counter
from collections.abc import Iterator
from types import TracebackType

from sentemb.data.click_log import MAX_CLICKS
from sentemb.errors import SentembError

# Pairs that are summed in memory before they go to the database.
_HELD = 100_000
_CACHE_KB = 65_536


class PairSums:
    """Sums the clicks of pairs; all but the newest pairs are in a temporary file.

    SQLite keeps the file in the system's folder for temporary files (``SQLITE_TMPDIR`` or
    ``TMPDIR`` names another) and removes it. It takes about 1.5 times the bytes of the distinct
    pairs. Use as a context manager.
    """

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def __enter__(self) -> "PairSums":
        import sqlite3

        from sentemb.system.sqlite_watch import Watch

        # An empty name is a database in a temporary file.
        self._base = sqlite3.connect("", isolation_level=None)
        for pragma in ("journal_mode=OFF", "synchronous=OFF", f"cache_size=-{_CACHE_KB}"):
            self._base.execute(f"PRAGMA {pragma}")
        self._watch = Watch(self._base, lambda: None)  # lets signals end its statements
        self._base.execute("CREATE TABLE pairs (place INTEGER PRIMARY KEY, pair TEXT UNIQUE, n)")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        import sqlite3

        self._base.close()
        if isinstance(error, sqlite3.OperationalError):
            if (ended_by := self._watch.ended_by(error)) is not error:
                raise ended_by from None
            raise SentembError(
                f"the temporary file of the pairs cannot be used: {error}; make room or set TMPDIR"
            ) from error

    def add(self, query: str, title: str, clicks: int) -> None:
        """Add clicks of a pair; neither text has a tab."""
        self._held[f"{query}\t{title}"] += clicks
        if len(self._held) >= _HELD:
            self._store()

    def pairs(self, least: int) -> Iterator[tuple[str, str, int]]:
        """The pairs with at least ``least`` clicks, in the order of their first appearance."""
        self._store()
        for pair, clicks in self._base.execute("SELECT pair, n FROM pairs ORDER BY place"):
            query, _, title = pair.partition("\t")
            if clicks > MAX_CLICKS:
                raise SentembError(
                    f"the clicks of a pair add up to more than {MAX_CLICKS:,}; scale them down"
                )
            if clicks >= least:
                yield query, title, clicks

    def __len__(self) -> int:
        self._store()
        (count,) = self._base.execute("SELECT count(*) FROM pairs").fetchone()
        return int(count)

    def _store(self) -> None:
        self._base.execute("BEGIN")
        try:
            self._base.executemany(
                "INSERT INTO pairs (pair, n) VALUES (?, ?) "
                "ON CONFLICT (pair) DO UPDATE SET n = n + excluded.n",
                self._held.items(),
            )
        except OverflowError:
            raise SentembError(
                f"the clicks of a pair add up to more than {MAX_CLICKS:,}; scale them down"
            ) from None
        self._base.execute("COMMIT")
        self._held.clear()
