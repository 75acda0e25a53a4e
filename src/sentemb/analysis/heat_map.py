"""Heat maps of cells over words: their colours, their size and the words under them."""

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures import LABEL_SIZE, TITLE_SIZE, fitting, letters
from sentemb.errors import SentembError

MAX_WORDS = 200
# Blue below 0, grey at it, orange and yellow above: apart for colour-blind eyes. The lightness only
# rises, so that a grey print keeps the order of all values and with it their signs. An odd number
# of steps has the grey in the middle.
COLOURS = LinearSegmentedColormap.from_list(
    "blue-grey-yellow", ["#0b1d51", "#2b60b0", "#848484", "#e39a3c", "#fff2a0"], N=255
)
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


def colour_scale(panels, most=np.inf):
    """A scale for all of ``panels`` (arrays): symmetric about 0, to the largest value or ``most``.

    Returns
    -------
    norm : matplotlib.colors.Normalize
    extend : {"neither", "both"}
        Whether there are values beyond its ends.
    """
    largest = max(float(np.abs(values).max()) for values in panels)
    limit = min(most, largest) or 1.0
    return Normalize(-limit, limit), "both" if largest > limit else "neither"


def draw_panel(ax, values, columns, norm):
    """Draw ``values`` (cells, words); columns beyond the last word are 0, faded and hatched."""
    cells, words = values.shape
    padded = np.zeros((cells, columns), values.dtype)
    padded[:, :words] = values
    if words < columns:
        end = {"facecolor": (1, 1, 1, 0.8), "edgecolor": "darkgrey", "linewidth": 0}
        ax.axvspan(words - 0.5, columns - 0.5, hatch="////", **end)
    return ax.imshow(padded, COLOURS, norm=norm, aspect="auto", interpolation="nearest")


def draw_colour_bar(image, axes, rows, extend):
    """The colour bar at the right of ``axes``, which are ``rows`` panels high."""
    bar = image.figure.colorbar(image, ax=axes, extend=extend, aspect=15 * rows, pad=0.02)
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    bar.ax.yaxis.set_major_locator(MaxNLocator(4 + 4 * (rows > 1), symmetric=True))


def label_words(ax, words, columns):
    """Write words under the columns of ``ax``, slanted where they would run into each other."""
    labels = [fitting(word, _LONGEST_WORD) for word in words]
    if max(map(letters, labels)) * _LETTER_WIDTH < panel_width(columns) / columns:
        slant = {}
    else:
        slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    # parse_math: a dollar sign is only a dollar sign.
    ax.set_xticks(range(len(labels)), labels, fontsize=LABEL_SIZE, parse_math=False, **slant)


def name_texts(axes, readings):
    """Write over the columns of a figure whose they are, and over all of it the cosines."""
    texts = [(reading, text) for reading in readings for text in reading.texts]
    for ax, (reading, text) in zip(axes, texts):
        model = f"{fitting(reading.model, _LONGEST_NAME)}\n" if len(readings) > 1 else ""
        ax.set_title(f"{model}{text.side}", fontsize=TITLE_SIZE, parse_math=False)
    cosines = [f"{reading.cosine:.4f}" for reading in readings if reading.cosine is not None]
    if cosines:
        axes[0].figure.suptitle(f"cosine {' and '.join(cosines)}", fontsize=TITLE_SIZE)
