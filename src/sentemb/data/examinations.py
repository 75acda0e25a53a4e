"""How often titles were looked at for a query: examinations, by the position-based click model.

Somebody who searches looks at place r with probability r ** -exponent, and clicks a title that is
looked at with a probability that depends on query and title alone (Craswell et al., WSDM 2008;
Joachims et al., WSDM 2017). A title that was shown often and never clicked was looked at often.

Of the clicks of a query on a title, the share at each place depends on the exponent and on how
often the title was shown at each, not on how good it is. So the exponent is estimated from titles
that were shown at several places.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.record_file import reading_record
from sentemb.data.record_merge import one_record
from sentemb.system.paths import AnyPath
from sentemb.text.words import exact_key

# What the exponent is without a record that says more, and how sure that is: mean and standard
# deviation of a normal distribution. Measured exponents are between .4 and 1.
EXPONENT, _SPREAD = 0.7, 0.3
_MOST_EXPONENT = 3.0
_STEPS = 50
_PLACES = (
    "SELECT searches.query, titles.id, titles.title, shown.position, count(*), "
    "count(shown.clicked) FROM searches JOIN shown ON shown.search = searches.number "
    "JOIN titles ON titles.number = shown.title WHERE searches.query IS NOT NULL "
    "GROUP BY searches.query, titles.number, shown.position "
    "ORDER BY titles.number, searches.query, shown.position"
)


@dataclass(frozen=True)
class Shown:
    """A title for a query at one place: how often it was shown there, and clicked there."""

    query: str
    id: str
    title: str
    place: int
    times: int
    clicks: int


@dataclass(frozen=True, eq=False)
class Examinations:
    """How often products were looked at for queries.

    queries : distinct `sentemb.text.words.exact_key` of queries
    ids, titles : the products, by the ids of the catalogue that was searched
    query_index, product_index : (n,), distinct pairs
    times : (n,), how often each was looked at, above 0
    exponent : of the place bias
    """

    queries: Sequence[str]
    ids: Sequence[str]
    titles: Sequence[str]
    query_index: NDArray[np.int32]
    product_index: NDArray[np.int32]
    times: NDArray[np.float64]
    exponent: float = EXPONENT

    @classmethod
    def nothing(cls) -> Self:
        """No examinations."""
        none = np.empty(0, np.int32)
        return cls([], [], [], none, none, np.empty(0))

    @classmethod
    def of(cls, shown: Iterable[Shown]) -> Self:
        """Count the examinations of a record; the newest title of an id comes last."""
        queries: dict[str, int] = {}
        products: dict[str, int] = {}
        title_of: dict[str, str] = {}
        rows = []
        for one in shown:
            query = queries.setdefault(exact_key(one.query), len(queries))
            product = products.setdefault(one.id, len(products))
            title_of[one.id] = one.title
            rows.append((query, product, one.place, one.times, one.clicks))
        if not rows:
            return cls.nothing()
        query_index, product_index, place, times, clicks = np.array(rows, np.int64).T
        pair = query_index * len(products) + product_index
        order = np.argsort(pair, kind="stable")
        pairs, starts = np.unique(pair[order], return_index=True)
        exponent = place_exponent(place[order], times[order], clicks[order], starts)
        looked = times[order] * place[order].astype(np.float64) ** -exponent
        return cls(
            list(queries),
            list(products),
            list(title_of.values()),
            (pairs // len(products)).astype(np.int32),
            (pairs % len(products)).astype(np.int32),
            np.add.reduceat(looked, starts),
            exponent,
        )

    def without_queries(self, queries: Iterable[str]) -> Self:
        """Leave some queries out, by `exact_key`."""
        left_out = set(map(exact_key, queries))
        is_kept = np.array([query not in left_out for query in self.queries], bool)
        stays = is_kept[self.query_index]
        if stays.all():
            return self
        return type(self)(
            self.queries,
            self.ids,
            self.titles,
            self.query_index[stays],
            self.product_index[stays],
            self.times[stays],
            self.exponent,
        )


def read_examinations(records: Sequence[AnyPath]) -> Examinations:
    """Count how often titles of records were looked at for each query, each search once.

    Raises `SentembError` if a file cannot be read or is no record.
    """
    if not records:
        return Examinations.nothing()
    with one_record(records) as path, reading_record(path) as connection:
        return Examinations.of(Shown(*row) for row in connection.execute(_PLACES))


def place_exponent(
    place: NDArray[np.int64],
    times: NDArray[np.int64],
    clicks: NDArray[np.int64],
    starts: NDArray[np.int64],
) -> float:
    """Estimate the exponent of the place bias.

    Parameters
    ----------
    place, times, clicks : (n,) int64
        Places from 1, and how often a title was shown and clicked there for a query.
    starts : (n_pairs,) int64
        The first row of each pair of a query and a title; its rows are together.

    Returns
    -------
    float
        The most probable exponent given where the clicks of each pair were, with the prior of this
        module; from 0.
    """
    logs = np.log(place)
    pair = np.repeat(np.arange(starts.size), np.diff(starts, append=place.size))
    of_pair = np.add.reduceat(clicks, starts).astype(np.float64)
    exponent = EXPONENT
    for _ in range(_STEPS):  # Newton's method: the logarithm of the likelihood is concave
        weights = times * np.exp(-exponent * logs)
        share = weights / np.add.reduceat(weights, starts)[pair]
        mean = np.add.reduceat(share * logs, starts)
        variance = np.add.reduceat(share * (logs - mean[pair]) ** 2, starts)
        slope = of_pair @ mean - clicks @ logs - (exponent - EXPONENT) / _SPREAD**2
        step = float(slope / (of_pair @ variance + 1 / _SPREAD**2))
        exponent = min(max(exponent + step, 0.0), _MOST_EXPONENT)
        if abs(step) < 1e-9:
            break
    return exponent
