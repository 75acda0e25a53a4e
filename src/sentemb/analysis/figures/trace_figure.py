"""A single trace as a figure, for a notebook."""

from matplotlib.figure import Figure

from sentemb.analysis.figures.gate_figure import gates_figure
from sentemb.analysis.gates import GATES, Reading, TextReading
from sentemb.models.sentence_encoder import GateTrace


def trace_figure(trace: GateTrace, name: str = "text", directions: int = 1) -> Figure:
    """Draw what a tower did on one text, each gate on a colour scale of its own.

    Parameters
    ----------
    trace : GateTrace
        From `SentenceEncoder.trace`.
    name : str
        The title of the figure.
    directions : {1, 2}
        2 if the second half of the columns reads from right to left.

    Raises
    ------
    SentembError
        For a text with more than 200 words.
    """
    gates = {gate: getattr(trace, gate) for gate in GATES}
    text = TextReading(
        name=name,
        words=trace.words,
        gates={gate: values.T for gate, values in gates.items() if values is not None},
        final=trace.y[-1],
    )
    cells = trace.y.shape[1]
    return gates_figure([Reading("model", [text], cells, directions, None)], scale="own")
