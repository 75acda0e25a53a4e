"""How far the error travels back through a text, as curves on a logarithmic scale."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from sentemb.analysis.figures.drawing import LABEL_SIZE, TITLE_SIZE
from sentemb.analysis.figures.palette import model_colours
from sentemb.analysis.labels import TEXT_NAMES, fitting

if TYPE_CHECKING:
    from sentemb.gradients.flow import ErrorFlow

_STYLES = {"forward": ("-", "o"), "backward": ("--", "s")}
_PANEL_WIDTH, _HEIGHT = 4.2, 3.0
_LONGEST_LABEL = 32


def flow_figure(flows: Mapping[str, Sequence["ErrorFlow"]]) -> Figure:
    """One panel for the query and one for the title, one curve per model and reading direction.

    ``flows`` are results of `sentemb.gradient_flow` by the name of each model. Across: words back
    from the last word read. Up: |e(t)| as a fraction of its value there. An error of exactly 0
    leaves a gap.
    """
    figure = Figure((2 * _PANEL_WIDTH, _HEIGHT), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    colours = model_colours(list(flows))
    for ax, (side, title) in zip(axes, TEXT_NAMES.items(), strict=True):
        for (name, model_flows), colour in zip(flows.items(), colours, strict=True):
            chosen = [flow for flow in model_flows if flow.side == side]
            for flow in chosen:
                dash, mark = _STYLES[flow.direction]
                label = fitting(name, _LONGEST_LABEL)
                if len(chosen) > 1:
                    label += f", {flow.direction}"
                (line,) = ax.plot(
                    flow.words_back, flow.remaining, dash, marker=mark, markersize=3, color=colour
                )
                line.set_label(label.lstrip("_"))
        ax.set_yscale("log", nonpositive="mask")
        ax.set_title(title, fontsize=TITLE_SIZE)
        ax.set_xlabel("words back from the last", fontsize=LABEL_SIZE)
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
        ax.tick_params(labelsize=LABEL_SIZE)
        ax.grid(color="0.9")
    axes[0].set_ylabel("|e(t)|, share of the last word's", fontsize=LABEL_SIZE)
    axes[0].legend(fontsize=LABEL_SIZE, frameon=False)
    return figure
