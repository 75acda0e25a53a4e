"""The input weights as they are stored: the point at which a trained model embeds."""

from __future__ import annotations

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
        lists = (offsets, ids, values)
        return spread_words(P, table, table, no_lead, self.rows, bias, *lists)


def spread_words(
    P: np.ndarray,
    table: np.ndarray,
    v: np.ndarray,
    lead: np.ndarray,
    rows: NDArray[np.int32],
    bias: np.ndarray,
    offsets: NDArray[np.int64],
    ids: NDArray[np.int32],
    values: NDArray[np.float32],
) -> list[KernelTask]:
    """Tasks of `project_words`, whose arguments these are, that take about equally long."""
    arguments = P, table, v, lead, rows, bias, offsets, ids, values
    return pieces(spans_of(offsets, P.shape[1], P.shape[1]), project_words, *arguments)


def point_of(weights: Arrays, rows: NDArray[np.int32]) -> GradientPoint:
    """The weights of a tower, not copied, as the point at which a pass takes them.

    ``rows`` (n_rows,) int32 are the input rows of the batch.
    """
    return GradientPoint(weights, StoredRows(weights["table"], rows))
