"""The base of the encoders without recurrence.

The paper compares its model with DSSM and CLSM (section V-B.1, Table IV); DAN is from Iyyer et al.
(ACL 2015). Here they share the loss, the negatives and the optimisers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.errors import SentembError
from sentemb.kernels.input_layer import sum_rows
from sentemb.kernels.layers import (
    dense,
    dense_tanh,
    product_rows,
    set_dense_gradient,
    tanh_errors,
)
from sentemb.models.contracts import GradientPoint
from sentemb.models.towers.encoder import Encoder, ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.word_reader import WordErrors
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, Workers, one_after_the_other, spans
from sentemb.text.batch import TextBatch


class FeedForward(Encoder):
    """Base: `_layers` turns projected words into embeddings."""

    def _layout_parts(self) -> tuple[str, ...]:
        return (*super()._layout_parts(), "texts_of_words")

    def forward_tasks(
        self, point: GradientPoint, layout: Layout, workspace: Workspace
    ) -> Job[ForwardPass]:
        """`forward` as a job for `Workers.together`; parameters as for `Encoder`."""
        batch = layout.batch
        P = yield from self.project_tasks(point, batch, workspace)
        state, tasks = self._layers(point.weights, P, batch.word_index, batch.offsets, workspace)
        yield tasks
        return ForwardPass(layout, without_empty(state["Y"], batch.offsets), [state])

    def _layers(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> tuple[dict[str, np.ndarray], list[KernelTask]]:
        """Outputs of the layers, the embeddings as ``Y``, and the tasks that compute them."""
        raise NotImplementedError

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts without state for a backward pass, as `Encoder.embed`."""
        state, tasks = self._layers(weights, P, word_index, offsets, Workspace())
        workers.run(tasks)
        return without_empty(state["Y"], offsets)


