"""Named arrays, and what runs tasks side by side: contracts below texts and models."""

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

# Named arrays: the weights of a tower, or a gradient of the same shapes.
Arrays: TypeAlias = dict[str, np.ndarray]
# A function and its arguments, to be called on some thread.
KernelTask: TypeAlias = tuple[Any, ...]
# The words that hold each input row's feature: offsets, words, values.
WordsOfFeatures: TypeAlias = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]


class Runner(Protocol):
    """Runs tasks side by side, as `sentemb.system.parallel.Workers` does."""

    def over(self, size: int, function: Callable[..., object], *arguments: object) -> None:
        """Call ``function(*arguments, first, end)`` for parts of ``range(size)``."""
        ...
