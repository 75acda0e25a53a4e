"""The input weights as they are stored: the point at which a trained model embeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.input_layer import project_words
from sentemb.models.contracts import GradientPoint
from sentemb.models.words.workspace import spans_of
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import pieces


class StoredRows(NamedTuple):
    """Some rows of the input weights, as they are; see `sentemb.models.contracts.InputRows`.

    ``table`` is (n_features, width) float, ``rows`` (n_rows,) int32.
    """

    table: np.ndarray
    rows: NDArray[np.int32]

    @property
    def dtype(self) -> np.dtype[Any]:
        """float32 or float64."""
        return self.table.dtype

    def project_tasks(
        self,
        P: np.ndarray,
        bias: np.ndarray,
        offsets: NDArray[np.int64],
        ids: NDArray[np.int32],
        values: NDArray[np.float32],
    ) -> list[KernelTask]:
        """Tasks that project words."""
        table, no_lead = self.table, np.zeros(self.rows.size, self.dtype)
        rows = (table, table, no_lead, self.rows)
        return spread_words(P, rows, bias, (offsets, ids, values))


def spread_words(
    P: np.ndarray, rows: Sequence[np.ndarray], bias: np.ndarray, lists: Sequence[np.ndarray]
) -> list[KernelTask]:
    """Tasks of `project_words`, whose arguments these are, that take about equally long.

    ``rows`` has the table, the velocity, the lead and the numbers of the rows, ``lists`` the
    offsets, the ids and the values of the features of each word.
    """
    spans = spans_of(lists[0], P.shape[1], P.shape[1])
    return pieces(spans, project_words, P, *rows, bias, *lists)


def point_of(weights: Arrays, rows: NDArray[np.int32]) -> GradientPoint:
    """The weights of a tower, not copied, as the point at which a pass takes them.

    ``rows`` (n_rows,) int32 are the input rows of the batch.
    """
    return GradientPoint(weights, StoredRows(weights["table"], rows))
