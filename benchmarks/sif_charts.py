"""The charts of docs/sif.md, from the tables in docs/results/sif."""

import textwrap

from charts import DPI, GREY
from sif_lab import SOURCE_NAMES, YEARS

from sentemb.analysis.figures.palette import BLUE, GREEN, ORANGE, PINK

_VECTORS = (BLUE, ORANGE, GREEN)
_ROWS = {"W": ("--", "s"), "WR": ("-", "o")}


def draw_a(tables, pyplot):
    """Figure 2a: the mean over STS'12, and over all years, by a."""
    lines = tables["sweep"]
    names = list(dict.fromkeys(line["vectors"] for line in lines))
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 4.2), layout="constrained")
    panels = {"STS'12": YEARS[:1], "mean of STS'12 to '16": YEARS}
    for axis, (title, years) in zip(axes, panels.items(), strict=True):
        for name, colour in zip(names, _VECTORS, strict=False):
            own = [line for line in lines if line["vectors"] == name]
            for row, (style, marker) in _ROWS.items():
                some = [line for line in own if line["row"] == row]
                axis.plot([float(line["a"]) for line in some], [_mean(x, years) for x in some],
                          style, color=colour, marker=marker, markersize=4,
                          label=f"{name} {row}")  # fmt: skip
            flat = next(line for line in own if line["row"] == "avg")
            axis.axhline(_mean(flat, years), color=colour, linestyle=":", label=f"{name} avg")
        axis.set_xscale("log")
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("a")
    axes[0].set_ylabel("Pearson's r × 100")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, frameon=False, ncols=len(names), loc="outside upper center",
                  fontsize=9)  # fmt: skip
    return figure


def draw_p(tables, pyplot):
    """Figure 2b: the mean over STS'12, and over all years, by the source of p(w)."""
    lines = tables["sources"]
    sources = list(dict.fromkeys(line["source"] for line in lines))
    figure, axes = pyplot.subplots(1, 2, figsize=(8, 4), layout="constrained", sharey=True)
    panels = {"STS'12": YEARS[:1], "mean of STS'12 to '16": YEARS}
    for axis, (title, years) in zip(axes, panels.items(), strict=True):
        for row, colour, shift in (("W", GREY, 0.2), ("WR", BLUE, -0.2)):
            values = {line["source"]: _mean(line, years) for line in lines if line["row"] == row}
            places = [len(sources) - 1 - k + shift for k in range(len(sources))]
            bars = axis.barh(places, [values[name] for name in sources], 0.38, color=colour,
                             label=row)  # fmt: skip
            axis.bar_label(bars, [f"{values[name]:.1f}" for name in sources], padding=3,
                           fontsize=8)  # fmt: skip
        axis.set_title(title, fontsize=10)
        axis.set_xlim(0, 80)
        axis.set_xlabel("Pearson's r × 100")
    labels = [textwrap.fill(SOURCE_NAMES[name], 16) for name in sources]
    axes[0].set_yticks(range(len(sources))[::-1], labels, fontsize=9)
    figure.legend(*axes[0].get_legend_handles_labels(), frameon=False, ncols=2,
                  loc="outside upper center")  # fmt: skip
    return figure


def draw_ranking(tables, pyplot):
    """NDCG@1 of zero-shot rankers on four sets."""
    shown = {"avg": GREY, "tf-idf": PINK, "WR": BLUE, "bm25-stem": ORANGE,
             "bm25-stem + λ cos": GREEN}  # fmt: skip
    lines = tables["ranking"]
    sets = list(dict.fromkeys(line["set"] for line in lines))
    figure, axis = pyplot.subplots(figsize=(8, 4), layout="constrained")
    for k, (row, colour) in enumerate(shown.items()):
        values = [
            float(line["NDCG@1"]) for name in sets for line in lines
            if (line["set"], line["row"]) == (name, row)
        ]  # fmt: skip
        places = [place + (k - 2) * 0.17 for place in range(len(sets))]
        bars = axis.bar(places, values, 0.16, color=colour, label=row)
        axis.bar_label(bars, [f"{value:.3f}"[1:] for value in values], fontsize=7.5, padding=2)
    axis.set_xticks(range(len(sets)), sets)
    axis.set_ylabel("test NDCG@1")
    axis.grid(axis="x", visible=False)
    figure.legend(frameon=False, ncols=5, loc="outside upper center")
    return figure


# The tables that a chart needs: it is drawn if they are there.
CHARTS = {
    "sif-a": ("sweep", draw_a),
    "sif-p": ("sources", draw_p),
    "sif-ranking": ("ranking", draw_ranking),
}


def _mean(line, years):
    return sum(float(line[year]) for year in years) / len(years)


def write(tables, folder):
    """Draw every chart whose table is there."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                        "grid.alpha": 0.25, "axes.axisbelow": True}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name, (needed, draw) in CHARTS.items():
        if needed in tables:
            figure = draw(tables, pyplot)
            figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
            pyplot.close(figure)
