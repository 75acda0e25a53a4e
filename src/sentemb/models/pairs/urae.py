"""uRAE+MLP: the vectors of an unfolding auto-encoder, through an MLP."""

from __future__ import annotations

import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sentemb.kernels.input_layer import sum_rows
from sentemb.kernels.layers import dense, product_rows, set_dense_gradient
from sentemb.kernels.recurrent import set_recurrent_gradient
from sentemb.kernels.rnn import rnn_backward, rnn_forward
from sentemb.kernels.unfolding import (
    reconstruction_errors,
    unfold_errors,
    unfold_rows,
)
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.joined import Joined
from sentemb.models.pairs.pair_model import FirstStage, PairModel, Phase, Texts
from sentemb.models.words.packing import Packing
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, one_after_the_other, spans, spread

_FORWARD, _BACKWARD = 0, 1  # from left to right, from right to left, in a `Packing`


class _Encoded(NamedTuple):
    """State of the encoder for the backward pass: rows packed from left to right."""

    packing: Packing
    X: np.ndarray
    H: np.ndarray
    h: np.ndarray


# Epochs in which the auto-encoder learns to reconstruct texts, before the MLP learns.
AUTOENCODER_EPOCHS = 2


class URAE(Joined):
    """s = MLP([h_x; h_y]), where h is the last vector of an unfolding recursive auto-encoder.

    The encoder h_t = tanh(W_e [h_{t-1}; x_t] + b_e), h_0 = 0, and the decoder, which reconstructs
    all words of a text from h_n (`sentemb.kernels.unfolding`), learn from the reconstruction alone,
    for `AUTOENCODER_EPOCHS` epochs; after that the vectors are fixed and the MLP learns. Both
    sides have one auto-encoder.

    The competitor uRAE+MLP of Hu et al. (NIPS 2014), section 5.1, after Socher et al. (NIPS 2011),
    with these departures:

    - Socher et al. compose the words along a parse tree. Without a parser the tree is a chain from
      left to right, so the encoder is an RNN.
    - Their loss sums the errors of the trees under all nodes. Here it is the error of the whole
      text, as the mean over its words of |x^ - x|^2 / 2.
    - Their decoder has tanh at the words too. Here words are linear, because numbers of word
      vectors are not bounded by 1.
    - They train with L-BFGS in one batch, here the optimiser of the training takes mini-batches.
    - Word vectors are never trained: the auto-encoder could make its loss small by making them
      alike.
    """

    name = "urae"
    piecewise_linear = False
    defaults: ClassVar[dict[str, Any]] = PairModel.defaults | {"cells": 100}

    @property
    def vector_length(self) -> int:
        """The number of cells."""
        return int(self.cells)

    # -- weights ------------------------------------------------------------------------------

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays of encoder and decoder; a matrix has its inputs as rows."""
        both = self.cells + self.width
        return {
            "encode": (both, self.cells),
            "encode_bias": (self.cells,),
            "decode": (self.cells, both),
            "decode_bias": (both,),
        }

    def own_spreads(self) -> dict[str, float]:
        """1 / root of the inputs: tanh layers neither saturate nor fade."""
        shapes = self.own_shapes()
        return {name: 1 / math.sqrt(shapes[name][0]) for name in ("encode", "decode")}

    def own_blocks(self, weights: Arrays) -> Arrays:
        """Views as ``We``, ``be``, ``Wd``, ``bd``; the part of h comes before that of the word."""
        return {
            "We": weights["encode"].T,
            "be": weights["encode_bias"],
            "Wd": weights["decode"].T,
            "bd": weights["decode_bias"],
        }

    def is_reached(self, block: str) -> bool:
        """The decoder has no part in scores."""
        return block not in ("Wd", "bd")

    def phases(self) -> tuple[Phase, ...]:
        """First the auto-encoder on its reconstruction, then the MLP on fixed vectors."""
        autoencoder, mlp = tuple(self.own_shapes()), tuple(self.head.shapes())
        return Phase(0, autoencoder, reconstructs=True), Phase(AUTOENCODER_EPOCHS, mlp)

    @property
    def trains_words(self) -> bool:
        """Never."""
        return False

    # -- the vectors --------------------------------------------------------------------------

    def _encode_tasks(self, given: Pass, texts: Texts, key: str) -> Job[_Encoded]:
        """The vectors of texts; the arrays in the space have ``key`` in their names."""
        weights, P, space, _ = given
        n, packing = self.cells, Packing(texts.word_index, texts.offsets)
        n_rows, steps = packing.n_rows, packing.steps
        X = space.empty(f"X {key}", (n_rows, self.width), P.dtype)
        Z = space.empty(f"Z {key}", (n_rows, n), P.dtype)
        H = space.empty(f"H {key}", (n_rows, n), P.dtype)
        words, W = packing.words[_FORWARD], weights["encode"]
        tasks: list[KernelTask] = []
        for _, low, high in spans(n_rows, n * self.width / PRODUCTS):
            calls = (
                (np.take, P, words[low:high], 0, X[low:high]),
                (dense, Z, X, W[n:], weights["encode_bias"], low, high),
            )
            tasks.append((one_after_the_other, *calls))
        yield tasks
        # A row of Z for every token, whatever its word.
        rows = np.arange(n_rows, dtype=np.int32)
        layout = steps.block_steps, steps.step_rows
        yield [
            (rnn_forward, H, Z, rows, *layout, W[:n], 0, first, end)
            for _, first, end in packing.spans(n * n / PRODUCTS)
        ]
        h = np.zeros((texts.n_texts, n), P.dtype)
        h[packing.order] = H[packing.last_rows]
        return _Encoded(packing, X, H, h)

    def _encode_backward_tasks(
        self, given: Pass, done: _Encoded, dh: np.ndarray
    ) -> Job[tuple[Arrays, np.ndarray]]:
        """The gradients of the encoder, and the errors at its pre-activations, (n_rows, cells)."""
        weights, _, space, _ = given
        n, steps = self.cells, done.packing.steps
        n_rows, dtype = done.packing.n_rows, dh.dtype
        D = space.empty("D", (n_rows, n), dtype)
        recurrent = np.ascontiguousarray(weights["encode"][:n].T)
        longest = int(steps.lengths.max(initial=1))
        packing = done.packing
        yield [
            (rnn_backward, D, done.H, dh, 0, steps, recurrent, False, longest, first, end)
            for _, first, end in packing.spans(n * n / PRODUCTS)
        ]
        of_h, tasks = self._recurrent_sums("dencode h", packing, done.H, D, space)
        of_x, of_bias, of_rows = self._dense_sums("dencode x", done.X, D, space)
        yield tasks + of_rows
        encode = np.concatenate([of_h.sum(axis=0), of_x.sum(axis=0)])
        return {"encode": encode, "encode_bias": of_bias.sum(axis=0)}, D

    def _recurrent_sums(
        self, name: str, packing: Packing, H: np.ndarray, D: np.ndarray, space: Workspace
    ) -> tuple[np.ndarray, list[KernelTask]]:
        """Parts of the gradient of a recurrent matrix, and the tasks that set them."""
        n, layout = self.cells, (packing.block_steps, packing.step_rows)
        blocks = packing.spans(n * n / PRODUCTS, sums=n * n)
        parts = space.zeros(name, (len(blocks), n, n), D.dtype)
        return parts, [(set_recurrent_gradient, parts, H, D, *layout, *block) for block in blocks]

    def _dense_sums(
        self, name: str, X: np.ndarray, D: np.ndarray, space: Workspace
    ) -> tuple[np.ndarray, np.ndarray, list[KernelTask]]:
        """Parts of the gradients of X's matrix and bias at errors D, and the tasks that set them.

        ``X`` (n_rows, k) and ``D`` (n_rows, m) float.
        """
        shape = X.shape[1], D.shape[1]
        rows = spans(len(X), math.prod(shape) / PRODUCTS, sums=math.prod(shape))
        parts = space.zeros(name, (len(rows), *shape), D.dtype)
        biases = space.zeros(f"{name} bias", (len(rows), shape[1]), D.dtype)
        tasks: list[KernelTask] = []
        for part, low, high in rows:
            tasks += [
                (set_dense_gradient, parts[part], X, D, low, high),
                (sum_rows, biases[part], D, low, high),
            ]
        return parts, biases, tasks

    def _word_errors_tasks(
        self, given: Pass, packing: Packing, D: np.ndarray, key: str
    ) -> Job[np.ndarray]:
        """The gradient at every token through the encoder, (n_tokens, width)."""
        weights, _, space, _ = given
        W = np.ascontiguousarray(weights["encode"][self.cells :].T)
        by_row = space.empty("dX rows", (packing.n_rows, self.width), D.dtype)
        yield spread(packing.n_rows, product_rows, by_row, D, W, cost=W.size / PRODUCTS)
        dX = space.empty(f"dX {key}", by_row.shape, D.dtype)
        dX[packing.tokens[_FORWARD]] = by_row
        return dX

    def vector_tasks(self, given: Pass, side: str, texts: Texts) -> Job[Arrays]:
        """As `Joined.vector_tasks`: h_n of every text, 0 for one without words."""
        done = yield from self._encode_tasks(given, texts, side)
        return {"h": done.h, "X": done.X, "H": done.H}

    def vector_backward_tasks(
        self, given: Pass, side: str, reading: FirstStage, dh: np.ndarray, words: bool
    ) -> Job[tuple[Arrays, np.ndarray | None]]:
        """As `Joined.vector_backward_tasks`; a score has no gradient in the decoder."""
        texts, arrays = reading.texts, reading.arrays
        packing = Packing(texts.word_index, texts.offsets)
        done = _Encoded(packing, arrays["X"], arrays["H"], arrays["h"])
        gradient, D = yield from self._encode_backward_tasks(given, done, dh)
        decoder = ("decode", "decode_bias")
        gradient |= {name: np.zeros_like(given.weights[name]) for name in decoder}
        if not words:
            return gradient, None
        dX = yield from self._word_errors_tasks(given, packing, D, side)
        return gradient, dX

    # -- the reconstruction -------------------------------------------------------------------

    def reconstruction_tasks(
        self, given: Pass, texts: Texts, words: bool = False
    ) -> Job[tuple[np.ndarray, Arrays, np.ndarray | None]]:
        """The loss of the auto-encoder on texts and its gradient, as a job.

        ``words`` says whether the gradient at the words is wanted, which are input and target.
        Returns

        losses : (n_texts,) float, the mean over the words of each text of |x^ - x|^2 / 2; 0 without
            words
        gradient : that of the mean of ``losses``, for the arrays of `own_shapes`
        dX : (n_tokens, width) float or None, its gradient at the vector of every token
        """
        weights, P, space, _ = given
        n, dtype = self.cells, P.dtype
        done = yield from self._encode_tasks(given, texts, "")
        packing, steps = done.packing, done.packing.steps
        n_rows, width = packing.n_rows, self.width
        from_h = np.ascontiguousarray(weights["decode"][:, :n])
        to_word = np.ascontiguousarray(weights["decode"][:, n:])
        bias = weights["decode_bias"]
        H = space.empty("H unfolded", (n_rows, n), dtype)
        yield [
            (unfold_rows, H, done.h, steps, from_h, bias[:n], first, end)
            for _, first, end in packing.spans(n * n / PRODUCTS)
        ]
        X = space.empty("X unfolded", (n_rows, width), dtype)
        R = space.empty("R", (n_rows, width), dtype)
        backwards = packing.words[_BACKWARD]
        tasks: list[KernelTask] = []
        for _, low, high in spans(n_rows, n * width / PRODUCTS):
            calls = (
                (np.take, P, backwards[low:high], 0, X[low:high]),
                (dense, R, H, to_word, bias[n:], low, high),
            )
            tasks.append((one_after_the_other, *calls))
        yield tasks
        losses = np.zeros(texts.n_texts, dtype)
        share = 1 / max(1, texts.n_texts)
        yield [
            (reconstruction_errors, losses, R, X, steps, share, first, end)
            for _, first, end in packing.spans(2 * width)
        ]
        gradient, dh = yield from self._unfold_backward_tasks(
            packing, H, R, from_h, to_word, texts.n_texts, space
        )
        of_encoder, D = yield from self._encode_backward_tasks(given, done, dh)
        gradient |= of_encoder
        if not words:
            return losses, gradient, None
        dX = yield from self._word_errors_tasks(given, packing, D, "")
        dX[packing.tokens[_BACKWARD]] -= R
        return losses, gradient, dX

    def _unfold_backward_tasks(
        self,
        packing: Packing,
        H: np.ndarray,
        R: np.ndarray,
        from_h: np.ndarray,
        to_word: np.ndarray,
        n_texts: int,
        space: Workspace,
    ) -> Job[tuple[Arrays, np.ndarray]]:
        """The gradients of the decoder, and those at the vectors of the texts."""
        (n_rows, n), dtype, steps = H.shape, H.dtype, packing.steps
        E = space.empty("E", (n_rows, n), dtype)
        D = space.empty("D unfolded", (n_rows, n), dtype)
        back = np.ascontiguousarray(to_word.T)
        yield spread(n_rows, product_rows, E, R, back, cost=back.size / PRODUCTS)
        dh = np.zeros((n_texts, n), dtype)
        recurrent = np.ascontiguousarray(from_h.T)
        yield [
            (unfold_errors, D, dh, E, H, steps, recurrent, first, end)
            for _, first, end in packing.spans(n * n / PRODUCTS)
        ]
        of_h, tasks = self._recurrent_sums("ddecode h", packing, H, D, space)
        of_word, of_bias, of_rows = self._dense_sums("ddecode word", H, R, space)
        at_h = spans(n_rows, n, sums=n)
        of_h_bias = space.zeros("ddecode h bias", (len(at_h), n), dtype)
        tasks += [(sum_rows, of_h_bias[part], D, low, high) for part, low, high in at_h]
        yield tasks + of_rows
        decode = np.concatenate([of_h.sum(axis=0), of_word.sum(axis=0)], axis=1)
        bias = np.concatenate([of_h_bias.sum(axis=0), of_bias.sum(axis=0)])
        return {"decode": decode, "decode_bias": bias}, dh
