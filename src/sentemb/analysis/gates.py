"""What a model does on a query, and on a title beside it, as arrays ready to be drawn.

After Figures 4, 5, 6 and 8 to 12 of Palangi et al. (arXiv 1502.06922).
"""

from dataclasses import dataclass

import numpy as np

from sentemb.analysis.figures.drawing import fitting
from sentemb.errors import SentembError
from sentemb.system.files import replacing

# What is shown, in the order of the computation; `GateTrace` has None for what a model lacks.
GATES = {
    "i": "input gate",
    "f": "forget gate",
    "o": "output gate",
    "c": "cell state",
    "y": "output",
}
# Those with values between 0 and 1; the others have both signs.
SIGMOIDS = ("i", "f", "o")
_LONGEST_WORD = 100


@dataclass(frozen=True, eq=False)
class TextReading:
    """What a tower did on one text.

    Attributes
    ----------
    side : {"query", "title"}
    words : list of str
        Length T.
    gates : dict of (cells, T) float
        Those of `GATES` that the model has, one column a word.
    final : (cells,) float
        y after the last word, of cells that read backward after the first.
    """

    side: str
    words: list
    gates: dict
    final: np.ndarray

    def active_cells(self, count=10):
        """The ``count`` cells (int array) with the largest absolute final output."""
        return np.argsort(-np.abs(self.final), kind="stable")[:count]


@dataclass(frozen=True, eq=False)
class Reading:
    """What a model did on a query, and on a title if there is one.

    Attributes
    ----------
    model : str
        What figures call it.
    texts : list of TextReading
        The query, then the title.
    cells : int
    halves : int
        2 if the second half of the cells reads from right to left, else 1.
    cosine : float or None
        Of query and title.
    """

    model: str
    texts: list
    cells: int
    halves: int
    cosine: float | None

    @property
    def gates(self):
        """Names of the gates that the model has, in the order of `GATES`."""
        return list(self.texts[0].gates)


def read_texts(model, query, title=None, name="model"):
    """Let ``model`` (a `SentenceEncoder`) read a query, and a title if there is one.

    Returns
    -------
    Reading

    Raises
    ------
    SentembError
        For a text without words.
    """
    texts = [_read(model, query, "query", "query")]
    if title is not None:
        texts.append(_read(model, title, "title", "document"))
    return Reading(
        model=name,
        texts=texts,
        cells=model.encoder.n_outputs,
        halves=model.encoder.directions,
        cosine=None if title is None else model.score(query, title),
    )


def _read(model, text, side, tower):
    trace = model.trace(text, side=tower)
    gates = {gate: getattr(trace, gate) for gate in GATES}
    return TextReading(
        side=side,
        words=trace.words,
        gates={gate: values.T for gate, values in gates.items() if values is not None},
        final=model.encode(text, side=tower)[: model.encoder.n_outputs],
    )


def numbers_of_gates(readings):
    """The arrays of a gate figure by name; docs/formats.md lists the names."""
    return _numbers(readings, lambda text: text.gates)


def numbers_of_cells(readings):
    """The arrays of a figure of the most active cells by name; see docs/formats.md."""

    def numbers(text):
        active = text.active_cells()
        return {"cells": active, "y": text.gates["y"][active]}

    return _numbers(readings, numbers)


def _numbers(readings, of_text):
    arrays = {}
    for prefix, reading in zip(("", "against."), readings):
        for text in reading.texts:
            # NumPy gives every word of an array the room of the longest.
            words = [fitting(word, _LONGEST_WORD) for word in text.words]
            arrays[f"{prefix}{text.side}.words"] = np.array(words)
            for name, values in of_text(text).items():
                arrays[f"{prefix}{text.side}.{name}"] = values
        if reading.cosine is not None:
            arrays[f"{prefix}cosine"] = np.array(reading.cosine)
    return arrays


def check_numbers_path(path):
    """A `SentembError` unless ``path`` ends as NumPy's archives do."""
    if not str(path).endswith(".npz"):
        raise SentembError(f"{path}: the numbers are a NumPy archive; let the name end in .npz")


def save_numbers(arrays, path):
    """Write a dict of arrays as a NumPy archive (.npz), in place of an earlier one."""
    check_numbers_path(path)
    with replacing(path) as temporary, open(temporary, "wb") as file:
        np.savez(file, **arrays)
