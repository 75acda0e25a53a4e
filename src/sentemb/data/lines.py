"""Lines of the text formats: checked when read, written as whole files."""

from collections.abc import Iterable, Iterator
from typing import AnyStr

from sentemb.errors import SentembError
from sentemb.system.files import numbered, place_name, text_portions, writing
from sentemb.system.paths import AnyPath


def clean_portions(path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """Yield ``(number, lines)`` like `sentemb.system.files.text_portions`, without byte-order mark.

    A NUL character raises a `SentembError` with line and column, once the lines before are yielded:
    it is never part of a text and usually means that the file is UTF-16 or not text at all.
    """
    for first, lines in text_portions(path):
        if first == 1:
            lines[0] = lines[0].removeprefix("\ufeff")
        wrong = next((k for k, text in enumerate(lines) if "\0" in text), None)
        if lines[:wrong]:
            yield first, lines[:wrong]
        if wrong is not None:
            raise SentembError(
                f"{place_name(path)}:{first + wrong}:{lines[wrong].index(chr(0)) + 1}: a NUL "
                "character; save the file as UTF-8 text"
            )


def clean_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """Yield ``(number, text)`` for each line of a text file, as `clean_portions` reads it."""
    return numbered(clean_portions(path))


def without_blank_end(
    portions: Iterable[tuple[int, list[AnyStr]]],
) -> Iterator[tuple[int, list[AnyStr]]]:
    """Lines up to the last that holds anything: editors leave blank ones at the end.

    ``portions`` are ``(number of the first, lines)``. Blank lines before the end stay, and their
    reader says what is missing there.
    """
    blank: list[AnyStr] = []
    for first, lines in portions:
        n = len(lines)
        while n and not lines[n - 1].strip():
            n -= 1
        if n:
            yield first - len(blank), blank + lines[:n]
            blank = []
        blank += lines[n:]


def content_portions(path: AnyPath) -> Iterator[tuple[int, list[str]]]:
    """`clean_portions` up to the last line that holds anything."""
    return without_blank_end(clean_portions(path))


def content_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """`clean_lines` up to the last that holds anything."""
    return numbered(content_portions(path))


def write_lines(path: AnyPath, lines: Iterable[str]) -> None:
    """Write ``lines``, each followed by a line end, as UTF-8; either the whole file or nothing.

    A ``.gz`` file is compressed without a time stamp, so equal lines give equal files; ``-`` is
    standard output. Lines that are not valid Unicode raise a `SentembError`.
    """
    encoded = (f"{line}\n".encode() for line in lines)
    try:
        with writing(path) as file:
            file.writelines(encoded)
    except UnicodeEncodeError as error:
        raise SentembError(
            f"{path}: cannot be written as UTF-8 ({error}); correct the text"
        ) from error


def is_id(text: str) -> bool:
    """Whether ``text`` can be an id in a TREC file: not empty, no white space, no NUL."""
    return text.split() == [text] and "\ufeff" not in text and "\0" not in text
