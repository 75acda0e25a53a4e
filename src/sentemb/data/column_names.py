"""The names that tables give to columns, for each meaning that a column can have.

There is one list, so that a table is read in the same way wherever it is given. Names are compared
by their letters and digits alone: ``Search Term``, ``search_term`` and ``searchTerm`` are one name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_NO_LETTER = re.compile(r"[\W_]+")  # accents are among them


def letters_of(name: str) -> str:
    """The letters and digits of ``name``, small and without accents; ``name`` if it has none.

    Examples
    --------
    >>> letters_of("Top Clicked Product #1"), letters_of("Requête"), letters_of("#")
    ('topclickedproduct1', 'requete', '#')
    """
    return _NO_LETTER.sub("", unicodedata.normalize("NFKD", name.casefold())) or name


@dataclass(frozen=True)
class Meaning:
    """A meaning that a column can have, and the names that tables give to it.

    Attributes
    ----------
    what : str
        The name of the meaning in messages.
    names : tuple of str
        The usual names, as `letters_of` gives them; the surest first.
    pattern : str
        A regular expression of further names, less sure than ``names``.
    """

    what: str
    names: tuple[str, ...]
    pattern: str = r"(?!)"

    def has(self, name: str) -> bool:
        """Whether a column of this ``name`` usually holds this."""
        letters = letters_of(name)
        return letters in self.names or re.fullmatch(self.pattern, letters) is not None

    def columns(self, names: Sequence[str]) -> list[str]:
        """Those of ``names`` that usually hold this; the surest first."""
        order = {name: k for k, name in enumerate(self.names)}
        columns = [name for name in names if self.has(name)]
        return sorted(columns, key=lambda name: order.get(letters_of(name), len(order)))

    def column(self, names: Sequence[str]) -> str | None:
        """The surest of ``names``, if there is one."""
        return next(iter(self.columns(names)), None)


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


QUERY = Meaning(
    "query",
    _names("""
        query searchquery searchterm searchtext searchkeyword searchphrase searchstring querytext
        querystring userquery search searches term searchterms terms keyword keywords phrase
        queries topqueries topquery q suchbegriff suchanfrage anfrage suchwort suche recherche
        motcle requete busqueda consulta zoekterm
    """),
    r"(?:haufigste|meistgesuchte|principales|principais|populairste)?"
    r"(?:suchanfragen|requetes|consultas|busquedas|zoekopdrachten|query)"
    r"(?:principales|principali|lesplusfrequentes|piufrequenti)?|"
    r"(?:site|internal|product|top|customer|shopper|raw|original|nb|normali[sz]ed|data|event)*"
    r"(?:search)?(?:query|term|keyword|phrase|q)(?:text|string)?s?",
)
TITLE = Meaning(
    "title",
    _names("""
        title name producttitle productname itemtitle itemname articlename doctitle documenttitle
        titleclicked clickedtitle clickedproduct clickeditem clickedresult clickeddocument
        clicked pagetitle resulttitle titel titles product item document doc result label target
        produktname produkttitel produkt bezeichnung artikel
        nom titre nombre titulo titolo naam objectname page toppages landingpage seite seiten
        haufigsteseiten pages pagina paginas
        text passage description link url clickedurl finalurl
    """),
    r"(?:clicked|shown|product|item|article|result|document|post|display|shop)*(?:title|name)",
)
ID = Meaning(
    "id",
    _names("""
        id productid itemid articleid sku productsku variantsku itemsku article articlenumber
        articleno asin productcode code docid did documentid corpusid objectid titleid recordid
        pageid urlid key pid artikelnummer artnr artikelnr
        produktid handle producthandle objectids productids itemids clickedids ids skus gtin ean
    """),
    r"(?:clicked|shown|product|item|article|variant|result|document|doc|object|data|event|parent)*"
    r"(?:id|sku|code|number|handle)s?",
)
CLICKS = Meaning(
    "clicks",
    _names("""
        clicks nclicks numclicks numberofclicks clickcount clickcounts totalclicks klicks clics
        clickedcount eventcount count counts n clicked click isclicked wasclicked hits freq
        frequency cnt anzahl clic cliques klikken escilabel
    """),
    r"(?:total|sum|num|number|no|nb|n|count|cnt|all|unique|event|item|product|result|search|link"
    r"|site|outbound|of|the|anzahl|der|nombre|de)*(?:clicks?|clicked|klicks?|clics?)"
    r"(?:total|sum|num|number|count|counts|cnt|n)*",
)
SEARCH = Meaning("search", _names("searchid queryid sessionid qid session"))
POSITION = Meaning("position", _names("position rank pos place clickposition"))
# Meanings of columns that only tell a table's header from its texts.
_OTHERS = _names("""
    avgposition clickthroughrate cost ctr date day grade impr impressions month number relevance
    score shown skipped sum time timestamp total user userid views week weight year
""")

ROLES = (QUERY, TITLE, ID, CLICKS, SEARCH, POSITION)
_USUAL = frozenset(_OTHERS).union(*(role.names for role in ROLES))

# Fields of products that are shown under these names, and how tables name them.
FIELDS = (
    Meaning("price", _names("price saleprice unitprice variantprice regularprice preis prix")),
    Meaning("stock", _names("""
        stock instock quantity qty available inventory stockquantity variantinventoryqty
        inventoryquantity isinstock availability bestand
    """)),
    Meaning("brand", _names("brand brandname productbrand manufacturer vendor marke")),
    Meaning("category", _names("""
        category categoryname categories producttype productcategory department kategorie
    """)),
    Meaning("link", _names("link url producturl productlink href permalink")),
    Meaning("image", _names("""
        image imageurl imagelink imagesrc images picture pictureurl thumbnail baseimage photo
    """)),
)  # fmt: skip
# Judgments, which are not clicks.
GRADE = Meaning("grade", _names("grade relevance rating judgment judgement score"))


def is_usual(name: str) -> bool:
    """Whether ``name`` is one that tables give to columns of clicks."""
    return letters_of(name) in _USUAL
