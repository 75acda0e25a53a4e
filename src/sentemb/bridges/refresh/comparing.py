"""Two indexes compared on recorded searches, by the clicks on the title that each puts first.

The searches were answered by one of the two, so a title says something only where it was shown, and
users look at lower places less often: a click there counts for as many more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sentemb.data.examinations import EXPONENT
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.search.index import Index

# With fewer searches nothing can be said: of 200 the standard error is about 0.02.
FEWEST = 200


@dataclass(frozen=True)
class ClicksCompared:
    """How often the first title of two indexes would be clicked.

    searches : searches that neither index has learned from
    compared : those that showed the first titles of both
    differing : those of them where it is not the same title
    before, after : clicks on the first title for each search that is compared
    error : the standard error of the difference
    """

    searches: int
    compared: int
    differing: int
    before: float
    after: float
    error: float

    @property
    def is_new_taken(self) -> bool:
        """Whether there are searches enough, and the new index is not clearly behind.

        It has learned from more clicks, so it is behind only beyond the standard error.
        """
        return self.compared >= FEWEST and self.after >= self.before - self.error

    @property
    def verdict(self) -> str:
        """The reason for taking the new index, or for keeping the one before."""
        if self.compared < FEWEST:
            return f"fewer than {FEWEST} searches are too few to tell which is better"
        how = "is not" if self.is_new_taken else "is"
        return f"the new one {how} behind by more than the standard error"

    def __str__(self) -> str:
        if not self.compared:
            return f"compared: none of {self.searches:,} searches showed both first titles"
        return (
            f"compared: {self.before:.3f} clicks on the first title before, {self.after:.3f} with "
            f"the new model (difference {self.after - self.before:+.3f}, standard error "
            f"{self.error:.3f}), for {self.compared:,} of {self.searches:,} searches held out "
            f"that showed both first titles; for {self.differing:,} of them these differ"
        )


def compare(before: Index, after: Index, judged: Sequence[RecordedSearch]) -> ClicksCompared:
    """Compare the first titles of two indexes on judged searches."""
    queries = list(dict.fromkeys(search.query for search in judged))
    firsts = [
        dict(zip(queries, _first_ids(index, queries), strict=True)) for index in (before, after)
    ]
    values = []
    differing = 0
    for search in judged:
        old, new = (first[search.query] for first in firsts)
        if old in search.positions and new in search.positions:
            differing += old != new
            values.append([_clicks(search, old), _clicks(search, new)])
    clicks = np.array(values).reshape(-1, 2)
    if not len(clicks):
        return ClicksCompared(len(judged), 0, 0, 0.0, 0.0, 0.0)
    old_mean, new_mean = clicks.mean(axis=0).tolist()
    error = float(np.diff(clicks).std() / np.sqrt(len(clicks)))
    return ClicksCompared(len(judged), len(clicks), differing, old_mean, new_mean, error)


def _first_ids(index: Index, queries: Sequence[str]) -> list[str]:
    """The id of the first title of each query; empty if there is none."""
    rows = index.ranked(queries, 1).titles
    return [index.ids[row[0]] if row.size and row[0] >= 0 else "" for row in rows]


def _clicks(search: RecordedSearch, id: str) -> float:
    """The clicks on a title, had it been shown first."""
    return search.positions[id] ** EXPONENT if id in search.clicked else 0.0
