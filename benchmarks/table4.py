"""Table IV of the paper on open data: rows of `sentemb compare`, set by set.

Runs ``sentemb compare`` as a user would: every kind of model on tldr, the smallest log, one of each
kind on occupations, and models with and without word order on a simulated log. Splits the test
queries of the real sets (order.py), ranks a set without a log by models of the others, and writes
docs/results/table4.md. Results are kept in a folder, so that a stopped run can continue.

    python benchmarks/table4.py [SET ...] [--folder table4] [--rows bag,lstm-96]
"""

import argparse
import json
from pathlib import Path

import numpy as np
from compared import IN_ORDER, ORDER_FREE, REFERENCE, SEEDS, opened, sentemb
from order import cut_table
from pages import DATA, ROOT, write_tables

from sentemb.comparison.row import apart
from sentemb.comparison.rows import ROWS, ModelRow, rows_of
from sentemb.comparison.table import cells_of, legend, table_of
from sentemb.data.lines import clean_lines
from sentemb.evaluation.metrics import ndcg
from sentemb.evaluation.significance import compare_all
from sentemb.system.parallel import available_threads
from sentemb.system.tables import markdown_table

SIMULATED, PAIRS = "simulated", 30_000
UNSEEN = "dbpedia_entity_v2"
KINDS = (
    "random", "unigram", "bm25", "bm25-stem", "plsa", "bag", "dssm", "clsm-3", "rnn-288",
    "lstm-96", "lstm-96-hard",
)  # fmt: skip
COMPARED = {
    "tldr": (
        *KINDS, "doc2vec", "clsm-1", "lstm-32", "lstm-64", "lstm-96-n2", "lstm-96-n4",
        "lstm-96-bag", "bilstm-96", "bag-hard", "dssm-hard", "lstm-96-paper",
    ),
    "occupations": KINDS,
    SIMULATED: (
        "bm25-stem", "bag", "bag-hard", "dssm", "dssm-hard", "clsm-3", "clsm-5", "rnn-288",
        "lstm-32", "lstm-96", "lstm-96-hard", "bilstm-96",
    ),
}  # fmt: skip
# The model trained on each set to rank the one without a log.
TRANSFERRED = {"hard-negatives": 0}


def compared(data, options, name, rows, models=(), reference=REFERENCE):
    """The `Comparison` of one set, its table and the sentences below it."""
    folder = options.folder / name
    arguments = ["-o", folder, "--threads", options.threads, "--reference", reference]
    arguments += ["--seeds", SEEDS, "--models", ",".join(rows)]
    for model in models:  # alone: a ranker is of the clicks of its own log
        arguments += ["--compare-with", model, "--cosine"]
    sentemb("compare", data, *arguments)
    measured = rows_of(rows) + [ModelRow.of(model) for model in models]
    comparison = opened(data, folder, measured)
    lines = table_of(comparison, [row.name for row in measured], reference)
    reasons = comparison.reasons
    head, *body = cells_of(lines, reference, "±")
    cells = [[*row, setting_of(comparison, row[0])] for row in body]
    sentences = [
        " ".join([*legend(lines, reference, comparison.n_queries, "±"), "Setting: chosen on dev."]),
        *(
            f"Missing: {', '.join(name for name in reasons if reasons[name] == reason)}: {reason}."
            for reason in dict.fromkeys(reasons.values())
        ),
    ]
    return comparison, markdown_table([[*head, "setting"], *cells]), sentences


def setting_of(comparison, name):
    """The setting of a row that was the best on dev; nothing if there was one only."""
    found = comparison.of(name)
    return apart(found[0]["settings"], ROWS[name].points()) if found and name in ROWS else ""


def best_of(comparison, names):
    """The row with the best dev figure, mean over seeds; None if none is measured."""
    figures = {
        name: np.mean([line["dev"][0] for line in comparison.of(name)])
        for name in names
        if comparison.of(name)
    }
    return max(figures, key=figures.get, default=None)


def order_against_none(comparison):
    """The best recurrent row against the best order-free one, both chosen on dev, as a sentence."""
    ours, theirs = best_of(comparison, IN_ORDER), best_of(comparison, ORDER_FREE)
    if ours is None or theirs is None:
        return ""
    a, b = (comparison.per_query(name)[:, 0] for name in (ours, theirs))
    judged = ~np.isnan(a)
    found = compare_all([a[judged]], b[judged])[0]
    return (
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


def on_log(name, data, options):
    """The tables of a set with a log."""
    comparison, table, sentences = compared(data, options, name, options.rows or COMPARED[name])
    sentences.append(order_against_none(comparison))
    tables = {"": table, "Text": "\n\n".join(filter(None, sentences)).split("\n")}
    if name == SIMULATED:
        tables["Word order"] = word_order(comparison, data)
    elif options.rows is None:
        tables["By query"] = cut_table(comparison)
    return tables


def without_log(options):
    """The tables of the set without a log, ranked by a model of each of the others."""
    models = []
    shape = [part for key, value in TRANSFERRED.items() for part in (f"--{key}", value)]
    for name in (name for name in COMPARED if name != SIMULATED):
        data, model = options.data / name, options.folder / "models" / f"lstm-{name}"
        if not model.exists():
            sentemb("train", data / "pairs.tsv", "--dev", data / "dev", "-o", model, *shape)
        models.append(model)
    rows = ("random", "unigram", "bm25", "bm25-stem")
    _, table, sentences = compared(
        options.data / UNSEEN, options, UNSEEN, rows, models, reference="bm25-stem"
    )
    return {"": table, "Text": "\n\n".join(sentences).split("\n")}


def main():
    names = (*COMPARED, UNSEEN)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sets", nargs="*", metavar="SET", help=f"all of {', '.join(names)}")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--folder", type=Path, default=ROOT / "table4", help="for all results")
    parser.add_argument("--threads", type=int, default=available_threads())
    parser.add_argument("--rows", type=lambda text: text.split(","), help="only these rows")
    options = parser.parse_args()
    if unknown := set(options.sets) - set(names):
        parser.error(f"no set {min(unknown)}; choose from {', '.join(names)}")
    options.folder.mkdir(exist_ok=True)
    for name in options.sets or names:
        if name == UNSEEN:
            tables = without_log(options)
        elif name == SIMULATED:
            log = options.folder / "log"
            if not log.exists():
                sentemb("simulate", "-o", log, "--pairs", PAIRS)
            tables = on_log(name, log, options)
        else:
            tables = on_log(name, options.data / name, options)
        write_tables(f"table4-{name}", tables)


if __name__ == "__main__":
    main()
