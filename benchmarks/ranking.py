"""What `sentemb train` ranks with: the model alone, BM25 with clicks, and the ranker of both.

For each log the defaults, word vectors as features, and the large preset with word vectors; one
seed, and two or three seeds averaged. NDCG among the judged titles of test, and figures over all
titles of test. Settings and weights are chosen on dev. Writes docs/results/ranking.md.

Models stay in build/systems, so a run that was stopped continues there. The vectors are GloVe's,
from benchmarks/glove.py.

    python benchmarks/ranking.py [--data DIR] [--sets tldr ...] [--vectors build/glove/100d]
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
from pages import DATA, ROOT, write_results
from systems import (
    BM25,
    BUILD,
    MODEL,
    RANKER,
    average,
    kept,
    measured,
    ranker_of,
    systems_of,
    trained,
    with_interval,
)

from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.significance import compare_all
from sentemb.tables import markdown_table

SETS = ("tldr", "occupations", "msdocs_index")
SEEDS = (0, 1, 2)
AVERAGES = ((0, 1), (0, 2), (1, 2), (0, 1, 2))
VECTORS = ROOT / "build" / "glove" / "100d"
# Settings: the beginning of the names of their folders, options, seeds, averages.
SETTINGS = {
    "defaults": ("", {}, SEEDS, AVERAGES),
    "`--vectors`": ("vectors-", {"vectors": VECTORS}, SEEDS, AVERAGES),
    "`--preset large --vectors`": (
        "large-vectors-", {"preset": "large", "vectors": VECTORS}, SEEDS[:1], (),
    ),
}  # fmt: skip
JUDGED = {"ndcg@1": "NDCG@1", "ndcg@3": "NDCG@3", "ndcg@10": "NDCG@10"}
ALL = {"hit@1": "hit@1", "mrr@10": "MRR@10", "recall@10": "recall@10"}


def measure(data, name, label, threads, build):
    """For one training, two and three averaged: system -> figure -> values for each query."""
    prefix, options, seeds, averages = SETTINGS[label]
    log, dev = data / name / "pairs.tsv", data / name / "dev"
    test = read_judged_set(data / name / "test")
    found = {"one": [], "two": [], "three": [], "recipes": []}

    def of_folder(folder):
        ranker = ranker_of(folder, log, dev, threads)
        found["recipes"].append(str(ranker.recipe))
        return {system: measured(one, test) for system, one in systems_of(ranker, log).items()}

    for seed in seeds:
        folder = build / name / f"{prefix}seed-{seed}"
        trained(folder, log, dev, seed, threads, **options)
        found["one"].append(of_folder(folder))
    for some in averages:
        folder = build / name / f"{prefix}seeds-{'-'.join(map(str, some))}"
        members = [
            trained(build / name / f"{prefix}seed-{k}", log, dev, k, threads, **options)
            for k in some
        ]
        average(folder, members, threads)
        del members
        found["two" if len(some) == 2 else "three"].append(of_folder(folder))
    return found


def values_of(runs, system, figure):
    """The figure of a system for each query, mean over the runs."""
    return np.mean([run[system][figure] for run in runs], axis=0)


def rows(results, figures):
    """The table of one set: every system under every setting."""
    first = next(iter(figures))
    yield ["training", "system", *figures.values(), f"{figures[first]} minus {BM25}"]
    lexical = None
    for label, found in results.items():
        for kind in ("one", "two", "three"):
            runs, seeds = found[kind], "" if kind == "one" else f", {kind} seeds"
            if not runs:
                continue
            if lexical is None:
                lexical = values_of(runs, BM25, first)
                means = [f"{values_of(runs, BM25, name).mean():.3f}" for name in figures]
                yield ["-", BM25, *means, "-"]
            for system in (MODEL, RANKER):
                values = [values_of(runs, system, name) for name in figures]
                (difference,) = compare_all([values[0]], lexical)
                means = [f"{value.mean():.3f}" for value in values]
                yield [f"{label}{seeds}", system, *means, with_interval(difference)]


def page(of_sets):
    """The lines of the page."""
    lines = [
        "Means over the test queries, and over the seeds 0, 1 and 2 (two seeds: 0 and 1, 0 and "
        "2, 1 and 2; three seeds: one average; the large preset: seed 0). `bm25-clicks` is BM25 "
        "over titles and the queries clicked on them, with k1, b, the weight of clicks and "
        "stems chosen on dev, for the judged titles and all titles at once; tuned for either "
        "alone it is in [rivals](rivals.md). The ranker is what `sentemb train --dev` stores: "
        "cosine, BM25 and the memory of the log, with weights from dev. The vectors are GloVe "
        "6B with 100 numbers, of which 48 components are used. In brackets are 95 % intervals "
        "of the paired bootstrap over the queries.",
        "",
    ]
    for name, results in of_sets.items():
        lines += [f"## {name}, judged titles", "", *markdown_table(rows(results, JUDGED), left=2)]
        lines += ["", f"## {name}, all titles", "", *markdown_table(rows(results, ALL), left=2), ""]
        lines += ["What dev has chosen:", ""]
        for label, found in results.items():
            lines += [f"- {label}: {'; '.join(dict.fromkeys(found['recipes']))}"]
        lines += [""]
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    numbers = range(len(SETTINGS))
    parser.add_argument("--settings", nargs="+", type=int, choices=numbers, default=numbers)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    of_sets = {}
    for name in SETS:
        for number, label in enumerate(SETTINGS):
            path = BUILD / name / f"ranking-{number}.json"
            if path.exists() or (name in options.sets and number in options.settings):
                make = partial(measure, options.data, name, label, options.threads, BUILD)
                of_sets.setdefault(name, {})[label] = kept(path, make)
                write_results("ranking", "The ranker", "benchmarks/ranking.py", page(of_sets))


if __name__ == "__main__":
    main()
