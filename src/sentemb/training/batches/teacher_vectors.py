"""The vectors of a log by another embedding, the teacher of two towers."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.training.objectives.candidates import SoftTargets


@dataclass(frozen=True, eq=False)
class TeacherVectors:
    """The unit vectors that a teacher has for the queries and titles of a log.

    queries, titles : (n_queries, dim), (n_titles, dim) float; a text that it cannot read is zero
    share : the most that it may have of the target of a pair
    """

    queries: np.ndarray
    titles: np.ndarray
    share: float

    def part(self, queries: NDArray[np.integer], titles: NDArray[np.integer]) -> "TeacherVectors":
        """Those of some queries and titles."""
        return TeacherVectors(self.queries[queries], self.titles[titles], self.share)

    def targets(self, queries: NDArray[np.integer], titles: NDArray[np.integer]) -> SoftTargets:
        """Those of pairs with these ``queries`` (n_pairs,), among ``titles`` (n_titles,).

        All titles are alike to a query without a vector, which has nothing to teach.
        """
        of_queries = self.queries[queries]
        shares = self.share * of_queries.any(axis=1).astype(of_queries.dtype)
        return SoftTargets(of_queries, np.ascontiguousarray(self.titles[titles].T), shares)
