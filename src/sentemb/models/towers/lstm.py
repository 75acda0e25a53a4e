"""The LSTM of equations (2), with and without forget gate, output gate and peepholes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.lstm import (
    lstm_backward,
    lstm_forward,
    set_peephole_matrix_gradient,
    set_peephole_vector_gradient,
)
from sentemb.models.towers.encoder import ForwardPass
from sentemb.models.towers.inference import EmbedLSTM
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.packing import Packing
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import Workers


class LSTM(RecurrentEncoder):
    """Blocks ``W1..W4, Wrec1..Wrec4, b1..b4, Wp1..Wp3``; 1 output, 2 forget, 3 input, 4 candidate.

    Without ``forget_gate`` f = 1, and there is no gate 2 and no Wp2. Without ``output_gate`` o = 1,
    y = tanh(c), and there is no gate 1 and no Wp1. The paper prints full matrices as ``peepholes``;
    its experiments use the model without forget gate and peepholes.
    """

    name = "lstm"
    # The kernel writes errors in place of the gates' values. In the workspace of the forward pass
    # they have the same array; in another one the values are kept.
    errors_name = "Z"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        there = {"1": self.output_gate, "2": self.forget_gate}
        self.gates = tuple(gate for gate in "1342" if there.get(gate, True))

    def is_reached(self, block: str, longest: int) -> bool:
        """As `RecurrentEncoder`; c(0) = 0 too, so one word alone does not use gate 2."""
        unreached = ("W2", "b2", "Wp2", "Wp3")
        return super().is_reached(block, longest) and (longest > 1 or block not in unreached)

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        shapes = super().shapes(n_features)
        if self.peepholes != "none":
            n = self.cells
            shape = (n,) if self.peepholes == "diagonal" else (n, n)
            shapes["peepholes"] = (self.directions, 3, *shape)
        return shapes

    def _peephole_blocks(self, weights: Arrays, prefix: str, direction: int) -> Arrays:
        if self.peepholes == "none":
            return {}
        return {
            f"{prefix}Wp{k}": weights["peepholes"][direction, k - 1].T
            for k in (1, 2, 3)
            if str(k) in self.gates
        }

    def _peepholes(
        self, weights: Arrays, direction: int, transposed: bool
    ) -> tuple[np.ndarray | None, np.ndarray | None]:
        """The peepholes' ``vectors`` and ``matrices`` for the kernels."""
        if self.peepholes == "none":
            return None, None
        peepholes = weights["peepholes"][direction]
        if self.peepholes == "diagonal":
            return peepholes, None
        return None, np.ascontiguousarray(peepholes.transpose(0, 2, 1)) if transposed else peepholes

    def _prepare(
        self, weights: Arrays, direction: int, packing: Packing, P: np.ndarray, workspace: Workspace
    ) -> tuple[dict[str, np.ndarray], Callable[..., Any], tuple[Any, ...]]:
        n, rows = self.cells, packing.n_rows
        state = {
            "Z": workspace.empty(f"Z{direction}", (rows, self.gate_width), P.dtype),
            "C": workspace.empty(f"C{direction}", (rows, n), P.dtype),
            "H": workspace.empty(f"H{direction}", (rows, n), P.dtype),
        }
        state["Y"] = (
            workspace.empty(f"Y{direction}", (rows, n), P.dtype) if self.output_gate else state["H"]
        )
        arguments = (
            *state.values(),
            P,
            direction * self.gate_width,
            packing.words[direction],
            packing.block_steps,
            packing.step_rows,
            weights["recurrent"][direction],
            *self._peepholes(weights, direction, transposed=False),
            int(self.output_gate),  # the call of a compiled function takes longer with a bool
        )
        return state, lstm_forward, arguments

    def embedder(self, weights: Arrays) -> EmbedLSTM:
        """`embed` for many calls with these weights, which must not change meanwhile."""
        return EmbedLSTM(self, weights)

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts without state for a backward pass, as `Encoder.embed`."""
        return self.embedder(weights)(P, word_index, offsets, workers)

    def _prepare_backward(
        self,
        weights: Arrays,
        direction: int,
        done: ForwardPass,
        D: np.ndarray,
        V: np.ndarray,
        truncation: Truncation,
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        state = done.states[direction]
        if D.base is not state["Z"].base:  # an array of another workspace
            D[...] = state["Z"]
        arguments = (
            D,
            state["C"],
            state["H"],
            V,
            direction * self.cells,
            done.packing.steps,
            state["RT"],
            *self._peepholes(weights, direction, transposed=True),
            int(self.output_gate),
            truncation.window,
            int(truncation.keep_cell_path),
        )
        return lstm_backward, arguments

    def _prepare_sums(
        self,
        parts: dict[str, np.ndarray],
        state: dict[str, np.ndarray],
        D: np.ndarray,
        packing: Packing,
    ) -> list[KernelTask]:
        sums = super()._prepare_sums(parts, state, D, packing)
        if self.peepholes != "none":
            kernel = {
                "diagonal": set_peephole_vector_gradient,
                "full": set_peephole_matrix_gradient,
            }[self.peepholes]
            steps = packing.block_steps, packing.step_rows
            sums.append((kernel, parts["peepholes"], state["C"], D, self.output_gate, *steps))
        return sums

    def gate_values(self, state: dict[str, np.ndarray], rows: NDArray[np.int64]) -> Arrays:
        """``y``, ``c``, and of ``o``, ``i``, ``y_g`` and ``f`` those that there are."""
        n, Z = self.cells, state["Z"][rows]
        names = {"1": "o", "3": "i", "4": "y_g", "2": "f"}
        gates = {
            names[gate]: Z[:, slot * n : (slot + 1) * n] for slot, gate in enumerate(self.gates)
        }
        return {"y": state["Y"][rows], "c": state["C"][rows], **gates}
