"""The folder of a shop, as `sentemb start` makes it and `sentemb refresh` keeps it.

The index in it is all that is searched, and is replaced as a whole. Everything else is what the
next index is made from.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.search.index_files import MADE, is_index
from sentemb.system import descriptions
from sentemb.system.bounds import is_finite
from sentemb.system.files import is_file, path_of, write_text
from sentemb.system.paths import AnyPath

# What describes a shop; folders of version 1.0 have none.
DESCRIPTION = "shop.json"
_FORMAT = 1
_KEYS = {"format", "products", "trained", "refreshed"}


@dataclass(frozen=True)
class ProductsTable:
    """How the table of the products is read.

    ids, title : its columns
    fields : the columns that are kept, by the names that they get
    encoding : of a text
    """

    ids: tuple[str, ...]
    title: str
    fields: Mapping[str, str] = field(default_factory=dict)
    encoding: str = "utf-8"

    @classmethod
    def of_json(cls, value: Any) -> ProductsTable | None:
        """The table that a description has; None if it has something else."""
        if not isinstance(value, dict) or value.keys() != {"ids", "title", "fields", "encoding"}:
            return None
        ids, fields = value["ids"], value["fields"]
        texts = [value["title"], value["encoding"]]
        if not isinstance(ids, list) or not ids or not isinstance(fields, dict):
            return None
        if not all(isinstance(text, str) for text in [*texts, *ids, *fields.values()]):
            return None
        return cls(tuple(ids), value["title"], fields, value["encoding"])


@dataclass(frozen=True)
class Shop:
    """The folder of a shop.

    path : the folder
    products : how its table of products is read, if it was made from one
    trained : by the fingerprint of a model, the time of the last search that it can have learned
        from, in seconds since 1970
    refreshed : the time of the last search that was there when it was refreshed; 0 before
    """

    path: Path
    products: ProductsTable | None = None
    trained: Mapping[str, float] = field(default_factory=dict)
    refreshed: float = 0.0

    @classmethod
    def open(cls, folder: AnyPath) -> Shop:
        """The shop in a folder; a `SentembError` if it has no index, or cannot be read."""
        path = path_of(folder)
        if not is_index(path / MADE):
            raise SentembError(
                f"{folder}: was not made by `sentemb start`, since it has no {MADE}; make one with "
                "that, or name the folder that has the index"
            )
        described = path / DESCRIPTION
        if not is_file(described):
            return cls(path)
        values = descriptions.read_description(described, _FORMAT, _damaged)
        products, trained = values.get("products"), values.get("trained")
        table = ProductsTable.of_json(products)
        if not (
            values.keys() == _KEYS
            and (products is None or table is not None)
            and isinstance(trained, dict)
            and all(map(is_finite, [values["refreshed"], *trained.values()]))
        ):
            raise _damaged(described, "it is not that of a shop")
        return cls(path, table, trained, values["refreshed"])

    def save(self) -> None:
        """Write the description."""
        table = self.products
        products = None if table is None else {**vars(table), "ids": list(table.ids)}
        values = {"format": _FORMAT, "products": products, "trained": dict(self.trained)}
        text = json.dumps({**values, "refreshed": self.refreshed}, indent=1, ensure_ascii=False)
        write_text(self.path / DESCRIPTION, f"{text}\n")

    @property
    def index(self) -> Path:
        """The index that is searched."""
        return self.path / MADE

    @property
    def before(self) -> Path:
        """The index that was searched before."""
        return self.path / f"{MADE}-before"

    @property
    def log(self) -> Path:
        """The clicks that the shop began with; there may be none."""
        return self.path / "pairs.tsv"

    @property
    def shown(self) -> Path:
        """Searches whose clicks are in the log that the shop began with; there may be none."""
        return self.path / "first-searches.sqlite"

    @property
    def searches(self) -> Path:
        """Every search of all records that the shop was refreshed with."""
        return self.path / "all-searches.sqlite"

    @property
    def pins(self) -> Path:
        """The titles that a person has pinned to queries."""
        return self.path / "pins.tsv"

    @property
    def page(self) -> Path:
        """The search page in one file; there may be none."""
        return self.path / "page.html"

    @property
    def work(self) -> Path:
        """The folder of a refresh that has not ended."""
        return self.path / "refreshing"


def _damaged(path: Path, why: str) -> SentembError:
    return SentembError(f"{path}: is damaged: {why}; restore it from a copy, or remove it")
