"""The order of an epoch whose mini-batches consist of groups of neighbours.

Neighbours are pairs whose titles are hard negatives of each other's queries. In one mini-batch they
compete without any title being added to it, so that hard negatives cost next to nothing.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.neighbour_groups import group_pairs
from sentemb.training.batches.corpus import Corpus
from sentemb.training.contracts import Windows

# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x6E656172


class OrderPart(NamedTuple):
    """Consecutive pairs of an `Order`.

    pairs : (n,) numbers of pairs
    leads : (n,) whether a pair is the first of its group: it draws hard negatives
    """

    pairs: NDArray[np.int64]
    leads: NDArray[np.bool_]


# From the number of a window and its pairs to these pairs in groups.
_Grouping: TypeAlias = Callable[[int, NDArray[np.int64]], OrderPart]


class Order:
    """The order in which an epoch goes through the pairs; its windows are made one by one.

    ``windows`` are the pairs at random; ``grouped`` puts the pairs of a window into groups.
    """

    def __init__(self, windows: Windows, grouped: _Grouping) -> None:
        self._windows, self._grouped = windows, grouped
        self._made: dict[int, OrderPart] = {}

    @classmethod
    def mixed(cls, corpus: Corpus, seed: int, epoch: int) -> "Order":
        """All pairs at random; each is a group of its own."""
        return cls(
            corpus.order(seed, epoch),
            lambda number, pairs: OrderPart(pairs, np.ones(pairs.size, np.bool_)),
        )

    @classmethod
    def of_neighbours(
        cls, corpus: Corpus, hard_titles: NDArray[np.int32], size: int, seed: int, epoch: int
    ) -> "Order":
        """Groups of up to ``size`` neighbours of one window, the groups of a window at random.

        ``hard_titles`` (n_queries, m) are hard negatives of every query, -1 where there are fewer.
        They decide the order together with size, seed and epoch.
        """

        def grouped(number: int, pairs: NDArray[np.int64]) -> OrderPart:
            key = [seed, epoch, _KEY, *([number] if number else [])]
            return _grouped(corpus, pairs, hard_titles, size, key)

        return cls(corpus.order(seed, epoch), grouped)

    def part(self, first: int, end: int) -> OrderPart:
        """The pairs from position ``first`` to ``end``; cheapest if the parts are in order."""
        starts = self._windows.starts
        lowest, highest = np.searchsorted(starts, [first, end - 1], "right").tolist()
        numbers = range(lowest - 1, highest)
        self._made = {
            number: self._made.get(number) or self._grouped(number, self._windows.window(number))
            for number in numbers
        }
        pieces = []
        for number, made in self._made.items():
            start = int(starts[number])
            piece = slice(max(0, first - start), end - start)
            pieces.append(OrderPart(made.pairs[piece], made.leads[piece]))
        return OrderPart(
            np.concatenate([piece.pairs for piece in pieces]),
            np.concatenate([piece.leads for piece in pieces]),
        )


def _grouped(
    corpus: Corpus,
    pairs: NDArray[np.int64],
    hard_titles: NDArray[np.int32],
    size: int,
    key: list[int],
) -> OrderPart:
    """Some pairs in groups; titles that none of them has are left out of the lists."""
    titles, title_index = np.unique(corpus.title_index[pairs], return_inverse=True)
    queries, query_index = np.unique(corpus.query_index[pairs], return_inverse=True)
    index_of = np.full(corpus.n_titles + 1, -1, np.int32)  # the last one for no title
    index_of[titles] = np.arange(titles.size)
    grouped, groups = np.empty_like(pairs), np.empty_like(pairs)
    n_groups = group_pairs(
        grouped,
        groups,
        np.arange(pairs.size),
        query_index.astype(np.int32),
        title_index.astype(np.int32),
        titles.size,
        index_of[hard_titles[queries]],
        size,
        np.random.SeedSequence(key).generate_state(1, np.uint64)[0],
    )
    positions = np.random.default_rng(key).permutation(n_groups)[groups]
    by_position = np.argsort(positions, kind="stable")
    return OrderPart(pairs[grouped[by_position]], np.diff(positions[by_position], prepend=-1) != 0)
