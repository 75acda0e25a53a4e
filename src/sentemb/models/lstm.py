"""The LSTM of equations (2), with and without forget gate and peepholes."""

from functools import lru_cache

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.lstm import (
    DIAGONAL,
    FULL,
    NONE,
    lstm_backward,
    lstm_forward,
    set_peephole_matrix_gradient,
    set_peephole_vector_gradient,
)
from sentemb.kernels.traces import lstm_exact_signals, lstm_printed_signals
from sentemb.models.recurrent import RecurrentEncoder
from sentemb.system.parallel import CHUNKS

PEEPHOLES = {"none": NONE, "diagonal": DIAGONAL, "full": FULL}


class LSTM(RecurrentEncoder):
    """Blocks ``W1..W4, Wrec1..Wrec4, b1..b4, Wp1..Wp3``; 1 output, 2 forget, 3 input, 4 candidate.

    Parameters
    ----------
    cells : int
    forget_gate : bool
        Without it f = 1, and gate 2 and Wp2 are absent.
    peepholes : {"none", "diagonal", "full"}
        The paper prints full matrices; its experiments use the model without forget gate and
        peepholes.
    bag : int
    """

    name = "lstm"

    def __init__(self, cells, forget_gate=False, peepholes="none", bag=0):
        super().__init__(cells, bag)
        if peepholes not in PEEPHOLES:
            raise SentembError(
                f"peepholes must be one of {', '.join(PEEPHOLES)}, not {peepholes!r}"
            )
        self.forget_gate = bool(forget_gate)
        self.peepholes = peepholes
        self.gates = ("1", "3", "4", "2") if self.forget_gate else ("1", "3", "4")

    def settings(self):
        gates = {"forget_gate": self.forget_gate, "peepholes": self.peepholes}
        return {**super().settings(), **gates}

    def shapes(self, n_features):
        shapes = super().shapes(n_features)
        if self.peepholes != "none":
            n = self.cells
            one = (n,) if self.peepholes == "diagonal" else (n, n)
            shapes["peepholes"] = (self.directions, 3, *one)
        return shapes

    def _peephole_blocks(self, weights, prefix, direction):
        if self.peepholes == "none":
            return {}
        return {
            f"{prefix}Wp{k}": weights["peepholes"][direction, k - 1].T
            for k in (1, 2, 3)
            if k != 2 or self.forget_gate
        }

    def _peephole_arguments(self, weights, direction, transposed):
        """(vectors, matrices, kind) as the kernels take them; what is not used is empty."""
        vectors, matrices = _no_peepholes(weights["bias"].dtype)
        if self.peepholes == "diagonal":
            vectors = weights["peepholes"][direction]
        elif self.peepholes == "full":
            matrices = weights["peepholes"][direction]
            if transposed:
                matrices = np.ascontiguousarray(matrices.transpose(0, 2, 1))
        return vectors, matrices, PEEPHOLES[self.peepholes]

    def _prepare(self, weights, direction, packing, P, workspace):
        n, rows = self.cells, packing.n_rows
        state = {
            "Z": workspace.empty(f"Z{direction}", (rows, self.gate_width), P.dtype),
            "C": workspace.empty(f"C{direction}", (rows, n), P.dtype),
            "H": workspace.empty(f"H{direction}", (rows, n), P.dtype),
            "Y": workspace.empty(f"Y{direction}", (rows, n), P.dtype),
        }
        arguments = (
            *state.values(),
            P,
            direction * self.gate_width,
            packing.words[direction],
            packing.block_steps,
            packing.step_rows,
            weights["recurrent"][direction],
            *self._peephole_arguments(weights, direction, transposed=False),
            self.forget_gate,
        )
        return state, lstm_forward, arguments

    def _prepare_backward(self, weights, direction, state, packing, D, V, truncation):
        arguments = (
            D,
            state["Z"],
            state["C"],
            state["H"],
            V,
            direction * self.cells,
            packing.order,
            packing.lengths,
            packing.block_steps,
            packing.step_rows,
            np.ascontiguousarray(weights["recurrent"][direction].T),
            *self._peephole_arguments(weights, direction, transposed=True),
            self.forget_gate,
            truncation.window,
            truncation.keep_cell_path,
            packing.block_texts,
        )
        return lstm_backward, arguments

    def _prepare_sums(self, parts, state, D, packing, chunk):
        sums = super()._prepare_sums(parts, state, D, packing, chunk)
        if self.peepholes != "none":
            kernel = {
                "diagonal": set_peephole_vector_gradient,
                "full": set_peephole_matrix_gradient,
            }[self.peepholes]
            dp, steps = parts["peepholes"][chunk], (packing.block_steps, packing.step_rows)
            sums.append((kernel, dp, state["C"], D, *steps, self.forget_gate, chunk, CHUNKS))
        return sums

    def gate_values(self, state, rows):
        """What the gates did at the given rows, in order: {"y", "c", "i", "o", "y_g", "f"}."""
        n = self.cells
        Z = state["Z"][rows]
        values = {
            "y": state["Y"][rows],
            "c": state["C"][rows],
            "i": Z[:, n : 2 * n],
            "o": Z[:, :n],
            "y_g": Z[:, 2 * n : 3 * n],
        }
        if self.forget_gate:
            values["f"] = Z[:, 3 * n :]
        return values

    def signals(self, weights, direction, state, rows, v, form, first):
        """The error signals of one text for the trace form: (4, T, n), gates as stacked."""
        n = self.cells
        values = self.gate_values(state, rows)
        o, h = values["o"], state["H"][rows]
        signals = np.zeros((4, *o.shape), o.dtype)
        R = np.zeros((4, n, n), o.dtype)
        stacked = weights["recurrent"][direction]
        for slot in range(len(self.gates)):
            R[slot] = stacked[:, slot * n : (slot + 1) * n].T
        if form == "printed":
            lstm_printed_signals(signals, v, o, h, R, first)
            return signals
        Wp = np.zeros((3, n, n), o.dtype)
        if self.peepholes != "none":
            for k in (0, 1, 2):
                given = weights["peepholes"][direction, k]
                Wp[k] = np.diag(given) if self.peepholes == "diagonal" else given.T
            if not self.forget_gate:
                Wp[1] = 0
        c = values["c"]
        f = values.get("f", np.ones_like(c))
        c_last = np.vstack([np.zeros_like(c[:1]), c[:-1]])
        lstm_exact_signals(signals, v, o, values["i"], values["y_g"], f, h, c_last, R, Wp, first)
        return signals


@lru_cache
def _no_peepholes(dtype):
    return np.zeros((3, 0), dtype), np.zeros((3, 0, 0), dtype)
