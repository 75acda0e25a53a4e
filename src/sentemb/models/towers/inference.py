"""Embeddings of an LSTM for which no backward pass will be asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.compiling.jit import code_for
from sentemb.kernels.few_texts import embed_few
from sentemb.kernels.inference import embed_lstm
from sentemb.kernels.matmul import panels_of
from sentemb.kernels.packing import longest_first
from sentemb.models.words.packing import BLOCK_TEXTS
from sentemb.models.words.word_memory import KnownWords
from sentemb.system.aligned import aligned_empty
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers

if TYPE_CHECKING:
    from sentemb.models.towers.lstm import LSTM

# Blocks for each thread of a few texts: the first ones are the longest.
_BLOCKS_PER_THREAD = 4
# Up to this many texts are one block, whatever the number of threads.
FEW_TEXTS = 8


class EmbedLSTM:
    """The forward pass of an LSTM without state: its weights in the kernel's layout.

    They are copied, all but ``table`` and ``bias``, which the projected words contain.
    """

    def __init__(self, encoder: LSTM, weights: Arrays) -> None:
        self._dim = encoder.dim
        recurrent = weights["recurrent"]
        directions, n, width = recurrent.shape
        dtype = recurrent.dtype
        diagonals = np.zeros((directions, 3, 0), dtype)
        before = after = np.zeros((directions, 0, 0), dtype)
        if encoder.peepholes == "diagonal":
            diagonals = weights["peepholes"].copy()
        elif encoder.peepholes == "full":
            before, after = np.zeros((2, directions, n, width), dtype)
            for slot, gate in enumerate(encoder.gates):
                columns = slice(slot * n, (slot + 1) * n)
                if gate in ("2", "3"):
                    before[:, :, columns] = weights["peepholes"][:, int(gate) - 1]
                elif gate == "1":
                    after[:, :, columns] = weights["peepholes"][:, 0]
        if not encoder.output_gate:
            after = after[:, :0]
        output_gate = int(encoder.output_gate)  # a bool would make the call slower
        aligned, panels = aligned_empty((2, *recurrent.shape), dtype)
        aligned[...] = recurrent
        panels[...] = [panels_of(W) for W in recurrent]
        self._weights = (aligned, panels, diagonals, before, after, output_gate)
        self._code: Callable[..., bool] | None = None

    def few(self, n_texts: int, words: KnownWords | None) -> np.ndarray | None:
        """The embeddings of at most `FEW_TEXTS` texts, (n_texts, dim) float.

        ``words`` is from `WordMemory.arguments`. None if a word has no projection yet, or a text
        has no word that the model knows.
        """
        if words is None:
            return None
        embeddings = np.empty((n_texts, self._dim), words[-1].dtype)
        arguments = (embeddings, *words, *self._weights)
        if self._code is None:
            self._code = code_for(embed_few, arguments)
        return embeddings if self._code(*arguments) else None

    def __call__(
        self,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """The embeddings, (n_texts, dim) float; the arguments are those of `Encoder.embed`."""
        embeddings = np.empty((offsets.size - 1, self._dim), P.dtype)
        arguments = (embeddings, P, word_index, offsets)
        order, _ = longest_first(offsets)
        if order.size < len(embeddings):
            embeddings[np.diff(offsets) == 0] = 0
        texts = BLOCK_TEXTS
        if workers.threads > 1:
            blocks = workers.threads * _BLOCKS_PER_THREAD
            texts = max(1, min(BLOCK_TEXTS, -(-order.size // blocks)))
        workers.run(
            [
                (embed_lstm, *arguments, order, *self._weights, k, min(k + texts, order.size))
                for k in range(0, order.size, texts)
            ]
        )
        return embeddings
