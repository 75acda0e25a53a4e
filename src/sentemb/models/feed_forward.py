"""Encoders without recurrence: the bag of features, DSSM and CLSM.

The paper compares its model with them (section VI-B). Here they share the loss, the negatives and
the optimisers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.convolution import pool_windows, spread_to_maxima
from sentemb.kernels.layers import (
    dense_errors,
    dense_tanh,
    set_dense_gradient,
    sum_words,
    tanh_errors,
)
from sentemb.kernels.words import invert_lists, sum_rows
from sentemb.models.encoder import Encoder, ForwardPass, Job, WordErrors, Workspace
from sentemb.models.layout import Layout
from sentemb.models.truncation import Truncation
from sentemb.protocols import Arrays, GradientPoint, KernelTask
from sentemb.system.parallel import CHUNKS, Workers, one_after_the_other, spans
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
        P = yield from self._project_tasks(point, batch, workspace)
        state, tasks = self._layers(point.weights, P, batch.word_index, batch.offsets, workspace)
        yield tasks
        return ForwardPass(layout, _without_empty(state["Y"], batch.offsets), [state])

    def _layers(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> tuple[dict[str, np.ndarray], list[KernelTask]]:
        """What the layers will write, the embeddings as ``Y``, and the tasks that write it."""
        raise NotImplementedError

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts without keeping what a backward pass would need, as `Encoder.embed`."""
        state, tasks = self._layers(weights, P, word_index, offsets, Workspace())
        workers.run(tasks)
        return _without_empty(state["Y"], offsets)


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
        return {"Y": Y}, [(sum_words, *arguments, low, high) for _, low, high in spans(len(Y))]

    def backward_tasks(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation | None,
        workspace: Workspace,
    ) -> Job[Arrays]:
        """`backward` as a job for `Workers.together`, as `Encoder.backward_tasks`."""
        _no_truncation(self, truncation)
        V = np.ascontiguousarray(V)
        dP, _ = yield from self._gather_words(
            done.batch, [(0, V, *done.layout.texts_of_words)], workspace
        )
        return {"words": dP}


