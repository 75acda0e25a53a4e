"""The pictures of docs/paper.md: ours on the scales that version 2 of the paper prints.

Cells are counted from 1 and there are as many as in the paper. The colour bar of a panel goes
from the first to the last printed tick; above the panel is the range of our own values, which may
lie beyond both ends.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from matplotlib.colors import Normalize, TwoSlopeNorm
from matplotlib.figure import Figure
from pages import ROOT
from paper_models import Laboratory
from paper_parts import (
    BATH_QUERY,
    BATH_TITLE,
    LSTM,
    QUERY,
    TITLE,
    signed_most_active,
)
from paper_printed import SCALES
from paper_training import EQUAL

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE, figure_png
from sentemb.analysis.figures.heat_map import POSITIVE, SIGNED, draw_panel, label_words
from sentemb.analysis.figures.loss_figure import loss_figure
from sentemb.analysis.gates import GATES, TextReading, read_gates

PICTURES = ROOT / "docs" / "paper"
# Figures 4 and 5 have a horizontal axis of ten words (V-A.1).
_COLUMNS = 10
# Inches.
_WIDTH, _HEIGHT, _FRAME = 2.5, 2.9, 0.9


def gates_at_scale(name: str, text: TextReading) -> Figure:
    """A panel for each gate that the paper draws: cells down, words across."""
    panels = {f"{GATES[gate]} ${gate}$": (text.gates[gate], ticks)
              for gate, ticks in SCALES[name].items()}  # fmt: skip
    cells = len(text.gates["y"])
    shown = range(4, cells, 5)
    return _drawn(panels, [text] * len(panels), [(shown, [k + 1 for k in shown])] * len(panels))


def cells_at_scale(name: str, texts: list[TextReading]) -> Figure:
    """A panel for each text: the ten cells with the largest outputs, sign included."""
    panels, labels = {}, []
    for text, (kind, ticks) in zip(texts, SCALES[name].items(), strict=True):
        active = signed_most_active(text.final)
        panels[f"output $y$, {kind}"] = text.gates["y"][active], ticks
        labels.append((range(len(active)), [int(cell) + 1 for cell in active]))
    return _drawn(panels, texts, labels)


def _drawn(panels, texts, labels) -> Figure:
    figure = Figure((len(panels) * _WIDTH + _FRAME, _HEIGHT + _FRAME), layout="constrained")
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for ax, (title, (values, ticks)), text, (places, numbers) in zip(
        axes, panels.items(), texts, labels, strict=True
    ):
        columns = max(_COLUMNS, len(text.words))
        image = draw_panel(ax, values, columns, *_scale(ticks))
        ours = f"ours {values.min():.2f} to {values.max():.2f}".replace("-", "−")
        ax.set_title(f"{title}\n{ours}", fontsize=TITLE_SIZE)
        ax.set_yticks(places, numbers, fontsize=LABEL_SIZE)
        label_words(ax, text.words, columns)
        bar = figure.colorbar(image, ax=ax, ticks=ticks, extend="both", aspect=25)
        bar.ax.set_yticks(ticks, [f"{tick:g}".replace("-", "−") for tick in ticks])
        bar.ax.tick_params(labelsize=LABEL_SIZE)
        bar.ax.set_title("printed", fontsize=LABEL_SIZE)
    axes[0].set_ylabel("cell", fontsize=LABEL_SIZE)
    return figure


def _scale(ticks):
    """White is 0, or the smallest value of a scale of positive values."""
    low, high = min(ticks), max(ticks)
    if low < 0:
        return TwoSlopeNorm(0, low, high), SIGNED
    return Normalize(low, high), POSITIVE


def _gates(name: str, text: str, side: str, lab: Laboratory) -> Figure:
    texts = read_gates(lab.model(LSTM), text, text).texts
    return gates_at_scale(name, texts[int(side == "document")])


def _cells(name: str, query: str | None, title: str | None, lab: Laboratory) -> Figure:
    either = query or title
    first, second = read_gates(lab.model(LSTM), either, title or either).texts
    return cells_at_scale(name, [one for one, given in ((first, query), (second, title)) if given])


def _costs(lab: Laboratory) -> Figure:
    return loss_figure([lab.history(model) for model in EQUAL.values()], list(EQUAL))


FIGURES: dict[str, Callable[[Laboratory], Figure]] = {
    "figure-04": partial(_gates, "figure-04", QUERY, "query"),
    "figure-05": partial(_gates, "figure-05", TITLE, "document"),
    "figure-06": partial(_cells, "figure-06", QUERY, TITLE),
    "figure-07": _costs,
    "figure-08": partial(_gates, "figure-08", TITLE, "document"),
    "figure-09": partial(_gates, "figure-09", BATH_QUERY, "query"),
    "figure-10": partial(_gates, "figure-10", BATH_TITLE, "document"),
    "figure-11": partial(_cells, "figure-11", BATH_QUERY, None),
    "figure-12": partial(_cells, "figure-12", None, BATH_TITLE),
}


def draw(name: str, lab: Laboratory) -> Path:
    """Draw the picture of a part and return its file."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    path = PICTURES / f"{name}.png"
    path.write_bytes(figure_png(FIGURES[name](lab)))
    return path
