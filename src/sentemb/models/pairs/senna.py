"""SENNA+MLP: a convolution over the words and the maximum over the whole text."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.convolution import pool_rows, spread_to_maxima
from sentemb.models.pairs.convolved import Convolved, Layer
from sentemb.models.pairs.layer_sizes import layer_sizes
from sentemb.models.pairs.pair_model import PairModel
from sentemb.system.contracts import KernelTask


class SENNA(Convolved):
    """The sentence model of SENNA with an MLP, a competitor in section 5.1 of Hu et al. (2014).

    Its windows, gate and ReLU are those of ARC-I's first layer.
    """

    name = "senna"
    defaults: ClassVar[dict[str, Any]] = PairModel.defaults | {"maps": (200,)}
    place_dtype = np.int32

    def check(self) -> None:
        """Raise a `SentembError` for several convolutions or if texts are too short for one."""
        if len(self.maps) > 1:
            given = ",".join(map(str, self.maps))
            raise SentembError(f"senna has one convolution (--maps {given}); give one number")
        windows, _ = layer_sizes(self.max_words, self.window, 1)[0]
        self.sizes = [(windows, 1)]

    @property
    def least_words(self) -> int:
        """The smallest ``max_words`` for which there is a window."""
        return int(self.window)

    def pool_task(
        self, M: np.ndarray, argmax: np.ndarray, U: np.ndarray, layer: Layer, low: int, high: int
    ) -> KernelTask:
        """The maximum over all windows of a text; 0 for a text without words."""
        return (pool_rows, M, argmax, U, layer.rows, layer.units, low, high)

    def unpool_task(
        self, dU: np.ndarray, dM: np.ndarray, argmax: np.ndarray, layer: Layer, low: int, high: int
    ) -> KernelTask:
        """Back to the window of each maximum."""
        return (spread_to_maxima, dU, dM, argmax, layer.rows, low, high)
