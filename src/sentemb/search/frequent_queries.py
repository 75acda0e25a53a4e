"""Frequent queries of a click log: what completes a text, and what somebody may have meant."""

from __future__ import annotations

import sys
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.edits import distance, most_edits
from sentemb.search.respelling import Respelling
from sentemb.text.words import folded_words

# A query with this many clicks is frequent.
LEAST_CLICKS = 5
# The last character: behind all continuations of a text.
_LAST = chr(sys.maxunicode)
# Suggestions that are looked at before all that begin with a text are sorted.
_FIRST = 64
# Letters are counted in this many groups.
_GROUPS = 32


class FrequentQueries:
    """Queries as their folded words, so that case, accents and punctuation do not count.

    They are given with the most frequent first. Of those with the same words the first counts.
    """

    def __init__(self, queries: Iterable[str]) -> None:
        self.by_key: dict[str, str] = {}
        for query in queries:
            if key := folded(query):
                self.by_key.setdefault(key, query)
        self._keys = list(self.by_key)
        self._lengths = np.array([len(key) for key in self._keys], np.int64)
        self._letters = _counted_letters(self._keys)
        # By the alphabet, so that those with one beginning follow each other; and their frequency.
        order = sorted(range(len(self._keys)), key=self._keys.__getitem__)
        self._sorted = [self._keys[rank] for rank in order]
        self._rank_of_sorted = np.array(order, np.int64)

    @classmethod
    def of(cls, clicks: ClickedQueries, least: int = LEAST_CLICKS) -> Self:
        """The queries with at least ``least`` clicks; of two with as many the first of the log.

        Their words are spelled as most clicks have them; see `Respelling`.
        """
        counts = np.bincount(clicks.clicked, clicks.clicks, len(clicks.queries))
        order = np.argsort(-counts, kind="stable")
        spelled = Respelling(clicks)
        return cls(map(spelled, order[counts[order] >= least].tolist()))

    def __len__(self) -> int:
        return len(self.by_key)

    def beginning_with(self, text: str) -> Iterator[str]:
        """The queries that begin with a text and continue it, the most frequent first."""
        begun = folded(text)
        if not begun:
            return
        first = bisect_right(self._sorted, begun)
        end = bisect_left(self._sorted, begun + _LAST, first)
        ranks = self._rank_of_sorted[first:end]
        if ranks.size > _FIRST:  # so that many are not sorted for a few
            ranks = np.partition(ranks, _FIRST)
        for few in (ranks[:_FIRST], ranks[_FIRST:]):
            for rank in np.sort(few).tolist():
                yield self.by_key[self._keys[rank]]

    def near(self, text: str) -> list[str]:
        """The queries that differ from a text in a few letters, the nearest first.

        A letter that is missing, too many or another one counts 1, and so do two in the wrong
        order. A text of 3 letters may differ by 1 and one of 6 by 2.
        """
        key = folded(text)
        most = most_edits(key)
        rows = np.flatnonzero(np.abs(self._lengths - len(key)) <= most)
        # Each difference changes the counts of at most two letters.
        differing = np.abs(self._letters[rows] - _counted_letters([key])).sum(axis=1)
        rows = rows[differing <= 2 * most]
        distances = {row: distance(key, self._keys[row]) for row in rows.tolist()}
        near = sorted((d, row) for row, d in distances.items() if 0 < d <= most)
        return [self.by_key[self._keys[row]] for _, row in near]


def folded(text: str) -> str:
    """The folded words of a text, with blanks between them."""
    return " ".join(folded_words(text))


def _counted_letters(keys: Sequence[str]) -> NDArray[np.int8]:
    """How often each group of letters occurs in each key, up to 127, (n_keys, `_GROUPS`)."""
    letters = np.frombuffer("".join(keys).encode("utf-32-le"), np.uint32)
    key_of = np.repeat(np.arange(len(keys)), [len(key) for key in keys])
    cells = key_of * _GROUPS + letters % _GROUPS
    counts = np.bincount(cells, minlength=len(keys) * _GROUPS)
    return np.minimum(counts, 127).astype(np.int8).reshape(len(keys), _GROUPS)
