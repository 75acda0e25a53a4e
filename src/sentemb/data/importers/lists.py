"""Cells that hold several values: lists in JSON, as Python or NumPy prints them, between bars."""

import json
import re
from collections.abc import Sequence
from typing import Any

# ['a', "b"], [1, 2] and, as NumPy prints it, ['a' 'b'].
_ITEM = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[-+\w.]+"""
_PRINTED = re.compile(rf"\[\s*(?:(?:{_ITEM})(?:\s*,\s*|\s+|(?=\])))*\]")
_ITEMS = re.compile(_ITEM)
_ESCAPED = re.compile(r"\\(.)")
_SEPARATORS = ("|", ";", ",", " ")
# As databases and programs write lists of words.
_BRACKETS, _AROUND = ("[]", "{}", "()"), " \t'\""


def listed_in(cell: str) -> list[str] | None:
    r"""The texts of a cell that is a list; None if it is one text.

    Examples
    --------
    >>> listed_in('["a", "b"]'), listed_in("['a' 'b']"), listed_in("[1, 2]"), listed_in("[]")
    (['a', 'b'], ['a', 'b'], ['1', '2'], [])
    >>> listed_in("[New] Red lamp [2 pieces]"), listed_in("a|b")
    (None, None)
    """
    bare = cell.strip()
    if not (bare.startswith("[") and bare.endswith("]")):
        return None
    try:
        values = json.loads(bare)
    except (ValueError, RecursionError):
        return _printed(bare)
    values = flat(values)
    if any(isinstance(value, dict) for value in values):
        return None
    return ["" if value is None else _text(value) for value in values]


def parts_of(cell: str) -> list[list[str]]:
    """The ways to read a cell as several ids with separators between them.

    Brackets around all of them, and quotes around each, are left out.

    Examples
    --------
    >>> parts_of("A|B"), parts_of('{A,"B"}'), parts_of("[A]"), parts_of("A")
    ([['A', 'B']], [['A', 'B']], [['A']], [])
    """
    bare = " ".join(cell.split())  # a cell may have lines
    is_enclosed = bare[:1] + bare[-1:] in _BRACKETS
    if is_enclosed:
        bare = bare[1:-1].strip()
    split = [bare.split(mark) for mark in _SEPARATORS if mark in bare]
    if is_enclosed and not split:
        split = [[bare]]
    return [[part for text in parts if (part := text.strip(_AROUND))] for parts in split]


def as_one_text(cell: str) -> str:
    """A field: the values of a list with commas between them, another text as it is.

    Examples
    --------
    >>> as_one_text("['Home', 'Light']"), as_one_text("Home|Light"), as_one_text("a | b")
    ('Home, Light', 'Home, Light', 'a | b')
    """
    values = listed_in(cell) if cell[:1] in "[ \t" else None
    if values is None and "|" in cell and " | " not in cell and "://" not in cell:
        values = cell.split("|")
    return cell if values is None else ", ".join(value.strip() for value in values if value.strip())


def flat(values: Sequence[Any]) -> list[Any]:
    """The values of a list, and of the lists in it."""
    inner, left = [], list(values[::-1])
    while left:
        value = left.pop()
        if isinstance(value, list):
            left += value[::-1]
        else:
            inner.append(value)
    return inner


def _printed(text: str) -> list[str] | None:
    if not _PRINTED.fullmatch(text):
        return None
    items = [item[0] for item in _ITEMS.finditer(text)]
    if len(items) == 1 and items[0][0] not in "'\"":  # [sale] is a word in brackets
        return None
    if any(item[0] not in "'\"" and not item.lstrip("-+")[:1].isdigit() for item in items):
        return None
    return [_ESCAPED.sub(r"\1", item[1:-1]) if item[0] in "'\"" else item for item in items]


def _text(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)
