"""What `sentemb train` ranks with: the model alone, each part of the ranker, their sum.

For each log the defaults, with two seeds, and both averaged. NDCG among the judged titles of test,
and figures over all titles of test. Settings and weights are from dev. Then the trials of
`benchmarks/ranking_trials.py` with the defaults, on the smallest log. Writes
docs/results/ranking.md. Models stay in build/systems, so a run that was stopped continues there.

    python benchmarks/ranking.py [--data DIR] [--sets tldr ...] [--settings 0] [--trials floor ...]
"""

import argparse
from functools import partial
from pathlib import Path

import numpy as np
import ranking_trials
from pages import DATA, write_tables
from ranking_trials import Trial
from systems import (
    ALL_TITLES,
    BM25,
    BUILD,
    MODEL,
    RANKER,
    average,
    kept,
    measured,
    parts_of,
    ranker_of,
    systems_of,
    trained,
    with_interval,
)

from sentemb.data.best_graded import best_graded
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.search.ranking.recipe import BM25 as WORDS
from sentemb.search.ranking.recipe import CLICKED_BM25, COSINE
from sentemb.search.ranking.recipe import MEMORY as OF_LOG
from sentemb.system.tables import markdown_table

SETS = ("tldr", "occupations", "msdocs_index")
TRIED = SETS[0]  # the log of the trials
# Settings: the beginning of the names of their folders, options, seeds, averages.
SETTINGS = {"defaults": ("", {}, (0, 1), ((0, 1),))}
MEMORY, CLICKED, FUSION = "memory", "bm25, clicked queries alone", "rank fusion"
# Systems that do not depend on the model, which have one row, and those that do.
OF_WORDS, OF_MODEL = (BM25, CLICKED), (MODEL, MEMORY, FUSION, RANKER)
# Reciprocal rank fusion: its constant, and the titles taken from each ranking.
CONSTANT, WINDOW = 60, 100
# Heading, what is measured, what makes a table of it.
TRIALS = {
    "new-titles": ("new titles", ranking_trials.new_titles, ranking_trials.rows_of_new_titles),
    "stray-clicks": (
        "stray clicks",
        ranking_trials.stray_clicks,
        ranking_trials.rows_of_stray_clicks,
    ),
    "renamed-titles": (
        "renamed titles",
        ranking_trials.renamed_titles,
        ranking_trials.rows_of_renamed_titles,
    ),
    "floor": ("the floor", ranking_trials.floor, ranking_trials.rows_of_floor),
    "confidence": ("confidence", ranking_trials.confidence, ranking_trials.rows_of_confidence),
}
JUDGED = {"ndcg@1": "NDCG@1", "ndcg@3": "NDCG@3", "ndcg@10": "NDCG@10"}
ALL = {"hit@1": "hit@1", "mrr@10": "MRR@10", "recall@10": "recall@10"}


class Fusion:
    """Reciprocal rank fusion of two retrievers."""

    def __init__(self, *retrievers):
        self._retrievers = retrievers

    def find(self, queries, k):
        lists = [one.find(queries, WINDOW)[0].tolist() for one in self._retrievers]
        places, scores = np.full((len(queries), k), -1), np.full((len(queries), k), -np.inf)
        for q in range(len(queries)):
            total = {}
            for found in lists:
                for rank, place in enumerate(found[q], 1):
                    if place >= 0:
                        total[place] = total.get(place, 0) + 1 / (CONSTANT + rank)
            best = sorted(total, key=lambda place: (-total[place], place))[:k]
            places[q, : len(best)] = best
            scores[q, : len(best)] = [total[place] for place in best]
        return places, scores


