"""Statements of SQLite that a clock, a limit or a signal can end at any time.

A statement runs in C, where Python handles no signal and no thread looks at a clock. So SQLite asks
a function again and again, in which both happen. An exception in there ends the statement, but
SQLite replaces it by an error of its own.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Iterator

# Steps of SQLite's machine between two looks: a step is at most a function of a text, and a search
# through a small part of the table takes thousands.
STEPS = 100


class Watch:
    """Calls ``check`` every `STEPS` steps of a connection; its exception ends the statement."""

    def __init__(self, base: sqlite3.Connection, check: Callable[[], None]) -> None:
        self._check = check
        self._error: BaseException | None = None
        base.set_progress_handler(self._step, STEPS)

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Run a statement; raise what ended it in the place of SQLite's error."""
        self._error = None
        try:
            yield
        except sqlite3.OperationalError as error:
            ended_by = self.ended_by(error)
            if ended_by is error:
                raise
            raise ended_by from None

    def ended_by(self, error: sqlite3.OperationalError) -> BaseException:
        """The exception that has ended a statement, or the ``error`` that it has failed with."""
        # Python gives some of its own errors no code.
        if getattr(error, "sqlite_errorcode", 0) != sqlite3.SQLITE_INTERRUPT:
            return error
        # Python handles signals when a function begins, before ours can keep what they raise.
        return self._error or KeyboardInterrupt()

    def _step(self) -> int:
        try:
            self._check()
        except BaseException as error:
            self._error = error
            return 1
        return 0
