"""Adam for one tower, touching only what a mini-batch touches."""

from __future__ import annotations

import math
from collections.abc import Generator

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.adam import adam_dense, adam_rows
from sentemb.kernels.input_layer import RowGradient
from sentemb.models.contracts import GradientPoint
from sentemb.models.words.input_rows import point_of
from sentemb.system.aligned import zeros_like_all
from sentemb.system.contracts import Arrays, KernelTask, Runner, WordsOfFeatures
from sentemb.training.optimisers.renormalisation import SPARSE, renormalisation
from sentemb.training.optimisers.row_tasks import spread_numbers, spread_rows

BETA1, BETA2 = 0.9, 0.999


class Adam:
    """Weights and moments of one tower; see `sentemb.training.contracts.Optimiser` for the methods.

    Adam of Kingma and Ba (arXiv 1412.6980) on the gradient, re-normalised to at most ``max_norm``
    (th_G) over the whole tower. Rows of ``table`` that a mini-batch does not touch are left
    unchanged, moments included; everything else moves in every update. ``weights`` are changed in
    place.
    """

    def __init__(self, weights: Arrays, max_norm: float) -> None:
        self.weights = weights
        self.max_norm = max_norm
        self.first_moment, self.second_moment = zeros_like_all(weights), zeros_like_all(weights)

    def point(self, rows: NDArray[np.int32], update: int) -> GradientPoint:
        """The weights themselves."""
        return point_of(self.weights, rows)

    def step_tasks(
        self,
        point: GradientPoint,
        gradient: Arrays,
        words_of_features: WordsOfFeatures,
        update: int,
        rate: float,
    ) -> Generator[list[KernelTask], None, float]:
        """One update, as a job for `Workers.together`."""
        row_gradient = RowGradient(gradient["words"], *words_of_features)
        scale = yield from renormalisation(gradient, row_gradient, self.max_norm)
        first_correction, second_correction = 1 - BETA1 ** (update + 1), 1 - BETA2 ** (update + 1)
        rate, root_scale = rate / first_correction, 1 / math.sqrt(second_correction)
        tasks: list[KernelTask] = []
        for name, theta in self.weights.items():
            if name == SPARSE:
                continue
            arrays = theta, self.first_moment[name], self.second_moment[name], gradient[name]
            rates = rate, BETA1, BETA2, scale, root_scale
            tasks += spread_numbers(adam_dense, arrays, *rates)
        rows = point.input_rows.rows
        yield tasks + spread_rows(
            row_gradient,
            adam_rows,
            self.weights[SPARSE],
            self.first_moment[SPARSE],
            self.second_moment[SPARSE],
            row_gradient,
            rows,
            rate,
            BETA1,
            BETA2,
            scale,
            root_scale,
        )
        return scale

    def flush(self, update: int, workers: Runner) -> None:
        """No-op: Adam never defers an update."""

    def state(self) -> Arrays:
        """All that a checkpoint must keep, as named arrays."""
        kinds = {
            "weights": self.weights,
            "first_moment": self.first_moment,
            "second_moment": self.second_moment,
        }
        return {f"{kind}.{name}": a for kind, arrays in kinds.items() for name, a in arrays.items()}
