"""Keywords of a text as bars, after Tables I, II and V to X of Palangi et al. (1502.06922)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE
from sentemb.analysis.figures.heat_map import label_words, panel_width
from sentemb.analysis.figures.palette import BLUE, ORANGE
from sentemb.analysis.keywords import DIRECTIONS, KEYWORD_SHARE, Keywords
from sentemb.analysis.labels import MAX_WORDS, fitting, same_words
from sentemb.errors import SentembError

# The hatching tells the directions apart without colour.
_COLOURS, _HATCHES = (BLUE, ORANGE), ("", "///")
_LONGEST_NAME = 60
# Inches.
_PANEL_HEIGHT, _FRAME_WIDTH, _FRAME_HEIGHT = 1.3, 1.2, 1.0


def keywords_figure(keywords: Sequence[Keywords], names: Sequence[str]) -> Figure:
    """One panel per model: how many of its most active cells declare each word.

    The dashed line is at 40 % of the cells: a word above it, in every direction, is a keyword, and
    its name is bold. A direction has no bar at the first word that it reads. ``keywords`` are those
    of one text by several models; ``names`` are the titles of the panels. Raises `SentembError` for
    a text with more than 200 words, or one that the models split into other words.
    """
    words = same_words(of_model.words for of_model in keywords)
    if len(words) > MAX_WORDS:
        raise SentembError(
            f"the text has {len(words)} words, a figure has room for {MAX_WORDS}; shorten it"
        )
    size = (
        panel_width(len(words)) + _FRAME_WIDTH,
        len(keywords) * (_PANEL_HEIGHT + _FRAME_HEIGHT),
    )
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(len(keywords), 1, squeeze=False)[:, 0]
    for ax, of_model, name in zip(axes, keywords, names, strict=True):
        _draw_bars(ax, of_model.counts)
        ax.axhline(KEYWORD_SHARE * of_model.cells, color="0.3", linestyle="--", linewidth=0.8)
        ax.set_title(fitting(name, _LONGEST_NAME), fontsize=TITLE_SIZE, parse_math=False)
        ax.set_ylim(0, of_model.cells)
        ax.set_ylabel(f"of {of_model.cells} cells", fontsize=LABEL_SIZE)
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.tick_params(labelsize=LABEL_SIZE)
        label_words(ax, words, len(words))
        for label, verdict in zip(ax.get_xticklabels(), of_model.verdicts, strict=True):
            label.set_fontweight("bold" if verdict else "normal")
        if len(of_model.counts) > 1:
            ax.legend(fontsize=LABEL_SIZE, frameon=False)
    return figure


def _draw_bars(ax: Axes, counts: np.ndarray) -> None:
    """A bar for each direction, next to each other at each word; counts: (directions, words)."""
    n_directions, n_words = counts.shape
    width = 0.7 / n_directions
    for direction, of_direction in enumerate(counts):
        left = np.arange(n_words) + (direction - (n_directions - 1) / 2) * width
        heights = of_direction.clip(0)
        bars = ax.bar(left, heights, width, color=_COLOURS[direction], edgecolor="white")
        for bar in bars:
            bar.set_hatch(_HATCHES[direction])
        bars.set_label(DIRECTIONS[direction])
