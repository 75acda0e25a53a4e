"""Cells such as NULL, which mark a missing value, and rows that sum up others or hold nothing."""

import re
from collections.abc import Iterable

_WORDS = r"""null|none|nil|undefined|nan|n/a|not[ ]set"""
# Words of which a text may consist; and those that only brackets tell from a text.
_ALONE = rf"{_WORDS}|nat|n\.a\.|n\\a|n/d|k\.[ ]?a\.|\\n|keine[ ]angabe"
_BRACKETED = (
    rf"{_WORDS}|na|(?:data[ ])?(?:not|no|nicht|kein|keine|non|sin|pas)[ ][\w ]+|empty|blank|missing"
    r"|unknown|all|other(?:[ ].*)?|object[ ]object|leer|vide|vacío|vuoto|vazio|leeg"
)
_MISSING = re.compile(
    rf"""
    (?i:{_ALONE}) | NA
    | [\[({{<] \s* (?i:{_BRACKETED})? \s* [\])}}>]
    | \#N/?[ABDTV] | \#[¿¡]?[^\W\d_a-zà-ÿ]+(?:/0)?[!?]    # errors of spreadsheets
    | [-–—_.…?*:=]+ | \\\. | '' | ""
    """,
    re.VERBOSE,
)
_LONGEST = 24
# White space, and characters of no width.
_BLANK = " \t\r\n\v\f\u00a0\u200b\u200c\u200d\u2060\ufeff"
# What cells begin with that may say it; most do not, and are looked at no further.
_STARTS = frozenset("nukNUK\\[({<#-–—_.…?*:='\"" + _BLANK)

_TOTAL = re.compile(
    r"""
    (?: (?:(?:grand|sub|report|overall|column|row)?[ -]?)totals?
        (?:[ ](?:général|general|geral))?
      | gesamt(?:summe|zahl|ergebnis)? | insgesamt | summen? | somme | ensemble | suma | totales
      | total[ei](?:[ ](?:generale|complessivo))? | somma | soma | (?:eind|sub)?totaal | razem
      | all | summa | sum | i[ ]alt | yhteensä | összesen | celkem | toplam | итого | всего
      | [合总総總小][計计] | 합계 | 총계 )
    (?:\s*[:(–-].*)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_TOTAL_STARTS = frozenset("atgsrocieyöив合总総總小합총")
_FIGURE = re.compile(r"[-+<>~]?[0-9][0-9.,'’\s\u00a0\u202f]*%?")
# What reports print below a table, and the consoles of databases around one.
_RULED = re.compile(r"[-+=|:─┼│╪═\s]+")
_FOOTER = re.compile(
    r"\(?[0-9][0-9,.]* (?:rows?|lignes?|zeilen?|filas?|righe)\b(?: (?:affected|selected|in set)"
    r".*)?\)?\.?|(?:©|\(c\)|copyright\b).*",
    re.IGNORECASE,
)


def is_missing(cell: str) -> bool:
    r"""Whether a cell marks a missing value, as NULL does; an empty cell does not.

    Examples
    --------
    >>> [is_missing(cell) for cell in ("NULL", r"\N", "(not set)", "", "nancy", "na")]
    [True, True, True, False, False, False]
    """
    if cell[:1] not in _STARTS or len(cell) > 2 * _LONGEST:
        return False
    bare = cell.strip(_BLANK)
    return _MISSING.fullmatch(bare) is not None if bare else bool(cell.strip())


def says_total(text: str) -> bool:
    """Whether a text without blanks around it says that its row sums up others."""
    return text[:1].lower() in _TOTAL_STARTS and _TOTAL.fullmatch(text) is not None


def is_total(cells: Iterable[str]) -> bool:
    """Whether the names in a row, without its figures, say that it sums up others.

    One of them says "total" and the others are empty or say the same.

    Examples
    --------
    >>> is_total(["Total: Search terms", "--"]), is_total(["total", "Total Quartz 5W-30"])
    (True, False)
    """
    says_so = False
    for cell in map(str.strip, cells):
        if says_total(cell):
            says_so = True
        elif cell and not is_missing(cell):
            return False
    return says_so


def is_no_row(cells: Iterable[str]) -> bool:
    """Whether a whole row sums up others: its cells are figures, empty, or say "total".

    A row of figures alone is a total too: it names nothing. So are the lines and the number of rows
    that the console of a database prints, and who has the copyright.
    """
    there = [cell.strip() for cell in cells if cell.strip() and not is_missing(cell)]
    names = [cell for cell in there if not _FIGURE.fullmatch(cell)]
    if all(_RULED.fullmatch(cell) for cell in names) or (
        len(names) == len(there) == 1 and _FOOTER.fullmatch(names[0])
    ):
        return True
    return all(map(says_total, names))


def missing_cells(count: int) -> str:
    """The note on cells that mark a missing value."""
    return f"cells such as NULL, (not set) or - were read as empty: {count:,}"
