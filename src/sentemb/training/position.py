"""How far a training has got, as a checkpoint records it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import dropwhile
from typing import Any, Self

from sentemb.errors import SentembError
from sentemb.models.files.history import check_line
from sentemb.system.bounds import is_finite


@dataclass
class Position:
    """How far a training has got.

    epoch, step : the next mini-batch, both from 0: also the number of whole epochs, and of
        mini-batches in this epoch, that are done
    loss_sum : sum of the losses of this epoch's mini-batches
    seconds : time spent on this epoch when the checkpoint was written
    history : one line per epoch done; see docs/formats.md. There epochs are counted from 1.
    """

    epoch: int = 0
    step: int = 0
    loss_sum: float = 0.0
    seconds: float = 0.0
    history: list[dict[str, Any]] = field(default_factory=list)

    def start_next_epoch(self) -> None:
        self.epoch += 1
        self.step, self.loss_sum, self.seconds = 0, 0.0, 0.0

    def as_dict(self, seconds: float) -> dict[str, Any]:
        """The entries of a checkpoint, with the time spent on this epoch until now."""
        return {**vars(self), "seconds": seconds}

    @classmethod
    def of(cls, recorded: Mapping[str, Any], identity: Mapping[str, Any], figure: str) -> Self:
        """The position that a checkpoint of training ``identity`` recorded.

        With a dev set, every line of its history has the ``figure`` that decides, from the first
        epoch on that trains scores. Raises `SentembError`, without a place, if it cannot be a
        position.
        """
        at = recorded
        try:
            right = (
                isinstance(identity["settings"], dict)
                and type(at["epoch"]) is type(at["step"]) is int
                and 0 <= at["epoch"] < identity["settings"]["epochs"]
                and at["step"] >= 0
                and is_finite(at["loss_sum"])
                and is_finite(at["seconds"])
                and isinstance(at["history"], list)
                and _is_history(at["history"], at["epoch"], figure if identity.get("dev") else None)
            )
        except (KeyError, TypeError, AttributeError, SentembError):
            right = False
        if not right:
            raise SentembError("it does not say how far the training has got")
        names = "epoch", "step", "loss_sum", "seconds", "history"
        return cls(**{name: at[name] for name in names})


def _is_history(history: list[dict[str, Any]], epochs: int, figure: str | None) -> bool:
    """Whether ``history`` has a right line for each of the first ``epochs`` epochs."""
    for line in history:
        check_line(line)
    if [line["epoch"] for line in history] != list(range(1, epochs + 1)):
        return False
    measured = dropwhile(lambda line: line.get("dev") is None, history)
    return figure is None or all(figure in (line.get("dev") or {}) for line in measured)
