"""Adam for arrays that every mini-batch touches as a whole."""

from __future__ import annotations

import math

import numpy as np

from sentemb.kernels.adam import adam_rows
from sentemb.kernels.input_layer import RowGradient
from sentemb.system.aligned import zeros_like_all
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import spread
from sentemb.training.optimisers.adam import BETA1, BETA2
from sentemb.training.optimisers.row_tasks import OF_A_NUMBER


class DenseAdam:
    """Weights and moments; the update of `Adam` on rows, for every row.

    ``weights``, (n,) or (n, k) each, are changed in place.
    """

    def __init__(self, weights: Arrays) -> None:
        self.weights = weights
        self.first_moment, self.second_moment = zeros_like_all(weights), zeros_like_all(weights)
        longest = max((len(np.atleast_2d(array)) for array in weights.values()), default=0)
        self._rows = np.arange(longest, dtype=np.int32)
        # In terms of the kernel, row k has the feature k, which only word k holds, once.
        self._identity = (
            np.arange(longest + 1, dtype=np.int64),
            self._rows,
            np.ones(longest, np.float32),
        )

    def step_tasks(self, gradient: Arrays, update: int, rate: float) -> list[KernelTask]:
        """The tasks of one update, counted from 0; the gradient has the shapes of the weights."""
        first_correction, second_correction = 1 - BETA1 ** (update + 1), 1 - BETA2 ** (update + 1)
        offsets, words, values = self._identity
        tasks = []
        for name, array in self.weights.items():
            theta, m, v, g = (
                np.atleast_2d(a)
                for a in (
                    array, self.first_moment[name], self.second_moment[name], gradient[name],
                )
            )  # fmt: skip
            count = len(theta)
            row_gradient = RowGradient(g, offsets[: count + 1], words[:count], values[:count])
            rates = rate / first_correction, BETA1, BETA2, 1.0, 1 / math.sqrt(second_correction)
            arrays = theta, m, v, row_gradient, self._rows[:count]
            cost = OF_A_NUMBER * theta.shape[1]
            tasks += spread(count, adam_rows, *arrays, *rates, cost=cost)
        return tasks

    def state(self) -> Arrays:
        """All that a checkpoint must keep, as named arrays."""
        kinds = {
            "weights": self.weights,
            "first_moment": self.first_moment,
            "second_moment": self.second_moment,
        }
        return {f"{kind}.{name}": a for kind, arrays in kinds.items() for name, a in arrays.items()}
