"""Embeddings divided by their lengths, so that a product of two is their cosine (3)."""

from typing import NamedTuple

import numpy as np

from sentemb.kernels.cosine_softmax import normalise_rows, normalise_rows_backward
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import KernelTask
from sentemb.system.parallel import spans

# What a number of an embedding costs on the way forward, and on the way back.
_OF_A_NUMBER = 4


class UnitEmbeddings(NamedTuple):
    """The embeddings of one side: Y, U = Y / ||Y||, and V, which becomes dL/dU and then dL/dY.

    Y, U, V : (n_texts, dim) float; norms : (n_texts,) float
    """

    Y: np.ndarray
    U: np.ndarray
    V: np.ndarray
    norms: np.ndarray

    @classmethod
    def of(cls, side: str, Y: np.ndarray, workspace: Workspace) -> "UnitEmbeddings":
        """Room for those of embeddings Y, arbitrary until `tasks` are done."""
        U, V = (workspace.empty(f"{name}_{side}", Y.shape, Y.dtype) for name in "UV")
        return cls(Y, U, V, workspace.empty(f"norms_{side}", (len(Y),), Y.dtype))

    def tasks(self) -> list[KernelTask]:
        """Tasks that set U and the norms, and V to zero."""
        return [(self.begin, rows) for rows in self._spans()]

    def begin(self, rows: slice) -> None:
        """Set some rows of U and of the norms, and V to zero there."""
        normalise_rows(self.U[rows], self.norms[rows], self.Y[rows])
        self.V[rows] = 0

    def backward_tasks(self) -> list[KernelTask]:
        """Tasks that turn dL/dU in V into dL/dY."""
        return [(self.turn_back, rows) for rows in self._spans()]

    def turn_back(self, rows: slice) -> None:
        """Turn some rows of V into dL/dY."""
        normalise_rows_backward(self.V[rows], self.U[rows], self.norms[rows])

    def _spans(self) -> list[slice]:
        cost = _OF_A_NUMBER * self.Y.shape[1]
        return [slice(first, end) for _, first, end in spans(len(self.Y), cost)]
