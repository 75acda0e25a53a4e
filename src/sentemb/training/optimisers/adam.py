"""Adam for one tower, touching only what a mini-batch touches."""

import math

import numpy as np

from sentemb.kernels.adam import adam_rows
from sentemb.system.parallel import spread
from sentemb.training.optimisers.renormalisation import SPARSE, renormalisation

BETA1, BETA2 = 0.9, 0.999


class Adam:
    """Weights and moments of one tower.

    Adam of Kingma and Ba (arXiv 1412.6980) on the gradient, re-normalised to at most ``max_norm``
    over the whole tower. Rows of ``table`` that a mini-batch does not touch rest, their moments
    too; everything else moves in every update.

    Parameters
    ----------
    weights : dict of arrays
        Changed in place.
    max_norm : float
        th_G of the gradient's re-normalisation.
    """

    def __init__(self, weights, max_norm):
        self.weights = weights
        self.max_norm = max_norm
        self.first_moment = {name: np.zeros_like(array) for name, array in weights.items()}
        self.second_moment = {name: np.zeros_like(array) for name, array in weights.items()}

    def look_ahead(self, rows, update):
        """Where the gradient of ``update`` is taken: at the weights themselves."""
        return self.weights

    def step_tasks(self, ahead, gradient, batch, update, rate):
        """Update ``update`` (int, from 0) with learning rate ``rate``: as `Nesterov.step_tasks`."""
        norm, scale = yield from renormalisation(gradient, batch, self.max_norm)
        first_correction, second_correction = 1 - BETA1 ** (update + 1), 1 - BETA2 ** (update + 1)
        rate, root_scale = rate / first_correction, 1 / math.sqrt(second_correction)
        for name, theta in self.weights.items():
            if name == SPARSE:
                continue
            number = theta.dtype.type
            g = number(scale) * gradient[name]
            m, v = self.first_moment[name], self.second_moment[name]
            m += number(1 - BETA1) * (g - m)
            v += number(1 - BETA2) * (g * g - v)
            theta -= number(rate) * m / (number(root_scale) * np.sqrt(v) + number(1e-8))
        yield spread(
            batch.rows.size,
            adam_rows,
            self.weights[SPARSE],
            self.first_moment[SPARSE],
            self.second_moment[SPARSE],
            gradient["words"],
            *batch.words_of_rows,
            batch.rows,
            rate,
            BETA1,
            BETA2,
            scale,
            root_scale,
        )
        return norm

    def flush(self, update, workers):
        """Nothing is ever behind."""

    def state(self):
        """All that a checkpoint must keep, as named arrays."""
        kinds = {
            "weights": self.weights,
            "first_moment": self.first_moment,
            "second_moment": self.second_moment,
        }
        return {f"{kind}.{name}": a for kind, arrays in kinds.items() for name, a in arrays.items()}
