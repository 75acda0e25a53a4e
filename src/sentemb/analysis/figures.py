"""Figures, made without matplotlib's global state and written whole or not at all."""

import unicodedata
import warnings
from pathlib import Path

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.gates import GATES
from sentemb.errors import SentembError
from sentemb.files import replacing

FORMATS = ("png", "svg", "pdf")
MAX_WORDS = 200
_DPI = 150
# The hues of ColorBrewer's RdBu about a pure white; an odd number of steps has it in the middle.
_COLOURS = LinearSegmentedColormap.from_list(
    "blue-white-red", ["#2166ac", "#92c5de", "white", "#f4a582", "#b2182b"], N=255
)
# Inches. A word needs the height of a slanted label, a cell more than the height of a pixel.
_WORD_WIDTH = 0.2
_PANEL_WIDTH = 2.2
_CELL_HEIGHT, _PANEL_HEIGHT = 0.008, 1.2
_FRAME_WIDTH, _FRAME_HEIGHT = 1.7, 1.2
_LABEL_SIZE, _TITLE_SIZE = 8, 10
_LETTER_WIDTH = 0.08
_LONGEST_LABEL = 14


def gates_figure(panels):
    """Heat maps of gates: a row per gate, a column per text, in each cells down and words across.

    One colour scale for all of them, symmetric about 0, which is white; red and blue stay apart
    for colour-blind eyes. It ends at the largest value or at 1, which only cell states exceed: at
    10 they would leave all else pale, and what passes tanh changes little there.

    Parameters
    ----------
    panels : GatePanels

    Returns
    -------
    matplotlib.figure.Figure
        The axes of the panels come first, row by row, then that of the colour bar.

    Raises
    ------
    SentembError
        For a text with more than 200 words.
    """
    n_gates, n_sides, n_cells, n_columns = panels.values.shape
    if n_columns > MAX_WORDS:
        raise SentembError(
            f"the text has {n_columns} words, a figure has room for {MAX_WORDS}; shorten it"
        )
    word_width = max(_WORD_WIDTH, _PANEL_WIDTH / n_columns)
    height = max(_PANEL_HEIGHT, n_cells * _CELL_HEIGHT)
    size = n_sides * n_columns * word_width + _FRAME_WIDTH, n_gates * height + _FRAME_HEIGHT
    figure = Figure(size, layout="constrained")
    axes = figure.subplots(n_gates, n_sides, sharex="col", sharey=True, squeeze=False)
    limit = min(1.0, float(np.abs(panels.values).max()) or 1.0)
    colours = Normalize(-limit, limit)
    for row, gate in enumerate(panels.gates):
        for ax, values in zip(axes[row], panels.values[row]):
            image = ax.imshow(
                values, _COLOURS, norm=colours, aspect="auto", interpolation="nearest"
            )
            if panels.halves == 2:
                ax.axhline(n_cells / 2 - 0.5, color="black", linewidth=0.8)
        axes[row, 0].set_ylabel(f"{GATES[gate]} ${gate}$\ncell", fontsize=_LABEL_SIZE)
        axes[row, 0].yaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes[row, 0].tick_params(axis="y", labelsize=_LABEL_SIZE)
        if panels.halves == 2:
            _name_halves(axes[row, -1], n_cells)
    for column, side in enumerate(panels.sides):
        axes[0, column].set_title(side, fontsize=_TITLE_SIZE)
        _label_words(axes[-1, column], panels.words[column], word_width)
    for ax in axes.flat:
        ax.label_outer(remove_inner_ticks=True)
    beyond = "both" if np.abs(panels.values).max() > limit else "neither"
    bar = figure.colorbar(image, ax=axes, extend=beyond, aspect=15 * n_gates, pad=0.02)
    bar.ax.tick_params(labelsize=_LABEL_SIZE)
    if panels.score is not None:
        figure.suptitle(f"cosine {panels.score:.4f}", fontsize=_TITLE_SIZE)
    return figure


def figure_format(path):
    """The format that the ending of ``path`` asks for; a `SentembError` if it is none of ours."""
    ending = Path(path).suffix
    if ending.lower()[1:] not in FORMATS:
        raise SentembError(
            f"{path}: figures do not end in {ending or 'nothing'!r}; use .png, .svg or .pdf"
        )
    return ending.lower()[1:]


def save_figure(figure, path):
    """Write a figure as PNG, SVG or PDF, by the ending of ``path``, in place of an earlier one."""
    format = figure_format(path)
    with replacing(path) as temporary, warnings.catch_warnings():
        # A script that the font lacks is drawn as boxes; matplotlibrc can name another font.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(temporary, format=format, dpi=_DPI)


def _label_words(ax, words, word_width):
    """Write words under the columns of ``ax``, slanted where they would run into each other."""
    labels = [_label(word) for word in words]
    if max(map(_letters, labels)) * _LETTER_WIDTH < word_width:
        slant = {}
    else:
        slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    # parse_math: a dollar sign is only a dollar sign.
    ax.set_xticks(range(len(labels)), labels, fontsize=_LABEL_SIZE, parse_math=False, **slant)


def _label(word):
    """``word`` as it can be drawn: no control characters, not too long."""
    word = "".join(letter for letter in word if letter.isprintable())
    return word if len(word) <= _LONGEST_LABEL else word[: _LONGEST_LABEL - 1] + "…"


def _letters(label):
    """The length of ``label`` in Latin letters; those of East Asia are twice as wide."""
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in label)


def _name_halves(ax, n_cells):
    """Say at the right of ``ax`` in which direction the two halves of the cells read."""
    side = ax.secondary_yaxis("right")
    side.set_yticks(
        [n_cells / 4 - 0.5, n_cells * 3 / 4 - 0.5],
        ["left to\nright", "right to\nleft"],
        fontsize=_LABEL_SIZE,
    )
    side.tick_params(length=0)