def measure(data, name, label, threads, build):
    """For one training and two averaged: system -> figure -> values for each query."""
    prefix, options, seeds, averages = SETTINGS[label]
    log, dev = data / name / "pairs.tsv", data / name / "dev"
    test = read_judged_set(data / name / "test")
    right = best_graded(test)
    found = {"one": [], "two": [], "recipes": []}

    def of_folder(folder):
        ranker = ranker_of(folder, log, dev, threads)
        found["recipes"].append(str(ranker.recipe))
        parts = parts_of(ranker, log, (COSINE, OF_LOG, WORDS, CLICKED_BM25))
        systems = systems_of(ranker, log)
        systems |= {MEMORY: parts[OF_LOG], CLICKED: parts[CLICKED_BM25]}
        fused = [parts[name].over(test.titles) for name in (COSINE, WORDS)]
        values = HeldOutClicks(right, test.titles, ALL_TITLES).evaluate(Fusion(*fused)).values
        return {
            **{system: measured(one, test) for system, one in systems.items()},
            FUSION: dict(zip(ALL_TITLES, values.round(6).T.tolist(), strict=True)),
        }

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
        found["two"].append(of_folder(folder))
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
        for kind in ("one", "two"):
            runs, seeds = found[kind], "" if kind == "one" else f", {kind} seeds"
            if not runs:
                continue
            systems = OF_MODEL
            if lexical is None:
                lexical = values_of(runs, BM25, first)
                systems = (*OF_WORDS, *OF_MODEL)
            for system in systems:
                if first not in runs[0][system]:
                    continue
                values = [values_of(runs, system, name) for name in figures]
                minus = "-"
                if system != BM25:
                    minus = with_interval(compare_all([values[0]], lexical)[0])
                means = [f"{value.mean():.3f}" for value in values]
                training = "-" if system in OF_WORDS else f"{label}{seeds}"
                yield [training, system, *means, minus]


def tables_of(of_sets, of_trials):
    """The tables of the page, and the lists of recipes, by heading."""
    found = {}
    for name, results in of_sets.items():
        found[f"{name}, judged titles"] = markdown_table(rows(results, JUDGED), left=2)
        found[f"{name}, all titles"] = markdown_table(rows(results, ALL), left=2)
        found[f"{name}, what dev has chosen"] = [
            f"- {label}: {'; '.join(dict.fromkeys(of_setting['recipes']))}"
            for label, of_setting in results.items()
        ]
        for trial, of_trial in of_trials.get(name, {}).items():
            heading, _, rows_of = TRIALS[trial]
            table = list(rows_of(of_trial))
            left = 2 if "system" in table[0] else 1
            found[f"{name}, {heading}"] = markdown_table(table, left=left)
    return found


def run_trial(data, name, trial, threads, build, sets=SETS):
    """What one trial finds on a log."""
    _, run, _ = TRIALS[trial]
    others = ([other for other in sets if other != name],) if trial == "floor" else ()
    return run(Trial(data, name, threads, build), *others)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--sets", nargs="+", choices=SETS, default=SETS)
    numbers = range(len(SETTINGS))
    parser.add_argument("--settings", nargs="*", type=int, choices=numbers, default=numbers)
    parser.add_argument("--trials", nargs="*", choices=TRIALS, default=TRIALS)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    of_sets, of_trials = {}, {}
    for name in SETS:
        for number, label in enumerate(SETTINGS):
            path = BUILD / name / f"ranking-{number}.json"
            if path.exists() or (name in options.sets and number in options.settings):
                make = partial(measure, options.data, name, label, options.threads, BUILD)
                of_sets.setdefault(name, {})[label] = kept(path, make)
                write_tables("ranking", tables_of(of_sets, of_trials))
        for trial in TRIALS:
            path = BUILD / name / f"ranking-{trial}.json"
            wanted = name == TRIED and name in options.sets and trial in options.trials
            if path.exists() or wanted:
                make = partial(run_trial, options.data, name, trial, options.threads, BUILD)
                of_trials.setdefault(name, {})[trial] = kept(path, make)
                write_tables("ranking", tables_of(of_sets, of_trials))


if __name__ == "__main__":
    main()