class DSSM(FeedForward):
    """h = tanh(W1 x + b1), y = tanh(W2 h + b2), x as for the `Bag`; Huang et al., CIKM 2013.

    y has length ``cells``, h has length ``hidden``.
    """

    name = "dssm"

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return self.hidden

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        return {
            "table": (n_features, self.width),
            "bias": (self.hidden,),
            "output": (self.hidden, self.cells),
            "output_bias": (self.cells,),
        }

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial dense matrices by name; the others start at zero."""
        return {"output": 1 / math.sqrt(self.hidden)}

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays as ``W1``, ``b1``, ``W2`` and ``b2``."""
        names = {"W1": "table", "b1": "bias", "W2": "output", "b2": "output_bias"}
        return {block: weights[name].T for block, name in names.items()}

    def _layers(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> tuple[dict[str, np.ndarray], list[KernelTask]]:
        n_texts = offsets.size - 1
        state = {
            "H": workspace.empty("H", (n_texts, self.hidden), P.dtype),
            "Y": workspace.empty("Y", (n_texts, self.cells), P.dtype),
        }
        pool = self._pooling(state, weights, P, word_index, offsets, workspace)
        H, layer = state["H"], (weights["output"], weights["output_bias"])
        tasks = [
            (
                one_after_the_other,
                (*pool, low, high),
                (tanh_rows, H, low, high, 0, self.hidden),
                (dense_tanh, state["Y"], H, *layer, low, high),
            )
            for _, low, high in spans(n_texts)
        ]
        return state, tasks

    def _pooling(
        self,
        state: dict[str, np.ndarray],
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> KernelTask:
        """The kernel that pools a text's words, before the tanh, and its arguments."""
        return sum_words, state["H"], P, 0, weights["bias"], word_index, offsets

    def backward_tasks(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation | None,
        workspace: Workspace,
    ) -> Job[Arrays]:
        """`backward` as a job for `Workers.together`, as `Encoder.backward_tasks`."""
        _no_truncation(self, truncation)
        batch, (state,) = done.batch, done.states
        H, Y = state["H"], state["Y"]
        V = _without_empty(np.ascontiguousarray(V), batch.offsets)
        D = workspace.empty("D", Y.shape, V.dtype)  # at the last layer's pre-activation
        dH = workspace.empty("dH", H.shape, V.dtype)
        parts = {
            name: workspace.zeros(f"d{name}", (CHUNKS, *shape), V.dtype)
            for name, shape in self.shapes(0).items()
            if name != "table"
        }
        transposed = np.ascontiguousarray(weights["output"].T)
        yield [
            (
                one_after_the_other,
                (tanh_errors, D, V, Y, low, high),
                (set_dense_gradient, parts["output"][chunk], H, D, low, high),
                (sum_rows, parts["output_bias"][chunk], D, low, high),
                (dense_errors, dH, D, transposed, low, high),
                (tanh_errors, dH, dH, H, low, high),
                (sum_rows, parts["bias"][chunk], dH, low, high),
                *self._unpooling(state, dH, batch, low, high, workspace),
            )
            for chunk, low, high in spans(batch.n_texts)
        ]
        gradient = {name: part.sum(axis=0) for name, part in parts.items()}
        dP, _ = yield from self._gather_words(
            batch, self._errors_of_words(dH, done.layout, workspace), workspace
        )
        return gradient | {"words": dP}

    def _unpooling(
        self,
        state: dict[str, np.ndarray],
        dH: np.ndarray,
        batch: TextBatch,
        low: int,
        high: int,
        workspace: Workspace,
    ) -> list[KernelTask]:
        """Tasks that carry the errors at the pooled vectors back to the tokens, where needed."""
        return []

    def _errors_of_words(
        self, dH: np.ndarray, layout: Layout, workspace: Workspace
    ) -> list[WordErrors]:
        """What `Encoder._gather_words` sums up."""
        return [(0, dH, *layout.texts_of_words)]


class CLSM(DSSM):
    """h = max over t of tanh(Wc [l(t - r) ... l(t + r)] + bc), y = tanh(Ws h + bs).

    Shen et al., CIKM 2014. The blocks ``Wc1``, ``Wc2``, ... are the slices of Wc from left to
    right.

    y has length ``cells``; h has length ``hidden``, the number of feature maps; the convolution
    covers ``window`` = 2 r + 1 words.
    """

    name = "clsm"

    def is_reached(self, block: str, longest: int) -> bool:
        """As `Encoder`: a word alone is in the middle of its only window."""
        middle = f"Wc{self.window // 2 + 1}"
        return longest > 1 or not block.startswith("Wc") or block == middle

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return self.window * self.hidden

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays as ``Wc1``, ``Wc2``, ..., ``bc``, ``Ws`` and ``bs``."""
        slices = np.split(weights["table"], self.window, axis=1)
        named = {f"Wc{k}": part.T for k, part in enumerate(slices, 1)}
        others = {"bc": "bias", "Ws": "output", "bs": "output_bias"}
        return named | {block: weights[name].T for block, name in others.items()}

    def _layout_parts(self) -> tuple[str, ...]:
        return Encoder._layout_parts(self)  # pooling needs no texts of words

    def _pooling(
        self,
        state: dict[str, np.ndarray],
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workspace: Workspace,
    ) -> KernelTask:
        state["places"] = workspace.empty("places", state["H"].shape, np.int32)
        return (
            pool_windows,
            state["H"],
            state["places"],
            P,
            weights["bias"],
            word_index,
            offsets,
        )

    def _unpooling(
        self,
        state: dict[str, np.ndarray],
        dH: np.ndarray,
        batch: TextBatch,
        low: int,
        high: int,
        workspace: Workspace,
    ) -> list[KernelTask]:
        D = workspace.empty("D_tokens", (batch.word_index.size, self.hidden), dH.dtype)
        return [(spread_to_maxima, D, dH, state["places"], batch.offsets, low, high)]

    def _errors_of_words(
        self, dH: np.ndarray, layout: Layout, workspace: Workspace
    ) -> list[WordErrors]:
        batch = layout.batch
        D = workspace.empty("D_tokens", (batch.word_index.size, self.hidden), dH.dtype)
        text_of_token = np.repeat(np.arange(batch.n_texts), np.diff(batch.offsets))
        parts = []
        for number in range(self.window):
            # In these windows the word is this many places to the right of the middle.
            middles = np.arange(batch.word_index.size) - (number - self.window // 2)
            inside = (middles >= batch.offsets[text_of_token]) & (
                middles < batch.offsets[text_of_token + 1]
            )
            words, middles = batch.word_index[inside], middles[inside].astype(np.int32)
            offsets, places, _ = invert_lists(np.arange(words.size + 1), words, batch.n_words)
            parts.append((number * self.hidden, D, offsets, middles[places]))
        return parts


def _without_empty(rows: np.ndarray, offsets: NDArray[np.int64]) -> np.ndarray:
    """``rows`` with zeros for texts without words, which have no embedding."""
    empty = offsets[1:] == offsets[:-1]
    if empty.any():
        rows = np.where(empty[:, None], rows.dtype.type(0), rows)
    return rows


def _no_truncation(encoder: Encoder, truncation: Truncation | None) -> None:
    if truncation is not None and truncation.steps is not None:
        raise SentembError(
            f"a {encoder.name} has no steps through time to truncate; leave truncate out"
        )
