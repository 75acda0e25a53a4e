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

    Parameters
    ----------
    seen : (k,) int32
        The features that its texts have, ascending.
    n_features : int
        The features of the vocabulary.

    Attributes
    ----------
    seen : (k,) int32
    n_features : int
    """

    def __init__(self, seen: NDArray[np.int32], n_features: int) -> None:
        self.seen, self.n_features = seen, n_features
        self._places = np.zeros(n_features, np.int32)
        self._places[seen] = np.arange(seen.size, dtype=np.int32)
        self._others: np.ndarray | None = None

    def texts(self, batch: TextBatch) -> TextBatch:
        """``batch``, whose ``input_rows`` are places among ``seen``."""
        return replace(batch, input_rows=self._places[batch.input_rows])

    def take(self, table: np.ndarray) -> np.ndarray:
        """The rows that are trained, of a table of all features that may change; keep the others.

        Parameters
        ----------
        table : (n_features, width) float
            The weights that a training starts from. It is returned if all its rows are trained.

        Returns
        -------
        (k, width) float
        """
        if self.seen.size == self.n_features:
            return table
        self._others = table[self._unseen()]
        own = aligned_empty((self.seen.size, table.shape[1]), table.dtype)
        own[...] = table[self.seen]
        return own

    def whole(self, own: np.ndarray) -> np.ndarray:
        """A table of all features with the rows ``own``, (n_features, width).

        The rows of other features are those that `take` met, and otherwise zero.
        """
        table = aligned_zeros((self.n_features, own.shape[1]), own.dtype)
        table[self.seen] = own
        if self._others is not None:
            table[self._unseen()] = self._others
        return table

    def _unseen(self) -> NDArray[np.intp]:
        others = np.ones(self.n_features, np.bool_)
        others[self.seen] = False
        return np.flatnonzero(others)
