"""Protocols of models: rankers, embedders, retrievers, the point of a gradient.

The protocols are structural: a class with the right members fulfils one without inheriting from it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sentemb.system.contracts import Arrays, KernelTask


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
class ByProduct(Ranker, Protocol):
    """A ranker that may know a title by the id of its product."""

    def with_ids(self, titles: Sequence[str], ids: Sequence[str]) -> Ranker:
        """The same ranker, for which each title is the product with its id."""
        ...


@runtime_checkable
class Embedder(Ranker, Protocol):
    """A ranker that gives every text a vector, as an index needs it."""

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


@runtime_checkable
class Retriever(Protocol):
    """Finds titles in the catalogue that it was built for."""

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The best titles for each query.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        k : int
            Titles per query, at most as many as there are.

        Returns
        -------
        places, scores : (n_queries, k) int64, (n_queries, k) float64
            Numbers of titles and their scores, best first, equal scores in the order of the titles.
            -1 and -inf where fewer titles are found.
        """
        ...


@runtime_checkable
class InputRows(Protocol):
    """The input rows of a mini-batch at the point where its gradient is taken.

    The rows themselves need not exist in memory: a projection may compute them on the fly.
    """

    @property
    def rows(self) -> NDArray[np.int32]:
        """The rows of ``table`` by number: (n_rows,) int32."""
        ...

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        ...

    def project_tasks(
        self,
        P: np.ndarray,
        bias: np.ndarray,
        offsets: NDArray[np.int64],
        ids: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> list[KernelTask]:
        """Tasks that project words.

        Parameters
        ----------
        P : (n_words, width) float, written
            The bias plus the sum of the rows of the word's features, times their values.
        bias : (width,) float
            Added to each sum.
        offsets, ids, values : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) float32
            The features of each word, as places among the rows, and how often it holds them.
        """
        ...


class GradientPoint(NamedTuple):
    """The point at which the gradient of one update is taken.

    Attributes
    ----------
    weights : dict of arrays
        The dense weights there.
    input_rows : InputRows
        The rows of ``table`` that the mini-batch uses there.
    """

    weights: Arrays
    input_rows: InputRows
