"""Shares of the score of a pair: bars over the words, and the planes of ARC-II as heat maps."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE, letters
from sentemb.analysis.figures.heat_map import (
    POSITIVE,
    SIGNED,
    draw_colour_bar,
    label_words,
    panel_width,
    symmetric_scale,
)
from sentemb.analysis.labels import MAX_WORDS, fitting
from sentemb.analysis.pair_effects import Cells, Match, PooledPlane, WordShares
from sentemb.errors import SentembError

# Orange adds to the score, blue takes away, as on the scale of the heat maps.
_PLUS, _MINUS = "#e08a1e", "#3f7fbf"
_LONGEST_WINDOW = 26
# Inches.
_BARS_HEIGHT, _ROW_HEIGHT, _LEAST_ROWS, _POOLED_SCALE = 1.1, 0.17, 6, 0.6
_LETTER_WIDTH, _SLANTED_HEIGHT = 0.065, 0.05
_FRAME_WIDTH, _FRAME_HEIGHT, _TITLE_HEIGHT, _LABEL_HEIGHT = 1.6, 0.4, 0.4, 0.75


def match_figure(match: Match) -> Figure:
    """The shares of the words of both texts; for ARC-II also its planes.

    Below the words, the cells of layer 1: the share that each pair of windows adds to the score.
    Then the pooled layers, each cell where its first window begins, as the mean over all maps. The
    axes of the query's words and of the title's words come first, then the window pairs, the pooled
    layers, and their colour bars. Raises `SentembError` for a text with more than 200 words.
    """
    words = [len(text.words) for text in match.texts.values()]
    if max(words) > MAX_WORDS:
        raise SentembError(
            f"the text has {max(words)} words, a figure has room for {MAX_WORDS}; shorten it"
        )
    widths = [panel_width(count) for count in words]
    width, heights = _sizes(match, sum(widths))
    size = width + _FRAME_WIDTH, sum(heights) + _FRAME_HEIGHT
    figure = Figure(size, layout="constrained")
    figure.suptitle(_caption(match), fontsize=TITLE_SIZE, parse_math=False)
    parts = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    axes = parts[0].subplots(1, 2, sharey=True, width_ratios=widths)
    for ax, (name, text) in zip(axes, match.texts.items(), strict=True):
        _draw_words(ax, name, text)
    axes[0].set_ylabel("share of the score", fontsize=LABEL_SIZE)
    if match.cells is not None:
        _draw_windows(parts[1].subplots(), match, match.cells)
        panels = parts[2].subplots(1, len(match.cells.pooled), squeeze=False)[0]
        for ax, plane in zip(panels, match.cells.pooled, strict=True):
            _draw_pooled(ax, plane, match, match.cells)
    return figure


def _sizes(match: Match, width: float) -> tuple[float, list[float]]:
    """The width of the panels and their heights, if the bars are ``width`` wide; in inches."""
    heights = [_BARS_HEIGHT + _TITLE_HEIGHT + _LABEL_HEIGHT]
    if match.cells is None:
        return width, heights
    rows = max(match.cells.shares.shape[0], _LEAST_ROWS) * _ROW_HEIGHT
    longest = [max(map(letters, labels)) for labels in _labels(match, match.cells)]
    heights += [
        rows + longest[1] * _SLANTED_HEIGHT + _TITLE_HEIGHT,
        _POOLED_SCALE * rows + _TITLE_HEIGHT + _LABEL_HEIGHT,
    ]
    windows = panel_width(match.cells.shares.shape[1]) + longest[0] * _LETTER_WIDTH
    pooled = len(match.cells.pooled) * (0.8 * panel_width(0) + _FRAME_WIDTH / 2)
    return max(width, windows, pooled), heights


def _caption(match: Match) -> str:
    parts = {"words": sum(float(text.shares.sum()) for text in match.texts.values())}
    parts["biases"] = sum(match.biases.values())
    # A smaller rest is rounding.
    if abs(match.rest) >= 0.0005:
        parts["rest"] = match.rest
    shares = " + ".join(f"{name} {_signed(x)}" for name, x in parts.items())
    return f"{match.model}: score {_signed(match.score)} = {shares}"


def _signed(value: float) -> str:
    return f"{value:.3f}".replace("-", "−")


def _draw_words(ax: Any, name: str, text: WordShares) -> None:
    positions = range(len(text.words))
    ax.bar(positions, text.shares, color=np.where(text.shares < 0, _MINUS, _PLUS))
    ax.axhline(0, color="black", linewidth=0.8)
    ax.set_xlim(-0.5, len(text.words) - 0.5)
    ax.yaxis.set_major_locator(MaxNLocator(4))
    ax.tick_params(axis="y", labelsize=LABEL_SIZE)
    cut = f" ({text.n_cut} more words are not read)" if text.n_cut else ""
    ax.set_title(f"{name}, {_signed(float(text.shares.sum()))}{cut}", fontsize=TITLE_SIZE)
    label_words(ax, text.words, len(text.words))


def _labels(match: Match, cells: Cells) -> tuple[list[str], list[str]]:
    """The words of the windows of the query and of the title."""
    both = []
    for text, on, size in zip(
        match.texts.values(), cells.n_windows, cells.shares.shape, strict=True
    ):
        windows = [" ".join(text.words[k : k + cells.window]) for k in range(on)]
        both.append([fitting(window, _LONGEST_WINDOW) for window in windows])
        both[-1] += ["behind the end"] * (size - on)
    return both[0], both[1]


def _draw_windows(ax: Any, match: Match, cells: Cells) -> None:
    """Layer 1: the query's windows down, the title's across."""
    norm, extend = symmetric_scale([cells.shares])
    image = ax.imshow(cells.shares, SIGNED, norm=norm, aspect="auto", interpolation="nearest")
    rows, columns = _labels(match, cells)
    ax.set_yticks(range(len(rows)), rows, fontsize=LABEL_SIZE, parse_math=False)
    ax.set_xticks(
        range(len(columns)), columns, fontsize=LABEL_SIZE, parse_math=False,
        rotation=45, ha="right", rotation_mode="anchor",
    )  # fmt: skip
    ax.set_ylabel("query", fontsize=LABEL_SIZE)
    total, above = float(cells.shares.sum()), sum(cells.biases.values())
    ax.set_title(
        f"pairs of windows of {cells.window} words: shares {_signed(total)}, "
        f"biases above {_signed(above)}",
        fontsize=TITLE_SIZE,
    )
    draw_colour_bar(image, ax, 1, extend)


def _draw_pooled(ax: Any, plane: PooledPlane, match: Match, cells: Cells) -> None:
    """A pooled layer over the words at which the windows of its cells begin."""
    edges = [
        _edges(count, plane.stride, on)
        for count, on in zip(plane.values.shape, cells.n_windows, strict=True)
    ]
    image = ax.pcolormesh(edges[1], edges[0], plane.values, cmap=POSITIVE, vmin=0)
    ax.invert_yaxis()
    texts = list(match.texts.values())
    for axis, text, on in zip((ax.yaxis, ax.xaxis), texts, cells.n_windows, strict=True):
        labels = [fitting(word, _LONGEST_WINDOW // 2) for word in text.words[:on]]
        axis.set_ticks(
            range(0, on, plane.stride), labels[:: plane.stride], fontsize=LABEL_SIZE,
            parse_math=False,
        )  # fmt: skip
    for label in ax.get_xticklabels():
        label.set(rotation=45, ha="right", rotation_mode="anchor")
    ax.set_title(f"layer {plane.layer}, mean of the maps", fontsize=TITLE_SIZE)
    draw_colour_bar(image, ax, 1, "neither")


def _edges(count: int, stride: int, on: int) -> Sequence[float]:
    """Where the cells of a pooled layer begin among the windows, and where the last ends."""
    return [*(stride * k - 0.5 for k in range(count)), max(on, stride * (count - 1) + 1) - 0.5]
