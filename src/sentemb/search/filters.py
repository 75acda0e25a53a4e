"""Conditions on the fields of products, such as ``stock > 0 and price < 50``.

A condition is read token by token and written again from these tokens. Only comparisons, arithmetic
and a few functions exist here, so that no statement, subquery or comment can come through.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches

from sentemb.errors import SentembError
from sentemb.system.bounds import brief, plain

# Types of columns.
INTEGER, REAL, TEXT = "INTEGER", "REAL", "TEXT"
_MOST_CHARACTERS = 1000
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*') | "(?P<quoted>[^"]*)" |
    (?P<number>(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?!\w)) | (?P<word>[^\W\d]\w*) |
    (?P<sign><=|>=|<>|!=|==|[-+*/%<>=(),])
    )\s*""",
    re.VERBOSE,
)
_WORDS = """
    and or not in between like glob escape is null isnull notnull true false collate nocase
    case when then else end
"""
_KEYWORDS = frozenset(_WORDS.split())
# What may come between the sides of a comparison.
_BETWEEN_VALUES = frozenset({"between", "in", "not"})
FUNCTIONS = frozenset({"abs", "coalesce", "length", "lower", "round", "upper"})


def checked_condition(condition: str, types: Mapping[str, str]) -> str:
    """A condition as SQL; ``types`` are the columns with their types.

    It may have columns, numbers, texts in single quotes, ``= <> < <= > >= + - * / %``, ``and``,
    ``or``, ``not``, ``in``, ``between``, ``like``, ``glob``, ``is null``, ``case``, `FUNCTIONS` and
    ``collate nocase``. A column with blanks in its name is in double quotes.

    Raises `SentembError` for anything else, for an unknown column, and for a column of texts that
    is compared with a number.
    """
    if len(condition) > _MOST_CHARACTERS:
        raise SentembError(
            f"the condition has {len(condition):,} characters; give at most {_MOST_CHARACTERS:,}"
        )
    tokens = list(_tokens(condition))
    if not tokens:
        raise SentembError("the condition is empty; write one such as stock > 0 and price < 50")
    following = [token for _, token in tokens[1:]] + [""]
    parts = [
        _as_sql(kind, token, after, types)
        for (kind, token), after in zip(tokens, following, strict=True)
    ]
    _check_numbers([kind for kind, _ in tokens], parts, types)
    return " ".join(parts)


def _check_numbers(kinds: list[str], parts: list[str], types: Mapping[str, str]) -> None:
    """Refuse a text next to a number: SQLite would compare their letters."""
    text: str | None = None
    number: str | None = None
    for kind, part in zip(kinds, parts, strict=True):
        column = part[1:-1] if part.startswith('"') else None
        if column is not None and types[column] == TEXT:
            text = column
        elif column is not None or kind == "number":
            number = column or part
        elif not (kind == "sign" and part != ")") and part.lower() not in _BETWEEN_VALUES:
            text = number = None
        if text is not None and number is not None:
            raise SentembError(
                f"{text} is text and cannot be compared with the number {number}; put the number "
                f"in single quotes, or make the index again with numbers in {text}"
            )


def _tokens(condition: str) -> Iterator[tuple[str, str]]:
    """The kind and the text of each token."""
    end = 0
    while condition[end:].strip():
        match = _TOKEN.match(condition, end)
        if match is None or "\0" in match[0]:
            raise SentembError(
                f"the condition cannot be read from {brief(condition[end:].strip())} on; write one "
                "such as stock > 0 and brand = 'Acme'"
            )
        end = match.end()
        assert match.lastgroup is not None
        yield match.lastgroup, match[match.lastgroup]


def _as_sql(kind: str, token: str, after: str, columns: Collection[str]) -> str:
    if kind == "quoted":
        return _quoted(known_column(token, columns))
    if kind != "word" or token.lower() in _KEYWORDS:
        return token
    if after == "(":
        if token.lower() in FUNCTIONS:
            return token
        raise SentembError(
            f"there is no function {plain(token)} in conditions; there are "
            f"{', '.join(sorted(FUNCTIONS))}"
        )
    return _quoted(known_column(token, columns))


def _quoted(column: str) -> str:
    return f'"{column}"'


def known_column(name: str, columns: Collection[str]) -> str:
    """The column with this name, in any case; a `SentembError` that names those alike if none."""
    by_lower = {column.lower(): column for column in columns}
    column = by_lower.get(name.lower())
    if column is not None:
        return column
    if name.lower() in ("id", "title"):
        fields = f"there are {', '.join(columns)}" if columns else "this index has none"
        raise SentembError(
            f"{name} is not a field; {fields}. The words of a title, or its id, are the query, and "
            "--only limits a search to some ids"
        )
    if not columns:
        raise SentembError(
            f"there is no column {plain(name)}: the index has titles only; keep columns with "
            "`sentemb import --fields` and make it again"
        )
    alike = [by_lower[close] for close in get_close_matches(name.lower(), by_lower, 1)]
    remedy = f"did you mean {alike[0]}?" if alike else f"there are {', '.join(columns)}"
    raise SentembError(f"there is no column {plain(name)}; {remedy}")


def sort_order(order: str, columns: Collection[str]) -> tuple[str, bool]:
    """The column of ``price``, ``price asc``, ``price desc`` or ``-price``; whether it falls."""
    name, falls = order.strip(), False
    if name.startswith("-"):
        name, falls = name[1:], True
    elif match := re.fullmatch(r"(.*\S)\s+(asc|desc)", name, re.IGNORECASE):
        name, falls = match[1], match[2].lower() == "desc"
    return known_column(name.strip().strip('"'), columns), falls
