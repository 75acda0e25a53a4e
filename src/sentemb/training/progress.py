"""Progress reports: how far a training is, and how fast."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

_SECONDS_BETWEEN_NOTES = 60.0


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
        Expected until the end of the training: the updates to come, the look-ups of hard negatives
        and the measures on the dev set. Measures count once the first is done.
    epoch_ended : bool
        Whether this is the last report of the epoch.
    dev : dict or None
        Figures on the dev set: only in the last report of an epoch, and only if there is a dev set.
    seed : int or None
        The seed of the model that is trained, if several are trained one after the other; then
        ``seconds_left`` is for all of them.
    seconds_in_all : float
        Expected for the whole training, of one seed.
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
    seconds_in_all: float = 0.0


class Reached:
    """Notes how far a long piece of work has got, once a minute; ``what`` precedes the numbers."""

    def __init__(self, what: str, total: int, note: Callable[[str], None]) -> None:
        self._what, self._total, self._note = what, total, note
        self._last = time.monotonic()

    def __call__(self, done: int) -> None:
        """Note that ``done`` of the total is done, if it is time."""
        now = time.monotonic()
        if now - self._last >= _SECONDS_BETWEEN_NOTES and done < self._total:
            self._last = now
            self._note(f"{self._what}: {done:,} of {self._total:,}")


class Amounts(NamedTuple):
    """Parts of a training.

    updates : mini-batches
    preparation : the work of tasks before epochs, as `Task.preparation` estimates it
    measures : measures on the dev set
    """

    updates: float = 0
    preparation: float = 0
    measures: float = 0


class Clock:
    """Measures what one run of the process does, part by part, and the current epoch."""

    def __init__(self) -> None:
        self._last = self._epoch_began = time.monotonic()
        self._done, self._seconds = Amounts(), Amounts()

    def start_epoch(self, seconds: float) -> None:
        """Start an epoch that took ``seconds`` before this run of the process."""
        self._epoch_began = time.monotonic() - seconds

    def epoch_seconds(self) -> float:
        """Seconds of the current epoch so far."""
        return time.monotonic() - self._epoch_began

    def did(self, part: str, amount: float = 1) -> None:
        """The time since the last call was spent on ``amount`` of a ``part``, one of `Amounts`."""
        now = time.monotonic()
        self._done = _added(self._done, part, amount)
        self._seconds = _added(self._seconds, part, now - self._last)
        self._last = now

    def seconds_for(self, amounts: Amounts) -> float:
        """Expected seconds for ``amounts``, at the mean speed of each part in this run.

        Preparations are estimated in updates until one has been done. Measures count once the first
        is done.
        """
        per_update, per_preparation, per_measure = (
            seconds / done if done else None
            for seconds, done in zip(self._seconds, self._done, strict=True)
        )
        if per_preparation is None:
            per_preparation = per_update
        speeds = per_update, per_preparation, per_measure
        return sum(amount * (speed or 0.0) for amount, speed in zip(amounts, speeds, strict=True))


def _added(amounts: Amounts, part: str, amount: float) -> Amounts:
    return amounts._replace(**{part: getattr(amounts, part) + amount})
