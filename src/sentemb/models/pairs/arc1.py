"""ARC-I: convolutions and pooling sum up each text by itself, an MLP compares the two."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sentemb.kernels.windows import pool_pairs, unpool_pairs
from sentemb.models.pairs.convolved import Convolved, Layer
from sentemb.models.pairs.layer_sizes import layer_sizes, least_words
from sentemb.models.pairs.pair_model import PairModel
from sentemb.system.contracts import KernelTask


class ARC1(Convolved):
    """s = MLP([f(x); g(y)]), section 3.1 of Hu et al. (NIPS 2014).

    f and g are convolutions, each followed by the maximum of every two windows. They have weights
    of their own by default, since the two sides of most tasks are different kinds of text; the
    paper leaves it open.
    """

    name = "arc1"
    defaults: ClassVar[dict[str, Any]] = PairModel.defaults | {"maps": (200, 200)}
    place_dtype = bool

    def check(self) -> None:
        """Raise a `SentembError` if texts are too short for all layers."""
        self.sizes = layer_sizes(self.max_words, self.window, len(self.maps))

    @property
    def least_words(self) -> int:
        """The smallest ``max_words`` for which every layer has a cell."""
        return least_words(self.window, len(self.maps))

    def pool_task(
        self, M: np.ndarray, argmax: np.ndarray, U: np.ndarray, layer: Layer, low: int, high: int
    ) -> KernelTask:
        """The maximum of every two windows."""
        return (pool_pairs, M, argmax, U, layer.rows, layer.pooled, layer.units, low, high)

    def unpool_task(
        self, dU: np.ndarray, dM: np.ndarray, argmax: np.ndarray, layer: Layer, low: int, high: int
    ) -> KernelTask:
        """Back to the greater of two windows."""
        return (unpool_pairs, dU, dM, argmax, layer.rows, layer.pooled, layer.units, low, high)
