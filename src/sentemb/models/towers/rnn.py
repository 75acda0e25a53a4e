"""The RNN of equation (1), and the iRNN, which is linear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.errors import SentembError
from sentemb.kernels.rnn import rnn_backward, rnn_forward
from sentemb.models.contracts import GradientPoint
from sentemb.models.towers.encoder import ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.packing import Packing
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers


class RNN(RecurrentEncoder):
    """y(t) = tanh(W l(t) + Wrec y(t-1) + b); blocks ``W``, ``Wrec``, ``b``."""

    name = "rnn"
    # Whether the activation is the identity instead of tanh.
    linear = False

    def _prepare(
        self, weights: Arrays, direction: int, packing: Packing, P: np.ndarray, workspace: Workspace
    ) -> tuple[dict[str, np.ndarray], Callable[..., Any], tuple[Any, ...]]:
        Y = workspace.empty(f"Y{direction}", (packing.n_rows, self.cells), P.dtype)
        steps = (packing.block_steps, packing.step_rows)
        recurrent = weights["recurrent"][direction]
        linear = int(self.linear)  # the call of a compiled function takes longer with a bool
        arguments = (Y, P, packing.words[direction], *steps, recurrent, linear)
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
        state = done.states[direction]
        arguments = (
            D,
            state["Y"],
            V,
            direction * self.cells,
            done.packing.steps,
            state["RT"],
            int(self.linear),
            truncation.window,
        )
        return rnn_backward, arguments

    def gate_values(self, state: dict[str, np.ndarray], rows: NDArray[np.int64]) -> Arrays:
        """``y`` alone, as `RecurrentEncoder`."""
        return {"y": state["Y"][rows]}

    def slopes(self, y: np.ndarray) -> np.ndarray:
        """The derivative of the activation where its value is ``y``, in the shape of ``y``."""
        return np.ones_like(y) if self.linear else (1 - y) * (1 + y)


class IRNN(RNN):
    """y(t) = W l(t) + Wrec y(t-1) + b, embedding y(m) / m for m words; blocks as for the `RNN`.

    Wieting et al. (2016), "Towards universal paraphrastic sentence embeddings". Wrec starts as the
    identity and b as zero, so an untrained embedding is the average of the words' W l(t). Words
    without known features count too: their W l(t) is zero.
    """

    name = "irnn"
    linear = True

    def word_vector_columns(self) -> slice:
        """The columns of Wbag, or of W without a bag: at first the embedding is their average."""
        return super().word_vector_columns() if self.bag_dim else slice(0, self.cells)

    def spreads(self) -> dict[str, float]:
        """Empty: the initial recurrent matrix is not random."""
        return {}

    def initialise(
        self,
        n_features: int,
        rng: np.random.Generator,
        dtype: DTypeLike = np.float32,
        seen: NDArray[np.integer] | None = None,
    ) -> Arrays:
        """As `Encoder.initialise`, with the identity as recurrent matrix."""
        weights = super().initialise(n_features, rng, dtype, seen)
        weights["recurrent"][...] = np.eye(self.cells)
        return weights

    def forward_tasks(
        self, point: GradientPoint, layout: Layout, workspace: Workspace
    ) -> Job[ForwardPass]:
        """`forward` as a job for `Workers.together`; parameters as for `Encoder`."""
        done = yield from super().forward_tasks(point, layout, workspace)
        done.embeddings = self.by_length(done.embeddings, layout.batch.offsets)
        return done

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """See `Encoder.embed`; `SentembError` if Wrec makes the numbers grow to an overflow."""
        embeddings = super().embed(weights, P, word_index, offsets, workers)
        if not np.isfinite(embeddings).all():
            words = int(np.diff(offsets)[~np.isfinite(embeddings).all(axis=1)].min())
            raise SentembError(
                f"the {self.name} overflows on a text of {words:,} words; give shorter texts, or "
                "train with a lower learning rate"
            )
        return self.by_length(embeddings, offsets)

    def by_length(self, rows: np.ndarray, offsets: NDArray[np.int64]) -> np.ndarray:
        """As `RecurrentEncoder.by_length`: divided by the number of words of each text."""
        divided = rows.copy()
        divided[:, : self.n_outputs] /= np.maximum(np.diff(offsets), 1)[:, None].astype(rows.dtype)
        return divided
