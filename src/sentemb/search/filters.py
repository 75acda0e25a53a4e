"""Conditions on the fields of products, such as ``stock > 0 and price < 50``.

A condition is read into expressions that are numbers, texts or truths, and each becomes SQL of its
own. Only comparisons, arithmetic and a few functions exist here, so that no statement, subquery or
comment can come through, and nothing is compared with something of another kind.

A comparison is true or false, also where a field is empty: an empty field is equal to nothing, and
neither above nor below anything. ``<>`` and everything with ``not`` is the opposite of the same
without it, so products without a brand are among those that are not of one brand.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple

from sentemb.errors import SentembError
from sentemb.search.expressions import (
    EQUAL,
    ORDER,
    TRUTHS,
    UNEQUAL,
    Expression,
    ValueKind,
    alike,
    check_order,
    collated,
    compared,
    equal,
    numeral,
    truth_of,
)
from sentemb.system.bounds import brief, plain

# Types of columns. All numbers of a condition are floats, so that what a condition finds depends on
# no other product.
INTEGER, REAL, TEXT, BOOLEAN = "INTEGER", "REAL", "TEXT", "BOOLEAN"
_KINDS = {
    INTEGER: ValueKind.NUMBER,
    REAL: ValueKind.NUMBER,
    TEXT: ValueKind.TEXT,
    BOOLEAN: ValueKind.TRUTH,
}
_MOST_CHARACTERS, MOST_PATTERN = 1000, 100
# Expressions in a condition, and how deep they may be in each other.
_MOST_EXPRESSIONS, _DEEPEST = 300, 12
_EXAMPLE = "write one such as stock > 0 and brand = 'Acme'"
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<text>'(?:[^']|'')*') | "(?P<quoted>[^"]*)" |
    (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w)) |
    (?P<word>[^\W\d]\w*) | (?P<sign><=|>=|<>|!=|==|[-+*/%<>=(),])
    )\s*""",
    re.VERBOSE,
)
_SURROGATE = re.compile("[\ud800-\udfff]")
_WORDS = """
    and or not in between like escape is null isnull notnull true false collate nocase
    case when then else end
"""
_KEYWORDS = frozenset(_WORDS.split())
_SIGNS = frozenset({*EQUAL, *UNEQUAL, *ORDER})
_COMPARISONS = _SIGNS | {"between", "in", "like", "is", "isnull", "notnull", "not"}


class _Token(NamedTuple):
    """A token, and its place in the condition.

    kind : text, quoted, number, word, keyword or sign
    text : what was written; a keyword in small letters, a name without its quotes
    """

    kind: str
    text: str
    begin: int
    end: int


@dataclass(frozen=True)
class _Function:
    """Kinds of arguments and result, and how many arguments there may be.

    Without kinds all arguments are of the kind of the result.
    """

    takes: tuple[ValueKind, ...]
    gives: ValueKind | None
    least: int


_FUNCTIONS = {
    "abs": _Function((ValueKind.NUMBER,), ValueKind.NUMBER, 1),
    "coalesce": _Function((), None, 2),
    "length": _Function((ValueKind.TEXT,), ValueKind.NUMBER, 1),
    "lower": _Function((ValueKind.TEXT,), ValueKind.TEXT, 1),
    "round": _Function((ValueKind.NUMBER, ValueKind.NUMBER), ValueKind.NUMBER, 1),
    "upper": _Function((ValueKind.TEXT,), ValueKind.TEXT, 1),
}
FUNCTIONS = frozenset(_FUNCTIONS)


def checked_condition(condition: str, types: Mapping[str, str | None]) -> str:
    """A condition as SQL; ``types`` are the columns with their types, None where all are empty.

    It may have columns, numbers, texts in single quotes, ``true``, ``false``, ``= <> < <= > >=
    + - * / %``, ``and``, ``or``, ``not``, ``in``, ``between``, ``like`` with ``escape``, ``is
    null``, ``is true``, ``case``, the functions abs, coalesce, length, lower, round and upper, and
    ``collate nocase``. A column with blanks in its name is in double quotes.

    Raises `SentembError` for anything else, for an unknown column, and for a comparison of two
    kinds, such as a text with a number.
    """
    if len(condition) > _MOST_CHARACTERS:
        raise SentembError(
            f"the condition has {len(condition):,} characters; give at most {_MOST_CHARACTERS:,}"
        )
    return _Reader(condition, types).condition()


