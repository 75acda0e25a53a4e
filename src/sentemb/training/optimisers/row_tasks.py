"""The input rows of a mini-batch, cut into tasks that take about equally long."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from sentemb.kernels.input_layer import RowGradient
from sentemb.system.contracts import KernelTask
from sentemb.system.parallel import CHUNKS

# What a row costs by itself, in entries of its list.
_OF_A_ROW = 4


def spread_rows(
    gradient: RowGradient, function: Callable[..., object], *arguments: Any
) -> list[KernelTask]:
    """Tasks that call ``function(*arguments, first, end)`` for parts of the rows of ``gradient``.

    A trigram is in a few words, but a dimension of word vectors is in nearly all of them, and these
    rows come last: parts of as many rows each would leave most of the work to one thread. No row
    depends on another, so the parts do not change the result.
    """
    offsets = gradient.offsets
    costs = offsets + _OF_A_ROW * np.arange(offsets.size)
    edges = np.searchsorted(costs, costs[-1] * np.arange(CHUNKS + 1) // CHUNKS)
    parts = pairwise(edges.tolist())
    return [(function, *arguments, first, end) for first, end in parts if first < end]
