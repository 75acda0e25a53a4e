"""How time grows with pairs, cells, vocabulary and sentence length: four panels."""

from contenders import Contender
from rounds import note

CELLS = (8, 32, 96, 192, 288, 512)
TRIGRAMS = (5_000, 20_000, 50_000, 100_000, 200_000)
LENGTHS = (2, 4, 8, 16, 32, 64)
PAIRS = (10_000, 30_000, 100_000, 200_000)
KINDS = ("ours", "dense", "best")
LABELS = {"ours": "sentemb", "dense": "PyTorch, usual", "best": "PyTorch, best"}


def measure_growth(bench, quick):
    """{panel: [(x, {contender: seconds})]}."""
    some = slice(0, 2) if quick else slice(None)
    panels = {"pairs": [], "cells": [], "trigrams": [], "words a text": []}
    with Contender("ours") as ours:
        for pairs in PAIRS[:1] if quick else PAIRS:
            note(f"growth: {pairs} pairs")
            log = str(bench.log(pairs))
            seconds = ours.ask("whole_job", log=log, epochs=1, threads=1)["whole"]
            panels["pairs"].append((pairs, {"ours": seconds}))
    for cells in CELLS[some]:
        note(f"growth: {cells} cells")
        _measure(bench, panels["cells"], bench.log(20_000), x=cells, cells=cells)
    for trigrams in TRIGRAMS[some]:
        note(f"growth: {trigrams} trigrams")
        _measure(bench, panels["trigrams"], bench.log(40_000, trigrams=trigrams))
    for words in LENGTHS[some]:
        note(f"growth: {words} words a text")
        log = bench.log(10_000, query_words=words, title_words=words, spread=False)
        _measure(bench, panels["words a text"], log, x=words)
    return panels


def _measure(bench, panel, log, x=None, **settings):
    result, prepared = bench.train(bench.case(log, **settings), KINDS)
    place = prepared["trigrams"] if x is None else x
    panel.append((place, {kind: result.time(kind).median for kind in KINDS}))


def growth_table(panels):
    """Markdown rows of all that the figure shows."""
    lines = ["| | | sentemb | PyTorch, usual | PyTorch, best |", "| --- | --- | --- | --- | --- |"]
    for name, points in panels.items():
        for x, seconds in points:
            figures = [f"{seconds[kind] * 1e3:.1f} ms" if kind in seconds else "" for kind in KINDS]
            if name == "pairs":
                figures[0] = f"{seconds['ours']:.1f} s"
            lines.append(f"| {name} | {x:,} | " + " | ".join(figures) + " |")
    return lines


def _short(number):
    return f"{number / 1000:.0f}k" if number >= 1000 else f"{number}"


def draw_growth(panels, path):
    """The figure, as PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import LogLocator, NullFormatter

    figure, axes = pyplot.subplots(1, 4, figsize=(13, 3), layout="constrained")
    for axis, (name, points) in zip(axes, panels.items()):
        for kind, marker in zip(KINDS, "osD"):
            line = [(x, seconds[kind]) for x, seconds in points if kind in seconds]
            if line:
                scale = 1 if name == "pairs" else 1e3
                axis.plot(
                    [x for x, _ in line],
                    [y * scale for _, y in line],
                    marker=marker,
                    markersize=4,
                    label=LABELS[kind],
                )
        axis.set_xscale("log")
        axis.set_yscale("log")
        axis.set_xticks([x for x, _ in points], [_short(x) for x, _ in points])
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        for one in (axis.xaxis, axis.yaxis):
            one.set_minor_formatter(NullFormatter())
        axis.set_xlabel(name)
        axis.set_ylabel("whole job of one epoch, s" if name == "pairs" else "training step, ms")
        axis.grid(alpha=0.3)
    axes[1].legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)
