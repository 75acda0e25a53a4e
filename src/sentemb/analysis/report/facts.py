"""Facts of any model on its page: its settings, how it was trained, how it learned."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from sentemb.models.files.history import best_epoch, shown_figure
from sentemb.system.bounds import is_finite


def training_facts(training: Mapping[str, Any]) -> list[list[str]]:
    """The settings of a training as people write them."""
    return [[key.replace("_", " "), _plain(value)] for key, value in training.items()]


def setting_facts(settings: Mapping[str, Any]) -> list[list[str]]:
    """Hyper-parameters as people write them."""
    return [[key.replace("_", " ").capitalize(), _plain(value)] for key, value in settings.items()]


def dev_facts(history: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Figures of the best epoch on the dev set, if they were measured."""
    best = best_epoch(history)
    if best is None:
        return []
    dev = {shown_figure(name): value for name, value in best["dev"].items()}
    figures = ", ".join(f"{name}\u00a0{value:.3f}" for name, value in dev.items())
    return [["Best on dev", f"{figures}, after epoch {best['epoch']}"]]


def _plain(value: Any) -> str:
    """A setting as people write it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return "none" if value is None else str(value)


def shown_history(lines: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Epoch, loss and dev figures of the lines of a model's history that have them as numbers."""
    return [
        {
            "epoch": line["epoch"],
            "loss": line["loss"],
            "dev": {name: value for name, value in _dev(line).items() if is_finite(value)},
        }
        for line in lines
        if is_finite(line.get("epoch")) and is_finite(line.get("loss"))
    ]


def _dev(line: Mapping[str, Any]) -> Mapping[str, Any]:
    return line["dev"] if isinstance(line.get("dev"), dict) else {}
