"""Pair models that sum up each text in a vector; the two first meet in the MLP.

The MLP's first layer is linear in both vectors, W1 [h_x; h_y] = W1x h_x + W1y h_y. Each product is
computed once per text, so that a pair costs one addition before the first ReLU.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.input_layer import gather_rows, invert_lists
from sentemb.kernels.layers import product_rows, set_dense_gradient
from sentemb.kernels.mlp import join_rows
from sentemb.models.pairs.head import QUERY_LAYER, TITLE_LAYER, Pass
from sentemb.models.pairs.pair_model import FirstStage, PairModel, Pairs, Scoring, Texts
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.workspace import Job
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, one_after_the_other, spans

_LAYER = dict(zip(SIDES, (QUERY_LAYER, TITLE_LAYER), strict=True))


class Joined(PairModel):
    """Base: a subclass defines `vector_length`, `vector_tasks` and `vector_backward_tasks`.

    With dropout a value of a text's vector is dropped for all pairs of the mini-batch that the text
    is in.
    """

    @property
    def vector_length(self) -> int:
        """Length of the vector of a text."""
        raise NotImplementedError

    @property
    def inputs(self) -> int:
        """Length of both vectors side by side."""
        return 2 * self.vector_length

    def vector_tasks(self, given: Pass, side: str, texts: Texts) -> Job[Arrays]:
        """The vectors of texts.

        The result has ``h`` (n_texts, vector_length), which the caller may change, and what
        `vector_backward_tasks` needs.
        """
        raise NotImplementedError

    def vector_backward_tasks(
        self, given: Pass, side: str, reading: FirstStage, dh: np.ndarray, words: bool
    ) -> Job[tuple[Arrays, np.ndarray | None]]:
        """The gradients of this side's own arrays, and that at its tokens if ``words`` is set.

        ``dh`` (n_texts, vector_length), the gradient at the vectors, may be changed.
        """
        raise NotImplementedError

    def _first_matrix(self, weights: Arrays, side: str) -> np.ndarray:
        """W1x or W1y: the rows of the first matrix that read the vector of this side."""
        n = self.vector_length
        first = weights[self.head.layers[0][0]]
        return first[:n] if side == SIDES[0] else first[n:]

    def read_tasks(self, given: Pass, side: str, texts: Texts) -> Job[FirstStage]:
        """As `PairModel.read_tasks`: ``h`` and its product with the first matrix, ``A``."""
        arrays = yield from self.vector_tasks(given, side, texts)
        h = arrays["h"]
        A = np.empty((texts.n_texts, self.mlp), given.P.dtype)
        W = self._first_matrix(given.weights, side)
        tasks = []
        for _, low, high in spans(texts.n_texts, W.size / PRODUCTS):
            calls: list[KernelTask] = []
            if given.dropout is not None:
                calls += given.dropout.tasks(h, _LAYER[side], low, high)
            calls.append((product_rows, A, h, W, low, high))
            tasks.append((one_after_the_other, *calls))
        yield tasks
        return FirstStage(texts, {**arrays, "A": A})

    def score_tasks(self, given: Pass, pairs: Pairs) -> Job[Scoring]:
        """As `PairModel.score_tasks`."""
        queries, titles, query_index, title_index = pairs
        Ax, Ay = queries.arrays["A"], titles.arrays["A"]
        A = given.space.empty("A", (query_index.size, self.mlp), Ax.dtype)
        bias = given.weights[self.head.layers[0][1]]
        yield [
            (join_rows, A, bias, Ax, query_index, Ay, title_index, low, high)
            for _, low, high in spans(query_index.size, 3 * self.mlp)
        ]
        scores, values = yield from self.head.score_tasks(given, A)
        return Scoring(scores, *pairs, values)

    def backward_tasks(
        self, given: Pass, done: Scoring, V: np.ndarray, words: bool = True
    ) -> Job[tuple[Arrays, Arrays]]:
        """As `PairModel.backward_tasks`."""
        gradient, dA = yield from self.head.backward_tasks(given, done.arrays, V)
        sides = dict(zip(SIDES, (done.queries, done.titles), strict=True))
        pairs = dict(zip(SIDES, (done.query_index, done.title_index), strict=True))
        errors: Arrays = {}
        of_first: list[np.ndarray] = []
        for side, reading in sides.items():
            part, dh = yield from self._at_vectors(given, side, reading, pairs[side], dA)
            of_first.append(part)
            of_side, dX = yield from self.vector_backward_tasks(given, side, reading, dh, words)
            for name, array in of_side.items():
                gradient[name] = gradient[name] + array if name in gradient else array
            if dX is not None:
                errors[side] = dX
        gradient[self.head.layers[0][0]] = np.concatenate(of_first)
        return gradient, errors

    def _at_vectors(
        self,
        given: Pass,
        side: str,
        reading: FirstStage,
        text_of_pair: NDArray[np.int32],
        dA: np.ndarray,
    ) -> Job[tuple[np.ndarray, np.ndarray]]:
        """The gradients of this side's part of the first matrix, and at the vectors."""
        weights, _, space, dropout = given
        n_texts, h = reading.texts.n_texts, reading.arrays["h"]
        one_each = np.arange(text_of_pair.size + 1)
        offsets, pairs = invert_lists(one_each, text_of_pair, n_texts)
        dA_texts = space.empty(f"dA {side}", (n_texts, self.mlp), dA.dtype)
        dh = space.empty(f"dh {side}", h.shape, dA.dtype)
        W = np.ascontiguousarray(self._first_matrix(weights, side).T)
        spans_of_texts = spans(n_texts, 2 * W.size / PRODUCTS, sums=W.size)
        parts = space.zeros(f"dW1 {side}", (len(spans_of_texts), h.shape[1], self.mlp), dA.dtype)
        tasks: list[Any] = []
        for part, low, high in spans_of_texts:
            calls: list[KernelTask] = [
                (gather_rows, dA_texts, 0, dA, offsets, pairs, low, high),
                (set_dense_gradient, parts[part], h, dA_texts, low, high),
                (product_rows, dh, dA_texts, W, low, high),
            ]
            if dropout is not None:
                calls += dropout.tasks(dh, _LAYER[side], low, high)
            tasks.append((one_after_the_other, *calls))
        yield tasks
        return parts.sum(axis=0), dh
