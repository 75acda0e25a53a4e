"""What a model's gates do on a query, and on a title beside it, as arrays ready to be drawn.

After Figures 4 and 5 of Palangi et al. (arXiv 1502.06922).
"""

from dataclasses import dataclass

import numpy as np

# What is shown, in the order of the computation; `GateTrace` has None for what a model lacks.
GATES = {
    "i": "input gate",
    "f": "forget gate",
    "o": "output gate",
    "c": "cell state",
    "y": "output",
}


@dataclass(frozen=True, eq=False)
class GatePanels:
    """The gates of one or two texts.

    Attributes
    ----------
    gates : list of str
        Those of `GATES` that the model has.
    sides : list of str
        "query", then "title" if there is one.
    words : list of list of str
        The words of each side.
    values : (n_gates, n_sides, dim, columns) float
        One column per word of the longer text; beyond the end of the shorter one they are 0.
    halves : int
        2 if the second half of the cells read from right to left, else 1.
    score : float or None
        The cosine of query and title.
    """

    gates: list
    sides: list
    words: list
    values: np.ndarray
    halves: int
    score: float | None


def gate_panels(model, query, title=None):
    """Trace a query, and a title if there is one.

    Parameters
    ----------
    model : SentenceEncoder
    query, title : str

    Returns
    -------
    GatePanels

    Raises
    ------
    SentembError
        For a text without words.
    """
    traces = [model.trace(query, side="query")]
    if title is not None:
        traces.append(model.trace(title, side="document"))
    gates = [gate for gate in GATES if getattr(traces[0], gate) is not None]
    columns = max(len(trace.words) for trace in traces)
    values = np.zeros((len(gates), len(traces), model.dim, columns), model.dtype)
    for row, gate in enumerate(gates):
        for side, trace in enumerate(traces):
            values[row, side, :, : len(trace.words)] = getattr(trace, gate).T
    return GatePanels(
        gates=gates,
        sides=["query", "title"][: len(traces)],
        words=[trace.words for trace in traces],
        values=values,
        halves=model.encoder.directions,
        score=None if title is None else model.score(query, title),
    )
