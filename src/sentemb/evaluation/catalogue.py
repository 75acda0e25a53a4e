"""The titles of a catalogue by their texts, and how a retriever ranks them."""

from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.contracts import Retriever

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]

# Positions and scores of a retriever in memory at a time: 64 MB of them.
_FETCHED = 4_000_000


class DistinctTitles:
    """A catalogue of which titles of equal text count as one.

    ``titles`` are in the order of the retrievers' positions; white space around a title does not
    count. ``number_of`` has the number of each distinct text, in the order of first appearance.
    Raises `SentembError` without any title.
    """

    def __init__(self, titles: Sequence[str]) -> None:
        if not titles:
            raise SentembError("the catalogue is empty; give the titles to rank")
        self.number_of: dict[str, int] = {}
        numbers = [
            self.number_of.setdefault(title.strip(), len(self.number_of)) for title in titles
        ]
        self._text_of = np.array(numbers, np.int64)  # position -> distinct text
        self._tie_rank = _tie_ranks(list(self.number_of))
        # Then retrievers, which leave equal scores in the order of the titles, order them as here.
        self._is_in_tie_order = len(self) == self._text_of.size and bool(
            (np.diff(self._tie_rank) > 0).all()
        )

    def __len__(self) -> int:
        return len(self.number_of)

    def rankings(
        self, retriever: Retriever, queries: Sequence[str], depth: int
    ) -> Iterator[tuple[int, _Integers, _Floats]]:
        """The best distinct titles of each query, in any order of the queries.

        Equal scores are ordered by a hash of the title's text. Memory is bounded, whatever the
        number of queries. ``retriever`` was built for the titles. Yields the number of a query, at
        most ``depth`` numbers of texts, best first, and the score of each. Raises `SentembError`
        for a score that is NaN.
        """
        depth = min(depth, len(self))
        fetched = min(depth + 1, self._text_of.size)
        waiting = list(range(len(queries)))
        while waiting:
            later = []
            portion = max(1, _FETCHED // fetched)
            for first in range(0, len(waiting), portion):
                numbers = waiting[first : first + portion]
                positions, scores = retriever.find([queries[q] for q in numbers], fetched)
                for number, row, of_row in zip(numbers, positions, scores, strict=True):
                    top = self._top(row, of_row, depth)
                    if top is None:
                        later.append(number)
                    else:
                        yield number, *top
            # Some titles have the same text, or the same score as the last one, perhaps all.
            waiting, fetched = later, min(64 * fetched, self._text_of.size)

    def _top(
        self, positions: _Integers, scores: _Floats, depth: int
    ) -> tuple[_Integers, _Floats] | None:
        """The best distinct titles, at most ``depth``; None if more must be fetched to know."""
        is_title = positions >= 0
        texts, values = self._text_of[positions[is_title]], scores[is_title]
        if np.isnan(values).any():
            raise SentembError("a score is NaN; a ranking needs a number for each title")
        nothing_is_equal = len(self) == self._text_of.size and (values[1:] < values[:-1]).all()
        if self._is_in_tie_order or nothing_is_equal:
            return texts[:depth], values[:depth]
        order = np.lexsort((self._tie_rank[texts], -values))
        _, first = np.unique(texts[order], return_index=True)
        best = order[np.sort(first)][:depth]
        is_all = texts.size < positions.size or positions.size == self._text_of.size
        if is_all or (best.size == depth and values.min() < values[best[-1]]):
            return texts[best], values[best]
        return None


def in_tie_order(texts: Iterable[str]) -> list[str]:
    """Distinct texts in the order that equal scores have here: that of their hashes.

    A retriever that leaves equal scores in the order of the catalogue agrees with `DistinctTitles`
    if its catalogue has this order.
    """
    return sorted(texts, key=_tie_key)


def _tie_key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _tie_ranks(texts: Sequence[str]) -> _Integers:
    """The rank of each text in the order of their hashes."""
    keys = list(map(_tie_key, texts))
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=keys.__getitem__)] = np.arange(len(texts))
    return ranks
