"""Columns of fields as a file has them: texts, of which some are numbers."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence

from sentemb.search.filters import BOOLEAN, INTEGER, REAL, TEXT
from sentemb.search.product_fields import ProductFields, Value

# Between digits: blanks of any width, and apostrophes.
_BLANKS, _APOSTROPHES = " \u00a0\u2007\u2009\u202f", "'\u2019"
_PLAIN = str.maketrans(dict.fromkeys(_BLANKS + _APOSTROPHES))
_WHOLE = r"(?:0|[1-9][0-9]*)"


def _grouped(mark: str) -> str:
    """Integers with separators of thousands, all of them the same."""
    signs = f"[{mark}{_BLANKS}{_APOSTROPHES}]"
    return rf"[1-9][0-9]{{0,2}}(?P<sign>{signs})[0-9]{{3}}(?:(?P=sign)[0-9]{{3}})*"


# The two ways to write a number: the sign of decimals, and that which separates thousands.
_SIGNS = {"point": (".", ","), "comma": (",", ".")}
_NUMBERS = {
    "point": rf"-?(?:{_WHOLE}(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{{1,3}})?|{_grouped(',')}(?:\.[0-9]+)?)",
    "comma": rf"-?(?:{_WHOLE}(?:,[0-9]+)?|{_grouped('.')}(?:,[0-9]+)?)",
}
# Texts, each followed by a line end, of one notation; an empty text fits any.
_NOTATIONS = {form: re.compile(rf"(?:(?:{number})?\n)*") for form, number in _NUMBERS.items()}
_TRUTHS = re.compile(r"(?:(?:true|false)?\n)*", re.IGNORECASE)
_INTEGERS = re.compile(r"(?:(?:-?(?:0|[1-9][0-9]{0,17}))?\n)*")
# One separator with three digits after it: a decimal in one notation, thousands in the other.
_UNCLEAR = re.compile(r"^-?[1-9][0-9]{0,2}([.,])[0-9]{3}$", re.MULTILINE)
_LONG = re.compile(r"^-?[0-9]{4,}$", re.MULTILINE)
_NOT_WHOLE = {"point": re.compile(r"[.eE]"), "comma": re.compile(r",")}
_HUGE = re.compile(rf"(?:[0-9][.,{_BLANKS}{_APOSTROPHES}]?){{19}}")
_NUMBER = re.compile(r"-?[0-9]+(?:[.,][0-9]+)*")
# Currencies next to a number; other units are part of a text, as in "250 ml".
_CURRENCIES = "".join(chr(code) for code in range(0x20A0, 0x20C1)) + "$£¥¤"
_CODES = """
    EUR USD GBP CHF JPY CNY PLN SEK NOK DKK CZK HUF RON BGN TRY RUB UAH INR AUD CAD NZD BRL MXN ARS
    CLP COP PEN ZAR KRW HKD SGD TWD THB IDR MYR PHP VND AED SAR ILS EGP
