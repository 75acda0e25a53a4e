"""Nesterov momentum (6) for one tower, exact and yet touching only what a mini-batch touches."""

from dataclasses import dataclass

import numpy as np

from sentemb.kernels.nesterov import flush_rows, look_ahead_rows, sum_of_squares, update_rows
from sentemb.parallel import CHUNKS, spans

# The input weights: their rows are updated when a mini-batch needs them.
SPARSE = "table"


@dataclass(frozen=True)
class MomentumSchedule:
    """mu by update: constant in stretches.

    Attributes
    ----------
    bounds : (s + 1,) int64
        Stretch s holds the updates ``bounds[s]`` to ``bounds[s + 1]``.
    momenta : (s,) float64
    """

    bounds: np.ndarray
    momenta: np.ndarray

    @classmethod
    def paper(cls, updates, edge=0.9, middle=0.995):
        """0.9 in the first and last 2 % of all updates, 0.995 between, as the paper has it."""
        first = int(np.ceil(0.02 * updates))
        last = max(first, int(np.ceil(0.98 * updates)))
        bounds = np.array([0, first, last, updates], np.int64)
        return cls(bounds, np.array([edge, middle, edge]))

    def at(self, update):
        """mu of one update."""
        stretch = np.searchsorted(self.bounds, update, side="right") - 1
        return float(self.momenta[min(stretch, self.momenta.size - 1)])


class Nesterov:
    """Weights and velocity of one tower.

    With ``g`` the gradient at the look-ahead point ``theta + mu v``, re-normalised to at most
    ``max_norm`` over the whole tower::

        v = mu v - rate g
        theta = theta + v

    Parameters
    ----------
    weights : dict of arrays
        Changed in place. Between updates the rows of ``table`` are not theta: each stands at
        theta + lead v of the update up to which it has been followed, until `flush`.
    schedule : MomentumSchedule
    max_norm : float
        th_G of the gradient's re-normalisation.
    """

    def __init__(self, weights, schedule, max_norm):
        self.weights = weights
        self.schedule = schedule
        self.max_norm = max_norm
        self.velocity = {name: np.zeros_like(array) for name, array in weights.items()}
        self.synced = np.zeros(len(weights[SPARSE]), np.int64)
        self.lead = np.zeros(len(weights[SPARSE]))

    def look_ahead(self, rows, update, workers):
        """Weights at the look-ahead point, those of ``table`` only in ``rows`` ((k,) int32)."""
        workers.over(rows.size, look_ahead_rows, *self._table(), rows, update, *self._schedule())
        mu = self.schedule.at(update)
        ahead = {
            name: array + array.dtype.type(mu) * self.velocity[name]
            for name, array in self.weights.items()
            if name != SPARSE
        }
        return {SPARSE: self.weights[SPARSE], **ahead}

    def step(self, ahead, gradient, rows, update, rate, workers):
        """Update ``update`` (int, from 0) with learning rate ``rate``.

        Parameters
        ----------
        ahead : dict of arrays
            As `look_ahead` gave them.
        gradient : dict of arrays
            At ``ahead``, in the same shapes, but for ``table`` only of ``rows``: (k, width).
        rows : (k,) int32

        Returns
        -------
        float
            The gradient's norm before re-normalisation.
        """
        norm = self._norm(gradient, workers)
        if norm > self.max_norm:
            rate = rate * self.max_norm / norm
        mu = self.schedule.at(update)
        for name, theta in self.weights.items():
            if name == SPARSE:
                continue
            step = theta.dtype.type(rate) * gradient[name]
            v = self.velocity[name]
            v *= theta.dtype.type(mu)
            v -= step
            theta[...] = ahead[name] - step
        workers.over(
            rows.size,
            update_rows,
            *self._table(),
            gradient[SPARSE],
            rows,
            update,
            *self._schedule(),
            rate,
        )
        return norm

    def flush(self, update, workers):
        """Bring every row to where it stands before ``update``."""
        workers.over(self.synced.size, flush_rows, *self._table(), update, *self._schedule())

    def _table(self):
        return self.weights[SPARSE], self.velocity[SPARSE], self.synced, self.lead

    def _schedule(self):
        return self.schedule.bounds, self.schedule.momenta

    def _norm(self, gradient, workers):
        """L2 norm over the whole tower; rows that the batch does not touch add nothing to it."""
        partial = np.zeros(CHUNKS)
        table = gradient[SPARSE]
        workers.run([(sum_of_squares, table, partial, *span) for span in spans(len(table))])
        dense = sum(
            float(np.sum(np.square(array, dtype=np.float64)))
            for name, array in gradient.items()
            if name != SPARSE
        )
        return float(np.sqrt(partial.sum() + dense))
