"""The rows of the input weights that one tower trains: those of the features that its texts have.

Queries have other words than titles. A tower that kept a row and its moments for every feature of
the vocabulary would hold as many again that are zero from the first update to the last.
"""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sentemb.system.aligned import aligned_empty, aligned_zeros
from sentemb.text.batch import TextBatch


class TowerRows:
    """Which rows of the vocabulary a tower has, in the order of the vocabulary.

    ``seen`` are the features that its texts have, (k,) int32, ascending; the vocabulary has
    ``n_features``.
    """

    def __init__(self, seen: NDArray[np.int32], n_features: int) -> None:
        self.seen, self.n_features = seen, n_features
        self._positions = np.zeros(n_features, np.int32)
        self._positions[seen] = np.arange(seen.size, dtype=np.int32)
        self._untrained: np.ndarray | None = None

    def positions(self, features: NDArray[np.int32]) -> NDArray[np.int32]:
        """Where the rows of some features are among those of the tower."""
        return self._positions[features]

    def texts(self, batch: TextBatch) -> TextBatch:
        """``batch``, whose ``input_rows`` are positions among ``seen``."""
        return replace(batch, input_rows=self.positions(batch.input_rows))

    def take(self, table: np.ndarray) -> np.ndarray:
        """The rows that are trained, (k, width), of a table of all features; keep the others.

        ``table``, (n_features, width) float, holds the weights that a training starts from. It may
        change, and is the result itself if all its rows are trained.
        """
        if self.seen.size == self.n_features:
            return table
        self._untrained = table[self._unseen()]
        trained = aligned_empty((self.seen.size, table.shape[1]), table.dtype)
        trained[...] = table[self.seen]
        return trained

    def whole(self, trained: np.ndarray) -> np.ndarray:
        """A table of all features with the rows ``trained``, (n_features, width).

        The rows of other features are those that `take` met, and otherwise zero.
        """
        table = aligned_zeros((self.n_features, trained.shape[1]), trained.dtype)
        table[self.seen] = trained
        if self._untrained is not None:
            table[self._unseen()] = self._untrained
        return table

    def _unseen(self) -> NDArray[np.intp]:
        is_unseen = np.ones(self.n_features, np.bool_)
        is_unseen[self.seen] = False
        return np.flatnonzero(is_unseen)
