"""The bag of features: a linear map of the counts, without recurrence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.layers import sum_words
from sentemb.models.towers.encoder import ForwardPass
from sentemb.models.towers.feed_forward import FeedForward, no_truncation
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import spread


class Bag(FeedForward):
    """y = W x, where x counts the features of the text; block ``W``."""

    name = "bag"

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return self.cells

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        return {"table": (n_features, self.cells)}

    def blocks(self, weights: Arrays) -> Arrays:
        """A view of ``table`` as ``W`` (n, d)."""
        return {"W": weights["table"].T}

    def _layers(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> tuple[dict[str, np.ndarray], list[KernelTask]]:
        Y = workspace.empty("Y", (offsets.size - 1, self.cells), P.dtype)
        arguments = (Y, P, 0, np.zeros(self.cells, P.dtype), word_index, offsets)
        cost = self.cells * (1 + word_index.size / max(1, len(Y)))
        return {"Y": Y}, spread(len(Y), sum_words, *arguments, cost=cost)

    def backward_tasks(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation | None,
        workspace: Workspace,
    ) -> Job[Arrays]:
        """`backward` as a job for `Workers.together`, as `Encoder.backward_tasks`."""
        no_truncation(self, truncation)
        V = np.ascontiguousarray(V)
        dP, _ = yield from self.gather_words_tasks(
            done.batch, [(0, V, *done.layout.texts_of_words)], workspace
        )
        return {"words": dP}
