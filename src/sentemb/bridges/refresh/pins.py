"""Titles that a person has pinned to queries.

A pin is a line of a click log, with more clicks than any title has. The index has them at once, and
so has every index that follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from sentemb.data.click_log import add_lines, clean_text, tsv_lines
from sentemb.data.lines import write_lines
from sentemb.errors import SentembError
from sentemb.retrieval.clicked_queries import PIN, ClickedQueries
from sentemb.search.index import Index
from sentemb.search.index_tuning import serve_clicks
from sentemb.search.shop_folder import Shop
from sentemb.system.bounds import brief, plain
from sentemb.system.files import is_file
from sentemb.system.locks import locked
from sentemb.system.paths import AnyPath
from sentemb.text.words import exact_key

# How far down a pinned title is looked for.
_DEEPEST = 100


class Pinned(NamedTuple):
    """A title that was pinned, or is not pinned any more.

    title : the text of the title
    position : where it is now for the query, from 1; None below the first hundred
    replaced : ids that were pinned to the query before
    """

    title: str
    position: int | None
    replaced: list[str]


class Pins:
    """The pins of a shop: the query, the title and the id of each."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, str, str]] = []

    @classmethod
    def read(cls, shop: Shop) -> Pins:
        """The pins of a shop; none without a file of them."""
        pins = cls()
        if is_file(shop.pins) and shop.pins.stat().st_size:
            add_lines(pins, [shop.pins])
        return pins

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        """Add a line of the file; see `sentemb.data.click_log.LogReceiver`."""
        if not id:
            raise SentembError("has no id; write query<TAB>title<TAB>clicks<TAB>id")
        self.lines.append((clean_text(query, "query"), clean_text(title, "title"), id))

    def write(self, shop: Shop) -> None:
        """Write the pins of a shop."""
        pairs = ((query, title, PIN) for query, title, _ in self.lines)
        write_lines(shop.pins, tsv_lines(pairs, [id for *_, id in self.lines]))

    def without(self, query: str) -> list[str]:
        """Remove what is pinned to a query, in any spelling; return the ids."""
        key = exact_key(query)
        ids = [id for text, _, id in self.lines if exact_key(text) == key]
        self.lines = [line for line in self.lines if exact_key(line[0]) != key]
        return ids

    def in_place(self, clicks: ClickedQueries, names: Mapping[str, str]) -> ClickedQueries:
        """Clicks with these pins instead of those they have; ``names`` has the title of each id."""
        product_of = np.repeat(np.arange(len(clicks.keys)), np.diff(clicks.offsets))
        old = [
            (clicks.queries[clicks.clicked[e]], clicks.keys[product_of[e]])
            for e in np.flatnonzero(clicks.clicks >= PIN).tolist()
        ]
        for query, key in old:
            clicks = clicks.with_clicks(query, key, key, -PIN)
        for query, title, id in self.lines:
            if id in names:
                clicks = clicks.with_clicks(query, title, id, PIN)
        return clicks


def pin(shop: AnyPath, query: str, id: str | None) -> Pinned:
    """Pin a title to a query, in place of what is pinned to it; without an id remove the pin.

    Parameters
    ----------
    shop : path
        A folder of `sentemb start`.
    query : str
        The query; other spellings of the same words in the same order count as the same.
    id : str, optional
        The id of a title of the index.

    Returns
    -------
    Pinned

    Raises
    ------
    SentembError
        For a folder of another kind, an id that is not in the index, an empty query; if nothing is
        pinned to the query whose pin is removed, or the index counts no clicks.
    """
    opened = Shop.open(shop)
    query = clean_text(query, "query")
    with locked(opened.path):
        index, pins = Index.open(opened.index), Pins.read(opened)
        names = dict(zip(index.ids, index.titles, strict=True))
        replaced = pins.without(query)
        if id is None and not replaced:
            raise SentembError(f"nothing is pinned to {brief(query)}; {opened.pins} has the pins")
        if id is not None:
            if id not in names:
                raise SentembError(f"the id {plain(id)} is not in the index; give another")
            if not index.recipe.needs_clicks:
                raise SentembError(
                    f"{opened.index}: its ranker counts no clicks, so nothing can be pinned; "
                    "`sentemb refresh` fits one that does"
                )
            pins.lines.append((query, names[id], id))
        pins.write(opened)
        serve_clicks(index, pins.in_place(index.ranker.clicks, names))
        index.save(opened.index, force=True)
    if id is None:
        return Pinned(names.get(replaced[0], ""), None, replaced)
    rows = index.ranked([query], _DEEPEST).titles[0].tolist()
    ids = [index.ids[row] for row in rows if row >= 0]
    position = ids.index(id) + 1 if id in ids else None
    return Pinned(names[id], position, [old for old in replaced if old != id])
