"""What happened in trainings, read from their history.jsonl; see docs/formats.md."""

import json
import math
from dataclasses import dataclass
from pathlib import Path

from sentemb.analysis.figures import short_names
from sentemb.errors import SentembError
from sentemb.files import numbered_lines, place_name

HISTORY = "history.jsonl"


@dataclass(frozen=True)
class History:
    """The epochs of one training.

    Attributes
    ----------
    epochs : list of int
        Rising.
    losses : list of float
        The mean training loss of each epoch.
    dev : list of dict
        NDCG by name, such as ``{"ndcg@1": 0.8}``; empty where the dev set was not measured.
    """

    epochs: list
    losses: list
    dev: list

    def measured(self, metric):
        """The epochs in which ``metric`` was measured, and its values."""
        pairs = [(epoch, dev[metric]) for epoch, dev in zip(self.epochs, self.dev) if metric in dev]
        return [epoch for epoch, _ in pairs], [value for _, value in pairs]


def read_history(path):
    """The `History` of a model folder, or in a file of its own.

    Raises
    ------
    SentembError
        If there is none, if it is empty, or for the first line that is damaged.
    """
    file = Path(path)
    if file.is_dir():
        file = file / HISTORY
        if not file.is_file():
            raise SentembError(
                f"{path}: no {HISTORY} is here; give the folder of a model whose training has ended"
            )
    history = History([], [], [])
    for number, text in numbered_lines(file):
        place = f"{place_name(file)}:{number}"
        epoch, loss, dev = _epoch(place, text)
        if history.epochs and epoch <= history.epochs[-1]:
            raise _damaged(place, f"epoch {epoch} stands after epoch {history.epochs[-1]}")
        history.epochs.append(epoch)
        history.losses.append(loss)
        history.dev.append(dev)
    if not history.epochs:
        raise SentembError(f"{place_name(file)}: no epoch is recorded here; give a trained model")
    return history


def _epoch(place, text):
    """Epoch, loss and dev metrics of one line."""
    try:
        line = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(place, "not JSON") from error
    if not isinstance(line, dict):
        raise _damaged(place, "not a JSON object")
    epoch, loss, dev = line.get("epoch"), line.get("loss"), line.get("dev") or {}
    if type(epoch) is not int or epoch < 1:
        raise _damaged(place, f"the epoch is {epoch!r}, not a whole number from 1")
    if not _is_number(loss) or loss < 0:
        raise _damaged(place, f"the loss is {loss!r}, not a number from 0")
    if not isinstance(dev, dict) or not all(map(_is_number, dev.values())):
        raise _damaged(place, "dev is not a JSON object of numbers")
    return epoch, loss, dev


def _is_number(value):
    # A bool is an int to Python; json reads NaN and Infinity.
    return type(value) in (int, float) and math.isfinite(value)


def _damaged(place, reason):
    return SentembError(f"{place}: {reason}; mend the line or train the model again")


def run_names(paths):
    """Each run by its folder, with as much of the path as it takes to tell them apart."""
    return short_names(
        Path(path) if Path(path).is_dir() else Path(path).resolve().parent for path in paths
    )
