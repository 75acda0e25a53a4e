"""Training cost by epoch, after Figure 7 of Palangi et al. (arXiv 1502.06922)."""

from itertools import cycle, islice

from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, fitting, letters

# The palette of Okabe and Ito, without yellow, which a white page swallows: colour-blind eyes tell
# them apart. With the dashes and marks, whose numbers have no common factor with theirs or each
# other, no style comes back within 140 runs, and each differs from its neighbours without colour.
_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#000000", "#56b4e9", "#e69f00"]
_DASHES = ["-", "--", "-.", ":"]
_MARKS = ["o", "s", "^", "D", "v"]
_MARKS_PER_LINE = 15
# Inches.
_PANEL_WIDTH, _PANEL_HEIGHT = 5.0, 2.6
_FRAME_WIDTH, _FRAME_HEIGHT = 1.4, 0.6
_LEGEND_LINE, _LETTER_WIDTH = 0.19, 0.08
_LONGEST_LABEL = 32


def loss_figure(histories, labels, metric="ndcg@1"):
    """Training cost on a logarithmic scale, and below it a dev metric if any run has it.

    Parameters
    ----------
    histories : list of History
    labels : list of str
        What the legend, at the right of the panels, calls them.
    metric : str
        Such as "ndcg@10".

    Returns
    -------
    matplotlib.figure.Figure
    """
    measured = [history.measured(metric) for history in histories]
    panels = 2 if any(epochs for epochs, _ in measured) else 1
    height = max(panels * _PANEL_HEIGHT, len(histories) * _LEGEND_LINE) + _FRAME_HEIGHT
    labels = [fitting(label, _LONGEST_LABEL) for label in labels]
    width = _PANEL_WIDTH + _FRAME_WIDTH + max(map(letters, labels)) * _LETTER_WIDTH
    figure = Figure((width, height), layout="constrained")
    axes = figure.subplots(panels, 1, sharex=True, squeeze=False)[:, 0]
    costs = [(history.epochs, history.losses) for history in histories]
    lines = _draw(axes[0], costs)
    _scale_costs(axes[0], [loss for history in histories for loss in history.losses if loss > 0])
    axes[0].set_ylabel("training cost", fontsize=LABEL_SIZE)
    if panels == 2:
        _draw(axes[1], measured)
        axes[1].set_ylabel(f"{metric.upper()} on dev", fontsize=LABEL_SIZE)
    _scale_epochs(axes[-1], max(history.epochs[-1] for history in histories))
    for ax in axes:
        ax.tick_params(labelsize=LABEL_SIZE)
        ax.grid(color="0.9")
    _name_runs(figure, lines, labels)
    return figure


def _draw(ax, curves):
    """One line per (epochs, values), in the style of its place; they are returned."""
    styles = zip(cycle(_COLOURS), cycle(_DASHES), cycle(_MARKS))
    # Hollow marks hide no other run's.
    marks = {"markersize": 5, "markerfacecolor": "none", "linewidth": 1.4}
    lines = []
    for (epochs, values), (colour, dash, mark) in zip(curves, islice(styles, len(curves))):
        every = -(-len(epochs) // _MARKS_PER_LINE) or 1
        style = {"color": colour, "linestyle": dash, "marker": mark, "markevery": every}
        lines += ax.plot(epochs, values, **style, **marks)
    return lines


def _scale_costs(ax, costs):
    """A logarithmic scale with plain numbers: 1, 2, 5, 10, ..., and even steps on a short one."""
    if not costs:
        return
    # A cost of 0 has no place on it and leaves a gap.
    ax.set_yscale("log", nonpositive="mask")
    span = max(costs) / min(costs)
    if span < 3:
        ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    else:
        ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if span < 1e4 else (1,)))
    ax.yaxis.set_major_formatter("{x:g}")
    ax.yaxis.set_minor_locator(NullLocator())


def _scale_epochs(ax, last):
    margin = max(0.5, 0.03 * last)
    ax.set_xlim(1 - margin, last + margin)
    ax.xaxis.set_major_locator(MaxNLocator(10, integer=True, min_n_ticks=1))
    ax.set_xlabel("epoch", fontsize=LABEL_SIZE)


def _name_runs(figure, lines, labels):
    """A legend beside the panels, where it covers no line."""
    # Set as text afterwards: on the way in, labels that begin with _ would be left out.
    legend = figure.legend(
        lines,
        ["run"] * len(lines),
        loc="outside right upper",
        fontsize=LABEL_SIZE,
        handlelength=4,
        frameon=False,
    )
    for text, label in zip(legend.get_texts(), labels):
        text.set_parse_math(False)
        text.set_text(label)
