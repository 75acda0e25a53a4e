"""All clicks of a shop, by the titles that its products have now.

They come from the log that the shop began with and from every record. Of the searches since the
model was trained, some are *judged*: the next model does not learn from them, so both can be
compared on them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from pathlib import Path

from sentemb.data.click_log import ClickLogBuilder, add_lines
from sentemb.data.record_file import reading_record
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.errors import SentembError
from sentemb.search.shop_folder import Shop
from sentemb.system.files import is_file

# One search in this many is judged.
ONE_IN = 5
_RESULTS = (
    "SELECT searches.search, time, query, titles.id, position, clicked FROM searches "
    "JOIN shown ON shown.search = searches.number JOIN titles ON titles.number = shown.title "
    "WHERE query IS NOT NULL AND time <= ? ORDER BY searches.number, position"
)


@dataclass
class ShopClicks:
    """The clicks of a shop.

    names : the title of each id
    everything : all clicks
    learned : without those of judged searches
    judged : these searches, with clicks or without
    gone : clicks on products that are not sold any more, which are left out
    """

    names: Mapping[str, str]
    everything: ClickLogBuilder = field(default_factory=ClickLogBuilder)
    learned: ClickLogBuilder = field(default_factory=ClickLogBuilder)
    judged: list[RecordedSearch] = field(default_factory=list)
    gone: int = 0

    @classmethod
    def of(cls, shop: Shop, names: Mapping[str, str], trained: float, until: float) -> ShopClicks:
        """The clicks of ``shop`` up to a time; its model was trained until ``trained``."""
        clicks = cls(names)
        if is_file(shop.log):
            add_lines(clicks, [shop.log])
        if is_file(shop.searches):
            of_log = _names(shop.shown)
            with reading_record(shop.searches) as record:
                rows = record.execute(_RESULTS, (until,))
                for (search, time, query), group in groupby(rows, key=lambda row: row[:3]):
                    if search in of_log:
                        continue
                    shown = [row[3:] for row in group]
                    positions = {id: position for id, position, _ in shown}
                    clicked = [id for id, _, clicked in shown if clicked is not None]
                    is_judged = time > trained and _is_drawn(search)
                    if is_judged:
                        judged = RecordedSearch(query, positions, frozenset(clicked))
                        clicks.judged.append(judged)
                    clicks._add_clicks(query, clicked, is_judged)
        return clicks

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        """Add a line of the log; see `sentemb.data.click_log.LogReceiver`."""
        if id and id not in self.names:
            self.gone += clicks
            return
        for builder in (self.everything, self.learned):
            builder.add(query, self.names.get(id, title), clicks)

    def _add_clicks(self, query: str, clicked: Sequence[str], is_judged: bool) -> None:
        """Add the clicks of a search."""
        for id in clicked:
            if id not in self.names:
                self.gone += 1
                continue
            for builder in (self.everything, *(() if is_judged else (self.learned,))):
                try:
                    builder.add(query, self.names[id])
                except SentembError:  # a query without words, or of thousands
                    break


def _names(record: Path) -> set[str]:
    """The names of the searches of a record that may not be there."""
    if not is_file(record):
        return set()
    with reading_record(record) as connection:
        return {name for (name,) in connection.execute("SELECT search FROM searches")}


def _is_drawn(search: str) -> bool:
    """Whether a search is among those that are judged, whenever it is asked."""
    return blake2b(search.encode(), digest_size=4).digest() < (2**32 // ONE_IN).to_bytes(4, "big")
