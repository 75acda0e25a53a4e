"""Which titles of a mini-batch compete for each pair."""

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class ListedCandidates:
    """Each pair has its own list of competing titles.

    All numbers are indices into the mini-batch.

    queries : (n_pairs,), the query of each pair
    offsets, titles : (n_pairs + 1,), (n,), the candidates of each pair, its clicked title first
    """

    queries: NDArray[np.int32]
    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]


@dataclass(frozen=True)
class SoftTargets:
    """The vectors of a mini-batch by an embedding that is a teacher.

    queries : (n_pairs, dim) float, the unit vector of the query of each pair
    titles : (dim, n_titles) float, the unit vectors of the titles, transposed
    shares : (n_pairs,) float, the most that the teacher may have of the target of each pair; the
        rest is the click
    """

    queries: np.ndarray
    titles: np.ndarray
    shares: np.ndarray

    def arrays(self, dtype: np.dtype) -> list[np.ndarray]:
        """All three in another type."""
        return [a.astype(dtype, copy=False) for a in (self.queries, self.titles, self.shares)]


@dataclass(frozen=True)
class BatchCandidates:
    """Every title of the mini-batch competes for every query, apart from some exclusions.

    All numbers are indices into the mini-batch.

    queries, clicked : (n_pairs,), the query and the clicked title of each pair
    offsets, excluded : (n_pairs + 1,), (n,), for each pair the titles that do not compete: the
        others clicked for its query
    targets : those of a teacher; None if the clicked title is all of the target
    """

    queries: NDArray[np.int32]
    clicked: NDArray[np.int32]
    offsets: NDArray[np.int64]
    excluded: NDArray[np.int32]
    targets: SoftTargets | None = None


Candidates: TypeAlias = ListedCandidates | BatchCandidates
