"""A limit of time for all that is done in a thread, wherever the time is spent.

Who begins a piece of work sets the limit; who may take long asks for it often.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar

_check: ContextVar[Callable[[], None] | None] = ContextVar("check", default=None)


@contextlib.contextmanager
def time_limit(check: Callable[[], None]) -> Iterator[None]:
    """Let ``check`` end the work of this thread, until the end of the ``with``.

    It raises the exception that ends the work once the time is up.
    """
    token = _check.set(check)
    try:
        yield
    finally:
        _check.reset(token)


def check_time() -> None:
    """Raise the exception of the limit that this thread has, if its time is up."""
    check = _check.get()
    if check is not None:
        check()
