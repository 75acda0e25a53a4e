"""The history of a training, one dict per epoch; see docs/formats.md."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.models.files.tensor_files import damaged
from sentemb.models.files.text_files import contents_of, lines_of
from sentemb.system.bounds import is_finite
from sentemb.system.descriptions import parse_json
from sentemb.system.files import status

HISTORY = "history.jsonl"
# The figures that decide which epoch is the best: on a judged set, on held-out clicks, and on
# labelled pairs.
DEV_FIGURE, CLICKS_FIGURE, ACCURACY = FIGURES = ("ndcg@1", "mrr@10", "accuracy")
# What differs from run to run, whatever the seed.
_TIMES = ("pairs_per_second", "seconds")


def history_of(path: Path) -> list[dict[str, Any]]:
    """The epochs that file ``path`` describes; none if there is no such file."""
    if status(path) is None:
        return []
    lines = []
    raw = contents_of(path)
    if raw and not raw.endswith(b"\n"):
        raise damaged(path, "its last line has no line end")
    for number, text in enumerate(lines_of(path, raw), 1):
        try:
            lines.append(history_line(text))
        except SentembError as error:
            raise damaged(f"{path}:{number}", str(error)) from error
    return lines


def history_line(text: str) -> dict[str, Any]:
    """The epoch that a line of ``history.jsonl`` describes.

    Raises `SentembError`, without a place, if it is not a JSON object with an epoch, a loss and, if
    there is one, the figures of the dev set.
    """
    try:
        line: dict[str, Any] = parse_json(text)
    except ValueError:
        raise SentembError("not JSON") from None
    check_line(line)
    return line


def check_line(line: Any) -> None:
    """Raise a `SentembError` without a place unless ``line`` describes an epoch."""
    if not isinstance(line, dict):
        raise SentembError("not a JSON object")
    epoch: Any = line.get("epoch")
    loss: Any = line.get("loss")
    dev: Any = line.get("dev") or {}
    if type(epoch) is not int or not 1 <= epoch < 2**53:
        raise SentembError(f"the epoch is {_quoted(epoch)}, not an integer of at least 1")
    if not is_finite(loss) or loss < 0:
        raise SentembError(f"the loss is {_quoted(loss)}, not a number of at least 0")
    if not isinstance(dev, dict) or not all(map(is_finite, dev.values())):
        raise SentembError("dev is not a JSON object of numbers")
    if not is_finite(line.get("seconds", 0)):
        raise SentembError(f"seconds is {_quoted(line['seconds'])}, not a number")


def without_times(history: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """``history`` without times, which depend on the machine; equal trainings have equal ones."""
    return [{key: line[key] for key in line if key not in _TIMES} for line in history]


def best_epoch(
    history: Sequence[dict[str, Any]], figure: str | None = None
) -> dict[str, Any] | None:
    """The line of the best epoch on the dev set: the first with the highest ``figure``.

    By default it is the first of `FIGURES` that was measured. None if no dev set was.
    """
    if figure is None:
        figure = deciding_figure(name for line in history for name in line.get("dev") or {})
    measured = [line for line in history if figure in (line.get("dev") or {})]
    return max(measured, key=lambda line: line["dev"][figure], default=None)


def deciding_figure(measured: Iterable[str]) -> str:
    """The figure that decides, among those that were ``measured``; NDCG@1 if none of them does."""
    names = set(measured)
    return next((figure for figure in FIGURES if figure in names), DEV_FIGURE)


def shown_figure(name: str) -> str:
    """The name of a dev figure as people write it."""
    return name.replace("ndcg", "NDCG").replace("mrr", "MRR")


def _quoted(value: object) -> str:
    return repr(value)[:40]
