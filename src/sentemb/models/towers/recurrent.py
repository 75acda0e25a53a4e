"""The base of the recurrent encoders: passes through a text in one or two directions.

In addition to the last y(t) of each direction an embedding may hold a linear bag of the same
features, Wbag x. It holds what the words say in any order, which frees the cells for the rest.

The weights of an encoder are stacked for the kernels:

=============  ===================================  ==========================================
name           shape                                holds
=============  ===================================  ==========================================
``table``      (n_features,                         every W_g transposed, side by side,
               directions * G * n + bag_dim)            then Wbag transposed
``bias``       (directions * G * n,)                every b_g
``recurrent``  (directions, n, G * n)               every Wrec_g transposed, side by side
``peepholes``  (directions, 3, n) or                Wp_1, Wp_2, Wp_3: diagonals, or
               (directions, 3, n, n)                transposed matrices
=============  ===================================  ==========================================

`blocks` returns them under the paper's names and in the paper's shapes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.layers import sum_words
from sentemb.kernels.recurrent import copy_last_rows, set_recurrent_gradient
from sentemb.models.contracts import GradientPoint
from sentemb.models.towers.encoder import Encoder, ForwardPass
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.packing import BLOCK_TEXTS, Packing
from sentemb.models.words.word_reader import tasks_of_sums
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, Workers, one_after_the_other, pieces, spread

# What a value of a gate costs besides its part of the recurrent products, in numbers.
_OF_A_VALUE = 4


class RecurrentEncoder(Encoder):
    """Base of `RNN`, `IRNN`, `LSTM` and `BiLSTM`.

    It has n = ``cells`` cells in each direction; a linear bag of length ``bag_dim`` is joined to
    their outputs.
    """

    recurrent = True
    directions = 1
    # The paper's numbers of the stacked gates, "" for RNN and iRNN, which have none.
    gates: tuple[str, ...] = ("",)
    # What the array of the errors is called in a workspace.
    errors_name = "D"

    def is_reached(self, block: str, longest: int) -> bool:
        """As `Encoder`: y(0) = 0, so one word alone does not use the recurrent weights."""
        return longest > 1 or not block.startswith("Wrec")

    @property
    def n_outputs(self) -> int:
        """Length of the last y(t) of all directions, the first part of an embedding."""
        return self.directions * self.cells

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return self.n_outputs + self.bag_dim

    @property
    def gate_width(self) -> int:
        """Columns of one direction in the stacked arrays, G n."""
        return len(self.gates) * self.cells

    @property
    def bag_column(self) -> int:
        """First column of Wbag in ``table``."""
        return self.directions * self.gate_width

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return self.bag_column + self.bag_dim

    def word_vector_columns(self) -> slice:
        """The columns of Wbag, which are added up; all others go through the gates."""
        return slice(self.bag_column, self.width)

    # -- weights ------------------------------------------------------------------------------

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        return {
            "table": (n_features, self.width),
            "bias": (self.bag_column,),
            "recurrent": (self.directions, self.cells, self.gate_width),
        }

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial dense matrices by name; the others start at zero."""
        return {"recurrent": 0.2 / np.sqrt(self.cells)}

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of stacked arrays under the paper's names: W1 (n, d), Wrec1 (n, n), b1 (n,), ...

        Works on weights and on gradients. The names of a bidirectional encoder begin with
        ``forward.`` and ``backward.``.
        """
        named = {}
        n = self.cells
        for direction in range(self.directions):
            prefix = ("forward.", "backward.")[direction] if self.directions == 2 else ""
            column = direction * self.gate_width
            for slot, gate in enumerate(self.gates):
                part = slice(column + slot * n, column + (slot + 1) * n)
                units = slice(slot * n, (slot + 1) * n)
                named[f"{prefix}W{gate}"] = weights["table"][:, part].T
                named[f"{prefix}Wrec{gate}"] = weights["recurrent"][direction, :, units].T
                named[f"{prefix}b{gate}"] = weights["bias"][part]
            named.update(self._peephole_blocks(weights, prefix, direction))
        if self.bag_dim:
            named["Wbag"] = weights["table"][:, self.bag_column :].T
        return named

    def _peephole_blocks(self, weights: Arrays, prefix: str, direction: int) -> Arrays:
        return {}

    def _layout_parts(self) -> tuple[str, ...]:
        parts = (*super()._layout_parts(), "packed_rows_of_words")
        return (*parts, "texts_of_words") if self.bag_dim else parts

    # -- forward ------------------------------------------------------------------------------

    def word_bias(self, weights: Arrays, dtype: DTypeLike) -> np.ndarray:
        """The vector that is added to every projected word: (width,) of ``dtype``."""
        if not self.bag_dim:
            return weights["bias"]
        return np.concatenate([weights["bias"], np.zeros(self.bag_dim, dtype)])

    def forward_tasks(
        self, point: GradientPoint, layout: Layout, workspace: Workspace
    ) -> Job[ForwardPass]:
        """`forward` as a job for `Workers.together`; parameters as for `Encoder`."""
        weights, batch, packing = point.weights, layout.batch, layout.packing
        P = yield from self.project_tasks(point, batch, workspace)
        embeddings = workspace.empty("embeddings", (batch.n_texts, self.dim), P.dtype)
        if packing.order.size < batch.n_texts:
            embeddings[...] = 0
        states: list[dict[str, np.ndarray]] = []
        tasks: list[KernelTask] = []
        for direction in range(self.directions):
            state, kernel, arguments = self._prepare(weights, direction, packing, P, workspace)
            states.append(state)
            R = weights["recurrent"][direction]
            state["RT"] = workspace.empty(f"RT{direction}", R.T.shape, P.dtype)  # to go back
            tasks.append((np.copyto, state["RT"], R.T))
            ends = embeddings, direction * self.cells, state["Y"], packing.order, packing.last_rows
            for _, first, end in packing.spans(self._cost_of_row(1)):
                copying = (copy_last_rows, *ends, *packing.texts_of(first, end))
                tasks.append((one_after_the_other, (kernel, *arguments, first, end), copying))
        if self.bag_dim:
            X = workspace.empty("X", (batch.n_texts, self.bag_dim), P.dtype)
            bag = embeddings[:, self.n_outputs :]
            for sums in self._bag_tasks(X, P, batch.word_index, batch.offsets):
                texts = slice(*sums[-2:])
                tasks.append((one_after_the_other, sums, (np.copyto, bag[texts], X[texts])))
        yield tasks
        return ForwardPass(layout, embeddings, states)

    def _cost_of_row(self, products: int) -> float:
        """The cost of a packed row in one direction, with recurrent products; see `spans_of`."""
        return self.gate_width * (products * self.cells / PRODUCTS + _OF_A_VALUE)

    def _bag_tasks(
        self,
        X: np.ndarray,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
    ) -> list[KernelTask]:
        """Tasks that set X (n_texts, bag_dim) to the sums of the words' Wbag l."""
        if not self.bag_dim:
            return []
        bias = np.zeros(self.bag_dim, P.dtype)
        arguments = (X, P, self.bag_column, bias, word_index, offsets)
        cost = self.bag_dim * (1 + word_index.size / max(1, len(X)))
        return spread(len(X), sum_words, *arguments, cost=cost)

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts without state for a backward pass, as `Encoder.embed`."""
        packing = Packing(word_index, offsets, BLOCK_TEXTS)
        embeddings = np.zeros((offsets.size - 1, self.dim), P.dtype)
        scratch = [Workspace() for _ in range(workers.threads)]

        def embed_block(number: int) -> None:
            workspace = scratch.pop()
            self._embed_block(embeddings, weights, P, packing.block(number), workspace)
            scratch.append(workspace)

        # Block by block, so that what the kernels write stays in the processor's cache.
        X = np.empty((offsets.size - 1, self.bag_dim), P.dtype)
        blocks = [(embed_block, number) for number in range(packing.n_blocks)]
        workers.run(blocks + self._bag_tasks(X, P, word_index, offsets))
        if self.bag_dim:
            embeddings[:, self.n_outputs :] = X
        return embeddings

    def _prepare(
        self, weights: Arrays, direction: int, packing: Packing, P: np.ndarray, workspace: Workspace
    ) -> tuple[dict[str, np.ndarray], Callable[..., Any], tuple[Any, ...]]:
        """The outputs of the forward kernel, the kernel, and its arguments without the blocks."""
        raise NotImplementedError

    def _embed_block(
        self,
        embeddings: np.ndarray,
        weights: Arrays,
        P: np.ndarray,
        block: Packing,
        workspace: Workspace,
    ) -> None:
        for direction in range(self.directions):
            state, kernel, arguments = self._prepare(weights, direction, block, P, workspace)
            kernel(*arguments, 0, 1)
            part = slice(direction * self.cells, (direction + 1) * self.cells)
            # For a single text, indexing with arrays would take longer than its words do.
            is_single = block.order.size == 1
            texts, last_rows = (
                (block.order[0], block.last_rows[0])
                if is_single
                else (block.order, block.last_rows)
            )
            embeddings[texts, part] = state["Y"][last_rows]

    # -- backward -----------------------------------------------------------------------------

    def by_length(self, rows: np.ndarray, offsets: NDArray[np.int64]) -> np.ndarray:
        """Divide (n_texts, dim) rows by the texts' numbers of words; here nothing is divided.

        An encoder whose embedding holds y(m) / m divides its last outputs and, in the backward
        pass, their errors.
        """
        return rows

    def gate_values(self, state: dict[str, np.ndarray], rows: NDArray[np.int64]) -> Arrays:
        """The values of outputs, cells and gates at some packed rows: (T, n) float by name.

        ``state`` is one of `ForwardPass.states`; ``rows`` (T,) int64 are in the order wanted, see
        `Packing.rows_of_tokens`.
        """
        raise NotImplementedError

    def input_errors(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        workers: Workers,
        truncation: Truncation | None = None,
    ) -> list[np.ndarray]:
        """dL/d(W l(t) + b) of every token: the result of the scan, before any sum over tokens.

        Arguments as for `backward`. The result is (n_rows, G n) float for each direction, gates
        stacked as in the weights; `Packing.rows_of_tokens` gives the row of each token.
        """
        V = np.ascontiguousarray(self.by_length(V, done.batch.offsets))
        errors = self._room_for_errors(done.packing, V.dtype, Workspace())
        scans = self._scans(weights, done, errors, V, truncation or Truncation())
        workers.run(
            [
                task
                for scan in scans
                for task in pieces(done.packing.spans(self._cost_of_row(1)), *scan)
            ]
        )
        return errors

    def _prepare_backward(
        self,
        weights: Arrays,
        direction: int,
        done: ForwardPass,
        D: np.ndarray,
        V: np.ndarray,
        truncation: Truncation,
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The backward kernel, which writes D, and its arguments without the blocks."""
        raise NotImplementedError

    def _scans(
        self,
        weights: Arrays,
        done: ForwardPass,
        errors: list[np.ndarray],
        V: np.ndarray,
        truncation: Truncation,
    ) -> list[KernelTask]:
        """For each direction the call that writes the errors of some blocks, without the blocks."""
        scans = []
        for direction, D in enumerate(errors):
            kernel, arguments = self._prepare_backward(weights, direction, done, D, V, truncation)
            scans.append((kernel, *arguments))
        return scans

    def _room_for_errors(
        self, packing: Packing, dtype: DTypeLike, workspace: Workspace
    ) -> list[np.ndarray]:
        shape = packing.n_rows, self.gate_width
        return [
            workspace.empty(f"{self.errors_name}{direction}", shape, dtype)
            for direction in range(self.directions)
        ]

    def backward_tasks(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation | None,
        workspace: Workspace,
    ) -> Job[Arrays]:
        """`backward` as a job for `Workers.together`, as `Encoder.backward_tasks`."""
        layout = done.layout
        divided = np.ascontiguousarray(self.by_length(V, done.batch.offsets))
        errors = self._room_for_errors(done.packing, V.dtype, workspace)
        shapes = {
            name: shape[1:]
            for name, shape in self.shapes(0).items()
            if name not in ("table", "bias")
        }
        blocks = done.packing.spans(
            self._cost_of_row(2), sums=sum(math.prod(shape) for shape in shapes.values())
        )
        # The sums of each part for the gradients of the dense weights.
        parts = {
            name: workspace.empty(f"d{name}", (self.directions, len(blocks), *shape), V.dtype)
            for name, shape in shapes.items()
        }
        tasks: list[KernelTask] = []
        scans = self._scans(weights, done, errors, divided, truncation or Truncation())
        for direction, scan in enumerate(scans):
            state, D = done.states[direction], errors[direction]
            of_direction = {name: array[direction] for name, array in parts.items()}
            sums = self._prepare_sums(of_direction, state, D, done.packing)
            for block in blocks:
                calls = ((*of_part, *block) for of_part in sums)
                tasks.append((one_after_the_other, (*scan, *block[1:]), *calls))
        V_bag = workspace.empty("V_bag", (len(V), self.bag_dim), V.dtype)
        if self.bag_dim:
            tasks.append((np.copyto, V_bag, V[:, self.n_outputs :]))
        yield tasks
        gradient = {}
        adding: list[KernelTask] = []
        for name, of_parts in parts.items():
            shape = self.directions, *shapes[name]
            gradient[name] = workspace.empty(f"sum of {name}", shape, V.dtype)
            for total, summed in zip(gradient[name], of_parts, strict=True):
                adding += tasks_of_sums(total, summed)
        of_words = [
            (direction * self.gate_width, D, *layout.packed_rows_of_words[direction])
            for direction, D in enumerate(errors)
        ]
        if self.bag_dim:
            of_words.append((self.bag_column, V_bag, *layout.texts_of_words))
        dP, bias = yield from self.gather_words_tasks(layout.batch, of_words, workspace, adding)
        return gradient | {"bias": bias[: self.bag_column], "words": dP}

    def _prepare_sums(
        self,
        parts: dict[str, np.ndarray],
        state: dict[str, np.ndarray],
        D: np.ndarray,
        packing: Packing,
    ) -> list[KernelTask]:
        """Calls that set a part of ``parts``: for every gradient the sum over tokens.

        The number of the part, its first block and its end follow as the last arguments. They run
        right after the scan of these blocks, while its errors are in the processor's cache.
        """
        steps = packing.block_steps, packing.step_rows
        return [(set_recurrent_gradient, parts["recurrent"], state["Y"], D, *steps)]
