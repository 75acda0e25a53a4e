"""The deep structured semantic model: a bag of features through two tanh layers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.input_layer import sum_rows
from sentemb.kernels.layers import sum_words, tanh_errors
from sentemb.models.towers.feed_forward import Layered
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.text.batch import TextBatch


class DSSM(Layered):
    """h = tanh(W1 x + b1), y = tanh(W2 h + b2), x as for the `Bag`; Huang et al., CIKM 2013.

    y has length ``cells``, h has length ``hidden``.
    """

    name = "dssm"

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        shapes = super().shapes(n_features)
        return {"table": shapes.pop("table"), "bias": (self.hidden,), **shapes}

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays as ``W1``, ``b1``, ``W2`` and ``b2``."""
        names = {"W1": "table", "b1": "bias", "W2": "output", "b2": "output_bias"}
        return {block: weights[name].T for block, name in names.items()}

    def _pool_tasks(
        self,
        state: dict[str, np.ndarray],
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        low: int,
        high: int,
    ) -> list[KernelTask]:
        H = state["H"]
        return [
            (sum_words, H, P, 0, weights["bias"], word_index, offsets, low, high),
            (tanh_rows, H, low, high, 0, self.hidden),
        ]

    def _unpool_tasks(
        self,
        state: dict[str, np.ndarray],
        into: Arrays,
        dH: np.ndarray,
        batch: TextBatch,
        low: int,
        high: int,
        workspace: Workspace,
    ) -> list[KernelTask]:
        return [
            (tanh_errors, dH, dH, state["H"], low, high),
            (sum_rows, into["bias"], dH, low, high),
        ]
