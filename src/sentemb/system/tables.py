"""Tables for a terminal and for Markdown."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

_MARKDOWN_SIGNS = re.compile(r"([\\`*_\[\]<>|~#])")


def aligned(rows: Iterable[Sequence[str]], left: int = 1) -> Iterator[str]:
    """Lines of ``rows`` (lists of str): the first ``left`` columns flush left, the others right.

    Letters of East Asia are two columns wide on a terminal, combining marks none.
    """
    rows = [[visible(cell) for cell in row] for row in rows]
    widths = [max(map(_width, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            padding = " " * (width - _width(cell))
            cells.append(cell + padding if number < left else padding + cell)
        yield "  ".join(cells).rstrip()


def markdown_table(rows: Iterable[Sequence[str]], left: int = 1) -> Iterator[str]:
    """Lines of a Markdown table, the first of ``rows`` its head, aligned as by `aligned`."""
    head, *body = rows
    yield _markdown_row(head)
    yield _markdown_row(["---" if column < left else "--:" for column in range(len(head))])
    yield from map(_markdown_row, body)


def markdown_text(text: str) -> str:
    """``text`` so that Markdown shows it as it is."""
    return _MARKDOWN_SIGNS.sub(r"\\\1", visible(text))


def _markdown_row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def visible(text: str) -> str:
    """``text`` without control characters, which could move the cursor."""
    return "".join(letter for letter in text if letter.isprintable())


def value_text(value: object) -> str:
    """A field of a product as text: a truth as it is written in conditions, None as nothing."""
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def cut(text: str, columns: int) -> str:
    """``text``, shortened if it takes more columns of a terminal than there are."""
    if _width(text) <= columns:
        return text
    ends = accumulate(_width(letter) for letter in text)
    return text[: sum(end < columns for end in ends)] + "…"


def _width(text: str) -> int:
    """Columns that ``text`` takes on a terminal."""
    return sum(
        0
        if unicodedata.combining(letter)
        else 2
        if unicodedata.east_asian_width(letter) in "WF"
        else 1
        for letter in text
    )
