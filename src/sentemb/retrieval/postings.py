"""Titles by a key: the words that titles hold, or the queries that they were clicked for.

A key is the hash of a text (`sentemb.text.hashes`), so that opening a folder reads no texts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.text.batch import Tokens


@dataclass(frozen=True, eq=False)
class Postings:
    """For each key the titles that have it.

    keys : (n_keys,), ascending. A key may have no title: that of titles that were removed.
    offsets : (n_keys + 1,); key k has the entries ``offsets[k]`` to ``offsets[k + 1]``
    titles : (n_entries,), ascending within a key
    n_titles : all titles, from 0
    """

    keys: NDArray[np.int64]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    n_titles: int

    @classmethod
    def of(
        cls, keys: NDArray[np.int64], titles: NDArray[np.integer], n_titles: int
    ) -> tuple[Self, NDArray[np.int64]]:
        """Collect pairs of a key and a title, (n,) each, in any order and with repeats.

        The second result is the number of the entry of each pair, (n,).
        """
        distinct, number = np.unique(keys, return_inverse=True)
        return cls.of_numbers(distinct, number, titles, n_titles)

    @classmethod
    def of_numbers(
        cls,
        keys: NDArray[np.int64],
        number: NDArray[np.int64],
        titles: NDArray[np.integer],
        n_titles: int,
    ) -> tuple[Self, NDArray[np.int64]]:
        """Do the same for sorted ``keys``, which all stay; ``number`` is the key of each pair."""
        cells, entry = np.unique(number * max(n_titles, 1) + titles, return_inverse=True)
        return cls._of_cells(keys, cells, n_titles), entry

    @classmethod
    def of_tokens(cls, keys: NDArray[np.int64], tokens: Tokens) -> Self:
        """The titles that hold words: ``tokens`` are the titles, ``keys`` the key of each word."""
        distinct, number_of = np.unique(keys, return_inverse=True)
        n_titles = tokens.offsets.size - 1
        cells = number_of[tokens.word_index]
        cells *= n_titles
        cells += np.repeat(np.arange(n_titles, dtype=np.int32), np.diff(tokens.offsets))
        cells.sort()
        return cls._of_cells(distinct, cells[np.diff(cells, prepend=-1) > 0], n_titles)

    @classmethod
    def _of_cells(cls, keys: NDArray[np.int64], cells: NDArray[np.int64], n_titles: int) -> Self:
        offsets = np.searchsorted(cells, np.arange(keys.size + 1) * max(n_titles, 1))
        held = (cells % max(n_titles, 1)).astype(np.int32)
        return cls(keys, offsets, held, n_titles)

    def numbers(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        """The numbers of keys, (n,); -1 for one that is not there."""
        if not self.keys.size:
            return np.full(keys.size, -1)
        at = np.minimum(self.keys.searchsorted(keys), self.keys.size - 1)
        at[self.keys[at] != keys] = -1
        return at

    def entries(self, number: int) -> slice:
        """The entries of a key by its number; none for -1."""
        if number < 0:
            return slice(0, 0)
        return slice(int(self.offsets[number]), int(self.offsets[number + 1]))

    def holding_all(self, keys: NDArray[np.int64]) -> NDArray[np.int32]:
        """The titles that have all of some keys, ascending; none for no keys."""
        numbers = self.numbers(keys).tolist()
        if not numbers or min(numbers) < 0:
            return np.empty(0, np.int32)
        lists = [self.titles[self.offsets[number] : self.offsets[number + 1]] for number in numbers]
        lists.sort(key=len)
        titles = lists[0]
        for longer in lists[1:]:
            titles = titles[is_in(titles, longer)]
        return titles

    def without(self, is_kept: NDArray[np.bool_]) -> tuple[Self, NDArray[np.bool_]]:
        """The titles where ``is_kept``, (n_titles,), is true, and the entries that stay."""
        stays = is_kept[self.titles]
        number = np.cumsum(is_kept) - 1
        offsets = np.concatenate([[0], np.cumsum(stays)])[self.offsets].astype(np.int64)
        titles = number[self.titles[stays]].astype(np.int32)
        return type(self)(self.keys, offsets, titles, int(is_kept.sum())), stays

    def joined(self, behind: Postings) -> tuple[Self, NDArray[np.int64]]:
        """These titles, then those of other postings.

        The second result is the order of the entries, among these and then the other ones.
        """
        keys = np.union1d(self.keys, behind.keys)
        number_of = np.concatenate(
            [
                np.repeat(np.searchsorted(keys, each.keys), np.diff(each.offsets))
                for each in (self, behind)
            ]
        )
        order = np.argsort(number_of, kind="stable")
        counts = np.bincount(number_of, minlength=keys.size)
        titles = np.concatenate([self.titles, behind.titles + np.int32(self.n_titles)])[order]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        n_titles = self.n_titles + behind.n_titles
        return type(self)(keys, offsets, titles.astype(np.int32), n_titles), order


def is_in(few: NDArray[np.integer], many: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Which of ``few`` are among ``many``, both ascending; (n_few,)."""
    if not many.size:
        return np.zeros(few.size, np.bool_)
    at = np.minimum(many.searchsorted(few), many.size - 1)
    return np.asarray(many[at] == few)
