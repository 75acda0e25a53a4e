"""Lines of the text formats: checked when read, written as whole files."""

from collections.abc import Iterable, Iterator
from typing import AnyStr

from sentemb.errors import SentembError
from sentemb.system.files import numbered_lines, place_name, writing
from sentemb.system.paths import AnyPath


def clean_lines(path: AnyPath) -> Iterator[tuple[int, str]]:
    """Yield ``(number, text)`` like `sentemb.system.files.numbered_lines`, without byte-order mark.

    A NUL character raises a `SentembError` with line and column: it is never part of a text and
    usually means that the file is UTF-16 or not text at all.
    """
    for number, text in numbered_lines(path):
        if number == 1:
            text = text.removeprefix("\ufeff")
        if "\0" in text:
            raise SentembError(
                f"{place_name(path)}:{number}:{text.index(chr(0)) + 1}: a NUL character; "
                "save the file as UTF-8 text"
            )
        yield number, text


def without_blank_end(lines: Iterable[tuple[int, AnyStr]]) -> Iterator[tuple[int, AnyStr]]:
    """The numbered lines up to the last that holds anything: editors leave blank ones at the end.

    Blank lines before it stay, and their reader says what is missing there.
    """
    blank: list[tuple[int, AnyStr]] = []
    for number, text in lines:
        if not text.strip():
            blank.append((number, text))
            continue
        yield from blank
        blank.clear()
        yield number, text


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
