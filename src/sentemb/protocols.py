"""The contracts between the rooms: all that one part may assume about another.

The protocols are structural: a class with the right members fulfils one without inheriting from it.
"""

from collections.abc import Sequence
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

# Named arrays: the weights of a tower, or a gradient of the same shapes.
Arrays: TypeAlias = dict[str, np.ndarray]


@runtime_checkable
class Ranker(Protocol):
    """Scores pairs of queries and titles: all that evaluation and comparison need."""

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Score pairs of texts.

        Parameters
        ----------
        queries, titles : sequence of str
            The distinct texts.
        query_index, title_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with ``titles[title_index[j]]``.

        Returns
        -------
        (k,) float64
            Higher is better.
        """
        ...


@runtime_checkable
class Embedder(Ranker, Protocol):
    """A ranker that gives every text a vector: what an index needs."""

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        ...

    def encode_query(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of queries: (k, dim) float32 or float64."""
        ...

    def encode_document(self, texts: Sequence[str]) -> np.ndarray:
        """Embeddings of titles: (k, dim) float32 or float64."""
        ...