class Layered(FeedForward):
    """Base: the words of a text are pooled into one vector, which passes through dense layers.

    The pooled vector h has length ``hidden``, the output of every layer length ``cells``. A
    subclass pools (`_pool_tasks`), carries the errors back to the words (`_unpool_tasks`), and may
    have weights of its own for that.
    """

    # Names of the stacked matrix and the bias of each layer, from the first to the last.
    dense_layers: tuple[tuple[str, str], ...] = (("output", "output_bias"),)
    # Whether the layers have the identity as activation instead of tanh.
    linear = False

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return self.hidden

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        shapes: dict[str, tuple[int, ...]] = {"table": (n_features, self.width)}
        inputs = self.hidden
        for matrix, bias in self.dense_layers:
            shapes |= {matrix: (inputs, self.cells), bias: (self.cells,)}
            inputs = self.cells
        return shapes

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial dense matrices by name; the others start at zero."""
        shapes = self.shapes(0)
        return {matrix: 1 / math.sqrt(shapes[matrix][0]) for matrix, _ in self.dense_layers}

    # -- forward ------------------------------------------------------------------------------

    def _layers(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> tuple[dict[str, np.ndarray], list[KernelTask]]:
        n_texts = offsets.size - 1
        state = self._pooled(n_texts, P.dtype, workspace)
        kernel, X = dense if self.linear else dense_tanh, state["H"]
        layers: list[KernelTask] = []
        for k, (matrix, bias) in enumerate(self.dense_layers, 1):
            Y = state[f"Y{k}"] = workspace.empty(f"Y{k}", (n_texts, self.cells), P.dtype)
            layers.append((kernel, Y, X, weights[matrix], weights[bias]))
            X = Y
        state["Y"] = X
        tasks: list[KernelTask] = []
        cost = self._cost_of_text(word_index.size / max(1, n_texts), 1)
        for _, low, high in spans(n_texts, cost):
            pool = self._pool_tasks(state, weights, P, word_index, offsets, low, high)
            calls = [(*layer, low, high) for layer in layers]
            tasks.append((one_after_the_other, *pool, *calls))
        return state, tasks

    def _cost_of_text(self, words: float, products: int) -> float:
        """The cost of a text with this number of words: its sums and products of every layer."""
        dense = sum(math.prod(self.shapes(0)[matrix]) for matrix, _ in self.dense_layers)
        return self.hidden * (1 + words) + products * dense / PRODUCTS

    def _values(self, state: dict[str, np.ndarray]) -> list[np.ndarray]:
        """The pooled vectors, then the output of every layer."""
        return [state["H"], *(state[f"Y{k + 1}"] for k in range(len(self.dense_layers)))]

    def _pooled(
        self, n_texts: int, dtype: DTypeLike, workspace: Workspace
    ) -> dict[str, np.ndarray]:
        """Outputs of pooling: ``H`` (n_texts, hidden); a subclass may add arrays."""
        return {"H": workspace.empty("H", (n_texts, self.hidden), dtype)}

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
        """Tasks that pool the words of the texts ``low`` to ``high``, to be done in this order."""
        raise NotImplementedError

    # -- backward -----------------------------------------------------------------------------

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
        batch, (state,) = done.batch, done.states
        V = without_empty(np.ascontiguousarray(V), batch.offsets)
        values = self._values(state)
        errors = [
            workspace.empty(f"d{k}", array.shape, V.dtype) for k, array in enumerate(values[:-1])
        ]
        D = V if self.linear else workspace.empty("D", V.shape, V.dtype)
        shapes = {name: shape for name, shape in self.shapes(0).items() if name != "table"}
        texts = spans(
            batch.n_texts,
            self._cost_of_text(batch.word_index.size / max(1, batch.n_texts), 2),
            sums=sum(math.prod(shape) for shape in shapes.values()),
        )
        parts = {
            name: workspace.zeros(f"d{name}", (len(texts), *shape), V.dtype)
            for name, shape in shapes.items()
        }
        transposed = {
            matrix: np.ascontiguousarray(weights[matrix].T) for matrix, _ in self.dense_layers
        }
        tasks = []
        for part, low, high in texts:
            calls: list[KernelTask] = []
            into = {name: arrays[part] for name, arrays in parts.items()}
            at_output, at_layer = V, D
            for k in reversed(range(len(self.dense_layers))):
                matrix, bias = self.dense_layers[k]
                if not self.linear:
                    calls.append((tanh_errors, at_layer, at_output, values[k + 1], low, high))
                calls += [
                    (set_dense_gradient, into[matrix], values[k], at_layer, low, high),
                    (sum_rows, into[bias], at_layer, low, high),
                    (product_rows, errors[k], at_layer, transposed[matrix], low, high),
                ]
                at_output = at_layer = errors[k]
            calls += self._unpool_tasks(state, into, errors[0], batch, low, high, workspace)
            tasks.append((one_after_the_other, *calls))
        yield tasks
        gradient = {name: part.sum(axis=0) for name, part in parts.items()}
        dP, _ = yield from self.gather_words_tasks(
            batch, self._errors_of_words(errors[0], done.layout, workspace), workspace
        )
        return gradient | {"words": dP}

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
        """Tasks that carry the errors ``dH`` at the pooled vectors back to the words.

        They change the rows ``low`` to ``high`` of ``dH`` and write to ``into[name]`` the gradients
        of the weights that pooling uses.
        """
        raise NotImplementedError

    def _errors_of_words(
        self, dH: np.ndarray, layout: Layout, workspace: Workspace
    ) -> list[WordErrors]:
        """The errors that `WordReader.gather_words_tasks` sums up for each word."""
        return [(0, dH, *layout.texts_of_words)]


def without_empty(rows: np.ndarray, offsets: NDArray[np.int64]) -> np.ndarray:
    """``rows`` with zeros for texts without words, which have no embedding."""
    empty = offsets[1:] == offsets[:-1]
    if empty.any():
        rows = np.where(empty[:, None], rows.dtype.type(0), rows)
    return rows


def no_truncation(encoder: Encoder, truncation: Truncation | None) -> None:
    """Raise a `SentembError` if ``truncation`` cuts anything: there are no steps through time."""
    if truncation is not None and truncation.steps is not None:
        raise SentembError(
            f"model {encoder.name} has no steps through time to truncate; leave truncate out"
        )
