"""The deep averaging network: the average of the words through dense layers."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.layers import average_words, divide_errors
from sentemb.models.towers.feed_forward import Layered
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.text.batch import TextBatch


class DAN(Layered):
    """h = (1/k) sum of W0 l(t), g1 = s(W1 h + b1), g2 = s(W2 g1 + b2), ...; y is the last g.

    Iyyer et al., ACL 2015. s is the ``activation``, tanh or the identity; there are ``layers`` of
    them, each of length ``cells``. With one linear layer it is PP-proj of Wieting et al. (2016).

    k is the number of words that are read. A word without known features (an unknown word, if
    features are whole words) is not: its W0 l(t) is zero, and k does not count it. If no word is
    read, h = 0.
    """

    name = "dan"

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.dense_layers = tuple((f"layer{k}", f"bias{k}") for k in range(1, self.layers + 1))
        self.linear = self.activation == "linear"

    def word_vector_columns(self) -> slice:
        """All: words are averaged before anything else happens to them."""
        return slice(0, self.width)

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays as ``W0`` (the words), ``W1``, ``b1``, ``W2``, ``b2``, ..."""
        named = {"W0": weights["table"].T}
        for k, (matrix, bias) in enumerate(self.dense_layers, 1):
            named |= {f"W{k}": weights[matrix].T, f"b{k}": weights[bias]}
        return named

    def _pooled(
        self, n_texts: int, dtype: DTypeLike, workspace: Workspace
    ) -> dict[str, np.ndarray]:
        read = workspace.empty("read", (n_texts,), np.int64)
        return super()._pooled(n_texts, dtype, workspace) | {"read": read}

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
        return [(average_words, state["H"], state["read"], P, word_index, offsets, low, high)]

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
        return [(divide_errors, dH, state["read"], low, high)]
