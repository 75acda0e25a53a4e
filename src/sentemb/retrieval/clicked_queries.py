"""The queries that products were clicked for, each with the product's share of its clicks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog


class ClicksOfTitles(NamedTuple):
    """The clicked queries of each title of a catalogue.

    Attributes
    ----------
    offsets : (n_titles + 1,) int64
        Title t has the entries ``offsets[t]`` to ``offsets[t + 1]`` of the next two.
    queries : (n_entries,) int32
        Numbers of queries.
    shares : (n_entries,) float64
        The title's share of all clicks of the query, above 0 and at most 1.
    """

    offsets: NDArray[np.int64]
    queries: NDArray[np.int32]
    shares: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ClickedQueries:
    """The clicks of a log, by product.

    A product is known by its key: its id, or its title where the log has no ids.

    Attributes
    ----------
    keys, queries : sequence of str
        Products, and distinct queries, in the order of the log.
    offsets : (n_keys + 1,) int64
        Product p has the entries ``offsets[p]`` to ``offsets[p + 1]`` of the next two.
    clicked : (n_entries,) int32
        Numbers of queries, in the order of the log.
    clicks : (n_entries,) int64
        Clicks on the product for the query.
    titles, product_of : sequence of str, (n_titles,) int32
        The titles of the log, and the product of each; the first one where several have the title.
    """

    keys: Sequence[str]
    queries: Sequence[str]
    offsets: NDArray[np.int64]
    clicked: NDArray[np.int32]
    clicks: NDArray[np.int64]
    titles: Sequence[str]
    product_of: NDArray[np.int32]

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

    def without_queries(self, is_left_out: NDArray[np.bool_]) -> Self:
        """The clicks without some queries, (n_queries,) bool."""
        if not is_left_out.any():
            return self
        is_kept = ~is_left_out
        number = np.cumsum(is_kept) - 1
        kept = is_kept[self.clicked]
        products = np.repeat(np.arange(len(self.keys)), np.diff(self.offsets))[kept]
        counts = np.bincount(products, minlength=len(self.keys))
        return replace(
            self,
            queries=[self.queries[q] for q in np.flatnonzero(is_kept).tolist()],
            offsets=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            clicked=number[self.clicked[kept]].astype(np.int32),
            clicks=self.clicks[kept],
        )

    def without_products(self, is_left_out: NDArray[np.bool_]) -> Self:
        """No clicks for some products, (n_keys,) bool; the shares of the others do not change."""
        lengths = np.diff(self.offsets)
        kept = ~np.repeat(is_left_out, lengths)
        offsets = np.concatenate([[0], np.cumsum(np.where(is_left_out, 0, lengths))])
        left = replace(
            self,
            offsets=offsets.astype(np.int64),
            clicked=self.clicked[kept],
            clicks=self.clicks[kept],
        )
        left.__dict__["shares"] = self.shares[kept]
        return left

    def with_ids(self, titles: Sequence[str], ids: Sequence[str]) -> Self:
        """Products that are known by titles, known by ids instead where these are given.

        Parameters
        ----------
        titles, ids : sequence of str
            A catalogue. Of several ids with one title the first has the product; the others find
            its clicks by the title.
        """
        keys, known = list(self.keys), set(self.keys)
        for title, id in zip(titles, ids, strict=True):
            product = self._number_of_title.get(title.strip(), -1)
            if product >= 0 and keys[product] == title.strip() and id not in known:
                known.add(id)
                keys[product] = id
        return replace(self, keys=keys)

    @cached_property
    def shares(self) -> NDArray[np.float64]:
        """The share of each entry in all clicks of its query, (n_entries,)."""
        clicks = self.clicks.astype(np.float64)
        total = np.bincount(self.clicked, clicks, len(self.queries))
        return clicks / total[self.clicked]

    @cached_property
    def _number_of(self) -> dict[str, int]:
        return {key: number for number, key in enumerate(self.keys)}

    @cached_property
    def _number_of_title(self) -> dict[str, int]:
        return dict(zip(self.titles, self.product_of.tolist(), strict=True))

    def key_of(self, title: str) -> str:
        """The key of the product that has a title; the title itself if none has."""
        number = self._number_of_title.get(title.strip(), -1)
        return title.strip() if number < 0 else self.keys[number]

    def of_titles(self, titles: Sequence[str], ids: Sequence[str] | None = None) -> ClicksOfTitles:
        """The entries of the titles of a catalogue.

        Parameters
        ----------
        titles : sequence of str
            White space around a title does not count.
        ids : sequence of str, optional
            One per title. A product of the log is known by its id; one that is not is looked up by
            its title.
        """
        by_title, by_key = self._number_of_title, self._number_of
        found = (by_title.get(title.strip(), -1) for title in titles)
        if ids is not None:
            found = (by_key.get(id, number) for id, number in zip(ids, found, strict=True))
        numbers = np.fromiter(found, np.int64, len(titles))
        lengths = np.where(numbers >= 0, np.diff(self.offsets, append=0)[numbers], 0)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        starts = np.repeat(self.offsets[numbers] - offsets[:-1], lengths)
        entries = starts + np.arange(offsets[-1])
        return ClicksOfTitles(offsets, self.clicked[entries], self.shares[entries])