"""
_CURRENCY = re.compile(
    rf"[A-Z]{{0,3}}[{_CURRENCIES}]|(?:{'|'.join(_CODES.split())})|kr\.?|zł|Kč|Ft"
)


class FieldColumn:
    """A column that is read in portions; one that ``is_text`` has no numbers."""

    def __init__(self, name: str, is_text: bool = False) -> None:
        self.name, self.is_text = name, is_text
        self._are_integers, self._are_truths, self._is_huge = True, True, False
        self._notations = set(_NOTATIONS)
        # The signs that are unclear, and whether there are long integers without a separator.
        self._unclear: set[str] = set()
        self._has_long = False
        self._portions: list[str] = []

    def append(self, texts: Sequence[str]) -> None:
        """Append fields without line ends."""
        portion = "\n".join([*map(str.strip, texts), ""])
        self._portions.append(portion)
        self._are_truths = self._are_truths and _TRUTHS.fullmatch(portion) is not None
        if self._are_integers and _INTEGERS.fullmatch(portion):
            self._has_long = self._has_long or _LONG.search(portion) is not None
            return
        self._are_integers = False
        self._notations = {f for f in self._notations if _NOTATIONS[f].fullmatch(portion)}
        if self._notations:
            self._unclear.update(_UNCLEAR.findall(portion))
            self._has_long = self._has_long or _LONG.search(portion) is not None
            self._is_huge = self._is_huge or _HUGE.search(portion) is not None

    @property
    def _notation(self) -> str | None:
        """How the numbers of the column are written; None if they are texts, or nothing says it."""
        if len(self._notations) < 2 or not self._unclear:
            return max(self._notations, default=None)
        # Integers without separators say that there are none of thousands.
        if not self._has_long or len(self._unclear) == 2:
            return None
        return "comma" if "," in self._unclear else "point"

    def kind(self) -> str:
        """INTEGER, REAL, BOOLEAN or TEXT."""
        if self.is_text or not any(portion.strip() for portion in self._portions):
            return TEXT
        if self._are_integers:
            return INTEGER
        if self._are_truths:
            return BOOLEAN
        notation = self._notation
        if notation is None:
            return TEXT
        marks = _NOT_WHOLE[notation]
        is_whole = not self._is_huge and not any(map(marks.search, self._portions))
        return INTEGER if is_whole else REAL

    def values(self) -> Iterator[Value]:
        """The fields by their type; an empty one is None."""
        kind = self.kind()
        decimal, thousands = _SIGNS[self._notation or "point"]
        for portion in self._portions:
            if kind in (INTEGER, REAL):
                plain = portion.translate(_PLAIN).replace(thousands, "").replace(decimal, ".")
                yield from map(_integer if kind == INTEGER else _real, _texts(plain))
            elif kind == BOOLEAN:
                yield from (text.lower() == "true" if text else None for text in _texts(portion))
            else:
                yield from (text or None for text in _texts(portion))

    def without_currency(self) -> FieldColumn:
        """The same column with numbers, if each of its texts is one with the same currency."""
        texts = [text for portion in self._portions for text in _texts(portion)]
        first = next(filter(None, texts), "")
        currency = _CURRENCY.search(first)
        if self.is_text or self.kind() != TEXT or currency is None:
            return self
        unit = currency[0]
        if not all(text.startswith(unit) or text.endswith(unit) for text in texts if text):
            return self
        bare = FieldColumn(self.name)
        bare.append([text.removeprefix(unit).removesuffix(unit) for text in texts])
        if bare.kind() == TEXT:
            return self
        warnings.warn(
            f"{self.name} has numbers, which are kept without their unit {unit}", stacklevel=2
        )
        return bare

    def warn_if_numbers(self) -> None:
        """Warn that a column is text although most of its fields are numbers."""
        fields = [text for portion in self._portions for text in portion.split("\n") if text]
        texts = [text for text in fields if not _NUMBER.fullmatch(text)]
        if len(texts) < len(fields) / 2:
            warnings.warn(
                f"{self.name} is text and not a number because of {_wrong(fields)!r}; "
                + (f"{len(texts):,} of {len(fields):,} fields are not numbers" if texts else
                   "write numbers without separators of thousands or leading zeros, and 1.299 as "
                   "1.2990 if it is a decimal"),
                stacklevel=2,
            )  # fmt: skip


def _texts(portion: str) -> list[str]:
    return portion.split("\n")[:-1]


def _integer(text: str) -> int | None:
    return int(text) if text else None


def _real(text: str) -> float | None:
    number = float(text or math.nan)
    return number if math.isfinite(number) else None


def _wrong(texts: Sequence[str]) -> str:
    """The text that left no notation of numbers for a column, or the first with an unclear sign."""
    notations = set(_NOTATIONS)
    for text in texts:
        notations = {form for form in notations if _NOTATIONS[form].fullmatch(f"{text}\n")}
        if not notations:
            return text
    return next(text for text in texts if _UNCLEAR.search(text))


def fields_of(columns: Sequence[FieldColumn], count: int) -> ProductFields:
    """The fields of ``count`` products in ``columns``."""
    columns = [column.without_currency() for column in columns]
    for column in columns:
        if column.kind() == TEXT and not column.is_text:
            column.warn_if_numbers()
    types = {column.name: column.kind() for column in columns}
    rows = zip(*(column.values() for column in columns), strict=True)
    return ProductFields.of(types, count, rows)
