"""The most active cells over time, after Figures 6, 11 and 12 of Palangi et al. (1502.06922)."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE
from sentemb.analysis.figures.heat_map import (
    draw_colour_bar,
    draw_panel,
    label_words,
    name_cosines,
    panel_width,
    short_name,
    symmetric_scale,
    word_columns,
)
from sentemb.analysis.gates import GateReading, TextReading
from sentemb.analysis.labels import same_words

# Inches.
_PANEL_HEIGHT, _MARGIN_WIDTH, _BAR_WIDTH = 2.0, 1.2, 0.6
_FRAME_WIDTH, _FRAME_HEIGHT = 1.5, 1.2
_PAD = 0.08


def cells_figure(readings: Sequence[GateReading], scale: str = "shared") -> Figure:
    """The output y of each text's ten most active cells, word by word, the most active one on top.

    One row per model, one column per text. On the left of a cell is its number, on the right its
    value in the final vector. ``readings`` are of one model, or two that read the same texts.
    ``scale`` is "shared", one colour scale for the figure, or "own", one for each panel; 0 is
    always in the middle. The axes of the panels come first, row by row, then those of the colour
    bars. Raises `SentembError` for a text with more than 200 words, or one that the models split
    into other words.
    """
    columns = word_columns(readings)
    texts = readings[0].texts
    width = panel_width(columns) + _MARGIN_WIDTH + (_BAR_WIDTH if scale == "own" else 0)
    size = len(texts) * width + _FRAME_WIDTH, len(readings) * _PANEL_HEIGHT + _FRAME_HEIGHT
    figure = Figure(size, layout=ConstrainedLayoutEngine(w_pad=_PAD))
    axes = figure.subplots(len(readings), len(texts), squeeze=False)
    shared, _ = symmetric_scale(_outputs(text) for reading in readings for text in reading.texts)
    for row, reading in zip(axes, readings, strict=True):
        for ax, text in zip(row, reading.texts, strict=True):
            values = _outputs(text)
            norm = shared if scale == "shared" else symmetric_scale([values])[0]
            image = draw_panel(ax, values, columns, norm)
            _number_cells(ax, reading, text)
            lowest = reading is readings[-1]
            ax.tick_params(bottom=lowest, labelbottom=lowest)
            if scale == "own":
                draw_colour_bar(image, ax, 1, "neither")
        model = f"{short_name(reading)}\n" if len(readings) > 1 else ""
        row[0].set_ylabel(f"{model}cell", fontsize=LABEL_SIZE, parse_math=False)
    by_text = zip(*(reading.texts for reading in readings), strict=True)
    for top, bottom, of_models in zip(axes[0], axes[-1], by_text, strict=True):
        top.set_title(of_models[0].name, fontsize=TITLE_SIZE)
        label_words(bottom, same_words(text.words for text in of_models), columns)
    name_cosines(figure, readings)
    if scale == "shared":
        draw_colour_bar(image, axes, len(readings), "neither")
    return figure


def _outputs(text: TextReading) -> np.ndarray:
    return text.gates["y"][text.active_cells()]


def _number_cells(ax: Any, reading: GateReading, text: TextReading) -> None:
    """Write the cells' numbers on the left of ``ax`` and their final values on the right.

    In a bidirectional model an arrow gives the direction in which the cell reads.
    """
    active = text.active_cells()
    arrows = ["", ""] if reading.halves == 1 else [" →", " ←"]
    labels = [f"{cell}{arrows[int(cell >= reading.cells / 2)]}" for cell in active]
    ax.set_yticks(range(len(active)), labels, fontsize=LABEL_SIZE)
    # A minus as wide as the plus.
    finals = [f"{text.final[cell]:+.2f}".replace("-", "−") for cell in active]
    side = ax.secondary_yaxis("right")
    side.set_yticks(range(len(active)), finals, fontsize=LABEL_SIZE)
    side.set_ylabel("final $y$", fontsize=LABEL_SIZE)
    side.tick_params(length=0)
