"""Keywords of a text as bars, after Tables I, II and V to X of Palangi et al. (1502.06922)."""

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE
from sentemb.analysis.figures.heat_map import label_words, panel_width
from sentemb.analysis.keywords import DIRECTIONS, KEYWORD_SHARE, Keywords
from sentemb.analysis.labels import MAX_WORDS, fitting
from sentemb.errors import SentembError

# Of Okabe and Ito's palette; the hatching tells the directions apart without colour.
_COLOURS, _HATCHES = ("#0072b2", "#e69f00"), ("", "///")
_LONGEST_NAME = 60
# Inches.
_PANEL_HEIGHT, _FRAME_WIDTH, _FRAME_HEIGHT = 1.3, 1.2, 1.0


def keywords_figure(found: Sequence[Keywords], names: Sequence[str]) -> Figure:
    """One panel per model: how many of its most active cells declare each word.

    The dashed line is at 40 % of the cells: a word above it, in every direction, is a keyword, and
    its name is bold. A direction has no bar at the first word that it reads.

    Parameters
    ----------
    found : list of Keywords
        What several models say of one text.
    names : list of str
        The title of each panel.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    SentembError
        For a text with more than 200 words.
    """
    words = found[0].words
    if len(words) > MAX_WORDS:
        raise SentembError(
            f"the text has {len(words)} words, a figure has room for {MAX_WORDS}; shorten it"
        )
    size = (
        panel_width(len(words)) + _FRAME_WIDTH,
        len(found) * (_PANEL_HEIGHT + _FRAME_HEIGHT),
    )
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(len(found), 1, squeeze=False)[:, 0]
    for ax, one, name in zip(axes, found, names, strict=True):
        width = 0.7 / len(one.counts)
        for place, counts in enumerate(one.counts):
            left = np.arange(len(words)) + (place - (len(one.counts) - 1) / 2) * width
            bars = ax.bar(left, counts.clip(0), width, color=_COLOURS[place], edgecolor="white")
            for bar in bars:
                bar.set_hatch(_HATCHES[place])
            bars.set_label(DIRECTIONS[place])
        ax.axhline(KEYWORD_SHARE * one.cells, color="0.3", linestyle="--", linewidth=0.8)
        ax.set_title(fitting(name, _LONGEST_NAME), fontsize=TITLE_SIZE, parse_math=False)
        ax.set_ylim(0, one.cells)
        ax.set_ylabel(f"of {one.cells} cells", fontsize=LABEL_SIZE)
        ax.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        ax.tick_params(labelsize=LABEL_SIZE)
        label_words(ax, words, len(words))
        for label, verdict in zip(ax.get_xticklabels(), one.verdicts, strict=True):
            label.set_fontweight("bold" if verdict else "normal")
        if len(one.counts) > 1:
            ax.legend(fontsize=LABEL_SIZE, frameon=False)
    return figure
