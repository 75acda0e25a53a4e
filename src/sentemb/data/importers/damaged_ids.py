"""Ids that a spreadsheet read as numbers: rounded, without their first zeros, or with decimals.

An id is only ever repaired towards the form that the catalogue has. A spreadsheet drops zeros and
adds none, so an id that begins with a zero was not changed.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from sentemb.data.importers.clean_texts import may_be_thousands

_ROUNDED = re.compile(r"([1-9])(?:[.,]([0-9]{1,15}))?[eE]\+?([0-9]{1,3})")
# Longer numbers are not ids.
_LONGEST = 100
# Without its first zeros, perhaps with decimals.
_NUMBER = re.compile(r"([1-9][0-9]*|0)(?:[.,]0+)?")


def is_rounded(id: str) -> bool:
    """Whether an id looks like 1,29E+05."""
    return _ROUNDED.fullmatch(id) is not None


@dataclass
class DamagedIds:
    """Finds the ids of a catalogue that damaged ids were before.

    repaired, ambiguous : rows whose id was repaired, and rows whose id several products fit
    example : the first repair or the first id that several products fit
    longer : the first id with zeros that the catalogue lacks: there a spreadsheet changed it
    """

    ids: Iterable[str]
    repaired: int = 0
    ambiguous: int = 0
    example: str = ""
    longer: str = ""
    _by_number: dict[str, str | None] | None = None
    _rounded: dict[int, dict[tuple[int, int], str | None]] = field(default_factory=dict)

    def repair(self, id: str) -> str:
        """The only id of the catalogue that ``id`` can have been; empty if there is not one."""
        if match := _ROUNDED.fullmatch(id):
            digits = match[1] + (match[2] or "")
            same = self._rounded_to(len(digits) - 1)
            repaired = same.get((int(match[3]), int(digits)), "")
        elif (match := _NUMBER.fullmatch(id)) and not may_be_thousands(id):
            repaired = self._numbers().get(match[1], "")
        else:
            if id[:1] == "0" and self._numbers().get(id.lstrip("0")) == id.lstrip("0"):
                self.longer = self.longer or id
            return ""
        if repaired == "":
            return ""
        self.example = self.example or (f"{id} for {repaired}" if repaired else id)
        self.repaired += repaired is not None
        self.ambiguous += repaired is None
        return repaired or ""

    def notes(self) -> Iterator[str]:
        """Notes for a user on the ids that were asked for."""
        if self.repaired or self.ambiguous:
            several = f", {self.ambiguous:,} could be several products" if self.ambiguous else ""
            yield (
                f"a spreadsheet changed ids into numbers: {self.repaired:,} rows were repaired"
                f"{several} ({self.example}); export the column as text"
            )
        if self.longer:
            yield (
                f"the id {self.longer} has zeros that the catalogue lacks; export the ids of the "
                "catalogue as text"
            )

    def _numbers(self) -> dict[str, str | None]:
        """The id of each number without its first zeros; None if several have it."""
        if self._by_number is None:
            self._by_number = {}
            for id in self.ids:
                if id.isdigit() and id.isascii() and len(id) < _LONGEST:
                    number = id.lstrip("0") or "0"
                    self._by_number[number] = None if number in self._by_number else id
        return self._by_number

    def _rounded_to(self, n_digits: int) -> dict[tuple[int, int], str | None]:
        """The id of each exponent and mantissa of ``n_digits`` decimals; None for several."""
        if n_digits not in self._rounded:
            rounded: dict[tuple[int, int], str | None] = {}
            for number, id in self._numbers().items():
                if number == "0":
                    continue
                exponent = len(number) - 1
                unit = 10 ** max(0, exponent - n_digits)
                mantissa = (2 * int(number) + unit) // (2 * unit)
                mantissa *= 10 ** max(0, n_digits - exponent)
                if mantissa >= 10 ** (n_digits + 1):
                    exponent, mantissa = exponent + 1, mantissa // 10
                key = (exponent, mantissa)
                rounded[key] = None if key in rounded else id
            self._rounded[n_digits] = rounded
        return self._rounded[n_digits]
