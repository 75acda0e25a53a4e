"""Recorded searches as a measure of the titles that an index puts first now.

A search says something about a title that it showed, at whatever position. A share of
position ** -`EXPONENT` of the users looks at a position, so such a search counts as that share of
one that showed the title first. Searches without a click count like all others.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import EXPONENT
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.errors import SentembError
from sentemb.search.index import Index
from sentemb.system.tables import aligned

_KINDS = {False: "never typed before", True: "in the log"}


class LookedAt(NamedTuple):
    """The first title of each distinct query, and what became of it where it was shown.

    queries : the queries, m of them
    scores : (m,), those of the first titles; -inf where nothing is found
    is_typed : (m,), whether the log has clicks for the query
    searches : (m,), how often it was searched, and ``shown``, how often with the title
    looked, clicks : (m,), how many users looked at the title, and how many clicked it
    """

    queries: list[str]
    scores: NDArray[np.float64]
    is_typed: NDArray[np.bool_]
    searches: NDArray[np.int64]
    shown: NDArray[np.int64]
    looked: NDArray[np.float64]
    clicks: NDArray[np.int64]

    @classmethod
    def of(cls, index: Index, searches: Sequence[RecordedSearch]) -> LookedAt:
        """The first titles of ``index`` for the queries of some searches.

        Raises `SentembError` for an empty record or an empty index.
        """
        if not searches:
            raise SentembError("the record has no searches since then; give another one")
        index = copy(index)  # of which no other thread removes titles
        queries = list(dict.fromkeys(search.query for search in searches))
        number_of = {query: number for number, query in enumerate(queries)}
        ranked = index.ranked(queries, 1)
        if not ranked.titles.shape[1]:
            raise SentembError("the index has no titles; add some")
        ids = [index.ids[row] if row >= 0 else None for row in ranked.titles[:, 0].tolist()]
        m = len(queries)
        counts, shown, clicks = (np.zeros(m, np.int64) for _ in range(3))
        looked = np.zeros(m)
        for search in searches:
            q = number_of[search.query]
            counts[q] += 1
            position = search.positions.get(ids[q] or "")
            if position is not None:
                shown[q] += 1
                looked[q] += position**-EXPONENT
                clicks[q] += ids[q] in search.clicked
        is_typed = index.snapshot.are_clicked(index.ranker.asked(queries))
        return cls(queries, ranked.scores[:, 0], is_typed, counts, shown, looked, clicks)

    def part(self, which: NDArray[np.bool_]) -> LookedAt:
        """Some of the queries, (m,) bool."""
        return LookedAt(
            [query for query, is_in in zip(self.queries, which, strict=True) if is_in],
            self.scores[which],
            self.is_typed[which],
            self.searches[which],
            self.shown[which],
            self.looked[which],
            self.clicks[which],
        )

    @property
    def shares(self) -> NDArray[np.float64]:
        """The share of users who would click each title if it was shown first, (m,)."""
        return np.minimum(self.clicks / np.maximum(self.looked, 1e-9), 1.0)

    @property
    def share(self) -> float:
        """The mean of `shares` over the searches that showed the title; NaN without any."""
        n = int(self.shown.sum())
        return float(self.shares @ self.shown) / n if n else float("nan")


@dataclass(frozen=True)
class RecordedOutcome:
    """Recorded searches for a kind of query, and what they say about the first titles of an index.

    kind : the kind
    searches : all of them
    clicked : the share of them with a click
    first_clicked : the share of them whose first title, as it was shown, was clicked
    shown : those that showed the title which the index puts first
    share : how often that title would be clicked, were it shown first; NaN if none showed it
    """

    kind: str
    searches: int
    clicked: float
    first_clicked: float
    shown: int
    share: float


@dataclass(frozen=True)
class RecordEvaluation:
    """The outcomes of all recorded searches, and by kind of query.

    is_circular : whether the index has all clicks of the record, so that its figures are circular
    """

    outcomes: tuple[RecordedOutcome, ...]
    is_circular: bool

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        kinds = [
            {**vars(outcome), "share": outcome.share if outcome.shown else None}
            for outcome in self.outcomes
        ]
        return {"kinds": kinds, "is_circular": self.is_circular}

    def __str__(self) -> str:
        rows = [["queries", *("searches", "with a click", "first clicked"), "showed it", "clicked"]]
        for outcome in self.outcomes:
            figures = [f"{outcome.clicked:.3f}", f"{outcome.first_clicked:.3f}"]
            share = f"{outcome.share:.3f}" if outcome.shown else "-"
            counts = f"{outcome.searches:,}", f"{outcome.shown:,}"
            rows.append([outcome.kind, counts[0], *figures, counts[1], share])
        lines = list(aligned(rows))
        lines.append(
            "first clicked: the title that was shown first; the last two columns are of the title "
            "that the index puts first now: searches that showed it, and how often it would be "
            "clicked"
        )
        if self.is_circular:
            lines.append(
                "the index has all clicks of these searches, so its figures are circular; give a "
                "record, or --since, of searches after it was made"
            )
        return "\n".join(lines)


def evaluate_record(index: Index, searches: Sequence[RecordedSearch]) -> RecordEvaluation:
    """Measure an index by recorded searches, those without a click included.

    Raises `SentembError` for an empty record or an empty index.
    """
    firsts = LookedAt.of(index, searches)
    typed = dict(zip(firsts.queries, firsts.is_typed.tolist(), strict=True))
    outcomes = [_outcome("all", searches, firsts)]
    for is_typed, kind in _KINDS.items():
        of_kind = [search for search in searches if typed[search.query] == is_typed]
        if of_kind and len(of_kind) < len(searches):
            outcomes.append(_outcome(kind, of_kind, firsts.part(firsts.is_typed == is_typed)))
    return RecordEvaluation(tuple(outcomes), has_clicks_of(index, searches))


def _outcome(kind: str, searches: Sequence[RecordedSearch], firsts: LookedAt) -> RecordedOutcome:
    first_clicked = sum(search.positions[id] == 1 for search in searches for id in search.clicked)
    return RecordedOutcome(
        kind,
        len(searches),
        sum(bool(search.clicked) for search in searches) / len(searches),
        first_clicked / len(searches),
        int(firsts.shown.sum()),
        firsts.share,
    )


def has_clicks_of(index: Index, searches: Sequence[RecordedSearch]) -> bool:
    """Whether an index has all clicks of recorded searches, so that these are not held out.

    Clicks for queries that the index has no clicks for at all are held out. So are all, if for the
    other queries the record has more clicks on some title than the index.
    """
    ids = list(dict.fromkeys(id for search in searches for id in search.clicked))
    rows = dict(zip(ids, index.rows_of(ids).tolist(), strict=True))
    pairs = [
        (search.query, index.titles[rows[id]])
        for search in searches
        for id in search.clicked
        if rows[id] >= 0
    ]
    if not pairs:
        return False
    log = ClickLog.from_pairs(pairs)
    is_known = index.snapshot.are_clicked(index.ranker.asked(log.queries))
    if not is_known.any():
        return False
    return index.ranker.clicks.single_clicks(log.part(is_known)) is None
