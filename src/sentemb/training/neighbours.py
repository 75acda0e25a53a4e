"""The order of an epoch whose mini-batches consist of groups of neighbours.

Neighbours are pairs whose titles are hard negatives of each other's queries. In one mini-batch they
compete without any title being added to it, so that hard negatives cost next to nothing.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.neighbours import group_pairs
from sentemb.training.corpus import Corpus

# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x6E656172


class Order(NamedTuple):
    """The order in which an epoch goes through the pairs.

    Attributes
    ----------
    pairs : (n_pairs,) int64
        Numbers of pairs.
    leads : (n_pairs,) bool
        Whether a pair is the first of its group: it draws hard negatives.
    """

    pairs: NDArray[np.int64]
    leads: NDArray[np.bool_]

    @classmethod
    def mixed(cls, corpus: Corpus, seed: int, epoch: int) -> "Order":
        """All pairs at random; each is a group of its own."""
        pairs = corpus.order(seed, epoch)
        return cls(pairs, np.ones(pairs.size, np.bool_))

    @classmethod
    def of_neighbours(
        cls, corpus: Corpus, hard_titles: NDArray[np.int32], size: int, seed: int, epoch: int
    ) -> "Order":
        """Groups of up to ``size`` neighbours, the groups at random.

        Parameters
        ----------
        corpus : Corpus
            The pairs.
        hard_titles : (n_queries, m) int32
            Hard negatives of every query, -1 where there are fewer.
        size, seed, epoch : int
            Together with ``hard_titles`` they decide the order.
        """
        order = corpus.order(seed, epoch)
        keys = np.random.SeedSequence([seed, epoch, _KEY]).generate_state(1, np.uint64)
        grouped, groups = np.empty_like(order), np.empty_like(order)
        pairs = corpus.query_index, corpus.title_index
        n_groups = group_pairs(
            grouped, groups, order, *pairs, corpus.n_titles, hard_titles, size, keys[0]
        )
        places = np.random.default_rng([seed, epoch, _KEY]).permutation(n_groups)[groups]
        by_place = np.argsort(places, kind="stable")
        return cls(grouped[by_place], np.diff(places[by_place], prepend=-1) != 0)

    def part(self, first: int, end: int) -> "Order":
        """The pairs from place ``first`` to ``end``."""
        return Order(self.pairs[first:end], self.leads[first:end])
