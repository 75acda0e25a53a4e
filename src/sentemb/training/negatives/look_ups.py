"""When a training of two towers ranks all titles of its log for hard negatives."""

from collections.abc import Mapping, Sequence
from typing import Any

from sentemb.training.negative_options import HARD_FROM_EPOCH

EPOCHS_BETWEEN = 3


def are_due(epoch: int) -> bool:
    """Whether hard negatives are looked up before ``epoch`` (from 0)."""
    since = epoch + 1 - HARD_FROM_EPOCH
    return since >= 0 and since % EPOCHS_BETWEEN == 0


def are_in_use(epoch: int, step: int) -> bool:
    """Whether mini-batch ``step`` of ``epoch`` (both from 0) draws from an earlier look-up."""
    return epoch + 1 >= HARD_FROM_EPOCH and not (step == 0 and are_due(epoch))


def epochs_of(history: Sequence[Mapping[str, Any]], training: Mapping[str, Any]) -> list[int]:
    """The epochs, from 1, before which hard negatives were looked up.

    The lines of such epochs in ``history`` have ``hard_negatives_ranked``, unless they were written
    before lines had it. Without the entry in any line, the settings in ``training`` tell.
    """
    epochs = [line for line in history if type(line.get("epoch")) is int]
    recorded = [line["epoch"] for line in epochs if line.get("hard_negatives_ranked") is True]
    # A pair model has its hard negatives listed once, before the training.
    if recorded or not training.get("hard_negatives") or training.get("teacher"):
        return recorded
    return [line["epoch"] for line in epochs if are_due(line["epoch"] - 1)]
