"""Searches of records as they were answered: what each showed where, and which titles were clicked.

Unlike a click log they have the searches without a click too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from sentemb.data.record_file import reading_record
from sentemb.system.paths import AnyPath

_RESULTS = (
    "SELECT searches.search, query, titles.id, position, clicked FROM searches "
    "LEFT JOIN shown ON shown.search = searches.number "
    "LEFT JOIN titles ON titles.number = shown.title "
    "WHERE query IS NOT NULL AND time >= ? ORDER BY searches.number, position"
)


@dataclass(frozen=True)
class RecordedSearch:
    """One search of a record.

    positions : by the id of each result, its position from 1
    clicked : the ids that were clicked
    """

    query: str
    positions: Mapping[str, int]
    clicked: frozenset[str]


def read_searches(records: Sequence[AnyPath], since: float = -math.inf) -> list[RecordedSearch]:
    """Read the searches of records; one that is in several counts once, with all its clicks.

    ``since`` leaves earlier searches out, in seconds since 1970. So are later pages of results, and
    searches whose text is not kept. Raises `SentembError` if a file is something else or cannot be
    read.
    """
    searches: dict[str, RecordedSearch] = {}
    for path in records:
        with reading_record(path) as record:
            rows = record.execute(_RESULTS, (since,))
            for (name, query), group in groupby(rows, key=lambda row: row[:2]):
                shown = [row[2:] for row in group if row[2] is not None]
                if shown and shown[0][1] > 1:
                    continue
                clicked = frozenset(id for id, _, clicked in shown if clicked is not None)
                if name in searches:
                    clicked |= searches[name].clicked
                positions = {id: position for id, position, _ in shown}
                searches[name] = RecordedSearch(query, positions, clicked)
    return list(searches.values())
