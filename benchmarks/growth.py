"""How time grows with pairs, cells, vocabulary and sentence length."""

from contenders import Contender
from rounds import Bench, note

from sentemb.system.tables import markdown_table

CELLS = (8, 32, 96, 288)
TRIGRAMS = (5_000, 50_000, 200_000)
LENGTHS = (2, 8, 32)
PAIRS = (10_000, 50_000, 200_000)
KINDS = ("ours", "dense", "best")
LABELS = {"ours": "sentemb", "dense": "PyTorch, usual", "best": "PyTorch, best"}


def measure_growth(bench, quick):
    """{panel: [(x, {contender: seconds})]}."""
    some = slice(0, 2) if quick else slice(None)
    panels = {"pairs": [], "cells": [], "trigrams": [], "words per text": []}
    with Contender("ours") as ours:
        for pairs in PAIRS[:1] if quick else PAIRS:
            note(f"growth: {pairs} pairs")
            log = str(bench.realistic(pairs))
            seconds = ours.ask("whole_job", log=log, epochs=1, threads=1)["whole"]
            panels["pairs"].append((pairs, {"ours": seconds}))
    for cells in CELLS[some]:
        note(f"growth: {cells} cells")
        _measure(bench, panels["cells"], bench.realistic(20_000), x=cells, cells=cells)
    for trigrams in TRIGRAMS[some]:
        note(f"growth: {trigrams} trigrams")
        _measure(bench, panels["trigrams"], bench.uniform(40_000, trigrams=trigrams))
    for words in LENGTHS[some]:
        note(f"growth: {words} words per text")
        log = bench.uniform(10_000, query_words=words, title_words=words, spread=False)
        _measure(bench, panels["words per text"], log, x=words)
    return panels


def _measure(bench, panel, log, x=None, **settings):
    result, prepared = bench.train(bench.case(log, **settings), KINDS)
    place = prepared["features"] if x is None else x
    panel.append((place, {kind: result.time(kind).median for kind in KINDS}))


def growth_tables(panels):
    """Two tables by heading: the whole job by pairs, a training step by what else varies."""
    pairs = [[f"{x:,}", f"{seconds['ours']:.1f} s"] for x, seconds in panels["pairs"]]
    steps = [
        [name, f"{x:,}", *(f"{seconds[kind] * 1e3:.1f} ms" for kind in KINDS)]
        for name, points in panels.items()
        if name != "pairs"
        for x, seconds in points
    ]
    return {
        "Growth with the log": markdown_table([["pairs", "sentemb"], *pairs]),
        "Growth with the model and the texts": markdown_table(
            [["varied", "value", *LABELS.values()], *steps]
        ),
    }


def growth_section(bench, quick, targets):
    """How time grows with the task."""
    few = Bench(bench.folder, min(3, bench.rounds), 3, bench.clock, compared=4)
    return growth_tables(measure_growth(few, quick))
