"""Projection of words: each distinct word of a batch is projected once, and back.

The input weights are ``table`` (n_features, width), one row per letter trigram or word. A word is
the sum of the rows of its features. `blocks` gives all arrays the names and shapes that the papers
use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.input_layer import add_parts, gather_rows, sum_rows
from sentemb.models.contracts import GradientPoint
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Job, Workspace, spans_of
from sentemb.system.aligned import aligned_zeros
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import Workers, one_after_the_other, spread
from sentemb.text.batch import TextBatch

# Column, errors, offsets and rows, as `WordReader.gather_words_tasks` sums them up.
WordErrors: TypeAlias = tuple[int, np.ndarray, NDArray[np.int64], NDArray[np.int32]]


class WordReader:
    """Base of all models that read words through input weights."""

    @property
    def width(self) -> int:
        """Length of a projected word."""
        raise NotImplementedError

    # -- weights ------------------------------------------------------------------------------

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        raise NotImplementedError

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays under the names and in the shapes that the papers use.

        Works on weights and on gradients.
        """
        raise NotImplementedError

    def initialise(
        self,
        n_features: int,
        rng: np.random.Generator,
        dtype: DTypeLike = np.float32,
        seen: NDArray[np.integer] | None = None,
    ) -> Arrays:
        """Initial weights: ``table`` and the matrices in `spreads` are normal, all others 0.

        The standard deviations are `table_spread` and those in `spreads`. ``n_features`` is the
        number of rows of ``table``. ``seen`` (k,) int are the features that the model meets in
        training: the rows of all others start at zero and stay there.
        """
        shapes = self.shapes(n_features)
        weights = {name: aligned_zeros(shape, dtype) for name, shape in shapes.items()}
        rows = np.arange(n_features) if seen is None else seen
        numbers = rng.standard_normal((rows.size, self.width), np.float32)
        weights["table"][rows] = self.table_spread() * numbers
        for name, spread_of_name in self.spreads().items():
            weights[name][...] = spread_of_name * rng.standard_normal(weights[name].shape)
        return weights

    def table_spread(self) -> float:
        """Standard deviation of the initial input weights."""
        return 0.05

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial dense matrices by name; the others start at zero."""
        return {}

    # -- words --------------------------------------------------------------------------------

    def word_bias(self, weights: Arrays, dtype: DTypeLike) -> np.ndarray:
        """The vector that is added to every projected word: (width,) of ``dtype``."""
        return np.zeros(self.width, dtype)

    def project(self, weights: Arrays, batch: TextBatch, workers: Workers) -> np.ndarray:
        """W l plus `word_bias` of every distinct word of ``batch``: (n_words, width) float."""
        point = point_of(weights, batch.input_rows)
        return workers.together(self.project_tasks(point, batch, Workspace()))[0]

    def project_tasks(
        self, point: GradientPoint, batch: TextBatch, workspace: Workspace
    ) -> Job[np.ndarray]:
        """See `project`, as a job for `Workers.together`; ``workspace`` holds the result."""
        rows = point.input_rows
        P = workspace.empty("P", (batch.n_words, self.width), rows.dtype)
        yield rows.project_tasks(
            P,
            self.word_bias(point.weights, rows.dtype),
            batch.feature_offsets,
            batch.feature_ids,
            batch.feature_values,
        )
        return P

    def gather_words_tasks(
        self,
        batch: TextBatch,
        parts: Sequence[WordErrors],
        workspace: Workspace,
        also: Sequence[KernelTask] = (),
    ) -> Job[tuple[np.ndarray, np.ndarray]]:
        """The gradient at the projected words, as a job for `Workers.together`.

        A part is ``(column, errors, offsets, rows)``: ``dP[w, column:]`` gets the sum of
        ``errors[rows[e]]`` over the entries e of list w. Returns dP (n_words, width) float and its
        sum over all words, (width,), the gradient at the bias; ``workspace`` holds them. The tasks
        ``also`` are other tasks of the same phase.
        """
        dtype = parts[0][1].dtype
        dP = workspace.empty("dP", (batch.n_words, self.width), dtype)
        entries = sum(errors.shape[1] * offsets for _, errors, offsets, _ in parts)
        # 2 width: to write a row and to add it.
        words = spans_of(np.asarray(entries), 1, 2 * self.width, sums=self.width)
        bias = workspace.zeros("dbias", (len(words), self.width), dtype)
        tasks: list[KernelTask] = []
        for part, first, end in words:
            gathers = [
                (gather_rows, dP, column, errors, offsets, rows, first, end)
                for column, errors, offsets, rows in parts
            ]
            tasks.append((one_after_the_other, *gathers, (sum_rows, bias[part], dP, first, end)))
        yield [*tasks, *also]
        return dP, bias.sum(axis=0)


def tasks_of_sums(total: np.ndarray, parts: np.ndarray) -> list[KernelTask]:
    """Tasks that set ``total`` to the sum of ``parts``, (n_parts, *its shape) float, in order."""
    numbers = total.reshape(-1), parts.reshape(len(parts), -1)
    return spread(total.size, add_parts, *numbers, cost=len(parts))
