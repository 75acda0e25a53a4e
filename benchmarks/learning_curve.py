"""From how many clicks on a trained model pays: shares of the logs, drawn by query.

The queries of a log are put into a random order; each share is the first part of it, so the smaller
shares are in the larger ones. On each share the defaults are trained with the seed 0, and their
ranker is fitted; dev chooses epoch, weights and the parameters of BM25. Measures the model, BM25
with clicks and the ranker on test, over the judged titles and over all titles, and by the number of
clicked queries of the best title. Writes docs/results/learning-curve.md.

What is finished is kept in build/learning-curve and build/systems; a run that was stopped continues
there.

    python benchmarks/learning_curve.py [--data DIR] [--sets tldr ...] [--largest 0.25]
"""

import numpy as np
import systems
from pages import ROOT, machine, options_for, write_tables
from systems import (
    BM25,
    MODEL,
    RANKER,
    SYSTEMS,
    best_titles,
    kept,
    measured,
    ranker_of,
    systems_of,
    trained,
    with_interval,
)

from sentemb.data.click_log import ClickLogBuilder, read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.significance import compare_all
from sentemb.system.tables import markdown_table

SETS = ("tldr", "occupations", "msdocs_index")
DENOMINATORS = (32, 16, 8, 4, 2, 1)
BUILD = ROOT / "build" / "learning-curve"
# Upper bounds of the groups by the number of clicked queries of the best title.
GROUPS = (0, 2, 5, 10, 30)
MEASURES = {"ndcg@1": "judged titles, NDCG@1", "mrr@10": "all titles, MRR@10"}


def part_of(log, denominator):
    """The clicks of one in ``denominator`` queries of ``log``."""
    count = max(1, round(len(log.queries) / denominator))
    chosen = np.zeros(len(log.queries), bool)
    chosen[np.random.default_rng(0).permutation(len(log.queries))[:count]] = True
    builder = ClickLogBuilder()
    for pair in np.flatnonzero(chosen[log.query_index]).tolist():
        query, title = log.queries[log.query_index[pair]], log.titles[log.title_index[pair]]
        builder.add(query, title, int(log.clicks[pair]))
    return builder.build()


def measure(data, name, denominator, threads, build=BUILD, whole=systems.BUILD):
    """Sizes of one share, and the figures of each system for each query of test."""
    log = part_of(read_click_log(data / name / "pairs.tsv"), denominator)
    # Other scripts train on the whole log too.
    folder = whole / name / "seed-0"
    if denominator > 1:
        folder = build / name / f"share-{denominator}"
    dev = data / name / "dev"
    trained(folder, log, dev, threads=threads)
    ranker = ranker_of(folder, log, dev, threads)
    test = read_judged_set(data / name / "test")
    of_title = dict(zip(log.titles, np.bincount(log.title_index).tolist(), strict=False))
    return {
        "queries": len(log.queries),
        "pairs": log.query_index.size,
        "titles": len(log.titles),
        "recipe": str(ranker.recipe),
        "clicked": [max(of_title.get(t, 0) for t in own) for own in best_titles(test)[1]],
        "systems": {system: measured(one, test) for system, one in systems_of(ranker, log).items()},
    }


def ahead_of_bm25(one, measure_name):
    """How far the model and the ranker of one share are ahead of BM25 with clicks, by name."""
    known = one.setdefault("ahead", {})
    if measure_name not in known:
        values = [np.array(one["systems"][system][measure_name]) for system in (MODEL, RANKER)]
        bm25 = np.array(one["systems"][BM25][measure_name])
        known[measure_name] = dict(zip((MODEL, RANKER), compare_all(values, bm25), strict=True))
    return known[measure_name]


def curve(found, measure_name):
    """The rows of one table: a share of the log each."""
    yield ["share", "queries", "pairs", "pairs per title", *SYSTEMS,
           f"{MODEL} minus {BM25}", f"{RANKER} minus {BM25}"]  # fmt: skip
    for denominator, one in found.items():
        yield [
            "all" if denominator == 1 else f"1/{denominator}",
            f"{one['queries']:,}",
            f"{one['pairs']:,}",
            f"{one['pairs'] / one['titles']:.1f}",
            *(f"{np.mean(one['systems'][system][measure_name]):.3f}" for system in SYSTEMS),
            *map(with_interval, ahead_of_bm25(one, measure_name).values()),
        ]


def by_clicks(one, measure_name):
    """The rows of one table: the queries of test by the clicked queries of their best title."""
    clicked = np.array(one["clicked"])
    group = np.searchsorted(GROUPS, clicked)
    yield [
        "clicked queries of the best title",
        "test queries",
        *SYSTEMS,
        *(f"{one} minus {BM25}" for one in (MODEL, RANKER)),
    ]
    for number in range(len(GROUPS) + 1):
        mine = group == number
        if mine.sum() < 2:
            continue
        values = {system: np.array(of[measure_name])[mine] for system, of in one["systems"].items()}
        differences = compare_all([values[MODEL], values[RANKER]], values[BM25])
        yield [
            name_of_group(number),
            f"{mine.sum():,}",
            *(f"{values[system].mean():.3f}" for system in SYSTEMS),
            *map(with_interval, differences),
        ]


def name_of_group(number):
    """The numbers of clicked queries in a group, in words."""
    if number == len(GROUPS):
        return f"more than {GROUPS[-1]}"
    least = GROUPS[number - 1] + 1 if number else 0
    return str(least) if least == GROUPS[number] else f"{least} to {GROUPS[number]}"


def pays_from(found, system, measure_name):
    """From which share on a system is ahead of BM25 with clicks, as an item of a list."""
    # The smallest share from which on the system is ahead on all.
    first = None
    for denominator, one in reversed(found.items()):
        if ahead_of_bm25(one, measure_name)[system].low <= 0:
            break
        first = denominator
    where = f"- {system}, {MEASURES[measure_name]}"
    if first is None:
        return f"{where}: not on the largest share that was measured."
    one = found[first]
    per_title = one["pairs"] / one["titles"]
    return f"{where}: from {one['pairs']:,} pairs on ({per_title:.1f} per title)."


def tables_of(results):
    """The tables and lists of the page, by heading."""
    tables = {}
    for name, found in results.items():
        tables[f"{name}, where it pays"] = [
            pays_from(found, system, measure) for system in (MODEL, RANKER) for measure in MEASURES
        ]
        for measure, label in MEASURES.items():
            tables[f"{name}, {label}"] = markdown_table(curve(found, measure))
            of_groups = by_clicks(found[min(found)], measure)
            tables[f"{name}, {label} by clicks per title"] = markdown_table(of_groups)
        recipes = (f"- 1/{share}: {part['recipe']}" for share, part in found.items())
        tables[f"{name}, what dev chose"] = recipes
    return tables


def main():
    largest = {"type": float, "default": 1, "help": "the largest share to train on"}
    options = options_for(__doc__, SETS, largest=largest)
    results = {}
    for name in SETS:
        for denominator in DENOMINATORS:
            path = BUILD / name / f"share-{denominator}.json"
            wanted = name in options.sets and 1 / denominator <= options.largest
            if not wanted and not path.exists():
                continue
            results.setdefault(name, {})[denominator] = kept(
                path,
                lambda name=name, denominator=denominator: measure(
                    options.data, name, denominator, options.threads
                ),
            )
        if name in results:
            write_tables("learning-curve", tables_of(results), machine())


if __name__ == "__main__":
    main()
