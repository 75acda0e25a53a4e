"""Progress reports: how far a training is, and how fast."""

import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """A report on a running training.

    Attributes
    ----------
    epoch, epochs : int
        The current epoch, counted from 1, and how many there are.
    step, steps : int
        Mini-batches done in this epoch, and how many it has.
    loss : float
        Mean loss per pair in this epoch so far.
    pairs_per_second : float
        In this epoch so far.
    seconds_left : float
        Expected until the end of the training.
    epoch_ended : bool
        Whether this is the last report of the epoch.
    dev : dict or None
        Figures on the dev set: only in the last report of an epoch, and only if there is a dev set.
    seed : int or None
        The seed of the model that is trained, if several are trained one after the other; then
        ``seconds_left`` is for all of them.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    pairs_per_second: float
    seconds_left: float
    epoch_ended: bool = False
    dev: dict[str, float] | None = None
    seed: int | None = None


class Clock:
    """Measures one run of the process and the current epoch.

    Parameters
    ----------
    updates : int
        Updates done before this run of the process.
    """

    def __init__(self, updates: int) -> None:
        self._began = self._epoch_began = time.monotonic()
        self._updates = updates

    def start_epoch(self, seconds: float) -> None:
        """Start an epoch that took ``seconds`` before this run of the process."""
        self._epoch_began = time.monotonic() - seconds

    def epoch_seconds(self) -> float:
        """Seconds of the current epoch so far."""
        return time.monotonic() - self._epoch_began

    def seconds_for(self, updates_left: int, updates_done: int) -> float:
        """Expected seconds for ``updates_left``, at the mean speed since the process started."""
        seconds = time.monotonic() - self._began
        return updates_left * seconds / max(updates_done - self._updates, 1)
