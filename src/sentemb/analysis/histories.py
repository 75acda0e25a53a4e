"""What happened in trainings, read from their history.jsonl; see docs/formats.md."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from sentemb.analysis.labels import short_names
from sentemb.errors import SentembError
from sentemb.storage.history import HISTORY, deciding_figure, history_line
from sentemb.system.files import is_file, is_folder, numbered_lines, place_name
from sentemb.system.paths import AnyPath


@dataclass(frozen=True)
class History:
    """The epochs of one training.

    Attributes
    ----------
    epochs : list of int
        In ascending order.
    losses : list of float
        The mean training loss of each epoch.
    dev : list of dict
        Figures by name, such as ``{"ndcg@1": 0.8}``; empty where the dev set was not measured.
    """

    epochs: list[int]
    losses: list[float]
    dev: list[dict[str, float]]

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]]) -> Self:
        """The history of a model in memory: one dict per epoch, as its ``history`` has them."""
        lines = list(lines)
        return cls(
            [line["epoch"] for line in lines],
            [line["loss"] for line in lines],
            [line.get("dev") or {} for line in lines],
        )

    def measured(self, metric: str) -> tuple[list[int], list[float]]:
        """The epochs in which ``metric`` was measured, and its values."""
        pairs = [
            (epoch, dev[metric])
            for epoch, dev in zip(self.epochs, self.dev, strict=True)
            if metric in dev
        ]
        return [epoch for epoch, _ in pairs], [value for _, value in pairs]


def read_history(path: AnyPath) -> History:
    """Read the `History` of a model folder, or a history.jsonl on its own.

    Raises
    ------
    SentembError
        If the file is missing or empty, or for the first line that is damaged.
    """
    file = Path(path)
    if is_folder(file):
        file = file / HISTORY
        if not is_file(file):
            raise SentembError(
                f"{path}: no {HISTORY} is here; give the folder of a model whose training has ended"
            )
    history = History([], [], [])
    for number, text in numbered_lines(file):
        place = f"{place_name(file)}:{number}"
        try:
            line = history_line(text)
        except SentembError as error:
            raise _damaged(place, str(error)) from error
        epoch = line["epoch"]
        if history.epochs and epoch <= history.epochs[-1]:
            raise _damaged(place, f"epoch {epoch} comes after epoch {history.epochs[-1]}")
        history.epochs.append(epoch)
        history.losses.append(line["loss"])
        history.dev.append(line.get("dev") or {})
    if not history.epochs:
        raise SentembError(f"{place_name(file)}: no epoch is recorded here; give a trained model")
    return history


def figure_of(histories: Iterable[History]) -> str:
    """The dev figure to show of some runs: the first of those that decide that a run has."""
    return deciding_figure(name for history in histories for dev in history.dev for name in dev)


def _damaged(place: str, reason: str) -> SentembError:
    return SentembError(f"{place}: {reason}; correct the line or train the model again")


def run_names(paths: Sequence[AnyPath]) -> list[str]:
    """The folder of each run, with as much of the path as it takes to tell them apart."""
    return short_names(
        Path(path) if is_folder(path) else Path(os.path.realpath(path)).parent for path in paths
    )
