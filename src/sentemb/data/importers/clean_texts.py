"""Texts of imported tables: cleaned, and checked for what no model could use."""

import html
import re
from urllib.parse import parse_qsl, unquote_plus

from sentemb.data.click_log import MAX_TEXT_WORDS, clean_text
from sentemb.data.lines import is_id
from sentemb.errors import SentembError

_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
# As a spreadsheet is told that a number is a text.
_FORMULA = re.compile(r'\s*="((?:[^"]|"")*)"\s*')
_ADDRESS = re.compile(r"\s*(?:https?:/)?/\S*$")
# A text as addresses have it: no blanks, and some characters as two digits.
_ENCODED = re.compile(r"[^\s%]*(?:%[0-9A-Fa-f]{2}[^\s%]*)+")
# The parameters of addresses that say what was searched, the surest first.
_SEARCHED = (
    *("q", "query", "search", "search_query", "searchterm", "search_term", "keyword", "keywords"),
    *("term", "text", "s", "k", "suche", "recherche", "buscar"),
)
_THOUSANDS = re.compile(r"[1-9][0-9]{0,2}[.,]000")


def may_be_thousands(number: str) -> bool:
    """Whether a number such as 1.000 is one thousand in one country and 1 in another."""
    return _THOUSANDS.fullmatch(number) is not None


def has_entity(text: str) -> bool:
    """Whether an entity of HTML is in ``text``."""
    return _ENTITY.search(text) is not None


def _unescaped(entity: re.Match[str]) -> str:
    return html.unescape(entity[0])


def imported_text(text: str, what: str, encoding: str = "utf-8") -> str:
    """``text`` with each run of white space as one blank; empty if it has no words.

    Entities of HTML, such as ``&quot;``, become their characters. Bytes that did not fit
    ``encoding``, in which the file was read, are lone surrogates in ``text``; messages call the
    text ``what``. Raises `SentembError`, without a place, for such bytes, a NUL character, more
    than 10,000 words.
    """
    if "&" in text:
        # Some shops escape twice.
        text = _ENTITY.sub(_unescaped, _ENTITY.sub(_unescaped, text))
    clean = text.strip()
    # Most texts pass: printable ones have no tabs, line ends, NUL characters or lone surrogates.
    if clean.isprintable() and "  " not in clean and len(clean) < 2 * MAX_TEXT_WORDS:
        return clean
    clean = " ".join(clean.replace("\ufeff", "").split())
    try:
        clean.encode()
    except UnicodeEncodeError:
        known = "cp1252" if encoding.lower().startswith("utf") else "utf-8"
        raise SentembError(
            f"the {what} is not valid {encoding}; name the encoding, such as --encoding {known}"
        ) from None
    return clean_text(clean, what) if clean else ""


def searched_text(address: str) -> str:
    """The query in the address of a page with search results; else the text itself.

    It is empty if nothing was searched. A query that was cut from an address is decoded.

    Examples
    --------
    >>> searched_text("https://example.com/search?page=2&q=red+shoes")
    'red shoes'
    >>> searched_text("caf%C3%A9+cup"), searched_text("red+shoes"), searched_text("50% off")
    ('café cup', 'red+shoes', '50% off')
    """
    page, mark, parameters = address.partition("?")
    if not mark or not _ADDRESS.match(page):
        return _decoded(address) if "%" in address else address
    values = dict(parse_qsl(parameters.partition("#")[0], keep_blank_values=True))
    searched = [values[name] for name in _SEARCHED if name in values]
    return next(filter(str.strip, searched), "") if searched else address


def _decoded(text: str) -> str:
    """The text that an address has encoded; any other as it is."""
    try:
        return unquote_plus(text, errors="strict") if _ENCODED.fullmatch(text.strip()) else text
    except UnicodeDecodeError:
        return text


def without_formula(cell: str) -> str:
    """The text in a formula such as ``="007"``; any other cell as it is."""
    formula = _FORMULA.fullmatch(cell) if '="' in cell else None
    return formula[1].replace('""', '"') if formula else cell


def imported_id(text: str, encoding: str = "utf-8") -> str:
    """``text`` as an id of one word: each run of white space becomes ``_``; may be empty.

    The formula ``="007"``, which keeps a spreadsheet from changing an id, is the id in it.
    Bytes that did not fit the encoding and NUL characters raise a `SentembError` without a place.
    """
    id = "_".join(without_formula(text).split())
    if id.isprintable():
        return id
    id = imported_text(id, "id", encoding)
    if id and not is_id(id):
        raise SentembError("the id has characters that ids cannot have; give plain letters")
    return id
