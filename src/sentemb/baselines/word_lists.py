"""For each word the titles that hold it: made, joined and thinned out in portions.

A portion of the titles is split into words at a time, and a portion of the entries is put in its
place. So memory grows with the lists that result and with the distinct words, not with the text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.words_and_stems import Words
from sentemb.system.growing import Growing
from sentemb.system.paths import AnyPath
from sentemb.text.batch import Places

# Titles that are split at a time, and entries that are moved at a time.
_TITLES, _ENTRIES = 16_384, 1 << 21


class WordLists(NamedTuple):
    """Lists of titles.

    Attributes
    ----------
    words : list of str
        In the order of their characters. Each is in some title.
    offsets : (n_words + 1,) int64
        Word w has the entries ``offsets[w]`` to ``offsets[w + 1]`` of the next arrays.
    titles : (n_entries,) int32
        Its titles, in ascending order.
    counts : (n_entries,) int32
        How often it is in the title.
    click_counts : (n_entries,) int32 or None
        How often it is in the clicked queries of the title.
    """

    words: list[str]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    counts: NDArray[np.int32]
    click_counts: NDArray[np.int32] | None

    @classmethod
    def of(
        cls,
        titles: Sequence[str],
        clicked: Sequence[str] | None,
        split: Words,
        scratch: AnyPath | None = None,
    ) -> WordLists:
        """The lists of ``titles`` and, for each of them, its clicked queries as one text.

        Entries are kept in ``scratch`` until all words are known; see
        `sentemb.system.growing.Growing`.
        """
        numbers = Places()
        n_columns = 3 if clicked is None else 4
        columns = [Growing(scratch) for _ in range(n_columns)]
        some_titles, some_clicked = iter(titles), iter(clicked or ())
        n_titles = 0
        while texts := list(islice(some_titles, _TITLES)):
            size = len(texts)
            texts += islice(some_clicked, size)
            word, place, *counts = _entries(texts, size, split, numbers)
            for column, own in zip(columns, (word, place + n_titles, *counts), strict=False):
                column.append(own.astype(np.int32))
            n_titles += size
        word_of_entry, *values = (column.array(np.int32) for column in columns)
        words = list(numbers)
        order = sorted(range(len(words)), key=words.__getitem__)
        place_of = np.empty(len(words), np.int32)
        place_of[order] = np.arange(len(order), dtype=np.int32)
        lengths = np.zeros(len(words), np.int64)
        for some in portions(len(word_of_entry)):
            lengths += np.bincount(place_of[word_of_entry[some]], minlength=len(words))
        offsets = _summed(lengths)
        filled = [np.empty(len(word_of_entry), np.int32) for _ in values]
        free = offsets[:-1].copy()
        for some in portions(len(word_of_entry)):
            places = place_of[word_of_entry[some]]
            # Stable: the titles of a word stay in ascending order.
            by_word = np.argsort(places, kind="stable")
            own, firsts, sizes = np.unique(places[by_word], return_index=True, return_counts=True)
            to = np.arange(len(places)) + np.repeat(free[own] - firsts, sizes)
            free[own] += sizes
            for value, target in zip(values, filled, strict=True):
                target[to] = value[some][by_word]
        listed = [words[number] for number in order]
        return cls(listed, offsets, filled[0], filled[1], None if clicked is None else filled[2])

    def joined(self, others: WordLists, n_titles: int) -> WordLists:
        """These lists, and those of further titles behind the ``n_titles`` titles of these."""
        words = sorted({*self.words, *others.words})
        number_of = {word: number for number, word in enumerate(words)}
        both = self, others
        numbers = [np.array([number_of[word] for word in lists.words], np.int64) for lists in both]
        sizes = np.zeros((2, len(words)), np.int64)
        for size, number, lists in zip(sizes, numbers, both, strict=True):
            size[number] = np.diff(lists.offsets)
        offsets = _summed(sizes.sum(axis=0))
        starts = offsets[:-1], offsets[:-1] + sizes[0]
        columns = [self.titles, self.counts]
        more = [others.titles, others.counts]
        if self.click_counts is not None and others.click_counts is not None:
            columns, more = [*columns, self.click_counts], [*more, others.click_counts]
        filled = [np.empty(offsets[-1], np.int32) for _ in columns]
        for lists, own, start, number, shift in zip(
            both, (columns, more), starts, numbers, (0, n_titles), strict=True
        ):
            by_word = start[number] - lists.offsets[:-1]
            for some in portions(len(lists.titles)):
                to = np.arange(some.start, some.stop) + of_entries(by_word, lists.offsets, some)
                for target, column, added in zip(filled, own, (shift, 0, 0), strict=False):
                    target[to] = column[some] + np.int32(added)
        return WordLists(words, offsets, *filled, *[None] * (3 - len(filled)))

    def kept(self, is_kept: NDArray[np.bool_]) -> WordLists:
        """The lists of the titles where ``is_kept``, (n_titles,), is true; these move up."""

        def are_kept(some: slice) -> NDArray[np.bool_]:
            kept: NDArray[np.bool_] = is_kept[self.titles[some]]
            return kept

        offsets = kept_before(self.offsets, are_kept)
        place_after = (np.cumsum(is_kept) - 1).astype(np.int32)
        columns = [self.titles, self.counts]
        if self.click_counts is not None:
            columns.append(self.click_counts)
        filled = [np.empty(offsets[-1], np.int32) for _ in columns]
        end = 0
        for some in portions(len(self.titles)):
            entries = are_kept(some)
            first, end = end, end + int(np.count_nonzero(entries))
            for target, column in zip(filled, columns, strict=True):
                target[first:end] = column[some][entries]
            filled[0][first:end] = place_after[filled[0][first:end]]
        holds = np.diff(offsets) > 0
        words = [word for word, held in zip(self.words, holds.tolist(), strict=True) if held]
        offsets = np.concatenate([[0], offsets[1:][holds]])
        return WordLists(words, offsets, *filled, *[None] * (3 - len(filled)))


def _entries(
    texts: Sequence[str], n_titles: int, split: Words, numbers: Places
) -> tuple[NDArray[np.int64], ...]:
    """Word, title, count and count in clicked queries of each entry of some titles.

    Behind the titles ``texts`` has their clicked queries, or nothing. New words get ``numbers``.
    """
    word_index: list[int] = []
    lengths = []
    for text in texts:
        words = split(text)
        word_index += map(numbers.__getitem__, words)
        lengths.append(len(words))
    # One number for word, title, and whether the token is of a clicked query.
    is_clicked, place = np.divmod(np.repeat(np.arange(len(texts)), lengths), n_titles)
    word = np.array(word_index, np.int64)
    keys, counts = np.unique((word * n_titles + place) * 2 + is_clicked, return_counts=True)
    is_first = np.diff(keys // 2, prepend=-1) > 0
    each = np.zeros((2, np.count_nonzero(is_first)), np.int64)
    each[keys % 2, np.cumsum(is_first) - 1] = counts
    return *np.divmod(keys[is_first] // 2, n_titles), each[0], each[1]


def portions(n_entries: int) -> Iterator[slice]:
    """Entries that are in memory at a time."""
    for first in range(0, n_entries, _ENTRIES):
        yield slice(first, min(first + _ENTRIES, n_entries))


def of_entries(values: NDArray[Any], offsets: NDArray[np.int64], some: slice) -> NDArray[Any]:
    """For each of some entries the value of its word.

    Parameters
    ----------
    values : (n_words,)
        One per word.
    offsets : (n_words + 1,) int64
        Word w has the entries ``offsets[w]`` to ``offsets[w + 1]``.
    some : slice
        Consecutive entries.
    """
    first = int(np.searchsorted(offsets, some.start, "right")) - 1
    end = int(np.searchsorted(offsets, some.stop))
    bounds = np.clip(offsets[first : end + 1], some.start, some.stop)
    return np.repeat(values[first:end], np.diff(bounds))


def kept_before(
    offsets: NDArray[np.int64], are_kept: Callable[[slice], NDArray[np.bool_]]
) -> NDArray[np.int64]:
    """How many entries are kept before each of ``offsets``, which ascend from 0 to all entries."""
    found, total = np.zeros(len(offsets), np.int64), 0
    for some in portions(int(offsets[-1])):
        kept = np.cumsum(are_kept(some))
        first, end = np.searchsorted(offsets, [some.start, some.stop], "right")
        found[first:end] = total + kept[offsets[first:end] - some.start - 1]
        total += int(kept[-1])
    return found


def _summed(lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths)])
