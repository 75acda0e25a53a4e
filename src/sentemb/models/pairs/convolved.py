"""Convolutions over the words of one text, each followed by pooling: section 2 of ARC-I's paper.

Hu et al. (NIPS 2014). A text of n words has min(n, L - k + 1) windows that begin at a word. Only
these are on: a window further up is on if it covers a cell that is on. A cell that is off is zero,
so a text has the same vector whatever texts it is read with.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.mlp import relu_errors, relu_rows
from sentemb.kernels.windows import (
    add_gradient_at,
    flipped_slices,
    lay_out_words,
    overlapping,
    products_at,
)
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.joined import Joined
from sentemb.models.pairs.pair_model import FirstStage, Texts
from sentemb.models.pairs.planes import starts_of
from sentemb.models.towers.towers import SIDES, distinct_sides
from sentemb.models.words.workspace import Job
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, one_after_the_other, spans

# What the paper's names of the parameters of a side end in.
_SUFFIX = dict(zip(SIDES, "xy", strict=True))


class FirstRows(NamedTuple):
    """The first rows of each of some texts: those of a layer that are on.

    ``numbers`` (n,) int64 has all of them, text by text; ``starts`` (n_texts + 1,) int64 says where
    those of each text begin.
    """

    numbers: NDArray[np.int64]
    starts: NDArray[np.int64]

    @classmethod
    def of(cls, first: NDArray[np.int64], counts: NDArray[np.int64]) -> FirstRows:
        """``counts`` rows of each text from ``first`` on, which is (n_texts + 1,)."""
        starts = starts_of(counts)
        return cls(np.arange(starts[-1]) + np.repeat(first[:-1] - starts[:-1], counts), starts)

    def part(self, low: int, high: int) -> NDArray[np.int64]:
        """The rows of the texts ``low`` to ``high``."""
        return self.numbers[self.starts[low] : self.starts[high]]


class Layer(NamedTuple):
    """A convolution over some texts and the pooling that follows it.

    number : as the paper counts: 1, 3, 5, ...
    inputs, windows : the cells that are on before the convolution, and the windows that are on
    units : (n_texts,) int64, how many windows are on
    rows : (n_texts + 1,) int64, first row of each text before the convolution and after it:
        ``units`` rows and ``window - 1`` more
    pooled : (n_texts + 1,) int64, first row of each text after the pooling
    """

    number: int
    inputs: FirstRows
    windows: FirstRows
    units: NDArray[np.int64]
    rows: NDArray[np.int64]
    pooled: NDArray[np.int64]


class Convolved(Joined):
    """Base: a subclass defines `check`, which sets ``sizes``, `pool_task` and `unpool_task`.

    ``sizes`` are the cells of the longest text after each convolution, and after its pooling.
    """

    # Type of the array in which pooling notes where each maximum is.
    place_dtype: ClassVar[DTypeLike]
    sizes: list[tuple[int, int]]

    def pool_task(
        self, M: np.ndarray, argmax: np.ndarray, U: np.ndarray, layer: Layer, low: int, high: int
    ) -> KernelTask:
        """Pool the windows ``U`` of some texts to ``M`` and note the places of the maxima."""
        raise NotImplementedError

    def unpool_task(
        self, dU: np.ndarray, dM: np.ndarray, argmax: np.ndarray, layer: Layer, low: int, high: int
    ) -> KernelTask:
        """The backward pass of `pool_task`; errors are 0 in all rows without a maximum."""
        raise NotImplementedError

    @property
    def vector_length(self) -> int:
        """Cells of the longest text after the last pooling, times the maps of each."""
        return self.sizes[-1][1] * int(self.maps[-1])

    # -- weights ------------------------------------------------------------------------------

    @property
    def _numbers(self) -> range:
        return range(1, 2 * len(self.maps), 2)

    def _names(self, number: int, side: str) -> tuple[str, str]:
        """The stacked matrix and bias of a convolution."""
        of_side = "" if self.shared_towers else f"_{side}"
        return f"maps{number}{of_side}", f"maps_bias{number}{of_side}"

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays of the convolutions by name; a matrix has its inputs as rows."""
        shapes: dict[str, tuple[int, ...]] = {}
        for side in distinct_sides(self.shared_towers):
            inputs = self.width
            for number, maps in zip(self._numbers, self.maps, strict=True):
                matrix, bias = self._names(number, side)
                shapes |= {matrix: (self.window * inputs, maps), bias: (maps,)}
                inputs = maps
        return shapes

    def own_spreads(self) -> dict[str, float]:
        """He's for ReLU layers."""
        shapes = self.own_shapes()
        return {name: math.sqrt(2 / shape[0]) for name, shape in shapes.items() if len(shape) > 1}

    def own_blocks(self, weights: Arrays) -> Arrays:
        """Views as ``W1x``, ``b1x``, ``W3x``, ..., ``W1y``, ...; ``W1``, ... if both are one."""
        named: Arrays = {}
        for side in distinct_sides(self.shared_towers):
            suffix = "" if self.shared_towers else _SUFFIX[side]
            for number in self._numbers:
                matrix, bias = self._names(number, side)
                named[f"W{number}{suffix}"] = weights[matrix].T
                named[f"b{number}{suffix}"] = weights[bias]
        return named

    # -- passes -------------------------------------------------------------------------------

    def _layers(self, texts: Texts) -> list[Layer]:
        """The cells of each layer that are on, and their rows in the arrays."""
        counts = [np.diff(texts.offsets)]
        units = []
        for convolved, _ in self.sizes:
            units.append(np.minimum(counts[-1], convolved))
            counts.append(-(-units[-1] // 2))
        rows = [starts_of(counted + self.window - 1) for counted in units]
        # The MLP has weights for every place, so the last cells of all texts have the same room.
        pooled = [*rows[1:], np.arange(texts.n_texts + 1) * self.sizes[-1][1]]
        return [
            Layer(
                number,
                inputs=FirstRows.of(rows[k], counts[k]),
                windows=FirstRows.of(rows[k], units[k]),
                units=units[k],
                rows=rows[k],
                pooled=pooled[k],
            )
            for k, number in enumerate(self._numbers)
        ]

    def vector_tasks(self, given: Pass, side: str, texts: Texts) -> Job[Arrays]:
        """Equation (1) for all convolutions; the ReLU comes after the maximum, which is the same.

        ``X1`` are the words, ``X3``, ... the inputs of the later convolutions.
        """
        weights, P, space, _ = given
        layers = self._layers(texts)
        n_texts, dtype = texts.n_texts, P.dtype
        h = np.empty((n_texts, self.vector_length), dtype)
        shape = int(layers[0].rows[-1]), self.width
        arrays: Arrays = {"h": h, "X1": space.empty(f"X1 {side}", shape, dtype)}
        products: list[np.ndarray] = []
        for layer, maps in zip(layers, self.maps, strict=True):
            shape = int(layer.rows[-1]), maps
            products.append(space.empty(f"products{layer.number} {side}", shape, dtype))
            name, shape = f"argmax{layer.number}", (int(layer.pooled[-1]), maps)
            arrays[name] = space.empty(f"{name} {side}", shape, self.place_dtype)
            if layer is not layers[-1]:
                name = f"X{layer.number + 2}"
                arrays[name] = space.empty(f"{name} {side}", shape, dtype)
        tasks = []
        for _, low, high in spans(n_texts, self._cost_of_text(side, texts)):
            rows = layers[0].rows
            calls: list[KernelTask] = [
                (lay_out_words, arrays["X1"], P, texts.word_index, texts.offsets, rows, low, high)
            ]
            for layer, U in zip(layers, products, strict=True):
                S = overlapping(arrays[f"X{layer.number}"], self.window)
                parameters = (weights[name] for name in self._names(layer.number, side))
                M, argmax = self._pooled(arrays, layer), arrays[f"argmax{layer.number}"]
                on = layer.windows.part(low, high)
                calls += [
                    (products_at, U, on, S, on, *parameters),
                    self.pool_task(M, argmax, U, layer, low, high),
                    (relu_rows, M, layer.pooled[low], layer.pooled[high]),
                ]
            tasks.append((one_after_the_other, *calls))
        yield tasks
        return arrays

    def _cost_of_text(self, side: str, texts: Texts) -> float:
        """The cost of the products of a text's windows in all layers; see `spans`."""
        shapes = self.own_shapes()
        matrices = (shapes[self._names(number, side)[0]] for number in self._numbers)
        windows = 1 + texts.mean_words
        return windows * sum(map(math.prod, matrices)) / PRODUCTS

    def _pooled(self, arrays: Arrays, layer: Layer) -> np.ndarray:
        """The outputs of a layer's pooling: the inputs of the next layer, or the vectors."""
        if layer.number == self._numbers[-1]:
            return arrays["h"].reshape(-1, self.maps[-1])
        return arrays[f"X{layer.number + 2}"]

    def vector_backward_tasks(
        self, given: Pass, side: str, reading: FirstStage, dh: np.ndarray, words: bool
    ) -> Job[tuple[Arrays, np.ndarray | None]]:
        """Back through all layers, for each part of the texts by itself."""
        weights, _, space, _ = given
        texts, arrays, dtype = reading.texts, reading.arrays, dh.dtype
        layers, before = self._layers(texts), self.window - 1
        names = [name for layer in layers for name in self._names(layer.number, side)]
        sums = sum(weights[name].size for name in names)
        spans_of_texts = spans(texts.n_texts, 2 * self._cost_of_text(side, texts), sums)
        parts: Arrays = {}
        for name in names:
            shape = len(spans_of_texts), *weights[name].shape
            parts[name] = space.zeros(f"d{name} {side}", shape, dtype)
        tasks: list[list[KernelTask]] = [[] for _ in spans_of_texts]
        dM = dh.reshape(-1, self.maps[-1])
        for layer in reversed(layers):
            matrix, bias = self._names(layer.number, side)
            X, M = arrays[f"X{layer.number}"], self._pooled(arrays, layer)
            argmax = arrays[f"argmax{layer.number}"]
            shape = before + int(layer.rows[-1]), M.shape[1]
            padded = space.empty(f"dproducts{layer.number} {side}", shape, dtype)
            dU = padded[before:]
            if layer is layers[0]:  # the errors of the words do not lie apart
                n_rows, to = (
                    texts.word_index.size,
                    FirstRows.of(texts.offsets, np.diff(texts.offsets)),
                )
            else:
                n_rows, to = len(X), layer.inputs
            dX = space.empty(f"dX{layer.number} {side}", (n_rows, X.shape[1]), dtype)
            S, errors = overlapping(X, self.window), overlapping(padded, self.window)
            flipped = flipped_slices(weights[matrix], self.window)
            nothing = np.zeros(X.shape[1], dtype)
            for calls, (part, low, high) in zip(tasks, spans_of_texts, strict=True):
                # The errors at this part's first rows read the last rows of the part before, at
                # which no window begins. That part writes zeros there as well, perhaps later.
                padded[layer.rows[low] : layer.rows[low] + before] = 0
                on = layer.windows.part(low, high)
                calls += [
                    (relu_errors, dM, M, 1.0, layer.pooled[low], layer.pooled[high]),
                    self.unpool_task(dU, dM, argmax, layer, low, high),
                    (add_gradient_at, parts[matrix][part], parts[bias][part], S, dU, on),
                ]
                if words or layer is not layers[0]:
                    rows = to.part(low, high), errors, layer.inputs.part(low, high)
                    calls.append((products_at, dX, *rows, flipped, nothing))
            dM = dX
        yield [(one_after_the_other, *calls) for calls in tasks]
        gradient = {name: array.sum(axis=0) for name, array in parts.items()}
        return gradient, dM if words else None
