"""Nesterov momentum (6) for one tower, exact and yet touching only what a mini-batch touches."""

from dataclasses import dataclass

import numpy as np

from sentemb.kernels.nesterov import flush_rows, row_coefficients, update_rows
from sentemb.system.parallel import spread
from sentemb.training.optimisers.renormalisation import SPARSE, renormalisation


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
        """mu of one update, 0 behind the last."""
        if update >= self.bounds[-1]:
            return 0.0
        return float(self.momenta[np.searchsorted(self.bounds, update, side="right") - 1])


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

    def look_ahead(self, rows, update):
        """Weights at the look-ahead point of ``update``.

        Parameters
        ----------
        rows : (k,) int32
            The trigrams of the mini-batch.
        update : int

        Returns
        -------
        dict of arrays
            As the encoders take them, ``table`` with ``velocity`` and ``lead`` (k,): row k of the
            batch is at ``table[rows[k]] + lead[k] velocity[rows[k]]``; and ``decay`` (k,) for
            `step`.
        """
        mu = self.schedule.at(update)
        ahead = {
            name: array + array.dtype.type(mu) * self.velocity[name]
            for name, array in self.weights.items()
            if name != SPARSE
        }
        table, v = self.weights[SPARSE], self.velocity[SPARSE]
        lead, decay = np.empty((2, rows.size), table.dtype)
        row_coefficients(
            lead,
            decay,
            self.synced,
            self.lead,
            rows,
            update,
            self.schedule.bounds,
            self.schedule.momenta,
        )
        return {SPARSE: table, "velocity": v, "lead": lead, "decay": decay, **ahead}

    def step_tasks(self, ahead, gradient, batch, update, rate):
        """Update ``update`` (int, from 0) with learning rate ``rate``: a job for
        `Workers.together`.

        Parameters
        ----------
        ahead : dict of arrays
            As `look_ahead` gave them.
        gradient : dict of arrays
            At ``ahead``, as `RecurrentEncoder.backward_tasks` returns it.
        batch : TextBatch

        Returns
        -------
        float
            The gradient's norm before re-normalisation.
        """
        norm, factor = yield from renormalisation(gradient, batch, self.max_norm)
        rate *= factor
        mu = self.schedule.at(update)
        for name, theta in self.weights.items():
            if name == SPARSE:
                continue
            step = theta.dtype.type(rate) * gradient[name]
            v = self.velocity[name]
            v *= theta.dtype.type(mu)
            v -= step
            theta[...] = ahead[name] - step
        yield spread(
            batch.rows.size,
            update_rows,
            self.weights[SPARSE],
            self.velocity[SPARSE],
            self.synced,
            self.lead,
            gradient["words"],
            *batch.words_of_rows,
            ahead["lead"],
            ahead["decay"],
            batch.rows,
            update,
            self.schedule.at(update + 1),
            rate,
        )
        return norm

    def flush(self, update, workers):
        """Bring every row to where it stands before ``update``."""
        workers.over(
            self.synced.size,
            flush_rows,
            self.weights[SPARSE],
            self.velocity[SPARSE],
            self.synced,
            self.lead,
            update,
            self.schedule.bounds,
            self.schedule.momenta,
        )

    def state(self):
        """All that a checkpoint must keep, as named arrays; not flushed, so nothing moves."""
        arrays = {"synced": self.synced, "lead": self.lead}
        for name, array in self.weights.items():
            arrays[f"weights.{name}"] = array
            arrays[f"velocity.{name}"] = self.velocity[name]
        return arrays
