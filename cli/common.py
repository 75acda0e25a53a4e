"""What several commands share: reading queries, warnings as notes, a line that shows progress."""

import contextlib
import shutil
import time
import warnings
from collections.abc import Iterator

from sentemb.cli.program import draw, is_terminal, note
from sentemb.errors import SentembError


@contextlib.contextmanager
def warnings_to_stderr() -> Iterator[None]:
    """Print each warning of the body as one line, without the place in the program."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for warning in caught:
        note(f"warning: {warning.message}")


def read_texts(path: str) -> tuple[list[str], list[str]]:
    """Ids and texts of a file of lines id<TAB>text, of which there must be at least one."""
    from sentemb.data import judged_set
    from sentemb.system.files import place_name

    ids, texts = judged_set.read_texts(path)
    if not ids:
        raise SentembError(f"{place_name(path)}: the input is empty; write lines id<TAB>text")
    return ids, texts


def duration(seconds: float) -> str:
    """A number of seconds to read."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


class ProgressLine:
    """A line on standard error that is drawn over on a terminal.

    Parameters
    ----------
    seconds : float
        Time between two drawings, and before the first.
    """

    def __init__(self, seconds: float = 0.2) -> None:
        self.on_terminal = is_terminal()
        self._seconds = seconds
        self._drawn = time.monotonic()
        self._is_open = False

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
            draw(f"\r\x1b[K{text[: columns - 1]}")
            self._is_open = True

    def note(self, message: str) -> None:
        """Print a line that stays."""
        self.close()
        note(message)

    def close(self) -> None:
        """Remove the line."""
        if self._is_open:
            draw("\r\x1b[K")
            self._is_open = False
