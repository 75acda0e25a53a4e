"""Checks of numbers and names that come from outside, made before any work starts."""

import math
import numbers
import re
from typing import TypeGuard

from sentemb.errors import SentembError

# Characters of a value that a message quotes.
_QUOTED = 40
MAX_SEED = 2**63 - 1
MAX_THREADS = 1024
_SURROGATE = re.compile("[\ud800-\udfff]")


def brief(value: object) -> str:
    """``value`` as messages quote it: its `repr` on one line, cut if it is long."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to write integers of thousands of digits
        return "an integer of thousands of digits"
    return text if len(text) <= _QUOTED else f"{text[:_QUOTED]}..."


def plain(text: str) -> str:
    """An id or a name as messages show it: escaped if it cannot be printed, cut if it is long.

    Most are shown unchanged, without quotation marks.
    """
    if len(text) > _QUOTED or not text.isprintable():
        return brief(text)
    return text


def valid_unicode(text: str) -> str:
    """``text`` without halves of surrogate pairs, as names that are not UTF-8 have them."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def whole(name: str, value: object, least: int, most: int) -> int:
    """``value`` as int; a `SentembError` unless it is an integer from ``least`` to ``most``."""
    # `is_integer` takes longer than a comparison of types.
    if not (type(value) is int or is_integer(value)) or not least <= value <= most:
        raise SentembError(f"{name} is {brief(value)}; give an integer from {least:,} to {most:,}")
    return int(value)


def positive(name: str, value: object, most: float) -> float:
    """``value``; a `SentembError` unless it is a number above 0 and at most ``most``."""
    if not is_number(value) or not 0 < value <= most:
        raise SentembError(f"{name} is {brief(value)}; give a number above 0, at most {most:g}")
    return value


def number(name: str, value: object, least: float, most: float = math.inf) -> float:
    """``value``; a `SentembError` unless it is a number from ``least`` to ``most``."""
    if not is_number(value) or not least <= value <= most:
        limits = f"of at least {least:g}" if most == math.inf else f"from {least:g} to {most:g}"
        raise SentembError(f"{name} is {brief(value)}; give a number {limits}")
    return value


def share(name: str, value: object) -> float:
    """``value``; a `SentembError` unless it is a number from 0 to 1."""
    if not is_number(value) or not 0 <= value <= 1:
        raise SentembError(f"{name} is {brief(value)}; give a share from 0 to 1")
    return value


def is_integer(value: object) -> TypeGuard[int]:
    """Whether ``value`` is an integer of Python or NumPy; True and False are not."""
    return isinstance(value, numbers.Integral) and not isinstance(value, bool)


def is_finite(value: object) -> TypeGuard[int | float]:
    """Whether ``value`` is an int or float that a float can hold; NaN and infinity are not."""
    try:
        # isinstance would let True in, and the type checker follows nothing else.
        return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]
    except OverflowError:
        return False


def is_number(value: object) -> TypeGuard[float]:
    """Whether ``value`` is a number that is not NaN; True and False are not."""
    return isinstance(value, numbers.Real) and not isinstance(value, bool) and bool(value == value)
