"""How often titles were looked at for a query: examinations, by the position-based click model.

Somebody who searches looks at place r with probability r ** -`EXPONENT`, and clicks a title that is
looked at with a probability that depends on query and title alone (Craswell et al., WSDM 2008;
Joachims et al., WSDM 2017). A title that was shown often and never clicked was looked at often.

The exponent is not estimated from the record. Places change because of clicks, so a title that
moved up had more clicks at its old place than is usual, and an estimate that compares the places of
a title is too low. Without results in random order nothing in a record says better, and an exponent
that is wrong by .3 changes little (docs/results/loop.md).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.record_file import reading_record
from sentemb.data.record_merge import one_record
from sentemb.data.recorded_searches import RecordedSearch
from sentemb.system.paths import AnyPath
from sentemb.text.words import exact_key

EXPONENT = 0.7
# What a difference of equal sums may leave; the last place of a page is looked at far more often.
_NONE = 1e-9
_PLACES = (
    "SELECT searches.query, titles.id, titles.title, shown.position, count(*) FROM searches "
    "JOIN shown ON shown.search = searches.number JOIN titles ON titles.number = shown.title "
    "WHERE searches.query IS NOT NULL GROUP BY searches.query, titles.number, shown.position "
    "ORDER BY titles.number, searches.query, shown.position"
)


class Shown(NamedTuple):
    """How often a title was shown for a query at a position, counted from 1."""

    query: str
    id: str
    title: str
    position: int
    times: int


@dataclass(frozen=True, eq=False)
class Examinations:
    """How often products were looked at for queries.

    queries : distinct `sentemb.text.words.exact_key` of queries
    ids, titles : the products, by the ids of the catalogue that was searched
    query_index, product_index : (n,), distinct pairs
    times : (n,), how often each was looked at, above 0
    """

    queries: Sequence[str]
    ids: Sequence[str]
    titles: Sequence[str]
    query_index: NDArray[np.int32]
    product_index: NDArray[np.int32]
    times: NDArray[np.float64]

    @classmethod
    def nothing(cls) -> Self:
        """No examinations."""
        none = np.empty(0, np.int32)
        return cls([], [], [], none, none, np.empty(0))

    @classmethod
    def of(cls, shown: Iterable[Shown]) -> Self:
        """Count examinations; of several titles of an id the last one counts."""
        queries: dict[str, int] = {}
        number_of: dict[str, int] = {}  # of each spelling
        title_of: dict[str, str] = {}
        products: dict[str, int] = {}
        times: dict[tuple[int, int], float] = {}
        for row in shown:
            if row.query not in number_of:
                number_of[row.query] = queries.setdefault(exact_key(row.query), len(queries))
            query = number_of[row.query]
            product = products.setdefault(row.id, len(products))
            title_of[row.id] = row.title
            looked = row.times * float(row.position) ** -EXPONENT
            times[query, product] = times.get((query, product), 0.0) + looked
        query_index, product_index = np.array(list(times), np.int32).reshape(-1, 2).T.copy()
        counted = np.array(list(times.values()), np.float64)
        titles = list(title_of.values())
        return cls(list(queries), list(products), titles, query_index, product_index, counted)

    def repeated(self) -> list[str]:
        """The queries that were searched more than once: a title was looked at twice or more."""
        most = np.zeros(len(self.queries))
        np.maximum.at(most, self.query_index, self.times)
        return [self.queries[q] for q in np.flatnonzero(most >= 2).tolist()]

    def without_queries(self, queries: Iterable[str]) -> Self:
        """Leave some queries out, by `exact_key`."""
        left_out = set(map(exact_key, queries))
        is_kept = np.array([query not in left_out for query in self.queries], bool)
        stays = is_kept[self.query_index]
        return self if stays.all() else self._part(stays, self.times)

    def without_searches(self, searches: Iterable[RecordedSearch]) -> Self:
        """Leave out what some of the searches showed."""
        seen: Counter[tuple[str, str]] = Counter()
        for search in searches:
            query = exact_key(search.query)
            for id, position in search.positions.items():
                seen[query, id] += float(position) ** -EXPONENT
        pairs = zip(self.query_index.tolist(), self.product_index.tolist(), strict=True)
        times = self.times - [seen[self.queries[q], self.ids[p]] for q, p in pairs]
        return self._part(times > _NONE, times)

    def _part(self, stays: NDArray[np.bool_], times: NDArray[np.float64]) -> Self:
        pairs = self.query_index[stays], self.product_index[stays]
        return replace(self, query_index=pairs[0], product_index=pairs[1], times=times[stays])


def read_examinations(records: Sequence[AnyPath]) -> Examinations:
    """Count how often titles of records were looked at for each query, each search once.

    Raises `SentembError` for a file that is another one or cannot be read.
    """
    if not records:
        return Examinations.nothing()
    with one_record(records) as path, reading_record(path) as connection:
        return Examinations.of(Shown(*row) for row in connection.execute(_PLACES))