class _Reader:
    """Reads a condition from left to right, by recursive descent."""

    def __init__(self, condition: str, types: Mapping[str, str | None]) -> None:
        self._text, self._types = condition, types
        self._tokens = list(_tokens(condition))
        self._at = self._depth = self._count = 0

    def condition(self) -> str:
        """The whole condition as SQL."""
        if not self._tokens:
            raise SentembError("the condition is empty; write one such as stock > 0 and price < 50")
        expression = self._either()
        if self._at < len(self._tokens):
            raise self._wrong()
        return truth_of(expression)

    # -- tokens -------------------------------------------------------------------------------

    @property
    def _next(self) -> str:
        """The next token if it is a sign or a keyword; otherwise empty."""
        token = self._tokens[self._at] if self._at < len(self._tokens) else None
        return token.text if token is not None and token.kind in ("sign", "keyword") else ""

    def _has(self, *words: str) -> bool:
        """Whether the next tokens are these, which are passed then."""
        before = self._at
        for word in words:
            if self._next != word:
                self._at = before
                return False
            self._at += 1
        return True

    def _expect(self, word: str) -> None:
        if not self._has(word):
            raise self._wrong(f"; {word} is missing")

    def _wrong(self, what: str = "") -> SentembError:
        names = {name.lower(): name for name in self._types}
        for token in self._tokens[: self._at + 1]:
            if token.kind == "keyword" and token.text in names:
                what = f"; write the column {token.text} in double quotes"
        if self._at == len(self._tokens):
            return SentembError(f"the condition is wrong: it ends too early{what}; {_EXAMPLE}")
        rest = self._text[self._tokens[self._at].begin :]
        return SentembError(
            f"the condition is wrong from {brief(rest.strip())} on{what}; {_EXAMPLE}"
        )

    def _since(self, first: int) -> str:
        """The text from a token to the last that was passed."""
        return self._text[self._tokens[first].begin : self._tokens[self._at - 1].end]

    def _made(self, first: int, kind: ValueKind | None, sql: str, **facts: object) -> Expression:
        self._count += 1
        if self._count > _MOST_EXPRESSIONS:
            raise SentembError(
                f"the condition has more than {_MOST_EXPRESSIONS} parts; write a shorter one"
            )
        return Expression(kind, sql, self._since(first), **facts)  # type: ignore[arg-type]

    # -- conditions ---------------------------------------------------------------------------

    def _joined(self, word: str, read: Callable[[], Expression]) -> Expression:
        """One or more conditions with ``word`` between them."""
        first, expression = self._at, read()
        while self._has(word):
            sql = f"({truth_of(expression)} {word.upper()} {truth_of(read())})"
            expression = self._made(first, ValueKind.TRUTH, sql, is_condition=True)
        return expression

    def _either(self) -> Expression:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise SentembError(
                f"the condition has more than {_DEEPEST} parentheses in each other; leave some out"
            )
        expression = self._joined("or", self._all)
        self._depth -= 1
        return expression

    def _all(self) -> Expression:
        return self._joined("and", self._opposite)

    def _opposite(self) -> Expression:
        first, is_opposite = self._at, False
        while self._has("not"):
            is_opposite = not is_opposite
        is_bare = self._at == first
        expression = self._compared()
        if is_bare:
            return expression
        sql = truth_of(expression)
        return self._made(
            first, ValueKind.TRUTH, f"(NOT {sql})" if is_opposite else sql, is_condition=True
        )

    def _compared(self) -> Expression:
        """A sum, or a comparison of sums."""
        first, left = self._at, self._sum()
        if self._next not in _COMPARISONS:
            return left
        second = self._at + 1
        expression = self._comparison(first, left)
        if self._next in _COMPARISONS:
            raise self._chained(first, second)
        return expression

    def _chained(self, first: int, second: int) -> SentembError:
        """The error for ``1 < price < 50``; the second expression begins at ``second``."""
        begun, middle, following = self._since(first), self._since(second), self._at
        remedy = "put one of the comparisons in parentheses"
        if {self._next, self._tokens[second - 1].text} <= _SIGNS:
            self._at += 1
            self._sum()
            remedy = f"write {begun} and {middle} {self._since(following)}"
        return SentembError(
            f"comparisons cannot follow each other as after {plain(begun)}; {remedy}"
        )

    def _comparison(self, first: int, left: Expression) -> Expression:
        sign = self._next
        if sign in _SIGNS:
            self._at += 1
            sql = compared(left, sign, self._sum())
            return self._made(first, ValueKind.TRUTH, sql, is_condition=True)
        if self._has("is"):
            is_not = self._has("not")
            sql = self._is(left)
        elif sign in ("isnull", "notnull"):
            self._at += 1
            is_not, sql = sign == "notnull", f"({left.sql} IS NULL)"
        elif self._has("not", "null"):
            is_not, sql = True, f"({left.sql} IS NULL)"
        else:
            is_not = self._has("not")
            sql = self._contained(left)
        return self._made(
            first, ValueKind.TRUTH, f"(NOT {sql})" if is_not else sql, is_condition=True
        )

    def _is(self, left: Expression) -> str:
        if self._has("null"):
            return f"({left.sql} IS NULL)"
        return compared(left, "=", self._sum())

    def _contained(self, left: Expression) -> str:
        if self._has("between"):
            low = self._sum()
            self._expect("and")
            high = self._sum()
            kind, (left_sql, *ends) = alike(left, low, high)
            check_order(kind, left, low, high)
            left_sql = collated(left_sql, (left, low, high))
            return f"(({left_sql} BETWEEN {ends[0]} AND {ends[1]}) IS 1)"
        if self._has("in"):
            values = self._arguments()
            _, (left_sql, *values_sql) = equal(left, *values)
            return f"(({collated(left_sql, (left, *values))} IN ({', '.join(values_sql)})) IS 1)"
        self._expect("like")
        _, (left_sql,) = alike(left, kind=ValueKind.TEXT)
        pattern = self._quoted_text("like", MOST_PATTERN)
        escape = ""
        if self._has("escape"):
            escape = f" ESCAPE {self._quoted_text('escape', 1)}"
        return f"(({left_sql} LIKE {pattern}{escape}) IS 1)"

    def _quoted_text(self, word: str, most: int) -> str:
        """A text in single quotes that follows a keyword."""
        at = self._at
        expression = self._value()
        if expression.literal is None or not 0 < len(expression.literal) <= most:
            self._at = at
            many = "one character" if most == 1 else f"1 to {most} characters"
            raise self._wrong(f"; after {word} there is a text of {many} in single quotes")
        return expression.sql

    # -- values -------------------------------------------------------------------------------

    def _sum(self) -> Expression:
        return self._operated(("+", "-"), self._product)

    def _product(self) -> Expression:
        return self._operated(("*", "/", "%"), self._signed)

    def _operated(self, signs: tuple[str, ...], read: Callable[[], Expression]) -> Expression:
        first, expression = self._at, read()
        while self._next in signs:
            sign = self._next
            self._at += 1
            _, (left, right) = alike(expression, read(), kind=ValueKind.NUMBER)
            expression = self._made(first, ValueKind.NUMBER, f"({left} {sign} {right})")
        return expression

    def _signed(self) -> Expression:
        first, falls = self._at, False
        while self._next in ("+", "-"):
            falls ^= self._next == "-"
            self._at += 1
        is_bare = self._at == first
        expression = self._value()
        if is_bare:
            return expression
        _, (sql,) = alike(expression, kind=ValueKind.NUMBER)
        return self._made(first, ValueKind.NUMBER, f"(- {sql})" if falls else sql)

    def _value(self) -> Expression:
        """A column, a number, a text, a call or what is in parentheses; and its collation."""
        first = self._at
        expression = self._primary()
        while self._has("collate"):
            self._expect("nocase")
            _, (sql,) = alike(expression, kind=ValueKind.TEXT)
            expression = self._made(
                first, expression.kind, sql, literal=expression.literal, ignores_case=True
            )
        return expression

    def _primary(self) -> Expression:
        if self._at == len(self._tokens):
            raise self._wrong()
        first, token, word = self._at, self._tokens[self._at], self._next
        if word == "case":
            return self._case()
        if word == "(":
            self._at += 1
            expression = self._either()
            self._expect(")")
            return expression
        if word in TRUTHS:
            self._at += 1
            return self._made(first, ValueKind.TRUTH, TRUTHS[word], is_condition=True)
        if word == "null":
            raise self._wrong("; write is null or is not null")
        if word:
            raise self._wrong()
        self._at += 1
        if token.kind == "text":
            literal = token.text[1:-1].replace("''", "'")
            return self._made(first, ValueKind.TEXT, token.text, literal=literal)
        if token.kind == "number":
            return self._made(first, ValueKind.NUMBER, numeral(token.text))
        if token.kind == "word" and self._next == "(":
            return self._call(first, token.text)
        column = self._column(first, token.text)
        kind = self._types[column]
        # A cast, since an index may have integers where another, searched with it, has decimals.
        sql = f'CAST("{column}" AS REAL)' if kind in (INTEGER, REAL) else f'"{column}"'
        return self._made(first, None if kind is None else _KINDS[kind], sql)

    def _column(self, first: int, name: str) -> str:
        """The column with a name, which may be a text that lacks its quotes."""
        try:
            return known_column(name, self._types)
        except SentembError as error:
            is_compared = first > 0 and self._tokens[first - 1].text in _SIGNS
            if not is_compared:
                raise
            if (asked := str(error)).endswith("?"):
                raise SentembError(f"{asked[:-1]}, or the text '{name}'?") from None
            raise SentembError(f"{error}; if it is a text, write '{name}'") from None

    def _arguments(self) -> list[Expression]:
        """Values in parentheses, with commas between them."""
        self._expect("(")
        values = [self._either()]
        while self._has(","):
            values.append(self._either())
        self._expect(")")
        return values

    def _call(self, first: int, name: str) -> Expression:
        function = _FUNCTIONS.get(name.lower())
        if function is None:
            raise SentembError(
                f"there is no function {plain(name)} in conditions; there are "
                f"{', '.join(sorted(_FUNCTIONS))}"
            )
        given = self._arguments()
        most = len(function.takes) or len(given)
        if not function.least <= len(given) <= most:
            counts = " or ".join(map(str, range(function.least, max(function.least, most) + 1)))
            and_more = "" if function.takes else " or more"
            raise SentembError(
                f"{name} has {len(given)} values in the condition; give it {counts}{and_more}"
            )
        kind = function.gives
        if function.takes:
            values = [
                alike(each, kind=takes)[1][0]
                for each, takes in zip(given, function.takes, strict=False)
            ]
        else:
            kind, values = alike(*given)
        ignores_case = any(each.ignores_case for each in given)
        sql = f"{name.lower()}({', '.join(values)})"
        return self._made(first, kind, sql, ignores_case=ignores_case)

    def _case(self) -> Expression:
        first = self._at
        self._expect("case")
        subject = None if self._next == "when" else self._either()
        tests, values = [], []
        while self._has("when"):
            tests.append(self._either())
            self._expect("then")
            values.append(self._either())
        if not tests:
            raise self._wrong("; when is missing")
        has_else = self._has("else")
        if has_else:
            values.append(self._either())
        self._expect("end")
        begun = "CASE"
        if subject is None:
            whens = [truth_of(test) for test in tests]
        else:
            _, (left_sql, *whens) = equal(subject, *tests)
            begun += f" {collated(left_sql, (subject, *tests))}"
        kind, results = alike(*values)
        for when, result in zip(whens, results, strict=False):
            begun += f" WHEN {when} THEN {result}"
        ending = f" ELSE {results[-1]}" if has_else else ""
        ignores_case = any(each.ignores_case for each in values)
        return self._made(first, kind, f"({begun}{ending} END)", ignores_case=ignores_case)


# -- tokens and names ------------------------------------------------------------------------------


def _tokens(condition: str) -> Iterator[_Token]:
    end = 0
    while condition[end:].strip():
        match = _TOKEN.match(condition, end)
        if match is None or "\0" in match[0] or _SURROGATE.search(match[0]):
            raise SentembError(
                f"the condition cannot be read from {brief(condition[end:].strip())} on; {_EXAMPLE}"
            )
        kind, end = str(match.lastgroup), match.end()
        text, (begin, after) = match[kind], match.span(kind)
        if kind == "word" and text.lower() in _KEYWORDS:
            kind, text = "keyword", text.lower()
        yield _Token(kind, text, begin, after)


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
