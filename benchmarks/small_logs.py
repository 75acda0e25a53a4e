"""Small logs: separate towers, shared ones with a bag, and letters, by size.

Draws queries of each log until they have a number of pairs; the smaller parts are in the larger
ones. 10 % of the queries are dev, which chooses the epoch and fits the ranker, and 10 % are test;
all titles of the part are ranked. Writes docs/results/small-logs.md. What is
finished is kept in build/small-logs.

    python benchmarks/small_logs.py [--data DIR] [--sets NAME ...] [--sizes 1000 ...]
        [--seeds 1]
"""

import argparse
import csv
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import systems
from pages import DATA, ROOT, machine, write_tables
from systems import kept, say, with_interval

from sentemb.comparison.baselines.letters import LettersOfClicks
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.splitting import split_log
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.nearest import TitleVectors
from sentemb.system.tables import markdown_table

BUILD = ROOT / "build" / "small-logs"
SETS = ("occupations", "tldr", "msdocs_index", "emoji")
SIZES = (1_000, 3_000, 10_000, 30_000)
SHARE = 0.1
SEPARATE, WITH_BAG = "separate", "shared, bag_dim 96"
SETTINGS = {
    SEPARATE: {"shared_towers": False, "bag_dim": 0},
    WITH_BAG: {"shared_towers": True, "bag_dim": 96},
}
MODEL, RANKER = "model", "ranker"
LETTERS = "letters-clicks"


def pairs_of(data, name):
    """The whole log."""
    if name != "emoji":
        return read_click_log(data / name / "pairs.tsv")
    with open(data / name / "products.csv", encoding="utf-8", newline="") as file:
        labels = {row["emoji"]: row["label"] for row in csv.DictReader(file)}
    with open(data / name / "clicks.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return ClickLog.from_pairs((row["keyword"], labels[row["emoji"]]) for row in rows)


def part_of(log, n_pairs, seed):
    """The clicks of as many queries of ``log`` as have ``n_pairs`` pairs; None if it has fewer."""
    if n_pairs > len(log.query_index):
        return None
    order = np.random.default_rng(seed).permutation(len(log.queries))
    pairs = np.bincount(log.query_index, minlength=len(log.queries))[order]
    n_queries = int(np.searchsorted(np.cumsum(pairs), n_pairs)) + 1
    chosen = np.flatnonzero(np.isin(log.query_index, order[:n_queries]))
    return ClickLog.from_pairs(
        (log.queries[q], log.titles[t], int(clicks))
        for q, t, clicks in zip(
            log.query_index[chosen], log.title_index[chosen], log.clicks[chosen], strict=True
        )
    )


def measure(log, seed, settings, threads, folder):
    """MRR@10 of each test query by the model and by its ranker."""
    train, dev, test = split_log(log, SHARE, SHARE, seed=seed)
    model = systems.trained(folder, train, dev, seed, threads, **settings)
    ranker = systems.ranker_of(folder, train, dev, threads, catalogue=log.titles)
    held_out = HeldOutClicks(test, log.titles, ("mrr@10",))
    found = {MODEL: TitleVectors(model, log.titles), RANKER: ranker.over(log.titles)}
    figures = {name: held_out.evaluate(one).values[:, 0] for name, one in found.items()}
    shutil.rmtree(folder)
    return {
        "pairs": len(log.query_index),
        **{name: values.round(6).tolist() for name, values in figures.items()},
    }


def of_letters(log, seed, threads):
    """MRR@10 of each test query by `LettersOfClicks`, without training."""
    train, _, test = split_log(log, SHARE, SHARE, seed=seed)
    found = LettersOfClicks(log.titles, train, threads)
    figures = HeldOutClicks(test, log.titles, ("mrr@10",)).evaluate(found)
    return figures.values[:, 0].round(6).tolist()


def rows_of(results):
    """The rows of the table: a log and a size each."""
    names = list(SETTINGS)
    yield [
        *("log", "pairs", "test queries"),
        *(f"{one}, {name}" for one in (MODEL, RANKER) for name in names),
        *(f"{name} minus {SEPARATE}" for name in names[1:]),
        LETTERS,
    ]
    for (log, _), runs in results.items():
        if not {*names, LETTERS} <= set(runs):
            continue
        values = {
            (one, name): np.concatenate([run[one] for run in runs[name]])
            for one in (MODEL, RANKER)
            for name in names
        }
        first = values[RANKER, SEPARATE]
        others = compare_all([values[RANKER, name] for name in names[1:]], first)
        yield [
            log,
            f"{runs[SEPARATE][0]['pairs']:,}",
            f"{len(first):,}",
            *(f"{one.mean():.3f}" for one in values.values()),
            *map(with_interval, others),
            f"{np.mean(np.concatenate(runs[LETTERS])):.3f}",
        ]


def options():
    """The options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, choices=SIZES, default=SIZES)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    return parser.parse_args()


def run_of(chosen, name, size, seed, label):
    """One measurement, from its file or made; None if it is not chosen or the log is smaller."""
    folder = BUILD / name / f"{size}-{seed}-{label.replace(', ', '-').replace(' ', '-')}"
    path = folder.with_suffix(".json")
    if not path.exists():
        is_chosen = name in chosen.sets and size in chosen.sizes
        log = part_of(pairs_of(chosen.data, name), size, seed) if is_chosen else None
        if log is None:
            return None
        if label == LETTERS:
            return kept(path, lambda: of_letters(log, seed, chosen.threads))
        return kept(path, lambda: measure(log, seed, SETTINGS[label], chosen.threads, folder))
    return kept(path, None)


def main():
    chosen = options()
    results = {}
    labels = (*SETTINGS, LETTERS)
    for size, name, label, seed in product(SIZES, SETS, labels, range(chosen.seeds)):
        run = run_of(chosen, name, size, seed, label)
        if run is None:
            continue
        results.setdefault((name, size), {}).setdefault(label, []).append(run)
        shown = {LETTERS: run} if label == LETTERS else {one: run[one] for one in (MODEL, RANKER)}
        means = ", ".join(f"{one} {np.mean(values):.3f}" for one, values in shown.items())
        say(f"{name}, {size} pairs, {label}, seed {seed}: {means}")
    write_tables("small-logs", {"MRR@10": list(markdown_table(rows_of(results)))}, machine())


if __name__ == "__main__":
    main()
