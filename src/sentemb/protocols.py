"""The contracts between the rooms: all that one part may assume about another.

The protocols are structural: a class with the right members fulfils one without inheriting from it.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

# Named arrays: the weights of a tower, or a gradient of the same shapes.
Arrays: TypeAlias = dict[str, np.ndarray]
# A function and its arguments, to be called on some thread.
Task: TypeAlias = tuple[Any, ...]
# The words that hold each input row's feature: offsets, words, counts.
WordsOfFeatures: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int32]]


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


class Runner(Protocol):
    """Runs tasks side by side: what `sentemb.system.parallel.Workers` is to an optimiser."""

    def over(self, size: int, function: Callable[..., object], *arguments: object) -> None:
        """Call ``function(*arguments, first, end)`` for parts of ``range(size)``."""
        ...


@runtime_checkable
class InputRows(Protocol):
    """The input rows of a mini-batch at the point where its gradient is taken.

    The rows themselves need not exist in memory: a projection may compute them on the fly.
    """

    @property
    def rows(self) -> NDArray[np.int32]:
        """Which rows of ``table`` they are: (n_rows,) int32."""
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
        counts: NDArray[np.int32],
    ) -> list[Task]:
        """Tasks that project words.

        Parameters
        ----------
        P : (n_words, width) float, written
            The bias plus the sum of the rows of the word's features, times their counts.
        bias : (width,) float
            Added to every word.
        offsets, ids, counts : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) int32
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


@runtime_checkable
class Optimiser(Protocol):
    """Owns the weights of one tower while they are trained."""

    @property
    def weights(self) -> Arrays:
        """The live weights. Call `flush` before reading ``table``."""
        ...

    def point(self, rows: NDArray[np.int32], update: int) -> GradientPoint:
        """The point at which the gradient of ``update`` is taken.

        Parameters
        ----------
        rows : (n_rows,) int32
            The input rows of the mini-batch.
        update : int
            From 0.
        """
        ...

    def step_tasks(
        self,
        point: GradientPoint,
        gradient: Arrays,
        words_of_features: WordsOfFeatures,
        update: int,
        rate: float,
    ) -> Generator[list[Task], None, float]:
        """One update of the weights, as a job for `Workers.together`.

        Parameters
        ----------
        point : GradientPoint
            What `point` returned for this update.
        gradient : dict of arrays
            The gradient there, as `Encoder.backward_tasks` returns it: ``words`` in place of
            ``table``.
        words_of_features : (n_rows + 1,) int64, (n_entries,) int32, (n_entries,) int32
            Offsets, words and counts: the words that hold each input row's feature, and how often.
        update : int
            From 0.
        rate : float
            The learning rate.

        Returns
        -------
        float
            The gradient's norm before re-normalisation.
        """
        ...

    def flush(self, update: int, workers: Runner) -> None:
        """Bring every weight to its value before ``update``; a no-op if no update is deferred."""
        ...

    def state(self) -> Arrays:
        """All arrays that a checkpoint must keep, by name."""
        ...
