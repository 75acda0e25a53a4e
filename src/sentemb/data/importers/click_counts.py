"""Numbers of clicks, as tables write them.

Clicks are integers. ``1,234,567``, ``1.234.567``, ``1 234 567`` and ``1'234'567`` are read for what
they are. ``1.234`` and ``1.000`` are thousands in some countries and decimals in others: there the
other cells of the column decide.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from sentemb.data.click_log import MAX_CLICKS
from sentemb.data.column_names import is_no_click
from sentemb.data.importers.missing import is_missing
from sentemb.errors import SentembError
from sentemb.system.bounds import brief

# Flags in some languages, and the labels of ESCI: an exact match is what somebody would click.
_FLAGS = {
    True: "true yes y t on x clicked click exact e wahr ja j vrai oui verdadero sí si vero sì sim"
    " verdadeiro waar prawda tak sant правда истина да はい 是 ✓ ✔ ☑ ✅",
    False: "false no n f off unclicked skipped substitute s complement c irrelevant i falsch nein"
    " faux non falso não nao onwaar nee fałsz nie falskt nej ложь нет いいえ 否 ✗ ✘ ☐ ❌",
}
# Kinds of events that are clicks; of names in camel case the words; what was clicked in a search.
_CLICK = re.compile(r"(?:\w*[ _-])?(?:clicks?|clicked)(?:[ _-]\w*)*|select[ _]item")
_NEW_WORD = re.compile(r"(?<=[a-zà-ÿ])(?=[A-Z])")
_FOUND = re.compile(r"search(?:es)?[ _-]?(?=(?:results?|items?|products?|hits?)(?![a-z]))")
# A column of events has no more kinds of words, and no larger share of different ones.
_MOST_KINDS, _DIFFERENT = 50, 0.5
_YES, _NO = (frozenset(_FLAGS[flag].split()) for flag in (True, False))
_OTHER = {".": ",", ",": "."}
# No-break and thin blanks, and other apostrophes.
_PLAIN = str.maketrans("\u00a0\u2007\u2009\u202f\u2019\u02bc", "    ''")
# An integer, perhaps with separators of thousands, or of lakhs, and decimals that are zeros.
_INTEGER = re.compile(
    r"(?P<whole>[0-9]+|[1-9][0-9]{0,2}(?P<mark>[.,' ])[0-9]{3}(?:(?P=mark)[0-9]{3})*"
    r"|[1-9][0-9]?(?P<lakhs>,)[0-9]{2}(?:,[0-9]{2})*,[0-9]{3})(?P<decimals>[.,]0*)?"
)
# Thousands or a decimal: one separator with three digits after it.
_UNCLEAR = re.compile(r"([1-9][0-9]{0,2})([.,])([0-9]{3})")
_DECIMAL = re.compile(r"[0-9]+([.,])[0-9]+")
_NO_DIGIT = re.compile("[^0-9]")
_MOST_DIGITS = len(str(MAX_CLICKS))


class ClickCells:
    """Reads the cells of a column of clicks.

    guessed : the first cell that nothing else in the column decides, such as 1.000; or None
    unknown_kinds : kinds of events that are not known, in a column where others are clicks
    are_events : whether the column has kinds of events, some of them clicks; once it was looked at
    """

    def __init__(self) -> None:
        self.guessed: str | None = None
        self.unknown_kinds: set[str] = set()
        self.are_events = False
        self._kinds: set[str] = set()
        # Whether a sign separates thousands, once the column was looked at; None if it cannot say.
        self._thousands: dict[str, bool | None] | None = None
        self._seen: set[str] = set()

    def is_unclear(self, cell: str) -> bool:
        """Whether a cell can only be read once `look_at` has seen its column."""
        if self._thousands is not None:
            return False
        bare = cell.strip()
        return _UNCLEAR.fullmatch(bare) is not None or (_is_word(bare) and _is_click(bare) is None)

    def notice(self, cells: Iterable[str]) -> None:
        """Keep what cells tell, for a column that can be read only once."""
        if self._thousands is None:
            for cell in cells:
                bare = cell.strip()
                self._seen.update(_kinds(bare))
                if len(self._kinds) <= _MOST_KINDS and bare[:1].isalpha():
                    self._kinds.add(bare)

    def look_at(self, cells: Iterable[str]) -> None:
        """Decide from all cells of the column what a point and a comma are."""
        self.notice(cells)
        self._thousands = {mark: _are_thousands(mark, self._seen) for mark in _OTHER}
        self.are_events = len(self._kinds) <= _MOST_KINDS and any(map(_is_click, self._kinds))

    def read(self, cell: str) -> int:
        """The number of clicks in a cell; 0 if it is empty or marks a missing value.

        Raises `SentembError`, without a place, for what is neither an integer from 0 nor a flag.
        """
        # int() alone would also accept signs, underscores and digits of other scripts.
        if cell.isdigit() and cell.isascii() and len(cell) < _MOST_DIGITS:
            return int(cell)
        bare = cell.strip().lower()
        if not bare or is_missing(cell):
            return 0
        if bare in _YES or bare in _NO:
            return int(bare in _YES)
        if bare[:1].isalpha():
            is_click = _is_click(cell)
            if is_click is None and self.are_events:
                self.unknown_kinds.add(bare)
                is_click = False
            if is_click is not None:
                return int(is_click)
        digits = self._digits(bare.translate(_PLAIN))
        if len(digits) > _MOST_DIGITS or not digits or int(digits) > MAX_CLICKS:
            raise SentembError(
                f"the clicks {brief(cell)} are not an integer from 0 or a flag such as true; "
                "correct the row or name another column"
            )
        return int(digits)

    def _digits(self, bare: str) -> str:
        """The digits of the integer in a cell; empty if it is none."""
        if match := _UNCLEAR.fullmatch(bare):
            whole, mark, rest = match.groups()
            are_thousands = (self._thousands or {}).get(mark)
            if are_thousands is None:  # the ordinary way
                are_thousands = mark == ","
                self.guessed = self.guessed or bare
            if are_thousands:
                return whole + rest
            return "" if rest.strip("0") else whole
        match = _INTEGER.fullmatch(bare)
        if match is None or match["mark"] == (match["decimals"] or "x")[0]:
            return ""
        return _NO_DIGIT.sub("", match["whole"])


def tells_clicks(cells: Sequence[str]) -> bool:
    """Whether cells are a few kinds of events, of which some are clicks and some are not."""
    kinds = {cell.strip() for cell in cells}
    is_few = len(kinds) <= min(_MOST_KINDS, _DIFFERENT * len(cells))
    return is_few and {True, False} <= set(map(_is_click, kinds))


def _is_word(bare: str) -> bool:
    """Whether a cell begins with a letter, and is neither a flag nor marks a missing value."""
    flag = bare.lower()
    return bare[:1].isalpha() and flag not in _YES and flag not in _NO and not is_missing(bare)


def _is_click(kind: str) -> bool | None:
    """Whether a kind of event is a click; None for any other text."""
    kind = _NEW_WORD.sub(" ", kind.strip()).lower()
    if "click" in kind:
        kind = _FOUND.sub("", kind)
    return False if is_no_click(kind) else True if _CLICK.fullmatch(kind) else None


def _are_thousands(mark: str, seen: set[str]) -> bool | None:
    """Whether ``mark`` separates thousands in a column with cells of these kinds."""
    thousands = {f"{mark} separates", f"{_OTHER[mark]} is decimal"} & seen
    decimal = {f"{mark} is decimal", f"{_OTHER[mark]} separates"} & seen
    if bool(thousands) != bool(decimal):
        return bool(thousands)
    if f"{mark} before digits" in seen:  # decimals of an integer are zeros
        return True
    if "long" in seen:  # integers without separators
        return False
    return True if "short" in seen else None


def _kinds(cell: str) -> Iterator[str]:
    """Evidence of a cell on the signs of its column."""
    if cell.isdigit():
        yield "long" if len(cell) > 3 else "short"
    elif match := _UNCLEAR.fullmatch(cell):
        if match[3] != "000":
            yield f"{match[2]} before digits"
    elif match := _INTEGER.fullmatch(cell):
        if mark := match["mark"] or match["lakhs"]:
            yield f"{mark} separates"
        if match["decimals"]:
            yield f"{match['decimals'][0]} is decimal"
    elif match := _DECIMAL.fullmatch(cell):
        yield f"{match[1]} is decimal"
