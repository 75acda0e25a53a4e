"""Values of a request, read strictly: everything wrong is refused in one line with a remedy."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from urllib.parse import parse_qsl

from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_finite, is_integer
from sentemb.system.meant_names import meant

# Digits of a number in an address.
_DIGITS = 9
_PARAMETERS = 20
_SIDES = ("query", "document")


class Refusal(Exception):
    """A request that is not answered.

    ``status`` is that of HTTP, ``message`` names the fault and its remedy, and ``headers`` are
    those of the answer.
    """

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None) -> None:
        # The class escapes control characters and cuts what is too long.
        super().__init__(str(SentembError(message)))
        self.status, self.headers = status, dict(headers or {})


def parameters(query_string: bytes, names: Sequence[str]) -> dict[str, str]:
    """The parameters of an address: UTF-8, each once, only ``names``."""
    try:
        text = query_string.decode("ascii")
        pairs = parse_qsl(
            text,
            keep_blank_values=True,
            strict_parsing=bool(text),
            errors="strict",
            max_num_fields=_PARAMETERS,
        )
    except UnicodeDecodeError:
        raise Refusal(400, "the address is not valid UTF-8; encode it as UTF-8") from None
    except ValueError:
        raise Refusal(
            400, "the parameters of the address cannot be read; write ?name=value&name=value"
        ) from None
    values: dict[str, str] = {}
    for name, value in pairs:
        if name in values:
            raise Refusal(400, f"{brief(name)} is given twice; give it once")
        values[name] = value
    _only(values, names, "parameter")
    return values


def json_object(body: bytes, names: Sequence[str]) -> dict[str, Any]:
    """The JSON object of a body: UTF-8, each name once, only ``names``, no NaN."""
    try:
        value = json.loads(
            body.decode("utf-8"), object_pairs_hook=_each_once, parse_constant=_no_constant
        )
    except UnicodeDecodeError:
        raise Refusal(400, "the body is not valid UTF-8; encode it as UTF-8") from None
    except RecursionError:
        raise Refusal(400, "the JSON is nested too deeply; send one flat object") from None
    except json.JSONDecodeError as error:
        raise Refusal(
            400, f"the body is not JSON: {error.msg}, character {error.pos}; correct it"
        ) from None
    except ValueError:  # Python refuses to read integers of thousands of digits
        raise Refusal(400, "the JSON has a number of thousands of digits; shorten it") from None
    if not isinstance(value, dict):
        raise Refusal(400, f"the body is {_kind(value)}; send a JSON object, {{...}}")
    _only(value, names, "field")
    return value


def _each_once(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in pairs:
        if name in fields:
            raise Refusal(400, f"the field {brief(name)} is given twice; give it once")
        fields[name] = value
    return fields


def _no_constant(name: str) -> Any:
    raise Refusal(400, f"{name} is not JSON; send a finite number or null")


def _only(given: dict[str, Any], names: Sequence[str], what: str) -> None:
    for name in given:
        if name not in names:
            known, ours = ", ".join(names) or "none", meant(name, names)
            remedy = f"write {ours}; there is {known}" if ours else f"there is {known}"
            raise Refusal(400, f"unknown {what} {brief(name)}; {remedy}")


def _kind(value: object) -> str:
    """The name of the type of a JSON value."""
    if value is None:
        return "null"
    kinds = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    kinds |= {list: "a list", dict: "an object"}
    return kinds[type(value)]


def needed(given: dict[str, Any], name: str) -> Any:
    """The value of ``name``, which must be there."""
    if name not in given:
        raise Refusal(400, f"{name} is missing; add it")
    return given[name]


def text(name: str, value: object, most: int) -> str:
    """``value`` if it is a text of at most ``most`` characters that is valid Unicode."""
    if not isinstance(value, str):
        raise Refusal(400, f"{name} is {_kind(value)}; give a text")
    if len(value) > most:
        raise Refusal(400, f"{name} has {len(value):,} characters; give a text of at most {most:,}")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise Refusal(400, f"{name} has half of a surrogate pair; send valid Unicode") from None
    return value


def texts(name: str, value: object, count: int, most: int) -> list[str]:
    """``value`` if it is a list of 1 to ``count`` texts."""
    if not isinstance(value, list):
        raise Refusal(400, f"{name} is {_kind(value)}; give a list of texts")
    if not 1 <= len(value) <= count:
        raise Refusal(400, f"{name} has {len(value):,} texts; give 1 to {count:,} in one request")
    return [text(f"{name}[{index}]", entry, most) for index, entry in enumerate(value)]


def ids(name: str, value: object) -> list[str] | None:
    """``value`` if it is a list of ids, or null."""
    if value is None:
        return None
    if not isinstance(value, list):
        raise Refusal(400, f"{name} is {_kind(value)}; give a list of ids")
    for index, entry in enumerate(value):
        if not isinstance(entry, str):
            raise Refusal(400, f"{name}[{index}] is {_kind(entry)}; give an id as a text")
    return value


def count_in_address(name: str, value: str, most: int, least: int = 1) -> int:
    """An integer from ``least`` to ``most``, written in digits."""
    is_digits = value.isascii() and value.isdigit() and len(value) <= _DIGITS
    return count(name, int(value) if is_digits else value, most, least)


def count(name: str, value: object, most: int, least: int = 1) -> int:
    """``value`` if it is an integer from ``least`` to ``most``."""
    if not is_integer(value) or not least <= value <= most:
        raise Refusal(400, f"{name} is {brief(value)}; give an integer from {least} to {most:,}")
    return int(value)


def number(name: str, value: object) -> float | None:
    """``value`` if it is a finite number, or null."""
    if value is None:
        return None
    if not is_finite(value):
        raise Refusal(400, f"{name} is {brief(value)}; give a finite number")
    return float(value)


def side(value: object) -> str:
    """``value`` if it names a tower."""
    if value not in _SIDES:
        raise Refusal(400, f"side is {brief(value)}; give {' or '.join(_SIDES)}")
    return str(value)


def flag(name: str, value: object) -> bool:
    """``value`` if it is true or false."""
    if not isinstance(value, bool):
        raise Refusal(400, f"{name} is {_kind(value)}; give true or false")
    return value


def flag_in_address(name: str, value: str) -> bool:
    """``value`` if it is true or false, written in these words."""
    if value not in ("true", "false"):
        raise Refusal(400, f"{name} is {brief(value)}; give true or false")
    return value == "true"
