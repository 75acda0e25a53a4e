"""Heat maps of cells over words: their colours, their size and the words under them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE, letters
from sentemb.analysis.gates import GateReading
from sentemb.analysis.labels import MAX_WORDS, fitting
from sentemb.errors import SentembError

# White is zero and darkness is size, on paper too; colour-blind readers can tell blue from orange.
# An odd number of steps has zero in the middle. A range of positive values has no blue.
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


def word_columns(readings: Sequence[GateReading]) -> int:
    """The number of columns of the panels: the number of words of the longest text.

    Raises `SentembError` for a text with more than 200 words.
    """
    columns = max(len(text.words) for reading in readings for text in reading.texts)
    if columns > MAX_WORDS:
        raise SentembError(
            f"the text has {columns} words, a figure has room for {MAX_WORDS}; shorten it"
        )
    return columns


def panel_width(columns: int) -> float:
    """Inches in which the labels of ``columns`` words do not touch."""
    return max(columns * _WORD_WIDTH, _PANEL_WIDTH)


def symmetric_scale(panels: Iterable[np.ndarray], most: float = np.inf) -> tuple[Normalize, str]:
    """A scale for all ``panels``: 0 in the middle, up to the largest value, at most ``most``.

    The second result is "both" if some values lie beyond its ends, else "neither".
    """
    largest = max(float(np.abs(values).max()) for values in panels)
    limit = min(most, largest) or 1.0
    return Normalize(-limit, limit), "both" if largest > limit else "neither"


def draw_panel(
    ax: Any,
    values: np.ndarray,
    columns: int,
    norm: Normalize,
    colours: LinearSegmentedColormap = SIGNED,
) -> Any:
    """Draw ``values`` (cells, words) in a panel for ``columns`` words.

    Beyond the end of the text the values are zero, as in the paper's Figures 4 and 5; hatching
    marks that part.
    """
    image = ax.imshow(values, colours, norm=norm, aspect="auto", interpolation="nearest")
    end = values.shape[1] - 0.5, columns - 0.5
    ax.axvspan(*end, facecolor=colours(norm(0)), edgecolor="#dddddd", hatch="////", linewidth=0)
    ax.set_xlim(-0.5, columns - 0.5)
    return image


def draw_colour_bar(image: Any, axes: Any, rows: int, extend: str) -> None:
    """The colour bar on the right of ``axes``, which are ``rows`` panels high."""
    bar = image.figure.colorbar(image, ax=axes, extend=extend, aspect=15 * rows, pad=0.02)
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    bar.ax.yaxis.set_major_locator(MaxNLocator(4 if rows == 1 else 8, min_n_ticks=3))


def label_words(ax: Any, words: Sequence[str], columns: int) -> None:
    """Write words under the columns of ``ax``, slanted where they would overlap."""
    labels = [fitting(word, _LONGEST_WORD) for word in words]
    if max(map(letters, labels)) * _LETTER_WIDTH < panel_width(columns) / columns:
        slant: dict[str, Any] = {}
    else:
        slant = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    # Without parse_math a dollar sign is drawn as it is.
    ax.set_xticks(range(len(labels)), labels, fontsize=LABEL_SIZE, parse_math=False, **slant)


def name_cosines(figure: Any, readings: Sequence[GateReading]) -> None:
    """Write the cosines of query and title above a figure."""
    cosines = [f"{reading.cosine:.4f}" for reading in readings if reading.cosine is not None]
    if len(cosines) == 2:
        cosines = [
            f"{cosine} ({short_name(reading)})"
            for cosine, reading in zip(cosines, readings, strict=True)
        ]
    if cosines:
        figure.suptitle(f"cosine {', '.join(cosines)}", fontsize=TITLE_SIZE, parse_math=False)


def short_name(reading: GateReading) -> str:
    """The model's name, cut to what a figure has room for."""
    return fitting(reading.model, _LONGEST_NAME)
