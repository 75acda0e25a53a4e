"""Histories of trainings, read from their history.jsonl; see docs/formats.md."""

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from sentemb.analysis.labels import short_names
from sentemb.errors import SentembError
from sentemb.models.files.history import HISTORY, deciding_figure, history_line
from sentemb.models.files.model_folder import CONFIG
from sentemb.system.descriptions import parse_json
from sentemb.system.files import is_file, is_folder, numbered_lines, place_name
from sentemb.system.paths import AnyPath
from sentemb.training.negatives.look_ups import epochs_of


@dataclass(frozen=True)
class History:
    """The epochs of one training.

    epochs : in ascending order
    losses : the mean training loss of each epoch
    dev : figures by name, such as ``{"ndcg@1": 0.8}``; empty where the dev set was not measured
    ranked : the epochs before which hard negatives were looked up
    """

    epochs: list[int]
    losses: list[float]
    dev: list[dict[str, float]]
    ranked: list[int] = field(default_factory=list)

    @classmethod
    def of(cls, lines: Iterable[Mapping[str, Any]], training: Mapping[str, Any]) -> Self:
        """The history of a model in memory, from its attributes ``history`` and ``training``.

        ``lines`` has one line per epoch.
        """
        lines = list(lines)
        return cls(
            [line["epoch"] for line in lines],
            [line["loss"] for line in lines],
            [line.get("dev") or {} for line in lines],
            epochs_of(lines, training),
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

    Raises `SentembError` if the file is missing or empty, or for the first line that is damaged.
    """
    file = Path(path)
    if is_folder(file):
        file = file / HISTORY
        if not is_file(file):
            raise SentembError(
                f"{path}: no {HISTORY} is here; give the folder of a model whose training has ended"
            )
    lines: list[dict[str, Any]] = []
    for number, text in numbered_lines(file):
        where = f"{place_name(file)}:{number}"
        try:
            line = history_line(text)
        except SentembError as error:
            raise _damaged(where, str(error)) from error
        epoch = line["epoch"]
        if lines and epoch <= lines[-1]["epoch"]:
            raise _damaged(where, f"epoch {epoch} comes after epoch {lines[-1]['epoch']}")
        lines.append(line)
    if not lines:
        raise SentembError(f"{place_name(file)}: no epoch is recorded here; give a trained model")
    return History.of(lines, _training_of(file.with_name(CONFIG)))


def _training_of(config: Path) -> dict[str, Any]:
    """How the model next to a history was trained; nothing if that cannot be read."""
    try:
        training = parse_json("\n".join(text for _, text in numbered_lines(config)))["training"]
    except (SentembError, ValueError, KeyError, TypeError):
        return {}
    return training if isinstance(training, dict) else {}


def figure_of(histories: Iterable[History]) -> str:
    """The dev figure to show of some runs: the first of those that decide that a run has."""
    return deciding_figure(name for history in histories for dev in history.dev for name in dev)


def _damaged(where: str, reason: str) -> SentembError:
    return SentembError(f"{where}: {reason}; correct the line or train the model again")


def run_names(paths: Sequence[AnyPath]) -> list[str]:
    """The folder of each run, with as much of the path as it takes to tell them apart."""
    return short_names(
        Path(path) if is_folder(path) else Path(os.path.realpath(path)).parent for path in paths
    )
