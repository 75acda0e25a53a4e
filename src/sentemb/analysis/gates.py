"""Gates and cells while a model reads a query, and optionally a title: arrays ready to be drawn.

After Figures 4, 5, 6 and 8 to 12 of Palangi et al. (arXiv 1502.06922).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.top_k import highest
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.system.html_tables import html_table, shade

# In the order of the computation; `GateTrace` has None for what a model lacks. The paper numbers
# the gates 1 output, 2 forget, 3 input and 4 candidate.
GATES = {
    "i": "input gate",
    "f": "forget gate",
    "o": "output gate",
    "c": "cell state",
    "y": "output",
}
# Their values lie between 0 and 1; the others have both signs.
SIGMOIDS = ("i", "f", "o")
# The paper follows the ten cells with the largest final outputs.
MOST_ACTIVE = 10


def most_active(final: np.ndarray, count: int) -> np.ndarray:
    """The ``count`` cells of ``final`` (n,) with the largest absolute values, largest first."""
    return highest(np.abs(final), count)


@dataclass(frozen=True, eq=False)
class TextReading:
    """Gates and cells of a tower over one text.

    Attributes
    ----------
    name : {"query", "title"}
        The name of the text in figures.
    words : list of str
        Length T.
    gates : dict of (cells, T) float
        Those of `GATES` that the model has, one column per word.
    final : (cells,) float
        y after the last word; for cells that read backward, after the first word. For an irnn, y
        divided by the number of words.
    """

    name: str
    words: list[str]
    gates: dict[str, np.ndarray] = field(repr=False)
    final: np.ndarray = field(repr=False)

    def _repr_html_(self) -> str:
        """The mean size of each gate's values at every word."""
        sizes = {gate: np.abs(values).mean(axis=0) for gate, values in self.gates.items()}
        return html_table(
            [(f"{GATES[gate]} {gate}", *(f"{x:.3f}" for x in row)) for gate, row in sizes.items()],
            [f"{self.name}, mean size", *self.words],
            [[shade(x) for x in row / (row.max() or 1.0)] for row in sizes.values()],
        )

    def active_cells(self) -> np.ndarray:
        """The `MOST_ACTIVE` cells (int array) with the largest absolute final output."""
        return most_active(self.final, MOST_ACTIVE)


@dataclass(frozen=True, eq=False)
class GateReading:
    """Gates and cells of a model over a query, and over a title if one is given.

    Notebooks show it as the mean size of each gate over all cells, word by word;
    `sentemb.analysis.figures.gate_figure.gates_figure` draws every cell.

    Attributes
    ----------
    model : str
        Its name in figures.
    texts : list of TextReading
        The query, then the title.
    cells : int
    halves : int
        2 if the second half of the cells reads from right to left, else 1.
    cosine : float or None
        The cosine of query and title.
    """

    model: str
    texts: list[TextReading]
    cells: int
    halves: int
    cosine: float | None

    @property
    def gates(self) -> list[str]:
        """Names of the gates that the model has, in the order of `GATES`."""
        return list(self.texts[0].gates)

    def _repr_html_(self) -> str:
        parts = [text._repr_html_() for text in self.texts]
        if self.cosine is not None:
            parts.append(f"<p>cosine {self.cosine:.4f}</p>")
        return "".join(parts)


def read_gates(
    model: SentenceEncoder, query: str, title: str | None = None, name: str = "model"
) -> GateReading:
    """Let ``model`` read a query, and a title if one is given.

    Raises
    ------
    SentembError
        For a text without words.
    """
    texts = [_read(model, query, "query", "query")]
    if title is not None:
        texts.append(_read(model, title, "title", "document"))
    encoder = cast(RecurrentEncoder, model.encoder)
    return GateReading(
        model=name,
        texts=texts,
        cells=encoder.n_outputs,
        halves=encoder.directions,
        cosine=None if title is None else model.score(query, title),
    )


def _read(model: SentenceEncoder, text: str, name: str, side: str) -> TextReading:
    trace = model.trace(text, side=side)
    gates = {gate: getattr(trace, gate) for gate in GATES}
    return TextReading(
        name=name,
        words=trace.words,
        gates={gate: values.T for gate, values in gates.items() if values is not None},
        final=model.encode(text, side=side)[: trace.y.shape[1]],
    )


def chosen_gates(readings: Sequence[GateReading], names: Iterable[str] | None = None) -> list[str]:
    """The gates to draw, in the order of `GATES`; by default every gate that one of the models has.

    ``readings`` has one reading per model. Raises `SentembError` for a name that is not a gate, or
    a gate that none of the models has.
    """
    there = [gate for gate in GATES if any(gate in reading.gates for reading in readings)]
    if names is None:
        return there
    names = list(names)
    for name in names:
        if name not in GATES:
            raise SentembError(f"unknown gate {name!r}; the gates are {', '.join(GATES)}")
        if name not in there:
            raise SentembError(f"the model has no {GATES[name]} {name}; it has {', '.join(there)}")
    return [gate for gate in there if gate in names]
