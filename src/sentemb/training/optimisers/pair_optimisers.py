"""Optimisers of pair models: dense arrays, and the rows of the words that a mini-batch touches."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.adam import adam_rows
from sentemb.kernels.input_layer import RowGradient, gather_weighted_rows
from sentemb.system.aligned import aligned_zeros
from sentemb.system.contracts import Arrays, KernelTask, WordsOfFeatures
from sentemb.training.optimisers.adam import BETA1, BETA2
from sentemb.training.optimisers.dense_adam import DenseAdam
from sentemb.training.optimisers.renormalisation import SPARSE
from sentemb.training.optimisers.row_tasks import spread_rows

_Steps = Generator[list[KernelTask], None, None]


class PairAdam:
    """Adam. Rows of ``table`` that a mini-batch does not touch are left unchanged.

    ``weights`` are changed in place; ``tuned`` says whether ``table`` is trained.
    """

    def __init__(self, weights: Arrays, tuned: bool) -> None:
        self.weights = weights
        self._dense = DenseAdam({name: a for name, a in weights.items() if name != SPARSE})
        self._moments: Arrays = {}
        if tuned:
            names, table = ("first_moment", "second_moment"), weights[SPARSE]
            self._moments = {name: aligned_zeros(table.shape, table.dtype) for name in names}

    def step_tasks(
        self,
        gradient: Arrays,
        rows: NDArray[np.int32],
        words_of_features: WordsOfFeatures | None,
        update: int,
        rate: float,
    ) -> _Steps:
        """One update, counted from 0, as a job for `Workers.together`.

        ``gradient`` has the shapes of the weights, with ``words`` in place of ``table`` if that is
        trained. ``rows`` (n_rows,) are the rows of ``table`` in the mini-batch.
        ``words_of_features`` is as for `sentemb.training.contracts.Optimiser.step_tasks`; fixed
        words do not need it.
        """
        tasks = self._dense.step_tasks(gradient, update, rate)
        if self._moments and words_of_features is not None:
            row_gradient = RowGradient(gradient["words"], *words_of_features)
            root_scale = 1 / math.sqrt(1 - BETA2 ** (update + 1))
            rates = rate / (1 - BETA1 ** (update + 1)), BETA1, BETA2, 1.0, root_scale
            arrays = self.weights[SPARSE], *self._moments.values()
            tasks += spread_rows(row_gradient, adam_rows, *arrays, row_gradient, rows, *rates)
        yield tasks

    def state(self) -> Arrays:
        """All that a checkpoint must keep, as named arrays."""
        arrays = self._dense.state()
        if self._moments:
            arrays[f"weights.{SPARSE}"] = self.weights[SPARSE]
            arrays |= {f"{name}.{SPARSE}": array for name, array in self._moments.items()}
        return arrays


class PairSGD:
    """Plain stochastic gradient descent, as in the paper; parameters as for `PairAdam`."""

    def __init__(self, weights: Arrays, tuned: bool) -> None:
        self.weights = weights
        self._tuned = tuned

    def step_tasks(
        self,
        gradient: Arrays,
        rows: NDArray[np.int32],
        words_of_features: WordsOfFeatures | None,
        update: int,
        rate: float,
    ) -> _Steps:
        """One update, as a job for `Workers.together`; parameters as for `PairAdam.step_tasks`."""
        for name, theta in self.weights.items():
            if name != SPARSE:
                theta -= theta.dtype.type(rate) * gradient[name]
        if self._tuned and words_of_features is not None:
            table = self.weights[SPARSE]
            row_gradient = RowGradient(gradient["words"], *words_of_features)
            of_rows = np.empty((rows.size, table.shape[1]), table.dtype)
            yield spread_rows(row_gradient, gather_weighted_rows, of_rows, row_gradient)
            table[rows] -= table.dtype.type(rate) * of_rows

    def state(self) -> Arrays:
        """All that a checkpoint must keep, as named arrays."""
        saved = {name: a for name, a in self.weights.items() if self._tuned or name != SPARSE}
        return {f"weights.{name}": array for name, array in saved.items()}
