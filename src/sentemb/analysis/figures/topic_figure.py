"""The topics from which the cells of a model take their words, as a heat map."""

from collections.abc import Sequence

import numpy as np
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from sentemb.analysis.figures.drawing import LABEL_SIZE
from sentemb.analysis.labels import fitting
from sentemb.errors import SentembError

# One hue from white to dark: lightness alone carries the value, for colour-blind readers and grey
# prints.
_COLOURS = LinearSegmentedColormap.from_list(
    "white-blue", ["white", "#c6dbef", "#6baed6", "#2171b5", "#08306b"]
)
# Inches.
_TOPIC_WIDTH, _CELL_HEIGHT = 0.17, 0.11
_FRAME_WIDTH, _FRAME_HEIGHT = 1.9, 1.3
_LEAST_WIDTH, _LEAST_HEIGHT = 2.0, 2.0
_CELL_LABEL_SIZE = 6
_LONGEST_NAME = 24


def topics_figure(names: Sequence[str], counts: np.ndarray) -> Figure:
    """A heat map: one row per cell, one column per topic, dark where its words come from.

    Each row sums to 1. Topics are sorted by their number of words, the largest on the left; cells
    by their leading topic and its share. A model whose cells divide the topics among themselves
    shows a diagonal. Cells with fewer words than there are topics are left out, since their shares
    mean little.

    ``names`` are those of the topics; ``counts`` (dim, n_topics) are from
    `sentemb.analysis.topics.cells_by_topics`. The axes of the map come first, then those of its
    colour bar. Raises `SentembError` if no cell has that many words.
    """
    cells = np.flatnonzero(counts.sum(axis=1) >= len(names))
    if cells.size == 0:
        raise SentembError(
            f"no cell extracts a word for each of the {len(names)} topics; give more queries"
        )
    topics = np.argsort(-counts.sum(axis=0), kind="stable")
    shares = counts[np.ix_(cells, topics)]
    shares = shares / shares.sum(axis=1, keepdims=True)
    order = np.lexsort((-shares.max(axis=1), shares.argmax(axis=1)))
    width = max(_LEAST_WIDTH, len(topics) * _TOPIC_WIDTH)
    height = max(_LEAST_HEIGHT, cells.size * _CELL_HEIGHT)
    figure = Figure((width + _FRAME_WIDTH, height + _FRAME_HEIGHT), layout="constrained")
    ax = figure.subplots()
    image = ax.imshow(shares[order], _COLOURS, vmin=0, aspect="auto", interpolation="nearest")
    ax.set_yticks(range(cells.size), cells[order], fontsize=_CELL_LABEL_SIZE)
    ax.set_ylabel("cell", fontsize=LABEL_SIZE)
    labels = [fitting(names[topic], _LONGEST_NAME) for topic in topics]
    ax.set_xticks(range(len(labels)), labels, fontsize=LABEL_SIZE, rotation=90, parse_math=False)
    bar = figure.colorbar(image, ax=ax, aspect=40, pad=0.02)
    bar.set_label("share of the cell's words", fontsize=LABEL_SIZE)
    bar.ax.tick_params(labelsize=LABEL_SIZE)
    return figure
