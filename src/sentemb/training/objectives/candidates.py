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
class BatchCandidates:
    """Every title of the mini-batch competes for every query, apart from some exclusions.

    All numbers are indices into the mini-batch.

    queries, clicked : (n_pairs,), the query and the clicked title of each pair
    offsets, excluded : (n_pairs + 1,), (n,), for each pair the titles that do not compete: the
        others clicked for its query
    """

    queries: NDArray[np.int32]
    clicked: NDArray[np.int32]
    offsets: NDArray[np.int64]
    excluded: NDArray[np.int32]


Candidates: TypeAlias = ListedCandidates | BatchCandidates
