"""Nesterov momentum (6) for one tower: exact, yet it touches only what a mini-batch touches."""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.input_layer import RowGradient
from sentemb.kernels.nesterov import (
    MomentumRows,
    flush_rows,
    nesterov_dense,
    row_coefficients,
    update_rows,
)
from sentemb.models.contracts import GradientPoint
from sentemb.models.words.input_rows import spread_words
from sentemb.system.aligned import zeros_like_all
from sentemb.system.contracts import Arrays, KernelTask, Runner, WordsOfFeatures
from sentemb.training.optimisers.renormalisation import SPARSE, renormalisation
from sentemb.training.optimisers.row_tasks import spread_numbers, spread_rows

_EDGE = 0.9


@dataclass(frozen=True)
class MomentumSchedule:
    """The momentum mu of each update, constant over stretches of updates.

    bounds : (s + 1,); stretch s holds the updates ``bounds[s]`` to ``bounds[s + 1]``
    momenta : (s,)
    """

    bounds: NDArray[np.int64]
    momenta: NDArray[np.float64]

    @classmethod
    def paper(cls, updates: int, middle: float = 0.995) -> MomentumSchedule:
        """The paper's: 0.9 in the first and last 2 % of all updates, ``middle`` between.

        Both edges have the same number of updates, 2 % rounded up. No edge has more momentum than
        the middle, so a ``middle`` of 0 is plain gradient descent.
        """
        edge = int(np.ceil(0.02 * updates))
        bounds = np.array([0, edge, max(edge, updates - edge), updates], np.int64)
        least = min(_EDGE, middle)
        return cls(bounds, np.array([least, middle, least]))

    def at(self, update: int) -> float:
        """The momentum of one update; 0 after the last."""
        if update >= self.bounds[-1]:
            return 0.0
        return float(self.momenta[np.searchsorted(self.bounds, update, side="right") - 1])


class LeadingRows(NamedTuple):
    """Some input rows at the look-ahead point; see `sentemb.models.contracts.InputRows`.

    Row k is ``table[rows[k]] + lead[k] velocity[rows[k]]``. It is computed where it is used.
    ``table`` and ``velocity`` are (n_features, width) float. ``lead`` and ``decay`` (n_rows,) float
    are from `row_coefficients`; the update itself needs ``decay``.
    """

    table: np.ndarray
    velocity: np.ndarray
    rows: NDArray[np.int32]
    lead: np.ndarray
    decay: np.ndarray

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.table.dtype

    def project_tasks(
        self,
        P: np.ndarray,
        bias: np.ndarray,
        offsets: NDArray[np.int64],
        ids: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> list[KernelTask]:
        """Tasks that project words from the look-ahead point."""
        rows = self.table, self.velocity, self.lead, self.rows
        return spread_words(P, rows, bias, (offsets, ids, values))


class Nesterov:
    """Weights and velocity of one tower; see `Optimiser` for the methods.

    Equation (6). With ``g`` the gradient at the look-ahead point ``theta + mu v``, re-normalised to
    at most ``max_norm`` (th_G) over the whole tower::

        v = mu v - rate g
        theta = theta + v

    ``weights`` are changed in place. Between updates the rows of ``table`` are not theta: until
    `flush`, each is at theta + lead v, as of the last update to which it was brought up to date.
    """

    def __init__(self, weights: Arrays, schedule: MomentumSchedule, max_norm: float) -> None:
        self.weights = weights
        self.schedule = schedule
        self.max_norm = max_norm
        self.velocity = zeros_like_all(weights)
        self.synced = np.zeros(len(weights[SPARSE]), np.int64)
        self.lead = np.zeros(len(weights[SPARSE]))

    def _rows(self) -> MomentumRows:
        """The input weights, as the kernels take them."""
        return MomentumRows(self.weights[SPARSE], self.velocity[SPARSE], self.synced, self.lead)

    def point(self, rows: NDArray[np.int32], update: int) -> GradientPoint:
        """The look-ahead point theta + mu v of ``update``."""
        mu = self.schedule.at(update)
        dense = {
            name: array + array.dtype.type(mu) * self.velocity[name]
            for name, array in self.weights.items()
            if name != SPARSE
        }
        table, v = self.weights[SPARSE], self.velocity[SPARSE]
        lead, decay = np.empty((2, rows.size), table.dtype)
        schedule = self.schedule
        row_coefficients(lead, decay, self._rows(), rows, update, schedule.bounds, schedule.momenta)
        return GradientPoint(dense, LeadingRows(table, v, rows, lead, decay))

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
        factor = yield from renormalisation(gradient, row_gradient, self.max_norm)
        rate *= factor
        mu = self.schedule.at(update)
        tasks: list[KernelTask] = []
        for name, theta in self.weights.items():
            if name == SPARSE:
                continue
            arrays = theta, self.velocity[name], point.weights[name], gradient[name]
            tasks += spread_numbers(nesterov_dense, arrays, mu, rate)
        ahead = cast(LeadingRows, point.input_rows)
        yield tasks + spread_rows(
            row_gradient,
            update_rows,
            self._rows(),
            row_gradient,
            ahead.rows,
            ahead.lead,
            ahead.decay,
            update,
            self.schedule.at(update + 1),
            rate,
        )
        return factor

    def flush(self, update: int, workers: Runner) -> None:
        """Bring every input row to its theta and v before ``update``."""
        schedule = self.schedule
        rows = self._rows()
        workers.over(self.synced.size, flush_rows, rows, update, schedule.bounds, schedule.momenta)

    def state(self) -> Arrays:
        """All arrays that a checkpoint must keep, by name; not flushed, so no row moves."""
        arrays = {f"synced.{SPARSE}": self.synced, f"lead.{SPARSE}": self.lead}
        for name, array in self.weights.items():
            arrays[f"weights.{name}"] = array
            arrays[f"velocity.{name}"] = self.velocity[name]
        return arrays
