"""Table IV of the paper on open data: every row of `sentemb compare`, on every set.

Runs ``sentemb compare`` as a user would, on the shared data sets and on a simulated click log,
ranks a set without a log by models of the others, and writes docs/results/table4.md. Results are
kept in a folder, so that a stopped run can continue; it takes some hours on two processors.

    python benchmarks/table4.py [--data ../shared/data] [--folder table4] [--budget MINUTES]
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
from pages import DATA, ROOT, SETS, machine, write_tables

from sentemb.comparison.data_folder import read_data
from sentemb.comparison.row import apart
from sentemb.comparison.rows import ROWS, ModelRow, rows_of
from sentemb.comparison.runner import Comparison
from sentemb.comparison.table import cells_of, legend, table_of
from sentemb.data.lines import clean_lines
from sentemb.errors import SentembError
from sentemb.evaluation.metrics import ndcg
from sentemb.evaluation.significance import compare_all
from sentemb.system.parallel import available_threads
from sentemb.system.tables import markdown_table

SIMULATED, PAIRS = "simulated", 60_000
UNSEEN = "dbpedia_entity_v2"
REFERENCE = "lstm-96"
ORDER_FREE = ("bag", "dssm", "bag-hard", "dssm-hard")
IN_ORDER = ("lstm-96", "lstm-96-hard", "lstm-96-bag", "bilstm-96", "bilstm-192", "bilstm-large")
# The model trained on each set to rank the one without a log.
TRANSFERRED = {"model": "bilstm", "cells": 96, "hard-negatives": 0}


def sentemb(*arguments):
    """Run a command; its standard output."""
    command = [sys.executable, "-m", "sentemb", *map(str, arguments)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def opened(data, folder, rows):
    """The `Comparison` in ``folder``, without measuring; each missing row gets its reason."""
    comparison = Comparison(read_data(data), folder, rows, note=lambda text: None)
    comparison.run(seconds=0)
    return comparison


def section(data, folder, options, rows=None, models=(), reference=REFERENCE):
    """One set's table in Markdown, and its `Comparison`."""
    arguments = ["-o", folder, "--threads", options.threads, "--reference", reference]
    if options.budget is not None:
        arguments += ["--budget", options.budget]
    if rows is not None:
        arguments += ["--models", ",".join(rows)]
    for model in models:
        arguments += ["--compare-with", model]
    sentemb("compare", data, *arguments)
    measured = rows_of(rows) + [ModelRow.of(model) for model in models]
    comparison = opened(data, folder, measured)
    lines = table_of(comparison, [row.name for row in measured], reference)
    table = list(markdown_table(cells_of(lines, reference, "±")))
    print("\n".join([*table, " ".join(legend(lines, reference, comparison.n_queries, "±"))]))
    print("\n".join(missing_lines(comparison.reasons)), flush=True)
    return table, comparison


def missing_lines(reasons):
    """Sentences that name the rows missing from a table."""
    late = [name for name, reason in reasons.items() if "time is used up" in reason]
    others = [f"{name}: {reason}" for name, reason in reasons.items() if name not in late]
    lines = [f"Missing: {text}." for text in others]
    return lines + ([f"Not measured, or not with all seeds: {', '.join(late)}."] if late else [])


def best_of(comparison, names):
    """The row with the best dev figure, mean over seeds; None if none is measured."""
    figures = {
        name: np.mean([line["dev"][0] for line in comparison.of(name)])
        for name in names
        if comparison.of(name)
    }
    return max(figures, key=figures.get, default=None)


def order_against_none(comparison):
    """The best recurrent row against the best order-free one, both chosen on dev."""
    ours, theirs = best_of(comparison, IN_ORDER), best_of(comparison, ORDER_FREE)
    if ours is None or theirs is None:
        return
    a, b = (comparison.per_query(name)[:, 0] for name in (ours, theirs))
    judged = ~np.isnan(a)
    found = compare_all([a[judged]], b[judged])[0]
    print(
        f"Best recurrent row on dev against the best order-free one, test NDCG@1: {ours} "
        f"{np.nanmean(a):.3f}, {theirs} {np.nanmean(b):.3f}; difference {found.mean:+.3f} "
        f"({found.low:+.3f} to {found.high:+.3f}), p {found.p:.4f}. {together(comparison, ours)}"
    )


def together(comparison, name):
    """What the seeds of a row reach with their scores added: how much is left to one model."""
    runs = comparison.runs(name)
    added = {
        query: {title: sum(run[query][title] for run in runs) for title in titles}
        for query, titles in runs[0].items()
    }
    mean = ndcg(comparison.data.test, added, (1, 3, 10)).mean
    figures = ", ".join(f"{value:.3f}" for value in mean)
    return f"The {len(runs)} models of {name} with their scores added: {figures} (@1, @3, @10)."


def word_order(comparison, log):
    """NDCG@1 on the simulated queries whose meaning depends on word order, and on the others."""
    order = {}
    for _, line in clean_lines(log / "truth.jsonl"):
        found = json.loads(line)
        if found["side"] == "query":
            order[found["text"]] = found["order"]
    test = comparison.data.test
    in_order = np.array([order[query] for query in test.queries])
    rows = [["model", f"word order matters ({in_order.sum():,} queries)", "all others"]]
    for name in ROWS:
        if comparison.of(name):
            figures = comparison.per_query(name)[:, 0]
            parts = (figures[in_order], figures[~in_order])
            rows.append([name, *(f"{np.nanmean(part):.3f}" for part in parts)])
    return markdown_table(rows)


def settings_table(comparisons):
    """The settings chosen on dev, set by set."""
    rows = [["row", *comparisons]]
    for name, row in ROWS.items():
        cells = []
        for comparison in comparisons.values():
            found = comparison.of(name)
            try:
                cells.append(apart(found[0]["settings"], row.points()) if found else "")
            except SentembError:  # a package or file is not here
                cells.append("")
        if any(cells):
            rows.append([name, *cells])
    return markdown_table(rows, left=9)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--folder", type=Path, default=ROOT / "table4", help="for all results")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--budget", type=float, help="minutes for each set; missing rows are named")
    options = parser.parse_args()
    folder = options.folder
    comparisons, models, tables = {}, [], {}
    for name in SETS:
        data = options.data / name
        if not (data / "pairs.tsv").exists():
            print(f"{data} not found; skipped", file=sys.stderr)
            continue
        tables[name], comparisons[name] = section(data, folder / name, options)
        order_against_none(comparisons[name])
        model = folder / "models" / f"bilstm-{name}"
        shape = [part for key, value in TRANSFERRED.items() for part in (f"--{key}", value)]
        if not model.exists():
            sentemb("train", data / "pairs.tsv", "--dev", data / "dev", "-o", model, *shape)
        models.append(model)
    log = folder / "log"
    if not log.exists():
        sentemb("simulate", "-o", log, "--pairs", PAIRS)
    tables[SIMULATED], comparisons[SIMULATED] = section(log, folder / SIMULATED, options)
    order_against_none(comparisons[SIMULATED])
    tables["Word order"] = word_order(comparisons[SIMULATED], log)
    if (options.data / UNSEEN).exists():
        rows = [name for name, row in ROWS.items() if not row.needs_log]
        place = options.data / UNSEEN, folder / UNSEEN
        tables[UNSEEN], _ = section(*place, options, rows, models, "bm25-stem")
    tables["Settings"] = settings_table(comparisons)
    write_tables("table4", tables, machine())


if __name__ == "__main__":
    main()
