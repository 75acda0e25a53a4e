"""Where parts of a training meet: their states become one.

Parts train on other queries and titles, so most rows of the input weights are met by few of them. A
row is the mean over the parts that met it. With the others, which left it as it was, the mean would
lose most of what these few have learned.
"""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.system.contracts import Arrays
from sentemb.training.optimisers.renormalisation import SPARSE


def has_rows(name: str) -> bool:
    """Whether the array ``name`` of an optimiser's state has a row for each feature."""
    return name.endswith(f".{SPARSE}")


def average(
    state: Arrays,
    rows: Mapping[str, Sequence[NDArray[np.int32]]],
    parts: Iterable[Arrays],
) -> None:
    """Put the mean of ``parts`` into ``state``.

    ``state`` is that at the last meeting; it is changed in place, once all parts are there.
    ``parts`` have the same arrays, and are added up in this order. Of each array that `has_rows`, a
    part has only the rows that ``rows`` names for it, (k,) ascending.
    """
    touched_rows = {name: np.unique(np.concatenate(of_parts)) for name, of_parts in rows.items()}
    sums = {
        name: np.zeros(
            (*touched_rows[name].shape, *array.shape[1:]) if name in touched_rows else array.shape,
            array.dtype,
        )
        for name, array in state.items()
    }
    counts = {name: np.zeros(of_name.size, np.int32) for name, of_name in touched_rows.items()}
    n_parts = 0
    for n_parts, part in enumerate(parts, 1):
        for name, array in part.items():
            if name in touched_rows:
                positions = np.searchsorted(touched_rows[name], rows[name][n_parts - 1])
                sums[name][positions] += array
                counts[name][positions] += 1
            else:
                sums[name] += array
    for name, total in sums.items():
        if name in touched_rows:
            divisors = counts[name].reshape(-1, *[1] * (total.ndim - 1)).astype(total.dtype)
            state[name][touched_rows[name]] = total / divisors
        else:
            state[name][...] = total / total.dtype.type(n_parts)
