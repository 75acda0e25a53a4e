"""Heat maps of cells over words: their colours, their size and the words under them."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE, fitting, letters
from sentemb.errors import SentembError

MAX_WORDS = 200
# White is zero and ink is size, on paper too; blue and orange are apart for colour-blind eyes. An
# odd number of steps has zero in the middle. A range of positive values has no blue.
_SIGNED = ["#12305c", "#3f7fbf", "#ffffff", "#e08a1e", "#7a3606"]
_POSITIVE = ["#ffffff", "#f4b766", "#e08a1e", "#7a3606"]
SIGNED = LinearSegmentedColormap.from_list("blue-white-orange", _SIGNED, N=255)
POSITIVE = LinearSegmentedColormap.from_list("white-orange", _POSITIVE, N=255)
# Inches: a word needs the height of a slanted label.
_WORD_WIDTH = 0.2
_PANEL_WIDTH = 2.2
_LETTER_WIDTH = 0.08
_LONGEST_WORD = 14
_LONGEST_NAME = 24


def word_columns(readings):
    """How many columns the panels of these `Reading`s have, one for a word of the longest text.

    Raises
    ------
    SentembError
        For a text with more than 200 words.
    """
    columns = max(len(text.words) for reading in readings for text in reading.texts)
    if columns > MAX_WORDS:
        raise SentembError(
            f"the text has {columns} words, a figure has room for {MAX_WORDS}; shorten it"
        )
    return columns


def panel_width(columns):
    """Inches in which the labels of ``columns`` words stand clear of each other."""
    return max(columns * _WORD_WIDTH, _PANEL_WIDTH)


def symmetric_scale(panels, most=np.inf):
    """A scale for all of ``panels`` (arrays): 0 in the middle, to the largest value or ``most``.

    Returns
    -------
    norm : matplotlib.colors.Normalize
    extend : {"neither", "both"}
        Whether there are values beyond its ends.
    """
    largest = max(float(np.abs(values).max()) for values in panels)
    limit = min(most, largest) or 1.0
    return Normalize(-limit, limit), "both" if largest > limit else "neither"


def draw_panel(ax, values, columns, norm, colours=SIGNED):
    """Draw ``values`` (cells, words) in a panel for ``columns`` words.

    Beyond the text's end all is zero, as in the paper's Figures 4 and 5; hatching says that no word
    made it so.
    """
    image = ax.imshow(values, colours, norm=norm, aspect="auto", interpolation="nearest")
    end = values.shape[1] - 0.5, columns - 0.5
    ax.axvspan(*end, facecolor=colours(norm(0)), edgecolor="#dddddd", hatch="////", linewidth=0)
    ax.set_xlim(-0.5, columns - 0.5)
    return image


def draw_colour_bar(image, axes, rows, extend):
    """The colour bar at the right of ``axes``, which are ``rows`` panels high."""
    bar = image.figure.colorbar(image, ax=axes, extend=extend, aspect=15 * rows, pad=0.02)
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    bar.ax.yaxis.set_major_locator(MaxNLocator(4 if rows == 1 else 8, min_n_ticks=3))


def label_words(ax, words, columns):
    """Write words under the columns of ``ax``, slanted where they would run into each other."""
    labels = [fitting(word, _LONGEST_WORD) for word in words]
    if max(map(letters, labels)) * _LETTER_WIDTH < panel_width(columns) / columns:
        slant = {}
    else:
        slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    # parse_math: a dollar sign is only a dollar sign.
    ax.set_xticks(range(len(labels)), labels, fontsize=LABEL_SIZE, parse_math=False, **slant)


def name_cosines(figure, readings):
    """Write the cosines of query and title over a figure."""
    cosines = [f"{reading.cosine:.4f}" for reading in readings if reading.cosine is not None]
    if len(cosines) == 2:
        cosines = [f"{cosine} ({short_name(one)})" for cosine, one in zip(cosines, readings)]
    if cosines:
        figure.suptitle(f"cosine {', '.join(cosines)}", fontsize=TITLE_SIZE, parse_math=False)


def short_name(reading):
    """The model's name as a figure has room for it."""
    return fitting(reading.model, _LONGEST_NAME)
