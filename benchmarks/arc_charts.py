"""The charts of docs/arc.md, from the tables in docs/results/arc."""

from arc_claims import NAMES
from arc_parts import LEARNED, reported
from charts import DPI

from sentemb.analysis.figures.palette import model_colours

_SHOWN = ("arc2", "arc1", "wordembed", "senna", "lstm")
_COLOURS = dict(zip(_SHOWN, model_colours(_SHOWN), strict=True))


def draw_epochs(tables, pyplot):
    """Dev P@1 of completion after each epoch, seed 0."""
    figure, axis = pyplot.subplots(figsize=(6.5, 3.8), layout="constrained")
    for line in reported(tables["completion"]):
        if line["seed"] == "0" and line["model"] in _COLOURS:
            dev = [100 * float(x) for x in line["dev"].split()]
            trained = line["vectors"] == LEARNED
            label = NAMES[line["model"]] + (", vectors trained" if trained else "")
            axis.plot(range(1, len(dev) + 1), dev, "--" if trained else "-", marker="o",
                      color=_COLOURS[line["model"]], markersize=4, label=label)  # fmt: skip
    axis.set_xlabel("epoch")
    axis.set_ylabel("dev P@1, %")
    axis.legend(frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1, 0.5))
    return figure


def draw_pairs(tables, pyplot):
    """Test P@1 of completion by training pairs."""
    figure, axis = pyplot.subplots(figsize=(6, 3.6), layout="constrained")
    lines = sorted(tables["learning"], key=lambda line: int(line["pairs"]))
    for model in dict.fromkeys(line["model"] for line in lines):
        own = [line for line in lines if line["model"] == model]
        axis.plot([int(line["pairs"]) for line in own], [100 * float(x["test"]) for x in own],
                  color=_COLOURS[model], marker="o", markersize=4, label=NAMES[model])  # fmt: skip
    axis.set_xscale("log")
    axis.minorticks_off()
    pairs = sorted({int(line["pairs"]) for line in lines})
    axis.set_xticks(pairs, [f"{n:,}" for n in pairs])
    axis.set_xlabel("training pairs")
    axis.set_ylabel("test P@1, %")
    axis.legend(frameon=False, fontsize=9)
    return figure


# A chart, by its file's name: the table that it needs, and what draws it.
CHARTS = {"arc-epochs": ("completion", draw_epochs), "arc-pairs": ("learning", draw_pairs)}


def write(tables, folder):
    """Draw the charts whose tables are there."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    pyplot.rcParams |= {"axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
                        "grid.alpha": 0.25, "axes.axisbelow": True}  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    for name, (needed, draw) in CHARTS.items():
        if tables.get(needed):
            figure = draw(tables, pyplot)
            figure.savefig(folder / f"{name}.png", dpi=DPI, metadata={"Software": None})
            pyplot.close(figure)
