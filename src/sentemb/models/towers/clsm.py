"""The convolutional latent semantic model: windows of words, max pooling, a tanh layer."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.convolution import pool_windows, spread_to_maxima
from sentemb.kernels.input_layer import invert_lists
from sentemb.models.towers.dssm import DSSM
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.layout import Layout
from sentemb.models.words.word_reader import WordErrors
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.text.batch import TextBatch


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
        dense = {"bc": "bias", "Ws": "output", "bs": "output_bias"}
        return named | {block: weights[name].T for block, name in dense.items()}

    def _layout_parts(self) -> tuple[str, ...]:
        return Encoder._layout_parts(self)  # pooling needs no texts of words

    def _pooled(
        self, n_texts: int, dtype: DTypeLike, workspace: Workspace
    ) -> dict[str, np.ndarray]:
        argmax = workspace.empty("argmax", (n_texts, self.hidden), np.int32)
        return super()._pooled(n_texts, dtype, workspace) | {"argmax": argmax}

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
        H, texts = state["H"], (word_index, offsets, low, high)
        return [
            (pool_windows, H, state["argmax"], P, weights["bias"], *texts),
            (tanh_rows, H, low, high, 0, self.hidden),
        ]

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
        D = workspace.empty("D_tokens", (batch.word_index.size, self.hidden), dH.dtype)
        return [
            *super()._unpool_tasks(state, into, dH, batch, low, high, workspace),
            (spread_to_maxima, D, dH, state["argmax"], batch.offsets, low, high),
        ]

    def _errors_of_words(
        self, dH: np.ndarray, layout: Layout, workspace: Workspace
    ) -> list[WordErrors]:
        batch = layout.batch
        D = workspace.empty("D_tokens", (batch.word_index.size, self.hidden), dH.dtype)
        text_of_token = np.repeat(np.arange(batch.n_texts), np.diff(batch.offsets))
        parts = []
        for number in range(self.window):
            # In these windows the word is this many words to the right of the middle.
            middles = np.arange(batch.word_index.size) - (number - self.window // 2)
            inside = (middles >= batch.offsets[text_of_token]) & (
                middles < batch.offsets[text_of_token + 1]
            )
            words, middles = batch.word_index[inside], middles[inside].astype(np.int32)
            offsets, windows = invert_lists(np.arange(words.size + 1), words, batch.n_words)
            parts.append((number * self.hidden, D, offsets, middles[windows]))
        return parts
