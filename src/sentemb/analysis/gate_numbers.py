"""The numbers of a figure of gates as a NumPy archive; docs/formats.md describes it."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from sentemb.analysis.gates import GateReading, TextReading, chosen_gates
from sentemb.analysis.labels import fitting
from sentemb.errors import SentembError
from sentemb.system.files import replacing
from sentemb.system.paths import AnyPath

_LONGEST_WORD = 100


def numbers_of_gates(
    readings: Sequence[GateReading], gates: Iterable[str] | None = None
) -> dict[str, np.ndarray]:
    """The arrays of a gate figure by name, as docs/formats.md lists them."""
    chosen = chosen_gates(readings, gates)
    return _numbers(
        readings, lambda text: {gate: v for gate, v in text.gates.items() if gate in chosen}
    )


def numbers_of_cells(readings: Sequence[GateReading]) -> dict[str, np.ndarray]:
    """The arrays of a figure of the most active cells by name, as docs/formats.md lists them."""

    def numbers(text: TextReading) -> dict[str, np.ndarray]:
        active = text.active_cells()
        return {"cells": active, "y": text.gates["y"][active]}

    return _numbers(readings, numbers)


def _numbers(
    readings: Sequence[GateReading], of_text: Callable[[TextReading], dict[str, np.ndarray]]
) -> dict[str, np.ndarray]:
    arrays = {}
    for prefix, reading in zip(("", "against."), readings, strict=False):
        for text in reading.texts:
            # NumPy gives every word of an array the room of the longest.
            words = [fitting(word, _LONGEST_WORD) for word in text.words]
            arrays[f"{prefix}{text.name}.words"] = np.array(words)
            for name, values in of_text(text).items():
                arrays[f"{prefix}{text.name}.{name}"] = values
        if reading.cosine is not None:
            arrays[f"{prefix}cosine"] = np.array(reading.cosine)
    return arrays


def check_numbers_path(path: AnyPath) -> None:
    """Raise a `SentembError` unless ``path`` has the ending of NumPy's archives."""
    if not str(path).endswith(".npz"):
        raise SentembError(f"{path}: the numbers are a NumPy archive; let the name end in .npz")


def save_numbers(arrays: dict[str, Any], path: AnyPath) -> None:
    """Write a dict of arrays as a NumPy archive (.npz), replacing an earlier one."""
    check_numbers_path(path)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)
