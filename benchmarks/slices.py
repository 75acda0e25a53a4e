"""Where a model, BM25 with clicks and their ranker are right: slices of the test queries, churn.

The queries of the judged test sets are sliced by how near the nearest query of the log is, by
whether their best title was clicked in the log, and by their length. Churn is how often the first
of all titles changes with the seed. Writes docs/results/slices.md.

The models have the defaults and the seeds 0 to 3; they stay in build/systems, so a run that was
stopped continues there.

    python benchmarks/slices.py [--data DIR] [--sets tldr ...] [--threads 1]
"""

import numpy as np
from pages import options_for, write_tables
from scipy.sparse import csr_matrix
from systems import (
    BM25,
    BUILD,
    MODEL,
    RANKER,
    average,
    best_titles,
    kept,
    measured,
    ranker_of,
    systems_of,
    trained,
    with_interval,
)

from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.rank_overlap import overlap
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.words_and_stems import words_of
from sentemb.system.tables import markdown_table

SETS = ("tldr", "occupations", "msdocs_index")
# The models whose average is one of two seeds; two such averages for churn.
PAIRS = ((0, 1), (2, 3))
TWO = "ranker of two seeds"
NEAR = (0.3, 0.8)
MEASURES = {"ndcg@1": "judged titles, NDCG@1", "mrr@10": "all titles, MRR@10"}
# First titles that are compared.
DEPTH = 10
# Queries of test that are compared with all of the log at once.
PORTION = 200


def nearest_in_log(queries, log_queries):
    """The highest Jaccard coefficient of the stems of each query with those of one of the log."""
    split = words_of("english")
    number = {}
    asked, known = (
        [{number.setdefault(word, len(number)) for word in split(text)} for text in texts]
        for texts in (queries, log_queries)
    )
    rows = [_matrix(sets, len(number)) for sets in (asked, known)]
    sizes = [np.array([len(one) for one in sets], np.float64) for sets in (asked, known)]
    best = np.zeros(len(queries))
    for first in range(0, len(queries), PORTION):
        some = slice(first, first + PORTION)
        shared = (rows[0][some] @ rows[1].T).tocoo()
        coefficients = shared.data / (
            sizes[0][some][shared.row] + sizes[1][shared.col] - shared.data
        )
        np.maximum.at(best, first + shared.row, coefficients)
    return best


def _matrix(sets, n_words):
    """A sparse matrix with a 1 for each word of each set."""
    offsets = np.concatenate([[0], np.cumsum([len(one) for one in sets])])
    words = np.array([word for one in sets for word in one], np.int64)
    return csr_matrix((np.ones(words.size), words, offsets), shape=(len(sets), n_words))


def slices_of(judged, log):
    """Name of a slice -> which queries of test are in it."""
    queries, titles = best_titles(judged)
    near = nearest_in_log(queries, log.queries)
    low, high = NEAR
    clicked = {log.titles[title] for title in np.unique(log.title_index).tolist()}
    seen = np.array([not clicked.isdisjoint(own) for own in titles])
    lengths = np.array([len(query.split()) for query in queries])
    return {
        "all": np.ones(len(queries), bool),
        f"nearest log query: Jaccard below {low}": near < low,
        f"from {low} to below {high}": (near >= low) & (near < high),
        f"at least {high}": near >= high,
        "best title clicked in the log": seen,
        "best title never clicked": ~seen,
        "one word": lengths == 1,
        "two words": lengths == 2,
        "three or four words": (lengths == 3) | (lengths == 4),
        "five or more words": lengths >= 5,
    }


def rankers_of(data, name, threads, build=BUILD):
    """The ranker of each seed and of each pair of seeds; one by one, for the memory."""
    pairs, dev = data / name / "pairs.tsv", data / name / "dev"
    for seed in sorted({seed for pair in PAIRS for seed in pair}):
        trained(build / name / f"seed-{seed}", pairs, dev, seed, threads)
    for pair in PAIRS:
        folder = build / name / f"seeds-{'-'.join(map(str, pair))}"
        members = [trained(build / name / f"seed-{k}", pairs, dev, k, threads) for k in pair]
        average(folder, members, threads)
        del members
        yield pair, ranker_of(folder, pairs, dev, threads)
        for seed in pair:
            yield (seed,), ranker_of(build / name / f"seed-{seed}", pairs, dev, threads)


def measure(data, name, threads, build=BUILD):
    """Slices, figures for each query of test, and how far the first titles agree."""
    test = read_judged_set(data / name / "test")
    log = read_click_log(data / name / "pairs.tsv")
    queries, _ = best_titles(test)
    figures, firsts = {}, {}
    for seeds, ranker in rankers_of(data, name, threads, build):
        systems = systems_of(ranker, log)
        for system in (MODEL, RANKER):
            found, _ = systems[system].over(test.titles).find(queries, DEPTH)
            firsts[system, seeds] = found
        if seeds == (0,):
            figures |= {system: measured(one, test) for system, one in systems.items()}
        elif seeds == (0, 1):
            figures[TWO] = measured(ranker, test)
    return {
        "slices": {label: mine.tolist() for label, mine in slices_of(test, log).items()},
        "figures": figures,
        "churn": churn_of(firsts),
    }


def churn_of(firsts):
    """System -> the agreement of two of its trainings: first titles, first ten titles."""
    first, second = PAIRS
    compared = {
        MODEL: [(MODEL, (a,), (b,)) for a, b in PAIRS],
        "average of two models": [(MODEL, first, second)],
        RANKER: [(RANKER, (a,), (b,)) for a, b in PAIRS],
        TWO: [(RANKER, first, second)],
    }
    churn = {}
    for label, pairs in compared.items():
        found = [overlap(firsts[system, a], firsts[system, b]) for system, a, b in pairs]
        churn[label] = [float(np.mean([one.same_first for one in found])),
                        float(np.mean([one.shared for one in found]))]  # fmt: skip
    return churn


def sliced(found, measure_name):
    """The rows of the table of slices."""
    systems = list(found["figures"])
    yield ["test queries", "number", *systems, f"{MODEL} minus {BM25}", f"{RANKER} minus {BM25}"]
    for label, mine in found["slices"].items():
        mine = np.array(mine)
        if mine.sum() < 2:
            continue
        values = {one: np.array(of[measure_name])[mine] for one, of in found["figures"].items()}
        differences = compare_all([values[MODEL], values[RANKER]], values[BM25])
        yield [
            label,
            f"{mine.sum():,}",
            *(f"{values[system].mean():.3f}" for system in systems),
            *map(with_interval, differences),
        ]


def tables_of(results):
    """The tables of the page, by heading."""
    tables, churn = {}, [["set", "system", "same first title", f"shared of the first {DEPTH}"]]
    for name, found in results.items():
        for measure, label in MEASURES.items():
            tables[f"{name}, {label}"] = markdown_table(sliced(found, measure))
        for system, (same, shared) in found["churn"].items():
            churn.append([name, system, f"{100 * same:.1f} %", f"{100 * shared:.1f} %"])
    return tables | {"Churn": markdown_table(churn, left=2)}


def main():
    options = options_for(__doc__, SETS)
    results = {}
    for name in SETS:
        path = BUILD / name / "slices.json"
        if name not in options.sets and not path.exists():
            continue
        results[name] = kept(path, lambda name=name: measure(options.data, name, options.threads))
        write_tables("slices", tables_of(results))


if __name__ == "__main__":
    main()
