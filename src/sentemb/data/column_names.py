"""The names that tables give to columns, for each meaning that a column can have.

There is one list, so that a table is read in the same way wherever it is given. Names are compared
by their letters and digits alone: ``Search Term``, ``search_term`` and ``searchTerm`` are one name.
What a name has in brackets or after a dash, such as a unit or a time, does not count where the
whole name means nothing: ``Clicks (30d)``, ``Clicks - last month``.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_NO_LETTER = re.compile(r"[\W_]+")  # accents are among them
_UNIT = re.compile(r"\s*[\[({].*|\s+[-–—/]\s.*")


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
        bare = _UNIT.sub("", name, 1)
        inner = bare.rpartition(".")[2]  # a field of another
        return any(self._is(letters_of(text)) for text in (name, bare, inner))

    def _is(self, letters: str) -> bool:
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
    return tuple(map(letters_of, text.split()))


QUERY = Meaning(
    "query",
    _names("""
        query searchquery searchterm searchtext searchkeyword searchphrase searchstring querytext
        querystring userquery search searches term searchterms terms keyword keywords phrase
        queries topqueries topquery q suchbegriff suchanfrage anfrage suchwort suche recherche
        motcle requete busqueda consulta zoekterm termederecherche terminodebusqueda palabraclave
        terminediricerca parolachiave termodepesquisa termodebusca palavrachave zoekopdracht
        zapytanie fraza sokord sokterm søgeord hakusana aramaterimi hledanyvyraz запрос
        поисковыйзапрос 検索キーワード 検索語 検索クエリ 搜索词 搜索关键词 关键词 搜尋字詞 검색어
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
        clicked pagetitle resulttitle titel titles product items item document doc result label
        target produktname produkttitel produkt bezeichnung artikelbezeichnung produktbezeichnung
        artikelname artikel nom nomduproduit produit titre designation libelle nombre
        nombredelproducto nombreproducto producto titulo nomeprodotto prodotto titolo nome
        nomedoproduto produto naam productnaam nazwa nazwaproduktu produktnamn produktnavn
        название наименование товар 商品名 商品名称 产品名称 标题 名称 商品名稱 상품명 objectname
        страница ページ 页面 페이지 strona clickurl resulturl asintitle page toppages landingpage
        seite seiten haufigsteseiten pages pagina paginas text passage description link url
        clickedurl finalurl
    """),
    r"(?:clicked|shown|product|item|article|result|document|post|display|shop)*(?:title|name)",
)
ID = Meaning(
    "id",
    _names("""
        id productid itemid articleid sku productsku variantsku itemsku article articlenumber
        articleno asin productcode code docid did documentid corpusid objectid titleid recordid
        pageid urlid key pid artikelnummer artnr artikelnr itemcode itemno partnumber ref reference
        produktid handle producthandle objectids productids itemids clickedids ids skus gtin ean
        mpn referencia codicearticolo codigodelproducto codigodoproduto referentie kodproduktu
        артикул 商品コード 商品番号 商品編号 商品编号 상품코드
    """),
    r"(?:clicked|shown|product|item|article|variant|result|document|doc|object|data|event|parent"
    r"|商品|产品)*(?:id|sku|code|number|handle)s?",
)
CLICKS = Meaning(
    "clicks",
    _names("""
        clicks nclicks numclicks numberofclicks clickcount clickcounts totalclicks klicks clics
        clickedcount eventcount count counts n clicked click isclicked wasclicked hits freq
        frequency cnt anzahl clic cliques klikken escilabel клики кликов количествокликов
        クリック クリック数 クリック回数 点击 点击量 点击数 点击次数 點擊 點擊次數 클릭 클릭수
    """),
    r"(?:total|sum|num|number|no|nb|n|count|cnt|all|unique|event|item|product|result|search|link"
    r"|site|outbound|of|the|anzahl|der|nombre|de|antal|aantal|liczba|numero|di|z|nr)*"
    r"(?:clicks?|clicked|klicks?|kliks?|klikken|klikk|clics?|clicchi|cliques?|klikniec(?:ia)?"
    r"|tiklama(?:lar)?|kattintas(?:ok)?|prokliky)"
    r"(?:total|sum|num|number|count|counts|cnt|n|in|the|last|past|previous|per|[0-9]+|d|days?"
    r"|weeks?|months?|years?)*|(?:total|unique|all|num|number|of)*events",
)
# What kind of event a row is, for example a click or a view.
EVENT = Meaning("event", _names("eventtype eventname event eventaction action interaction"))
_NO_CLICK = re.compile(
    r"(?:\w*[ _-])?(?:views?|viewed|impressions?|shown|search(?:es|ed)?|hover(?:ed)?|scroll"
    r"|conversions?|converted|purchased?|cart|checkout|order(?:ed)?|refund|rating)(?:[ _-]\w*)*"
)
SEARCH = Meaning("search", _names("searchid queryid sessionid qid session"))
POSITION = Meaning("position", _names("position rank pos place clickposition"))
# The second column of an id, where a product has rows in several languages or shops.
LOCALE = Meaning(
    "locale",
    _names("""
        locale productlocale lang language languagecode sprache langue idioma lingua taal country
        countrycode land pays pais market marketplace store storeid storeview storeviewcode shop
        shopid site siteid region
    """),
)
# What else a table of clicks has.
OTHER = Meaning(
    "other",
    _names("""
        avgposition clickthroughrate cost ctr date day grade hour impr impressions month number
        relevance score shown skipped time timestamp user userid week weight year
    """),
)

ROLES = (QUERY, TITLE, ID, CLICKS, EVENT, SEARCH, POSITION)
# Names that tell a header from texts; numbers below some of them may be clicks.
_USUAL = frozenset(_names("sum total views")).union(*(role.names for role in (*ROLES, OTHER)))

# Fields of products that are shown under these names, and how tables name them.
FIELDS = (
    Meaning("price", _names("""
        price saleprice unitprice variantprice regularprice preis verkaufspreis prix precio prezzo
        preco prijs cena pris цена 価格 价格 가격
    """)),
    Meaning("stock", _names("""
        stock instock quantity qty available inventory stockquantity variantinventoryqty
        inventoryquantity isinstock availability bestand lagerbestand existencias disponibilita
        voorraad 在庫 库存
    """)),
    Meaning("brand", _names("""
        brand brandname productbrand manufacturer vendor marke hersteller marque marca merk marka
        бренд ブランド 品牌
    """)),
    Meaning("category", _names("""
        category categoryname categories producttype productcategory department kategorie categorie
        categoria kategoria категория カテゴリ カテゴリー 类别
    """)),
    Meaning("link", _names("link url producturl productlink href permalink")),
    Meaning("image", _names("""
        image imageurl imagelink imagesrc images picture pictureurl thumbnail baseimage photo
        bild bildurl imagen immagine imagem afbeelding
    """)),
)  # fmt: skip
# Judgments, which are not clicks.
GRADE = Meaning("grade", _names("grade relevance rating judgment judgement score"))


_SHOWN = re.compile(
    "shown|showed|impress|displayed|results|returned|served|ranked|gezeigt|affich|mostrad|visualizz"
    "|getoond|wyswietl"
)
_CLICKED = re.compile("clic|klick|klik|клик|クリック|点击|點擊|클릭|tıkla|tikla|kattint")


def says_clicked(name: str) -> bool:
    """Whether a column is named for what was clicked."""
    return _CLICKED.search(letters_of(name)) is not None


def says_shown(name: str) -> bool:
    """Whether a column is named for what was shown, clicked or not."""
    return not says_clicked(name) and _SHOWN.search(letters_of(name)) is not None


def is_no_click(kind: str) -> bool:
    """Whether an `EVENT` of this kind is another one than a click."""
    return _NO_CLICK.fullmatch(kind.strip().lower()) is not None


def is_usual(name: str) -> bool:
    """Whether ``name`` is one that tables give to columns of clicks."""
    return letters_of(name) in _USUAL
