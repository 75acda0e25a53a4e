"""The RNN of equation (1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.rnn import rnn_backward, rnn_forward
from sentemb.models.encoder import ForwardPass, Workspace
from sentemb.models.packing import Packing
from sentemb.models.recurrent import RecurrentEncoder
from sentemb.models.truncation import Truncation
from sentemb.protocols import Arrays


class RNN(RecurrentEncoder):
    """y(t) = tanh(W l(t) + Wrec y(t-1) + b); blocks ``W``, ``Wrec``, ``b``."""

    name = "rnn"

    def _prepare(
        self, weights: Arrays, direction: int, packing: Packing, P: np.ndarray, workspace: Workspace
    ) -> tuple[dict[str, np.ndarray], Callable[..., Any], tuple[Any, ...]]:
        Y = workspace.empty(f"Y{direction}", (packing.n_rows, self.cells), P.dtype)
        steps = (packing.block_steps, packing.step_rows)
        arguments = (Y, P, packing.words[direction], *steps, weights["recurrent"][direction])
        return {"Y": Y}, rnn_forward, arguments

    def _prepare_backward(
        self,
        weights: Arrays,
        direction: int,
        done: ForwardPass,
        D: np.ndarray,
        V: np.ndarray,
        truncation: Truncation,
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        arguments = (
            D,
            done.states[direction]["Y"],
            V,
            direction * self.cells,
            done.packing.steps,
            np.ascontiguousarray(weights["recurrent"][direction].T),
            truncation.window,
        )
        return rnn_backward, arguments

    def gate_values(self, state: dict[str, np.ndarray], rows: NDArray[np.int64]) -> Arrays:
        """``y`` alone, as `RecurrentEncoder`."""
        return {"y": state["Y"][rows]}
