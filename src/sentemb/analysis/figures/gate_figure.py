"""Heat maps of gates, after Figures 4, 5 and 8 to 10 of Palangi et al. (arXiv 1502.06922)."""

from collections.abc import Iterable, Sequence
from typing import Any

from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE
from sentemb.analysis.figures.heat_map import (
    POSITIVE,
    SIGNED,
    draw_colour_bar,
    draw_panel,
    label_words,
    name_cosines,
    panel_width,
    short_name,
    symmetric_scale,
    word_columns,
)
from sentemb.analysis.gates import GATES, SIGMOIDS, GateReading, TextReading, chosen_gates

# Inches. A cell needs more than the height of a pixel.
_CELL_HEIGHT, _PANEL_HEIGHT = 0.008, 1.2
_FRAME_WIDTH, _FRAME_HEIGHT = 1.7, 1.2
_BAR_WIDTH = 0.6


def gates_figure(
    readings: Sequence[GateReading], scale: str = "shared", gates: Iterable[str] | None = None
) -> Figure:
    """One row per gate, one column per text and model; in each panel cells down, words across.

    readings : one model, or two that read the same texts, side by side. Where one model lacks a
        gate that the other has, its panel says so.
    scale : "shared", one colour scale for the figure with 0 in the middle, or "own", one for each
        panel. The shared scale ends at the largest value, at most 1; only cell states exceed 1, and
        showing them in full would leave everything else pale. On its own scale, a gate goes from
        its smallest to its largest value; cell state and output keep 0 in the middle.
    gates : which gates to draw, such as ``["i"]``; by default all that a model has

    The axes of the panels come first, row by row, then those of the colour bars. Raises
    `SentembError` for a text with more than 200 words, or a gate that no model has.
    """
    columns = word_columns(readings)
    gates = chosen_gates(readings, gates)
    pairs = [(reading, text) for reading in readings for text in reading.texts]
    height = max(_PANEL_HEIGHT, max(reading.cells for reading in readings) * _CELL_HEIGHT)
    width = panel_width(columns) + (_BAR_WIDTH if scale == "own" else 0)
    size = len(pairs) * width + _FRAME_WIDTH, len(gates) * height + _FRAME_HEIGHT
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(len(gates), len(pairs), squeeze=False)
    shared, extend = symmetric_scale(
        (text.gates[gate] for _, text in pairs for gate in gates if gate in text.gates), most=1.0
    )
    for row, gate in zip(axes, gates, strict=True):
        for ax, (reading, text) in zip(row, pairs, strict=True):
            if gate not in text.gates:
                _leave_out(ax, f"no {GATES[gate]}")
                continue
            values, colours, norm = text.gates[gate], SIGNED, shared
            if scale == "own" and gate in SIGMOIDS:
                colours, norm = POSITIVE, Normalize(values.min(), values.max())
            elif scale == "own":
                norm, _ = symmetric_scale([values])
            image = draw_panel(ax, values, columns, norm, colours)
            _mark_cells(ax, reading, text)
            ax.tick_params(bottom=gate == gates[-1], labelbottom=gate == gates[-1])
            if scale == "own":
                draw_colour_bar(image, ax, 1, "neither")
        row[0].set_ylabel(f"{GATES[gate]} ${gate}$\ncell", fontsize=LABEL_SIZE)
    figure.align_ylabels(axes[:, 0])
    for ax, (_, text) in zip(axes[-1], pairs, strict=True):
        label_words(ax, text.words, columns)
    for ax, (reading, text) in zip(axes[0], pairs, strict=True):
        model = f"{short_name(reading)}\n" if len(readings) > 1 else ""
        ax.set_title(f"{model}{text.name}", fontsize=TITLE_SIZE, parse_math=False)
    name_cosines(figure, readings)
    if scale == "shared":
        draw_colour_bar(image, axes, len(gates), extend)
    return figure


def _mark_cells(ax: Any, reading: GateReading, text: TextReading) -> None:
    """Number the cells at a model's first text; name both directions, if any, at its last."""
    ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    ax.tick_params(axis="y", labelsize=LABEL_SIZE)
    if text is not reading.texts[0]:
        ax.tick_params(left=False, labelleft=False)
    if reading.halves == 2:
        ax.axhline(reading.cells / 2 - 0.5, color="black", linewidth=0.8)
        if text is reading.texts[-1]:
            _name_halves(ax, reading.cells)


def _name_halves(ax: Any, cells: int) -> None:
    """Write on the right of ``ax`` in which direction each half of the cells reads."""
    side = ax.secondary_yaxis("right")
    side.set_yticks(
        [cells / 4 - 0.5, cells * 3 / 4 - 0.5],
        ["left to\nright", "right to\nleft"],
        fontsize=LABEL_SIZE,
    )
    side.tick_params(length=0)


def _leave_out(ax: Any, reason: str) -> None:
    """An empty panel that gives the reason."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.text(0.5, 0.5, reason, ha="center", va="center", transform=ax.transAxes, fontsize=LABEL_SIZE)
