"""The mini-batches of every epoch of a log."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import MiniBatch, mini_batch
from sentemb.training.batches.neighbour_batches import Order

if TYPE_CHECKING:
    from sentemb.training.towers.settings import Settings


class Epochs:
    """A log that is cut into the same number of mini-batches in every epoch.

    Settings, epoch and hard negatives decide the mini-batches; one thread at a time may ask.
    ``starts`` (n_steps + 1,) are the pairs in the mini-batches before each step.
    """

    def __init__(self, corpus: Corpus, settings: "Settings", starts: NDArray[np.int64]) -> None:
        self.corpus, self.settings, self.starts = corpus, settings, starts
        self._order: tuple[int, NDArray[np.int32] | None, Order] | None = None

    def batch(self, epoch: int, step: int, hard_titles: NDArray[np.int32] | None) -> MiniBatch:
        """Mini-batch ``step`` of ``epoch``, with the hard negatives of every query, if any."""
        first, end = self.starts[step : step + 2].tolist()
        part = self.order(epoch, hard_titles).part(first, end)
        return mini_batch(
            self.corpus, part.pairs, self.settings, epoch, step, hard_titles, part.leads
        )

    def order(self, epoch: int, hard_titles: NDArray[np.int32] | None) -> Order:
        """The order of ``epoch``; kept for the next mini-batch."""
        known = self._order
        if known is None or known[0] != epoch or known[1] is not hard_titles:
            seed, size = self.settings.seed, self.settings.group_size
            order = Order.mixed(self.corpus, seed, epoch)
            if size > 1 and hard_titles is not None:
                order = Order.of_neighbours(self.corpus, hard_titles, size, seed, epoch)
            self._order = known = epoch, hard_titles, order
        return known[2]

    def forget(self) -> None:
        """Let go of the hard negatives that were given last."""
        self._order = None
