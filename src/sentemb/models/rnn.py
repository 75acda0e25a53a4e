"""The RNN of equation (1)."""

import numpy as np

from sentemb.kernels.rnn import rnn_backward, rnn_forward
from sentemb.kernels.traces import rnn_signals
from sentemb.models.recurrent import RecurrentEncoder


class RNN(RecurrentEncoder):
    """y(t) = tanh(W l(t) + Wrec y(t-1) + b); blocks ``W``, ``Wrec``, ``b``."""

    name = "rnn"

    def _prepare(self, weights, direction, packing, P, workspace):
        Y = workspace.empty(f"Y{direction}", (packing.n_rows, self.cells), P.dtype)
        steps = (packing.block_steps, packing.step_rows)
        arguments = (Y, P, packing.words[direction], *steps, weights["recurrent"][direction])
        return {"Y": Y}, rnn_forward, arguments

    def _prepare_backward(self, weights, direction, state, packing, D, V, truncation):
        arguments = (
            D,
            state["Y"],
            V,
            direction * self.cells,
            packing.order,
            packing.lengths,
            packing.block_steps,
            packing.step_rows,
            np.ascontiguousarray(weights["recurrent"][direction].T),
            truncation.window,
            packing.block_texts,
        )
        return rnn_backward, arguments

    def gate_values(self, state, rows):
        """y of the given rows, in order: {"y": (T, n)}."""
        return {"y": state["Y"][rows]}

    def signals(self, weights, direction, state, rows, v, form, first):
        """The error signals of one text for the trace form: (1, T, n)."""
        y = state["Y"][rows]
        signals = np.zeros((1, *y.shape), y.dtype)
        R = np.ascontiguousarray(weights["recurrent"][direction].T)
        rnn_signals(signals[0], v, y, R, first)
        return signals
