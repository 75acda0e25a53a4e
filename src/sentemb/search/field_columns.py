"""Columns of fields as a file has them: texts, of which some are numbers."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence

from sentemb.search.filters import BOOLEAN, INTEGER, REAL, TEXT
from sentemb.search.product_fields import ProductFields, Value

# Texts, each followed by a line end, of one type; an empty text fits any.
_FORMS = {
    "integer": re.compile(r"(?:(?:-?(?:0|[1-9][0-9]{0,17}))?\n)*"),
    "point": re.compile(
        r"(?:(?:-?(?:(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?"
        r"|[1-9][0-9]{0,2}(?:,[0-9]{3})+\.[0-9]+))?\n)*"
    ),
    "comma": re.compile(
        r"(?:(?:-?(?:(?:0|[1-9][0-9]*)(?:,[0-9]+)?"
        r"|[1-9][0-9]{0,2}(?:\.[0-9]{3})+,[0-9]+))?\n)*"
    ),
    # 1,299 and 1.299 may be decimals or have separators of thousands; 0,299 and 12,50 are decimals.
    "comma thousands": re.compile(r"(?:(?:-?[1-9][0-9]{0,2}(?:,[0-9]{3})*)?\n)*"),
    "point thousands": re.compile(r"(?:(?:-?[1-9][0-9]{0,2}(?:\.[0-9]{3})*)?\n)*"),
    "truth": re.compile(r"(?:(?:true|false)?\n)*", re.IGNORECASE),
}
# Forms that make a column one of decimals, unless it has the other form too.
_DECIMALS = {"point": "point thousands", "comma": "comma thousands"}
_NUMBER = re.compile(r"-?[0-9]+(?:[.,][0-9]+)*")


class FieldColumn:
    """A column that is read in portions; one that ``is_text`` has no numbers."""

    def __init__(self, name: str, is_text: bool = False) -> None:
        self.name, self.is_text = name, is_text
        self._forms = set(_FORMS)
        self._portions: list[str] = []

    def append(self, texts: Sequence[str]) -> None:
        """Append fields without line ends."""
        portion = "\n".join([*map(str.strip, texts), ""])
        self._forms = {form for form in self._forms if _FORMS[form].fullmatch(portion)}
        self._portions.append(portion)

    def kind(self) -> str:
        """INTEGER, REAL, BOOLEAN or TEXT."""
        if self.is_text or not any(portion.strip() for portion in self._portions):
            return TEXT
        if "integer" in self._forms:
            return INTEGER
        if "truth" in self._forms:
            return BOOLEAN
        forms = self._forms
        is_decimal = any(
            form in forms and unclear not in forms for form, unclear in _DECIMALS.items()
        )
        return REAL if is_decimal else TEXT

    def values(self) -> Iterator[Value]:
        """The fields by their type; an empty one is None."""
        kind = self.kind()
        thousands, decimal = (",", ".") if "point" in self._forms else (".", ",")
        for portion in self._portions:
            for text in portion.split("\n")[:-1]:
                if not text:
                    yield None
                elif kind == TEXT:
                    yield text
                elif kind == INTEGER:
                    yield int(text)
                elif kind == BOOLEAN:
                    yield text.lower() == "true"
                else:
                    number = float(text.replace(thousands, "").replace(decimal, "."))
                    yield number if math.isfinite(number) else None

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


def _wrong(texts: Sequence[str]) -> str:
    """The text that left no form of numbers for a column, or the first with an unclear sign."""
    forms = {"integer", *_DECIMALS}
    for text in texts:
        forms = {form for form in forms if _FORMS[form].fullmatch(f"{text}\n")}
        if not forms:
            return text
    return next(text for text in texts if not text.lstrip("-").isdigit())


def fields_of(columns: Sequence[FieldColumn], count: int) -> ProductFields:
    """The fields of ``count`` products in ``columns``."""
    for column in columns:
        if column.kind() == TEXT and not column.is_text:
            column.warn_if_numbers()
    types = {column.name: column.kind() for column in columns}
    rows = zip(*(column.values() for column in columns), strict=True)
    return ProductFields.of(types, count, rows)
