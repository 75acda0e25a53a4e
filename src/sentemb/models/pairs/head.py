"""The MLP that turns the features of a pair into a score."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sentemb.kernels.dropout import dropout_rows
from sentemb.kernels.input_layer import sum_rows
from sentemb.kernels.layers import dense, product_rows, set_dense_gradient
from sentemb.kernels.mlp import output_errors, output_rows, relu_errors, relu_rows
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, one_after_the_other, spans

# Numbers of the layers whose values are dropped: see `sentemb.kernels.dropout`.
QUERY_LAYER, TITLE_LAYER, PAIR_LAYER, HIDDEN_LAYERS = 0, 1, 2, 3


class Dropout(NamedTuple):
    """Dropout of an update: ``key`` decides which values are dropped, a share ``rate`` of them.

    The rate is from 0, below 1; the key is a uint64.
    """

    rate: float
    key: np.uint64

    @classmethod
    def of(cls, rate: float, *numbers: int) -> Dropout | None:
        """The dropout of the update that ``numbers`` name; None at rate 0."""
        if rate == 0:
            return None
        return cls(rate, np.random.SeedSequence(numbers).generate_state(1, np.uint64)[0])

    def tasks(self, X: np.ndarray, layer: int, first: int, end: int) -> list[KernelTask]:
        """Drop some of X[first:end] in place, or of its gradient."""
        return [(dropout_rows, X, self.key, layer, self.rate, first, end)]

    @property
    def scale(self) -> float:
        """The factor of the values that are not dropped."""
        return 1 / (1 - self.rate)


class Pass(NamedTuple):
    """Weights, words, room and dropout of a pass over texts and pairs, whatever it computes.

    weights : in the shapes of the model
    P : (n_words, width) float, the projected words
    space : holds what the pass returns, until it is used again
    dropout : for training
    """

    weights: Arrays
    P: np.ndarray
    space: Workspace
    dropout: Dropout | None = None


class Head:
    """ReLU layers and a linear output: s = w . y_m + c, y_k = max(0, W_k y_(k-1) + c_k).

    The paper counts "two layers for MLP": one hidden layer and the output. Dropout is on every
    hidden layer here; the model itself drops values of the input. ``inputs`` is the length of y_0,
    the features of a pair; each of the m = ``layers`` hidden layers has ``width`` units.
    """

    def __init__(self, inputs: int, width: int, layers: int) -> None:
        self.inputs, self.width = inputs, width
        self.layers = [(f"mlp{k}", f"mlp_bias{k}") for k in range(1, layers + 1)]

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name; a matrix has its inputs as rows."""
        shapes: dict[str, tuple[int, ...]] = {}
        inputs = self.inputs
        for matrix, bias in self.layers:
            shapes |= {matrix: (inputs, self.width), bias: (self.width,)}
            inputs = self.width
        return shapes | {"output": (inputs,), "output_bias": (1,)}

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial matrices: He's for the ReLU layers."""
        shapes = self.shapes()
        spreads = {matrix: math.sqrt(2 / shapes[matrix][0]) for matrix, _ in self.layers}
        return spreads | {"output": 1 / math.sqrt(self.width)}

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the arrays as matrices with their outputs as rows: W1, c1, ..., w, c."""
        named: Arrays = {}
        for k, (matrix, bias) in enumerate(self.layers, 1):
            named |= {f"M{k}": weights[matrix].T, f"c{k}": weights[bias]}
        return named | {"w": weights["output"], "c": weights["output_bias"]}

    def score_tasks(self, given: Pass, A: np.ndarray) -> Job[tuple[np.ndarray, Arrays]]:
        """The scores of pairs, (n_pairs,) float, and y_1 to y_m, as `backward_tasks` needs them.

        ``A`` (n_pairs, width) float is ``W_1 y_0 + c_1`` and becomes y_1.
        """
        weights, _, space, dropout = given
        n_pairs, dtype = len(A), A.dtype
        values = {"Y1": A}
        for k in range(2, len(self.layers) + 1):
            values[f"Y{k}"] = space.empty(f"Y{k}", (n_pairs, self.width), dtype)
        scores = np.empty(n_pairs, dtype)
        tasks = []
        for _, low, high in spans(n_pairs, self._numbers() / PRODUCTS + self.width):
            calls: list[KernelTask] = []
            for k, (matrix, bias) in enumerate(self.layers, 1):
                Y = values[f"Y{k}"]
                if k > 1:
                    calls.append(
                        (dense, Y, values[f"Y{k - 1}"], weights[matrix], weights[bias], low, high)
                    )
                calls.append((relu_rows, Y, low, high))
                if dropout is not None:
                    calls += dropout.tasks(Y, HIDDEN_LAYERS + k, low, high)
            outputs = weights["output"], weights["output_bias"]
            calls.append((output_rows, scores, Y, *outputs, low, high))
            tasks.append((one_after_the_other, *calls))
        yield tasks
        return scores, values

    def _numbers(self) -> int:
        """The weights of all layers after the first."""
        return (len(self.layers) - 1) * self.width * self.width + self.width

    def backward_tasks(
        self, given: Pass, values: Arrays, V: np.ndarray
    ) -> Job[tuple[Arrays, np.ndarray]]:
        """The backward pass of `score_tasks`, from its ``values``.

        ``V`` (n_pairs,) float is dL/ds of every pair. Returns the gradient of all arrays in
        `shapes` except the first matrix, whose inputs the model has, and dA (n_pairs, width) float,
        the gradient at W_1 y_0 + c_1.
        """
        weights, _, space, dropout = given
        n_pairs, dtype = len(V), V.dtype
        last = len(self.layers)
        scale = 1.0 if dropout is None else dropout.scale
        errors = {
            k: space.empty(f"dY{k}", (n_pairs, self.width), dtype) for k in range(1, last + 1)
        }
        first_matrix = self.layers[0][0]
        shapes = {name: shape for name, shape in self.shapes().items() if name != first_matrix}
        numbers = self._numbers()
        pairs = spans(n_pairs, 2 * numbers / PRODUCTS + self.width, sums=numbers)
        parts = {
            name: space.zeros(f"d{name}", (len(pairs), *shape), dtype)
            for name, shape in shapes.items()
        }
        transposed = {matrix: np.ascontiguousarray(weights[matrix].T) for matrix, _ in self.layers}
        tasks = []
        for part, low, high in pairs:
            outputs = parts["output"][part], parts["output_bias"][part]
            calls: list[KernelTask] = [
                (output_errors, errors[last], *outputs, V, values[f"Y{last}"], weights["output"],
                 low, high)
            ]  # fmt: skip
            for k in range(last, 0, -1):
                matrix, bias = self.layers[k - 1]
                D = errors[k]
                calls += [
                    (relu_errors, D, values[f"Y{k}"], scale, low, high),
                    (sum_rows, parts[bias][part], D, low, high),
                ]
                if k > 1:
                    X, dW = values[f"Y{k - 1}"], parts[matrix][part]
                    calls += [
                        (set_dense_gradient, dW, X, D, low, high),
                        (product_rows, errors[k - 1], D, transposed[matrix], low, high),
                    ]
            tasks.append((one_after_the_other, *calls))
        yield tasks
        return {name: part.sum(axis=0) for name, part in parts.items()}, errors[1]
