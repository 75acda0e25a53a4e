"""The terminal: messages, a line that shows progress, and no control characters of others."""

from __future__ import annotations

import codecs
import contextlib
import io
import re
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import click

from sentemb.errors import printable

# A body that runs longer than this shows its time.
_SECONDS_BEFORE = 2.0
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


_silenced = False


@contextlib.contextmanager
def silenced() -> Iterator[None]:
    """Print no notes and draw no progress in the body."""
    global _silenced
    before, _silenced = _silenced, True
    try:
        yield
    finally:
        _silenced = before


def is_silenced() -> bool:
    """Whether notes are not printed."""
    return _silenced


def note(message: str) -> None:
    """Print ``message`` on standard error; if nobody can read it there, the work continues."""
    if ProgressLine.shown is not None:
        ProgressLine.shown.close()
    draw(f"{printable(message)}\n")


def columns_of(output: object) -> int | None:
    """The width of the terminal that ``output``, a path or -, is shown on; None if it is not."""
    if str(output) != "-" or not sys.stdout.isatty():
        return None
    return shutil.get_terminal_size().columns


def draw(text: str) -> None:
    """Print ``text`` on standard error as it is, control characters included."""
    if not _silenced:
        with contextlib.suppress(OSError):
            click.echo(text, err=True, nl=False)


def escaped(text: str) -> str:
    """``text`` with control characters escaped, but for tabs and line feeds.

    Ids and titles come from anywhere. On a terminal their control characters would be obeyed: they
    move the cursor, change colours, or type into the shell.

    Examples
    --------
    >>> print(escaped("d1\x1b[31m"))
    d1\\x1b[31m
    """
    return _CONTROLS.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


# What begins and ends bold letters in what we print: two of Unicode's noncharacters, which texts do
# not have. Control characters would be escaped.
BOLD, PLAIN = "\ufdd0", "\ufdd1"
_AS_CONTROLS = str.maketrans({BOLD: "\x1b[1m", PLAIN: "\x1b[0m"})


class EscapedOutput(io.BufferedIOBase):
    """Writes UTF-8 to ``output``, a terminal, as `escaped` says; for files and pipes it is not.

    `BOLD` and `PLAIN` are obeyed.
    """

    def __init__(self, output: io.BufferedIOBase) -> None:
        self._output = output
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def write(self, data: Any) -> int:
        raw = bytes(data)
        text = escaped(self._decoder.decode(raw)).translate(_AS_CONTROLS)
        self._output.write(text.encode())
        return len(raw)

    def flush(self) -> None:
        self._output.flush()


def is_terminal() -> bool:
    """Whether standard error is a terminal, on which a line can be drawn over."""
    return sys.stderr is not None and sys.stderr.isatty()


class ProgressLine:
    """A line on standard error that is drawn over on a terminal.

    ``seconds`` pass between two drawings, and before the first.
    """

    shown: ClassVar[ProgressLine | None] = None

    def __init__(self, seconds: float = 0.2) -> None:
        self.on_terminal = is_terminal()
        self._seconds = seconds
        self._drawn = time.monotonic()

    @property
    def is_due(self) -> bool:
        """Whether it is time to draw again."""
        return time.monotonic() - self._drawn >= self._seconds

    def draw(self, text: str) -> None:
        """Replace the line by ``text`` on a terminal; do nothing elsewhere."""
        self._drawn = time.monotonic()
        if self.on_terminal:
            # A longer line would wrap, and could not be drawn over.
            columns = shutil.get_terminal_size().columns
            draw(f"\r\x1b[K{printable(text)[: columns - 1]}")
            ProgressLine.shown = self

    def note(self, message: str) -> None:
        """Print a line that stays."""
        note(message)

    def close(self) -> None:
        """Remove the line."""
        if ProgressLine.shown is self:
            draw("\r\x1b[K")
            ProgressLine.shown = None


@contextlib.contextmanager
def working(what: str, prints: bool = False) -> Iterator[Callable[[str], None]]:
    """Show on a terminal how long the body has been running, once that is more than two seconds.

    ``what`` names its work: "ranking"; the function that is yielded gives it another name. With
    ``prints`` the body prints on standard output: if that is a terminal, nothing else is shown.
    """
    named = what

    def rename(what: str) -> None:
        nonlocal named
        named = what

    line, began, is_done = ProgressLine(), time.monotonic(), threading.Event()
    if not line.on_terminal or (prints and sys.stdout.isatty()):
        yield rename
        return

    def show() -> None:
        seconds = _SECONDS_BEFORE
        while not is_done.wait(seconds):
            line.draw(f"{named}: {time.monotonic() - began:.0f} s")
            seconds = 1.0

    shower = threading.Thread(target=show, daemon=True)
    shower.start()
    try:
        yield rename
    finally:
        is_done.set()
        shower.join()
        line.close()
