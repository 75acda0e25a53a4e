"""The most active cells over time, after Figures 6, 11 and 12 of Palangi et al. (1502.06922)."""

from matplotlib.figure import Figure

from sentemb.analysis.figures import LABEL_SIZE
from sentemb.analysis.heat_map import (
    colour_scale,
    draw_colour_bar,
    draw_panel,
    label_words,
    name_texts,
    panel_width,
    word_columns,
)

# Inches.
_PANEL_HEIGHT = 2.0
_FRAME_WIDTH, _FRAME_HEIGHT = 1.7, 1.2
_BAR_WIDTH = 0.6
_MARGIN_WIDTH = 1.3
_PAD = 0.08


def cells_figure(readings, scale="shared"):
    """The output y of each text's ten most active cells, word by word, the most active one on top.

    At the left of a row is the cell's number, at the right its value in the final vector.

    Parameters
    ----------
    readings : list of Reading
        One model, or two of the same texts side by side.
    scale : {"shared", "own"}
        One colour scale for the figure or one for each panel, in both 0 in the middle.

    Returns
    -------
    matplotlib.figure.Figure
        The axes of the panels come first, then those of the colour bars.

    Raises
    ------
    SentembError
        For a text with more than 200 words.
    """
    columns = word_columns(readings)
    pairs = [(reading, text) for reading in readings for text in reading.texts]
    outputs = [text.gates["y"][text.active_cells()] for _, text in pairs]
    width = panel_width(columns) + _MARGIN_WIDTH + (_BAR_WIDTH if scale == "own" else 0)
    size = len(pairs) * width + _FRAME_WIDTH, _PANEL_HEIGHT + _FRAME_HEIGHT
    figure = Figure(size, layout="constrained")
    figure.get_layout_engine().set(w_pad=_PAD)
    axes = figure.subplots(1, len(pairs), squeeze=False)[0]
    shared, _ = colour_scale(outputs)
    for ax, (reading, text), values in zip(axes, pairs, outputs):
        norm = shared if scale == "shared" else colour_scale([values])[0]
        image = draw_panel(ax, values, columns, norm)
        _number_cells(ax, reading, text)
        label_words(ax, text.words, columns)
        if scale == "own":
            draw_colour_bar(image, ax, 1, "neither")
    axes[0].set_ylabel("output $y$\ncell", fontsize=LABEL_SIZE)
    name_texts(axes, readings)
    if scale == "shared":
        draw_colour_bar(image, axes, 1, "neither")
    return figure


def _number_cells(ax, reading, text):
    """Write the cells' numbers at the left of ``ax`` and their final values at the right.

    Of a two-way model an arrow says in which direction the cell reads.
    """
    active = text.active_cells()
    arrows = ["", ""] if reading.halves == 1 else [" →", " ←"]
    labels = [f"{cell}{arrows[int(cell >= reading.cells / 2)]}" for cell in active]
    ax.set_yticks(range(len(active)), labels, fontsize=LABEL_SIZE)
    # With a minus as wide as the plus.
    finals = [f"{text.embedding[cell]:+.2f}".replace("-", "−") for cell in active]
    side = ax.secondary_yaxis("right")
    side.set_yticks(range(len(active)), finals, fontsize=LABEL_SIZE)
    side.set_ylabel("final $y$", fontsize=LABEL_SIZE)
    side.tick_params(length=0)
