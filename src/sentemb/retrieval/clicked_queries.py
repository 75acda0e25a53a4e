"""The queries that products were clicked for, each with the product's share of its clicks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.data.examinations import Examinations
from sentemb.data.text_array import Texts, taken
from sentemb.retrieval.rows_of_texts import TextRows
from sentemb.text.hashes import hashes_of
from sentemb.text.words import exact_key

_Integer = TypeVar("_Integer", bound=np.integer)

# The clicks of a title that a person has pinned to a query: more than any log has.
PIN = 10**9
# Titles that are looked up at a time.
_PORTION = 8192


class ExaminedTitles(NamedTuple):
    """Titles of a catalogue that were looked at for a query.

    keys : (n,), hashes of the `exact_key` of queries
    titles : (n,), numbers of titles; a pair may be there twice
    times : (n,), how often
    """

    keys: NDArray[np.int64]
    titles: NDArray[np.int64]
    times: NDArray[np.float64]


class ClicksOfTitles(NamedTuple):
    """The clicked queries of each title of a catalogue.

    offsets : (n_titles + 1,); title t has the entries ``offsets[t]`` to ``offsets[t + 1]`` of the
        next three
    queries : (n_entries,), numbers of queries
    shares : (n_entries,), the title's share of all clicks of the query, above 0 and at most 1
    clicks : (n_entries,), the clicks themselves
    totals : (n_queries,), all clicks of each query, on whatever title
    examined : how often titles were looked at for a query: its hash, the title and how often
    """

    offsets: NDArray[np.int64]
    queries: NDArray[np.int32]
    shares: NDArray[np.float64]
    clicks: NDArray[np.int64]
    totals: NDArray[np.int64]
    examined: ExaminedTitles

    def of_few_queries(self) -> tuple[NDArray[np.int32], ClicksOfTitles]:
        """The queries that are there, and this with the numbers that they have among these."""
        used, numbers = np.unique(self.queries, return_inverse=True)
        queries = numbers.astype(np.int32)
        return used, self._replace(queries=queries, totals=self.totals[used])


@dataclass(frozen=True, eq=False)
class ClickedQueries:
    """The clicks of a log, by product.

    A product is known by its key: its id, or its title where the log has no ids.

    keys, queries : products, and distinct queries, in the order of the log
    offsets : (n_keys + 1,); product p has the entries ``offsets[p]`` to ``offsets[p + 1]`` of the
        next two
    clicked : (n_entries,), numbers of queries, in the order of the log
    clicks : (n_entries,), clicks on the product for the query
    titles, product_of : the titles of the log, and the product of each (n_titles,); the first one
        where several have the title
    renamed : titles that a catalogue has for products of the log, and the product of each
    examinations : how often products were looked at for a query, if a record says it
    """

    keys: Sequence[str]
    queries: Sequence[str]
    offsets: NDArray[np.int64]
    clicked: NDArray[np.int32]
    clicks: NDArray[np.int64]
    titles: Sequence[str]
    product_of: NDArray[np.int32]
    renamed: Mapping[str, int] = field(default_factory=dict)
    examinations: Examinations = field(default_factory=Examinations.nothing)

    @classmethod
    def of(cls, log: ClickLog) -> Self:
        """The clicks of a log."""
        pairs = np.argsort(log.title_index, kind="stable")
        # A title that was skipped and never clicked has no product.
        products, counts = np.unique(log.title_index, return_counts=True)
        numbers, clicked = np.unique(log.query_index[pairs], return_inverse=True)
        titles = [log.titles[t] for t in products.tolist()]
        return cls(
            titles,
            [log.queries[q] for q in numbers.tolist()],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            clicked.astype(np.int32),
            log.clicks[pairs],
            titles,
            np.arange(len(titles), dtype=np.int32),
        )

    @classmethod
    def nothing(cls) -> Self:
        """No clicks."""
        integers = np.empty(0, np.int32)
        return cls([], [], np.zeros(1, np.int64), integers, np.empty(0, np.int64), [], integers)

    def with_clicks(self, query: str, title: str, id: str, clicks: int) -> Self:
        """With more clicks on a product for a query, or with fewer if ``clicks`` is below 0.

        The product is known by its ``id``, or else by its ``title``. Fewer than none are none.
        """
        product = self.product(id, title)
        keys, titles, product_of = list(self.keys), list(self.titles), self.product_of
        offsets, q = self.offsets, next((k for k, q in enumerate(self.queries) if q == query), -1)
        queries = list(self.queries)
        if product < 0:
            product = len(keys)
            keys.append(id)
            titles.append(title.strip())
            product_of = np.append(product_of, np.int32(product))
            offsets = np.append(offsets, offsets[-1])
        if q < 0:
            q = len(queries)
            queries.append(query)
        entries = slice(offsets[product], offsets[product + 1])
        there = np.flatnonzero(self.clicked[entries] == q)
        at = int(offsets[product] + there[0]) if there.size else int(offsets[product + 1])
        count = max(clicks + (int(self.clicks[at]) if there.size else 0), 0)
        replaced, added = slice(at, at + there.size), [count] if count else []
        numbers = [np.int32(q)] * len(added)
        steps = np.zeros(len(offsets), np.int64)
        steps[product + 1 :] = len(added) - there.size
        changed = replace(
            self,
            keys=keys,
            queries=queries,
            offsets=offsets + steps,
            clicked=_spliced(self.clicked, replaced, numbers),
            clicks=_spliced(self.clicks, replaced, added),
            titles=titles,
            product_of=product_of,
        )
        return changed.without_queries(changed.totals == 0)

    def without_queries(self, is_left_out: NDArray[np.bool_]) -> Self:
        """The clicks without some queries, (n_queries,) bool."""
        if not is_left_out.any():
            return self
        is_kept = ~is_left_out
        number = np.cumsum(is_kept) - 1
        stays = is_kept[self.clicked]
        products = np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))[stays]
        counts = np.bincount(products, minlength=len(self.keys))
        return replace(
            self,
            queries=[self.queries[q] for q in np.flatnonzero(is_kept).tolist()],
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            clicked=number[self.clicked[stays]].astype(np.int32),
            clicks=self.clicks[stays],
        )

    def clicks_of(self, queries: Sequence[str]) -> NDArray[np.int64]:
        """All clicks of each query, by `exact_key`; (n,)."""
        keys = list(map(exact_key, queries))
        counts = dict.fromkeys(keys, 0)
        for query, total in zip(self.queries, self.totals.tolist(), strict=True):
            if (key := exact_key(query)) in counts:
                counts[key] += total
        return np.array([counts[key] for key in keys], np.int64)

    def single_clicks(self, held_out: ClickLog) -> ClickLog | None:
        """The held-out clicks that are single clicks of queries that are clicked here too.

        They are clicks of a later time, or were taken out of the log one by one. If every one of
        them is among the clicks here, they are not held out, and the result is None, as it is if
        none is of a query that is clicked here, by `exact_key`.
        """
        keys = list(map(exact_key, held_out.queries))
        asked = set(keys)
        here = {
            q: key for q, query in enumerate(self.queries) if (key := exact_key(query)) in asked
        }
        known = set(here.values())
        is_known = np.array([key in known for key in keys], bool)
        if not is_known.any():
            return None
        products = np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))
        there: Counter[tuple[str, int]] = Counter()
        for e in np.flatnonzero(np.isin(self.clicked, list(here))).tolist():
            there[here[int(self.clicked[e])], int(products[e])] += int(self.clicks[e])
        product_of = [self._product_of(title) for title in held_out.titles]
        pairs = held_out.query_index.tolist(), held_out.title_index.tolist()
        if all(
            n <= there[keys[q], product_of[t]]
            for q, t, n in zip(*pairs, held_out.clicks.tolist(), strict=True)
            if is_known[q]
        ):
            return None
        return held_out.part(is_known)

    def without_products(self, is_left_out: NDArray[np.bool_]) -> Self:
        """No clicks for some products, (n_keys,) bool; the shares of the others do not change."""
        lengths = np.diff(self.offsets)
        stays = ~np.repeat(is_left_out, lengths)
        offsets = np.concatenate([[0], np.cumsum(np.where(is_left_out, 0, lengths))])
        left = replace(
            self,
            offsets=offsets.astype(np.int64),
            clicked=self.clicked[stays],
            clicks=self.clicks[stays],
        )
        left.__dict__["shares"], left.__dict__["totals"] = self.shares[stays], self.totals
        return left

    def with_ids(self, titles: Sequence[str], ids: Sequence[str]) -> Self:
        """The same clicks, for which each title of a catalogue is the product with its id.

        A product that is known by its title is known by the id instead, and a title that the log
        lacks is that of the product whose id it has. If most ids belong to products with other
        titles of the catalogue, they are of another numbering, and titles count. Of several ids
        with one title the first has the product; the others find its clicks by the title, also
        where another product has got that title since.
        """
        keys = list(self.keys)
        renamed: dict[str, int] = {}
        is_own = np.zeros(len(titles), np.bool_)  # titles of products that are known by them
        n_same = n_others = 0
        known: dict[str, int] = {}  # ids that have got a product
        products = self._products_of(titles).tolist(), self._number_of.of(ids).tolist()
        named = zip(map(str.strip, titles), ids, *products, strict=True)
        for row, (title, id, by_title, by_id) in enumerate(named):
            product = known.get(id, by_id)
            if product < 0:
                is_own[row] = True
                if by_title >= 0 and keys[by_title] == title:
                    known[id] = by_title
                    keys[by_title] = id
            elif product == by_title:
                is_own[row] = True
                n_same += 1
            else:
                n_others += by_title >= 0
                renamed.setdefault(title, product)
        for title in map(str.strip, taken(titles, is_own)) if renamed else ():
            renamed.pop(title, None)
        return replace(
            self,
            keys=Texts.of(keys) if isinstance(self.keys, Texts) else keys,
            renamed=renamed if n_same >= n_others else {},
        )

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The share of each entry in all clicks of its query, (n_entries,)."""
        return self.clicks / self.totals[self.clicked].astype(np.float64)

    def _shares_of(self, entries: NDArray[np.int64]) -> NDArray[np.float64]:
        """The shares of some entries; those of all are not made for a few."""
        if "shares" in self.__dict__ or 2 * entries.size > self.clicked.size:
            return self.shares[entries]
        return self.clicks[entries] / self.totals[self.clicked[entries]].astype(np.float64)

    @cached_property
    def totals(self) -> NDArray[np.int64]:
        """All clicks of each query, (n_queries,)."""
        return np.bincount(self.clicked, self.clicks, len(self.queries)).astype(np.int64)

    @cached_property
    def _number_of(self) -> TextRows:
        return TextRows(self.keys)

    @cached_property
    def _row_of_title(self) -> TextRows:
        return TextRows(self.titles)

    def product(self, id: str, title: str) -> int:
        """The number of the product with an id, or else with a title; -1 if the log has none."""
        return self._number_of.get(id, self._product_of(title))

    def key_of(self, title: str) -> str | None:
        """The key of the product that has a title, if any has."""
        number = self._product_of(title)
        return None if number < 0 else self.keys[number]

    def _product_of(self, title: str) -> int:
        """The number of the product that has a title, -1 if none has."""
        text = title.strip()
        row = self._row_of_title.get(text, -1)
        return self.renamed.get(text, int(self.product_of[row]) if row >= 0 else -1)

    def _products_of(self, titles: Sequence[str]) -> NDArray[np.int64]:
        """As `_product_of` of each title, but for those that are renamed."""
        products = np.append(self.product_of, -1).astype(np.int64)
        numbers = np.empty(len(titles), np.int64)
        for first in range(0, len(titles), _PORTION):
            portion = slice(first, first + _PORTION)
            stripped = list(map(str.strip, titles[portion]))
            numbers[portion] = products[self._row_of_title.of(stripped)]
        return numbers

    def of_titles(
        self, titles: Sequence[str], ids: Sequence[str | None] | None = None
    ) -> ClicksOfTitles:
        """The entries of the titles of a catalogue.

        White space around a title does not count. A product of the log is known by its id, if
        ``ids`` are given; one that is not is looked up by its title.
        """
        numbers = self._products_of(titles)
        if self.renamed:
            renamed = (self.renamed.get(title.strip(), -1) for title in titles)
            by_name = np.fromiter(renamed, np.int64, len(titles))
            numbers = np.where(by_name >= 0, by_name, numbers)
        if ids is not None:
            by_id = np.full(len(ids), -1)
            has_id = np.array([id is not None for id in ids], np.bool_)
            by_id[has_id] = self._number_of.of([id for id in ids if id is not None])
            numbers = np.where(by_id >= 0, by_id, numbers)
        lengths = np.where(numbers >= 0, np.diff(self.offsets, append=0)[numbers], 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        starts = np.repeat(self.offsets[numbers] - offsets[:-1], lengths)
        entries = starts + np.arange(offsets[-1])
        return ClicksOfTitles(
            offsets,
            self.clicked[entries],
            self._shares_of(entries),
            self.clicks[entries],
            self.totals,
            _examined(self.examinations, titles, ids),
        )


def _examined(
    examinations: Examinations, titles: Sequence[str], ids: Sequence[str | None] | None
) -> ExaminedTitles:
    """The examinations of the titles of a catalogue.

    A title is the product with its id; one without, or whose id no product has, is every product
    with its text.
    """
    if not examinations.times.size:
        return ExaminedTitles(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    by_id = {id: [number] for number, id in enumerate(examinations.ids)}
    by_title: dict[str, list[int]] = {}
    for number, title in enumerate(examinations.titles):
        by_title.setdefault(title.strip(), []).append(number)
    known = (None,) * len(titles) if ids is None else ids
    products = [
        by_id.get(id or "") or by_title.get(title.strip(), [])
        for title, id in zip(titles, known, strict=True)
    ]
    lengths = np.fromiter(map(len, products), np.int64, len(products))
    title_of = np.repeat(np.arange(len(titles)), lengths)
    product_of = np.fromiter(chain.from_iterable(products), np.int64, title_of.size)
    order = np.argsort(product_of, kind="stable")
    # The titles of the product of each examination are neighbours in this order.
    first, end = (
        np.searchsorted(product_of[order], examinations.product_index, side)
        for side in ("left", "right")
    )
    entries = np.repeat(np.arange(first.size), end - first)
    within = np.arange(entries.size) - np.repeat(
        np.cumsum(end - first) - (end - first), end - first
    )
    rows = order[first[entries] + within]
    keys = hashes_of(list(examinations.queries))[examinations.query_index]
    return ExaminedTitles(keys[entries], title_of[rows], examinations.times[entries])


def _spliced(
    values: NDArray[_Integer], replaced: slice, added: Sequence[int | np.integer]
) -> NDArray[_Integer]:
    """``values`` with others in a place."""
    middle = np.array(added, values.dtype)
    return np.concatenate([values[: replaced.start], middle, values[replaced.stop :]])
