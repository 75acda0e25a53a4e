"""The package's one exception."""

from collections.abc import Iterator
from contextlib import contextmanager

MAX_LETTERS = 300


class SentembError(ValueError):
    """A mistake that the caller can correct: bad input, bad settings, a damaged file.

    The message is one line: the place (file, line, column where there is one), what is wrong
    there, and what to do about it. The command line prints it and exits with code 1.

    A message may quote file names and contents from anywhere, so control characters and bytes that
    are not UTF-8 are escaped, and the middle of a message of more than 300 characters is cut.
    """

    def __init__(self, message: str = "") -> None:
        super().__init__(_one_line(message))


@contextmanager
def naming(where: object) -> Iterator[None]:
    """Put ``where`` in front of the message of a `SentembError` that is raised inside."""
    try:
        yield
    except SentembError as error:
        raise SentembError(f"{where}: {error}") from error


def printable(text: str) -> str:
    """``text`` with every character escaped that could move the cursor or cannot be encoded."""
    if text.isprintable():
        return text
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode()
        for letter in text
    )


def _one_line(message: str) -> str:
    """``message`` as one printable line of at most `MAX_LETTERS`."""
    message = printable(message)
    if len(message) > MAX_LETTERS:
        # The place is at the start and the remedy at the end.
        half = (MAX_LETTERS - 3) // 2
        message = f"{message[:half]}...{message[-half:]}"
    return message
