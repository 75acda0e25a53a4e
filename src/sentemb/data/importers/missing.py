"""Cells such as NULL, which mark a missing value, and rows that sum up others."""

import re
from collections.abc import Iterable

# In small letters; NA alone counts in capitals only, because na is a word.
_MISSING = frozenset(
    {
        "null", "(null)", "<null>", "[null]", r"\n", "nan", "<nan>", "n/a", "#n/a", "<na>", "nat",
        "none", "(none)", "<none>", "nil", "undefined", "not set", "(not set)", "(not provided)",
        "(empty)", "(blank)", "(missing)", "#null!", "#ref!", "#value!", "#name?", "#div/0!",
        "-", "--", "---", "–", "—",
    }
)  # fmt: skip
_LONGEST = max(map(len, _MISSING))
# What cells begin with that may say it; most do not, and are looked at no further.
_STARTS = frozenset("NA \t\r\n\u00a0").union(*((word[0], word[0].upper()) for word in _MISSING))
_TOTAL = re.compile(
    r"(?:grand|sub|report|overall)?[ -]?(?:totals?|gesamt(?:summe)?|summen?|somme|suma|totales)"
    r"(?:\s*[:(–-].*)?",
    re.IGNORECASE,
)
_FIGURE = re.compile(r"[-+<>~]?[0-9][0-9.,'’\s\u00a0\u202f]*%?")


def is_missing(cell: str) -> bool:
    r"""Whether a cell marks a missing value, as NULL does; an empty cell does not.

    Examples
    --------
    >>> [is_missing(cell) for cell in ("NULL", r"\N", "(not set)", "", "nancy", "na")]
    [True, True, True, False, False, False]
    """
    if cell[:1] not in _STARTS or len(cell) > 2 * _LONGEST:
        return False
    bare = cell.strip()
    return bare.lower() in _MISSING or bare == "NA"


def is_total(cells: Iterable[str]) -> bool:
    """Whether the names in a row, without its figures, say that it sums up others.

    One of them says "total" and the others are empty or say the same.

    Examples
    --------
    >>> is_total(["Total: Search terms", "--"]), is_total(["total", "Total Quartz 5W-30"])
    (True, False)
    """
    there = [cell.strip() for cell in cells if cell.strip() and not is_missing(cell)]
    return bool(there) and all(_TOTAL.fullmatch(cell) for cell in there)


def is_total_row(cells: Iterable[str]) -> bool:
    """Whether a whole row sums up others: its cells are figures, empty, or say "total".

    A row of figures alone is a total too: it names nothing.
    """
    there = [cell.strip() for cell in cells if cell.strip() and not is_missing(cell)]
    names = [cell for cell in there if not _FIGURE.fullmatch(cell)]
    return bool(there) and all(_TOTAL.fullmatch(cell) for cell in names)


def missing_cells(count: int) -> str:
    """The note on cells that mark a missing value."""
    return f"cells such as NULL, (not set) or - were read as empty: {count:,}"
