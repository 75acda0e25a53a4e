"""Guesses which column of a shop's table holds what, from the names of the columns."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

from sentemb.data.importers.columns import BadRows, Reading, listed
from sentemb.data.importers.table_rows import Rows
from sentemb.data.record_file import is_record
from sentemb.data.search_record import COLUMNS
from sentemb.errors import SentembError
from sentemb.system.files import is_file, place_name, status
from sentemb.system.paths import AnyPath

# Role -> names of columns, the surest first. Letters and digits alone count.
_CLICKS = {
    "query": (
        "query", "searchquery", "searchterm", "searchtext", "search", "term", "keywords",
        "keyword", "q",
    ),
    "id": (
        "id", "productid", "itemid", "articleid", "sku", "productsku", "article", "articlenumber",
        "asin", "productcode", "code", "docid",
    ),
    "title": (
        "title", "name", "producttitle", "productname", "itemtitle", "itemname", "articlename",
        "product", "item", "label",
    ),
    "clicks": ("clicks", "nclicks", "clickcount", "count", "n", "clicked"),
}  # fmt: skip
# Fields that stay with a product, under these names.
_FIELDS = {
    "price": ("price", "saleprice", "unitprice"),
    "stock": ("stock", "instock", "quantity", "available", "inventory"),
    "brand": ("brand", "manufacturer", "vendor"),
    "category": ("category", "categoryname", "producttype", "department"),
    "link": ("link", "url", "producturl", "href"),
    "image": ("image", "imageurl", "imagelink", "picture", "pictureurl", "thumbnail"),
}


@dataclass(frozen=True)
class Guess:
    """The columns of a table.

    name : the file in messages
    names : all columns
    roles : of ``query``, ``id``, ``title`` and ``clicks`` those that are there, each with its
        column
    fields : fields of products, each with its column
    """

    name: str
    names: list[str]
    roles: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)

    def need(self, role: str) -> str:
        """The column of a role; a `SentembError` if there is none."""
        if role in self.roles:
            return self.roles[role]
        raise SentembError(
            f"{self.name}: no column looks like the {role}; there are {listed(self.names)}: rename "
            "one, or name the columns to sentemb import"
        )

    def __str__(self) -> str:
        columns = {**self.roles, **self.fields}
        return f"{self.name}: " + ", ".join(f"{role} = {name}" for role, name in columns.items())


def guess_columns(path: AnyPath) -> Guess:
    """Guess the columns of a table from its header.

    The file is CSV or other delimited text with a header, JSON lines, Parquet or a record of
    searches. Raises `SentembError` if it cannot be read or is not a regular file.
    """
    if str(path) == "-" or (status(path) is not None and not is_file(path)):
        raise SentembError(
            f"{place_name(path)}: is not a regular file, and is read twice; save the table as one"
        )
    names = list(COLUMNS) if is_record(path) else []
    if not names:
        how = Reading(header=True)
        rows = Rows(path, ("1", "2"), how, BadRows(skip=True), names.extend)
        for _ in islice(rows, 1):
            pass
    by_letters = {re.sub(r"[\W_]", "", name.lower()): name for name in reversed(names)}

    def chosen(known: dict[str, tuple[str, ...]]) -> dict[str, str]:
        matches = {
            role: next((by_letters[name] for name in likely if name in by_letters), None)
            for role, likely in known.items()
        }
        return {role: name for role, name in matches.items() if name is not None}

    return Guess(place_name(path), names, chosen(_CLICKS), chosen(_FIELDS))
