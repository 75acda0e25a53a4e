"""ARC-II: a plane of windows of both texts, convolved and pooled until the MLP reads it."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.convolution2d import (
    Planes,
    add_convolution_gradient,
    convolve_planes,
    flatten_planes,
    pool_planes,
    unflatten_planes,
    unpool_planes,
)
from sentemb.kernels.input_layer import invert_lists
from sentemb.kernels.layers import dense, product_rows, set_dense_gradient
from sentemb.kernels.pair_cells import (
    first_plane_backward,
    first_plane_backward_printed,
    first_plane_forward,
    first_plane_forward_printed,
    sum_over_pairs,
)
from sentemb.kernels.windows import (
    copy_units,
    flipped_slices,
    lay_out_words,
    overlapping,
    pool_pairs,
    unpool_pairs,
)
from sentemb.models.pairs.head import PAIR_LAYER, Pass
from sentemb.models.pairs.layer_sizes import layer_sizes, least_words
from sentemb.models.pairs.pair_model import FirstStage, PairModel, Pairs, Scoring, Texts
from sentemb.models.pairs.planes import convolved, corners, pooled, rectangles, starts_of
from sentemb.models.pairs.registry import AND
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PAYS, PRODUCTS, one_after_the_other, spans

# Cells of the first plane that are computed together: enough rows for fast products, few enough
# for the planes of a block to stay in the second cache. No result depends on it.
_BLOCK_CELLS = 768


# By part, the blocks of pairs that are computed together: first and end of each.
Blocks: TypeAlias = list[list[tuple[int, int]]]
# The errors of the units of one side in every pair, and where those of a pair begin.
PairErrors: TypeAlias = tuple[np.ndarray, NDArray[np.int64]]


class _Layer(NamedTuple):
    """A convolution over planes and the pooling that follows it."""

    number: int  # as the paper counts, 3, 5, ...
    before: Planes
    convolved: Planes
    after: Planes


class ARC2(PairModel):
    """s = MLP(pool(conv(... pool(conv(x, y))))), section 3.2 of Hu et al. (NIPS 2014).

    Layer 1 has a cell for each window of the query and each of the title, layer 2 pools 2 x 2
    cells, layers 3, 5, ... are k x k convolutions. See `sentemb.kernels.pair_cells` for the two
    gates and why layer 1 is never computed with gate "and".
    """

    name = "arc2"
    defaults: ClassVar[dict[str, Any]] = PairModel.defaults | {"maps": (200, 200, 200)}

    def check(self) -> None:
        """Raise a `SentembError` if texts are too short for all layers."""
        self.sizes = layer_sizes(self.max_words, self.window, len(self.maps))

    @property
    def least_words(self) -> int:
        """The smallest ``max_words`` for which every layer has a cell."""
        return least_words(self.window, len(self.maps))

    @property
    def inputs(self) -> int:
        """Numbers in the last plane."""
        return int(self.sizes[-1][1] ** 2 * self.maps[-1])

    @property
    def numbers_per_pair(self) -> int:
        """As `PairModel.numbers_per_pair`, with the pooled cells of all planes."""
        sizes = (size for _, size in self.sizes[1:])
        pooled_cells = sum(size**2 * maps for size, maps in zip(sizes, self.maps[1:], strict=True))
        return super().numbers_per_pair + int(pooled_cells)

    # -- weights ------------------------------------------------------------------------------

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays of the convolutions by name; a matrix has its inputs as rows."""
        first = (self.window * self.width, self.maps[0])
        shapes: dict[str, tuple[int, ...]] = {f"windows_{side}": first for side in SIDES}
        shapes["windows_bias"] = (self.maps[0],)
        for layer, (before, maps) in enumerate(zip(self.maps, self.maps[1:], strict=False), 1):
            number = 2 * layer + 1
            shapes[f"maps{number}"] = (self.window**2 * before, maps)
            shapes[f"maps_bias{number}"] = (maps,)
        return shapes

    def own_spreads(self) -> dict[str, float]:
        """He's for ReLU layers; a cell of layer 1 reads a window of each text."""
        matrices = {name: shape[0] for name, shape in self.own_shapes().items() if len(shape) > 1}
        return {
            name: math.sqrt(2 / (2 * rows if name.startswith("windows") else rows))
            for name, rows in matrices.items()
        }

    def own_blocks(self, weights: Arrays) -> Arrays:
        """Views as ``W1x``, ``W1y`` (w^(1) for the query and the title), ``b1``, ``W3``, ..."""
        query, title = (weights[f"windows_{side}"].T for side in SIDES)
        named = {"W1x": query, "W1y": title, "b1": weights["windows_bias"]}
        for number in self._numbers:
            named[f"W{number}"] = weights[f"maps{number}"].T
            named[f"b{number}"] = weights[f"maps_bias{number}"]
        return named

    @property
    def _numbers(self) -> range:
        """The numbers of the convolutions over planes."""
        return range(3, 2 * len(self.maps) + 1, 2)

    def _matrices(self, weights: Arrays, number: int) -> np.ndarray:
        """The matrix of each offset of a convolution: (window, window, maps before, maps)."""
        stacked = weights[f"maps{number}"]
        return stacked.reshape(self.window, self.window, -1, stacked.shape[1])

    # -- texts --------------------------------------------------------------------------------

    def read_tasks(self, given: Pass, side: str, texts: Texts) -> Job[FirstStage]:
        """As `PairModel.read_tasks`: the products of windows with this side's part of w^(1).

        With gate "and" they are pooled over two windows.
        """
        weights, P, space, _ = given
        windows = np.minimum(np.diff(texts.offsets), self.sizes[0][0])
        rows = starts_of(windows + self.window - 1)
        starts = starts_of(-(-windows // 2) if self.gate == AND else windows)
        maps = self.maps[0]
        S = space.empty(f"S {side}", (rows[-1], self.width), P.dtype)
        products = space.empty(f"products {side}", (rows[-1], maps), P.dtype)
        units = np.empty((starts[-1], maps), P.dtype)
        later = np.empty(units.shape if self.gate == AND else (0, maps), bool)
        tasks = []
        cost = self._cost_of_text(weights, side, texts)
        for _, low, high in spans(texts.n_texts, cost):
            calls: list[KernelTask] = [
                (lay_out_words, S, P, texts.word_index, texts.offsets, rows, low, high),
                (product_rows, products, overlapping(S, self.window),
                 weights[f"windows_{side}"], rows[low], rows[high] - self.window + 1),
            ]  # fmt: skip
            if self.gate == AND:
                calls.append((pool_pairs, units, later, products, rows, starts, windows, low, high))
            else:
                calls.append((copy_units, units, products, starts, rows, windows, low, high))
            tasks.append((one_after_the_other, *calls))
        yield tasks
        arrays = {"units": units, "starts": starts, "later": later, "windows": windows}
        return FirstStage(texts, arrays)

    def _cost_of_text(self, weights: Arrays, side: str, texts: Texts) -> float:
        """The cost of the products of a text's windows; see `spans`."""
        windows = 1 + texts.mean_words
        return windows * weights[f"windows_{side}"].size / PRODUCTS

    # -- pairs --------------------------------------------------------------------------------

    def _first_planes(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> Planes:
        """The cells of layer 2 that are on, from the windows of both texts of each pair."""
        if self.gate == AND:
            return pooled(rectangles(rows, columns))
        return pooled(corners(rows, columns, self.sizes[0][0]))

    def _layers(self, first: Planes) -> list[_Layer]:
        layers, before = [], first
        for number, (size, _) in zip(self._numbers, self.sizes[1:], strict=True):
            planes = convolved(before, size)
            layers.append(_Layer(number, before, planes, pooled(planes)))
            before = layers[-1].after
        return layers

    def _first_plane_forward(
        self, Z: np.ndarray, weights: Arrays, done: Scoring, planes: Planes, low: int, high: int
    ) -> KernelTask:
        """The task that computes the cells of layer 2 of some pairs."""
        U, V = done.queries.arrays, done.titles.arrays
        texts = (U["starts"], V["starts"], done.query_index, done.title_index, planes)
        both = (Z, U["units"], V["units"], weights["windows_bias"], *texts)
        if self.gate == AND:
            return (first_plane_forward, *both, low, high)
        return (first_plane_forward_printed, *both, self.sizes[0][0], low, high)

    def score_tasks(self, given: Pass, pairs: Pairs) -> Job[Scoring]:
        """As `PairModel.score_tasks`. What is kept per layer: pooled values and their places."""
        weights, _, space, dropout = given
        queries, titles, query_index, title_index = pairs
        n_pairs, dtype = query_index.size, queries.arrays["units"].dtype
        done = Scoring(np.empty(0, dtype), *pairs)
        first = self._first_planes(
            queries.arrays["windows"][query_index], titles.arrays["windows"][title_index]
        )
        layers = self._layers(first)
        state: Arrays = {"shapes": first.shapes, "cells": first.starts}
        for layer, maps in zip(layers, self.maps[1:], strict=True):
            shape = (layer.after.starts[-1], maps)
            state[f"M{layer.number}"] = space.empty(f"M{layer.number}", shape, dtype)
            state[f"argmax{layer.number}"] = space.empty(f"argmax{layer.number}", shape, np.uint8)
        if not layers:
            state["M1"] = space.empty("M1", (first.starts[-1], self.maps[0]), dtype)
        state["H"] = H = space.empty("H", (n_pairs, self.inputs), dtype)
        A = space.empty("A", (n_pairs, self.mlp), dtype)
        matrix, bias = self.head.layers[0]
        parts = spans(n_pairs)
        blocks = _blocks(first.starts, parts)
        buffers = self._room(
            "Z", [first, *(layer.convolved for layer in layers)], blocks, space, dtype
        )
        tasks = []
        for part, low, high in parts:
            calls: list[KernelTask] = []
            for start, end in blocks[part]:
                X = _of(buffers[0][part], first, start, end, state.get("M1"))
                calls.append(self._first_plane_forward(X, weights, done, first, start, end))
                for buffer, layer in zip(buffers[1:], layers, strict=True):
                    Z = _of(buffer[part], layer.convolved, start, end)
                    M, argmax = state[f"M{layer.number}"], state[f"argmax{layer.number}"]
                    calls += [
                        (convolve_planes, Z, X, self._matrices(weights, layer.number),
                         weights[f"maps_bias{layer.number}"], layer.before, layer.convolved,
                         False, start, end),
                        (pool_planes, M, argmax, Z, layer.convolved, layer.after, start, end),
                    ]  # fmt: skip
                    X = M[layer.after.starts[start] : layer.after.starts[end]]
            last = layers[-1].after if layers else first
            M = state[f"M{layers[-1].number if layers else 1}"]
            calls.append((flatten_planes, H, M, last, self.sizes[-1][1], low, high))
            if dropout is not None:
                calls += dropout.tasks(H, PAIR_LAYER, low, high)
            calls.append((dense, A, H, weights[matrix], weights[bias], low, high))
            tasks.append((one_after_the_other, *calls))
        yield tasks
        done.scores, values = yield from self.head.score_tasks(given, A)
        done.arrays = state | values
        return done

    def decisions(self, weights: Arrays, done: Scoring) -> list[np.ndarray]:
        """As `PairModel.decisions`, with those of layer 2, whose cells are not kept."""
        first = Planes(done.arrays["shapes"], done.arrays["cells"])
        Z = np.empty((first.starts[-1], self.maps[0]), done.scores.dtype)
        function, *arguments = self._first_plane_forward(
            Z, weights, done, first, 0, done.scores.size
        )
        function(*arguments)
        decided = [*super().decisions(weights, done), Z > 0]
        if self.gate == AND:
            return decided
        size = self.sizes[0][0]
        texts = zip(done.query_index, done.title_index, strict=True)
        return [*decided, *(block_argmax(done.queries, q, done.titles, t, size) for q, t in texts)]

    def _room(
        self,
        name: str,
        planes: list[Planes],
        blocks: Blocks,
        space: Workspace,
        dtype: DTypeLike,
    ) -> list[np.ndarray]:
        """For each layer, room for its cells of one block in every part."""
        room = []
        for layer, (cells, maps) in enumerate(zip(planes, self.maps, strict=True)):
            sizes = [cells.starts[end] - cells.starts[low] for part in blocks for low, end in part]
            shape = (len(blocks), int(max(sizes, default=0)), maps)
            room.append(space.empty(f"{name}{layer}", shape, dtype))
        return room

    # -- backward -----------------------------------------------------------------------------

    def backward_tasks(
        self, given: Pass, done: Scoring, V: np.ndarray, words: bool = True
    ) -> Job[tuple[Arrays, Arrays]]:
        """As `PairModel.backward_tasks`. The cells of layer 2 are computed again."""
        gradient, dA = yield from self.head.backward_tasks(given, done.arrays, V)
        of_planes, at_pairs = yield from self._planes_backward(given, done, dA)
        gradient |= of_planes
        errors: Arrays = {}
        for side, of_pairs in zip(SIDES, at_pairs, strict=True):
            dW, dX = yield from self._text_backward(given, side, done, of_pairs, words)
            gradient[f"windows_{side}"] = dW
            if dX is not None:
                errors[side] = dX
        return gradient, errors

    def cell_error_tasks(self, given: Pass, done: Scoring, V: np.ndarray) -> Job[np.ndarray]:
        """dL/dz^(2) of all pairs, one cell after the other, as a job for `Workers.together`.

        Arguments as for `backward_tasks`. The result is (n_cells, maps[0]) float; those of pair k
        begin at ``done.arrays["cells"][k]``, row by row.
        """
        _, dA = yield from self.head.backward_tasks(given, done.arrays, V)
        D = np.empty((done.arrays["cells"][-1], self.maps[0]), dA.dtype)
        yield from self._planes_backward(given, done, dA, D)
        return D

    def _planes_backward(
        self, given: Pass, done: Scoring, dA: np.ndarray, all_errors: np.ndarray | None = None
    ) -> Job[tuple[Arrays, list[PairErrors]]]:
        """From the MLP back to the units of each pair; ``all_errors`` gets those of all cells.

        Returns the gradient, and for the queries and for the titles the errors of their units in
        each pair, and where those of a pair begin.
        """
        weights, _, space, dropout = given
        state, dtype, n_pairs = done.arrays, dA.dtype, len(dA)
        first = Planes(state["shapes"], state["cells"])
        layers, size = self._layers(first), self.sizes[-1][1]
        matrix, _ = self.head.layers[0]
        biases = ["windows_bias", *(f"maps_bias{number}" for number in self._numbers)]
        names = [matrix, *biases, *(f"maps{number}" for number in self._numbers)]
        pairs = spans(n_pairs, PAYS, sums=sum(weights[name].size for name in names))
        parts = {
            name: space.zeros(f"d{name}", (len(pairs), *weights[name].shape), dtype)
            for name in names
        }
        W = np.ascontiguousarray(weights[matrix].T)
        transposed = {
            number: np.ascontiguousarray(self._matrices(weights, number).transpose(0, 1, 3, 2))
            for number in self._numbers
        }
        nothing = [np.zeros(maps, dtype) for maps in self.maps]
        units = self._unit_starts(done, first)
        dU, dV = (
            space.empty(f"d{side} in pairs", (starts[-1], self.maps[0]), dtype)
            for side, starts in zip(SIDES, units, strict=True)
        )
        H, dH = state["H"], space.empty("dH", state["H"].shape, dtype)
        blocks = _blocks(first.starts, pairs)
        buffers = self._room(
            "Z", [first, *(layer.convolved for layer in layers)], blocks, space, dtype
        )
        pooled_planes = [first, *(layer.after for layer in layers)]
        errors = self._room("dM", pooled_planes, blocks, space, dtype)
        tasks = []
        for part, low, high in pairs:
            calls: list[KernelTask] = [
                (set_dense_gradient, parts[matrix][part], H, dA, low, high),
                (product_rows, dH, dA, W, low, high),
            ]
            if dropout is not None:
                calls += dropout.tasks(dH, PAIR_LAYER, low, high)
            for start, end in blocks[part]:
                Z = _of(buffers[0][part], first, start, end, state.get("M1"))
                if layers:
                    calls.append(self._first_plane_forward(Z, weights, done, first, start, end))
                dM = _of(
                    errors[-1][part], pooled_planes[-1], start, end, None if layers else all_errors
                )
                calls.append((unflatten_planes, dM, dH, pooled_planes[-1], size, start, end))
                for k in range(len(layers), 0, -1):
                    number, before, here, after = layers[k - 1]
                    X = Z
                    if k > 1:
                        X = state[f"M{number - 2}"][before.starts[start] : before.starts[end]]
                    D = _of(buffers[k][part], here, start, end)
                    dX = _of(
                        errors[k - 1][part], before, start, end, all_errors if k == 1 else None
                    )
                    dW = self._matrices({f"maps{number}": parts[f"maps{number}"][part]}, number)
                    calls += [
                        (unpool_planes, D, dM, state[f"M{number}"], state[f"argmax{number}"],
                         here, after, start, end),
                        (add_convolution_gradient, dW, parts[f"maps_bias{number}"][part], X, D,
                         before, here, start, end),
                        (convolve_planes, dX, D, transposed[number], nothing[k - 1], before, here,
                         True, start, end),
                    ]  # fmt: skip
                    dM = dX
                at_units = (dU, dV, parts["windows_bias"][part], dM, Z, *units)
                calls.append(self._first_plane_backward(at_units, done, first, start, end))
            tasks.append((one_after_the_other, *calls))
        yield tasks
        gradient = {name: array.sum(axis=0) for name, array in parts.items()}
        return gradient, list(zip((dU, dV), units, strict=True))

    def _unit_starts(self, done: Scoring, first: Planes) -> list[NDArray[np.int64]]:
        """First rows of the errors of the units of each pair, for queries and for titles."""
        if self.gate == AND:
            return [starts_of(first.shapes[:, 2]), starts_of(first.shapes[:, 1])]
        readings = zip(
            (done.queries, done.titles), (done.query_index, done.title_index), strict=True
        )
        return [starts_of(reading.arrays["windows"][index]) for reading, index in readings]

    def _first_plane_backward(
        self, at_units: tuple[Any, ...], done: Scoring, planes: Planes, low: int, high: int
    ) -> KernelTask:
        """The task that carries the errors of the cells of layer 2 back to the units."""
        if self.gate == AND:
            return (first_plane_backward, *at_units, planes, low, high)
        U, V = done.queries.arrays, done.titles.arrays
        texts = (U["units"], V["units"], U["starts"], V["starts"])
        pairs = (done.query_index, done.title_index, planes, self.sizes[0][0])
        return (first_plane_backward_printed, *at_units, *texts, *pairs, low, high)

    def _text_backward(
        self, given: Pass, side: str, done: Scoring, of_pairs: PairErrors, words: bool
    ) -> Job[tuple[np.ndarray, np.ndarray | None]]:
        """From the units of each pair back to this side's part of w^(1) and to its words."""
        weights, P, space, _ = given
        errors, pair_starts = of_pairs
        is_query = side == SIDES[0]
        reading, index = (
            (done.queries, done.query_index) if is_query else (done.titles, done.title_index)
        )
        texts, state, dtype = reading.texts, reading.arrays, errors.dtype
        units, starts, windows = state["units"], state["starts"], state["windows"]
        before = self.window - 1
        rows = starts_of(windows + before)
        n_rows, name = int(rows[-1]), f"windows_{side}"
        offsets, pairs = invert_lists(np.arange(index.size + 1), index, texts.n_texts)
        S = space.empty(f"S {side}", (n_rows, self.width), dtype)
        d_units = space.empty(f"dunits {side}", units.shape, dtype)
        padded = space.empty(f"dproducts {side}", (before + n_rows, units.shape[1]), dtype)
        padded[:before] = 0
        d_products = padded[before:]
        cost = self._cost_of_text(weights, side, texts)
        spans_of_texts = spans(texts.n_texts, cost, sums=weights[name].size)
        parts = space.zeros(f"d{name}", (len(spans_of_texts), *weights[name].shape), dtype)
        tasks: list[KernelTask] = []
        for part, low, high in spans_of_texts:
            by_pair = (d_units, errors, starts, pair_starts, offsets, pairs)
            calls: list[KernelTask] = [(sum_over_pairs, *by_pair, low, high)]
            if self.gate == AND:
                to = (d_products, d_units, state["later"], rows, starts, windows)
                calls.append((unpool_pairs, *to, low, high))
            else:
                calls.append((copy_units, d_products, d_units, rows, starts, windows, low, high))
            calls += [
                (lay_out_words, S, P, texts.word_index, texts.offsets, rows, low, high),
                (set_dense_gradient, parts[part], overlapping(S, self.window), d_products,
                 rows[low], rows[high] - before),
            ]  # fmt: skip
            tasks.append((one_after_the_other, *calls))
        yield tasks
        gradient = parts.sum(axis=0)
        if not words:
            return gradient, None
        flipped = flipped_slices(weights[name], self.window)
        dS = space.empty(f"dS {side}", S.shape, dtype)
        dX = space.empty(f"dX {side}", (texts.word_index.size, self.width), dtype)
        lengths = np.diff(texts.offsets)
        tasks = []
        for _, low, high in spans(texts.n_texts, cost):
            errors_of_windows = overlapping(padded, self.window)
            at_words = (product_rows, dS, errors_of_windows, flipped, rows[low], rows[high])
            to_tokens = (copy_units, dX, dS, texts.offsets, rows, lengths, low, high)
            tasks.append((one_after_the_other, at_words, to_tokens))
        yield tasks
        return gradient, dX


def _blocks(starts: NDArray[np.int64], parts: list[tuple[int, int, int]]) -> Blocks:
    """Pairs of each part in blocks of about `_BLOCK_CELLS` cells, at least one pair each."""
    blocks: Blocks = []
    for _, start, high in parts:
        of_part = []
        while start < high:
            end = int(np.searchsorted(starts, starts[start] + _BLOCK_CELLS, "right")) - 1
            end = min(max(end, start + 1), high)
            of_part.append((start, end))
            start = end
        blocks.append(of_part)
    return blocks


def _of(
    room: np.ndarray, planes: Planes, start: int, end: int, all_rows: np.ndarray | None = None
) -> np.ndarray:
    """As much of ``room`` as the cells of some planes need, or their own rows of ``all_rows``."""
    low, high = planes.starts[start], planes.starts[end]
    return room[: high - low] if all_rows is None else all_rows[low:high]


def block_argmax(
    queries: FirstStage, query: int, titles: FirstStage, title: int, size: int
) -> np.ndarray:
    """The cell of the maximum of each block of 2 x 2 cells of layer 1, for gate "printed".

    The result is (ceil(size / 2)^2, maps) int, 0 to 3, row by row in the block; blocks row by row
    too.
    """
    windows = []
    for reading, text in ((queries, query), (titles, title)):
        units, starts = reading.arrays["units"], reading.arrays["starts"]
        rows = units[starts[text] : starts[text + 1]]
        # One row more where the number is odd, so that blocks are whole.
        whole = np.zeros((size + size % 2, rows.shape[1]), rows.dtype)
        whole[: len(rows)] = rows
        windows.append((whole, np.arange(len(whole)) < len(rows)))
    (U, in_query), (V, in_title) = windows
    cells = U[:, None] + V
    cells[~(in_query[:, None] | in_title)] = -np.inf
    cells[size:], cells[:, size:] = -np.inf, -np.inf
    blocks = cells.reshape(len(U) // 2, 2, len(V) // 2, 2, -1)
    argmax: np.ndarray = blocks.transpose(0, 2, 1, 3, 4).reshape(-1, 4, cells.shape[2]).argmax(1)
    return argmax
