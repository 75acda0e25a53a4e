"""The half of an index that compares queries: those that its titles were clicked for."""

from __future__ import annotations

from dataclasses import dataclass, replace

from sentemb.bounds import number
from sentemb.protocols import Embedder
from sentemb.ranking.memory import QueryMemory
from sentemb.ranking.recipe import MAX_WEIGHT


@dataclass(frozen=True, eq=False)
class Memory:
    """The clicked queries of an index.

    Attributes
    ----------
    lists : QueryMemory
        The clicked queries of the same titles, with vectors if the weight is above 0.
    weight : float
        The weight of the memory in the sum; see `sentemb.search.hybrid`.
    """

    lists: QueryMemory
    weight: float = 0.0

    def weighted(self, weight: float, encoder: Embedder) -> Memory:
        """The same queries with another weight.

        Parameters
        ----------
        weight : float
            Without one the vectors are dropped: nothing reads them.
        encoder : Embedder
            Embeds the queries if they have no vectors yet.
        """
        weight = float(number("the weight of the memory", weight, 0, MAX_WEIGHT))
        lists = self.lists
        if not weight:
            lists = replace(lists, vectors=None)
        elif lists.vectors is None:
            lists = lists.embedded(encoder)
        return Memory(lists, weight)
