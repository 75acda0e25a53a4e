"""Expressions of a condition: each is a number, a text or a truth, and has its SQL.

A comparison is 1 or 0, also where a value is empty (NULL): an empty value is equal to nothing, and
neither above nor below anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from sentemb.errors import SentembError
from sentemb.system.bounds import plain

TRUTHS = {"true": "1", "false": "0"}
EQUAL, UNEQUAL, ORDER = ("=", "=="), ("<>", "!="), ("<", "<=", ">", ">=")
# A number in quotes.
_NUMERAL = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")


class ValueKind(StrEnum):
    """Kinds of values, as messages name them."""

    NUMBER = "a number"
    TEXT = "text"
    TRUTH = "true or false"


@dataclass(frozen=True)
class Expression:
    """An expression as SQL.

    kind : what its value is; None for a column without a value, which fits all
    sql : in parentheses wherever something may follow; NULL where the value is empty
    source : as it was written
    is_condition : whether ``sql`` is 1 or 0, never NULL
    literal : the text, if it is one in quotes, which is a number or a truth among such
    ignores_case : whether texts are compared with it without regard to the case of a to z
    """

    kind: ValueKind | None
    sql: str
    source: str
    is_condition: bool = False
    literal: str | None = None
    ignores_case: bool = False


def truth_of(expression: Expression) -> str:
    """An expression as SQL that is 1 or 0; a `SentembError` if it is a number or a text."""
    if expression.kind not in (ValueKind.TRUTH, None):
        raise SentembError(
            f"{plain(expression.source)} is {expression.kind} and not a condition; compare it, as "
            "in stock > 0 or brand = 'Acme'"
        )
    return expression.sql if expression.is_condition else f"({expression.sql} IS 1)"


def compared(left: Expression, sign: str, right: Expression) -> str:
    """A comparison with a sign, as SQL that is 1 or 0."""
    kind, (left_sql, right_sql) = alike(left, right) if sign in ORDER else equal(left, right)
    if sign in ORDER:
        check_order(kind, left, right)
    is_true = "IS NOT 1" if sign in UNEQUAL else "IS 1"
    compared = sign if sign in ORDER else "="
    return f"(({collated(left_sql, (left, right))} {compared} {right_sql}) {is_true})"


def alike(*given: Expression, kind: ValueKind | None = None) -> tuple[ValueKind | None, list[str]]:
    """The kind of some expressions, and each as SQL.

    Without ``kind`` it is that of the first that is not a text in quotes: such a text is a number
    among numbers and a truth among truths. Raises `SentembError` for two kinds.
    """
    named = next((each for each in given if each.kind and each.literal is None), None)
    if kind is None:
        is_text = any(each.literal is not None for each in given)
        kind = named.kind if named is not None else ValueKind.TEXT if is_text else None
    values = []
    for each in given:
        sql = _as(each, kind)
        if sql is None:
            raise _unlike(each, kind, named)
        values.append(sql)
    return kind, values


def equal(*given: Expression) -> tuple[ValueKind | None, list[str]]:
    """As `alike`, for values that are equal or not: an empty text is equal to an empty field."""
    kind, values = alike(*given)
    if kind == ValueKind.TEXT and any(each.literal == "" for each in given):
        values = [f"coalesce({sql}, '')" for sql in values]
    return kind, values


def _as(given: Expression, kind: ValueKind | None) -> str | None:
    """An expression as SQL of a kind; None if it is of another."""
    if kind in (None, given.kind) or given.kind is None:
        return given.sql
    if given.literal is not None:
        literal = given.literal.strip()
        if kind == ValueKind.NUMBER and _NUMERAL.fullmatch(literal):
            return numeral(literal)
        if kind == ValueKind.TRUTH:
            return TRUTHS.get(literal.lower())
    return None


def _unlike(given: Expression, kind: ValueKind | None, named: Expression | None) -> SentembError:
    """The error for an expression that is not of the ``kind`` of another that is ``named``."""
    if named is None or named is given:
        return SentembError(
            f"{plain(given.source)} is {given.kind}, but {kind} is needed there; correct it"
        )
    by_kind = {given.kind: given.source, kind: named.source}
    if by_kind.keys() == {ValueKind.TEXT, ValueKind.NUMBER} and given.literal is None:
        text, number = plain(by_kind[ValueKind.TEXT]), plain(by_kind[ValueKind.NUMBER])
        return SentembError(
            f"{text} is text and cannot be compared with the number {number}; make the index again "
            f"with numbers in {text}, or write {text} = '{number}' if that is a text"
        )
    return SentembError(
        f"{plain(named.source)} is {kind} and cannot be compared with {plain(given.source)}, which "
        f"is {given.kind}; compare values of one kind"
    )


def check_order(kind: ValueKind | None, *given: Expression) -> None:
    """Refuse to order truths, and texts by a number: as texts, '100' is below '50'."""
    if kind == ValueKind.TRUTH:
        raise SentembError(
            f"{' and '.join(plain(each.source) for each in given[:2])} are true or false, and "
            "neither is above the other; compare them with = or <>"
        )
    text = next(
        (each for each in given if each.kind == ValueKind.TEXT and each.literal is None), None
    )
    for each in given:
        if text and each.literal is not None and _NUMERAL.fullmatch(each.literal.strip()):
            raise SentembError(
                f"{plain(text.source)} is text and cannot be above or below the number "
                f"{plain(each.source)}; make the index again with numbers in {plain(text.source)}"
            )


def collated(sql: str, given: Sequence[Expression]) -> str:
    """The first of some expressions that are compared, with the collation that counts for all."""
    return f"({sql} COLLATE nocase)" if any(each.ignores_case for each in given) else sql


def numeral(text: str) -> str:
    """A number as SQL."""
    number = float(text)
    if not math.isfinite(number):
        raise SentembError(
            f"the number {plain(text)} in the condition is too large; give a smaller"
        )
    return repr(number)
