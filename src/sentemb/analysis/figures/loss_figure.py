"""Training cost by epoch, after Figure 7 of Palangi et al. (arXiv 1502.06922)."""

import math
from collections.abc import Sequence
from itertools import cycle
from typing import Any

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, letters
from sentemb.analysis.figures.palette import model_colours
from sentemb.analysis.histories import History
from sentemb.analysis.labels import fitting
from sentemb.models.files.history import shown_figure

# The numbers of dashes and marks are coprime, so runs differ without colour too, up to 20 of them.
_DASHES = ["-", "--", "-.", ":"]
_MARKS = ["o", "s", "^", "D", "v"]
_MARKS_PER_LINE = 15
# Inches.
_PANEL_WIDTH, _PANEL_HEIGHT = 5.0, 2.6
_FRAME_WIDTH, _FRAME_HEIGHT = 1.4, 0.6
_LEGEND_LINE, _LETTER_WIDTH = 0.19, 0.08
_LONGEST_LABEL = 32
# Ticks between powers of ten, by how many times the largest cost is the smallest.
_STEPS = {10: (1, 1.5, 2, 3, 5, 7), 1e4: (1, 2, 5), math.inf: (1,)}
_RANKED = "new hard negatives"


def loss_figure(
    histories: Sequence[History], labels: Sequence[str], metrics: Sequence[str] = ("ndcg@1",)
) -> Figure:
    """Training cost on a logarithmic scale, and below it each dev metric that any run has.

    Filled marks are epochs before which new hard negatives were ranked: there the cost can rise.
    ``labels`` name the ``histories`` in the legend, on the right of the panels. ``metrics`` are
    such as "ndcg@10", "mrr@10" or "accuracy".
    """
    measured = {
        metric: [history.measured(metric) for history in histories]
        for metric in metrics
        if any(history.measured(metric)[0] for history in histories)
    }
    panels = 1 + len(measured)
    colours = model_colours(labels)
    labels = [fitting(label, _LONGEST_LABEL) for label in labels]
    named = [*labels, *([_RANKED] if any(history.ranked for history in histories) else [])]
    width = _PANEL_WIDTH + _FRAME_WIDTH + max(map(letters, named)) * _LETTER_WIDTH
    height = max(panels * _PANEL_HEIGHT, len(named) * _LEGEND_LINE) + _FRAME_HEIGHT
    figure = Figure((width, height), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    costs = [(history.epochs, history.losses) for history in histories]
    lines = _draw(axes[0], costs, colours)
    marks = _mark_rankings(axes[0], histories, lines)
    _scale_costs(axes[0], [loss for history in histories for loss in history.losses if loss > 0])
    axes[0].set_ylabel("training cost", fontsize=LABEL_SIZE)
    for ax, (metric, curves) in zip(axes[1:], measured.items(), strict=True):
        _draw(ax, curves, colours)
        ax.set_ylabel(f"{shown_figure(metric)} on dev", fontsize=LABEL_SIZE)
    _scale_epochs(axes[-1], max(history.epochs[-1] for history in histories))
    for ax in axes:
        ax.tick_params(labelsize=LABEL_SIZE)
        ax.grid(color="0.9")
    _name_runs(figure, [*lines, *marks], named)
    return figure


def _draw(
    ax: Any, curves: Sequence[tuple[Sequence[int], Sequence[float]]], colours: Sequence[str]
) -> list[Any]:
    """Draw one line per (epochs, values), dashed by its position; returns the lines."""
    # Hollow marks do not hide those of other runs.
    marks: dict[str, Any] = {"markersize": 5, "markerfacecolor": "none", "linewidth": 1.4}
    lines: list[Any] = []
    for (epochs, values), colour, dash, mark in zip(curves, colours, cycle(_DASHES), cycle(_MARKS)):
        every = -(-len(epochs) // _MARKS_PER_LINE) or 1
        style = {"color": colour, "linestyle": dash, "marker": mark, "markevery": every}
        lines += ax.plot(epochs, values, **style, **marks)
    return lines


def _mark_rankings(ax: Any, histories: Sequence[History], lines: Sequence[Any]) -> list[Any]:
    """Fill the marks of the epochs before which hard negatives were ranked; returns one of them.

    A cost of later epochs is not of the same negatives as one of earlier epochs.
    """
    marks: list[Any] = []
    for history, line in zip(histories, lines, strict=True):
        loss_of = dict(zip(history.epochs, history.losses, strict=True))
        style = {"color": line.get_color(), "marker": line.get_marker(), "markersize": 5}
        if history.ranked:
            costs = [loss_of[epoch] for epoch in history.ranked]
            marks += ax.plot(history.ranked, costs, linestyle="none", **style)
    if not marks:
        return []
    (shown,) = ax.plot([], [], linestyle="none", color="0.35", marker="o", markersize=5)
    return [shown]


def _scale_costs(ax: Any, costs: Sequence[float]) -> None:
    """A logarithmic scale with plain numbers, more of them on a short one."""
    if not costs:
        return
    # A cost of 0 cannot be shown on it and leaves a gap.
    ax.set_yscale("log", nonpositive="mask")
    span = max(costs) / min(costs)
    if span < 2:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    else:
        steps = next(steps for longest, steps in _STEPS.items() if span <= longest)
        ax.yaxis.set_major_locator(LogLocator(subs=steps))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())


def _scale_epochs(ax: Any, last: int) -> None:
    margin = max(0.5, 0.03 * last)
    ax.set_xlim(1 - margin, last + margin)
    ax.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    ax.set_xlabel("epoch", fontsize=LABEL_SIZE)


def _name_runs(figure: Any, lines: Sequence[Any], labels: Sequence[str]) -> None:
    """A legend next to the panels, where it covers no line."""
    # The texts are set afterwards: matplotlib leaves out labels that begin with _.
    legend = figure.legend(
        lines,
        ["run"] * len(lines),
        loc="outside right upper",
        fontsize=LABEL_SIZE,
        handlelength=4,
        frameon=False,
    )
    for text, label in zip(legend.get_texts(), labels, strict=True):
        text.set_parse_math(False)
        text.set_text(label)
