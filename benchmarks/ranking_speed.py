"""How fast the sum of all parts ranks, against the cosine of the model alone.

Contenders take turns in one process and thread; ratios compare neighbouring turns. The titles are
mixed from those of a simulated log, their clicked queries are words of theirs. The rankers are
fitted to logs of the shared data, where they are. Writes docs/results/search-speed.md.

    python benchmarks/ranking_speed.py [--quick] [--clock wall]
"""

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import numpy as np
from pages import DATA, machine, write_tables
from rounds import CLOCKS, note, query_table, take_turns
from synthetic import mixed_titles

from sentemb import Index, fit_ranker, train
from sentemb.data.best_graded import read_clicks
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.data.simulation.simulator import simulate
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.similarity import unit_rows
from sentemb.search.index_tuning import calibrate, score_bands
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    COSINE,
    MEMORY,
    MODEL_ALONE,
    UNCLICKED,
    Recipe,
)
from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table

K = 10
LOGS = ("tldr", "occupations", "msdocs_index")
# Queries of one turn that are asked one by one, and titles that are ranked for each.
ASKED, RANKED = 50, 100
ALL = Recipe({COSINE: 8.0, MEMORY: 6.0, BM25: 0.4, CLICKED_BM25: 0.1, UNCLICKED: 0.5})


def clicked_queries(titles, per_title):
    """A log with ``per_title`` queries for each title: two to four words of it, in their order."""
    rng = np.random.default_rng(1)
    pairs = []
    for title in titles:
        words = title.split()
        count = int(per_title) + int(rng.random() < per_title % 1)
        for n in rng.integers(2, 5, count).tolist():
            chosen = np.sort(rng.permutation(len(words))[:n])
            pairs.append((" ".join(words[t] for t in chosen.tolist()), title))
    return ClickLog.from_pairs(pairs)


def index_of(model, titles, log, recipe=ALL):
    """An index in one thread that ranks by ``recipe``."""
    ranker = HybridRanker(model, recipe, ClickedQueries.of(log), threads=1)
    return Index.build(ranker, titles, threads=1)


def one_by_one(model, titles, queries, rounds, clock):
    """Searches for one query after the other."""
    note("one query")
    log = clicked_queries(titles, 5.5)
    index = index_of(model, titles, log)
    few = queries[:ASKED]
    contenders = {}
    for name, recipe in {
        "cosine": MODEL_ALONE,
        "cosine + BM25": Recipe({COSINE: 1.0, BM25: 0.05}),
        "cosine + memory": Recipe({COSINE: 1.0, MEMORY: 1.0}),
        "all parts": ALL,
    }.items():
        snapshot = index.snapshot
        ranker = HybridRanker(model, recipe, snapshot.ranker.clicks, snapshot.ranker.fields)
        ranked = Index(snapshot.changed(ranker=ranker), 1)
        contenders[name] = lambda ranked=ranked: [ranked.search(query, K) for query in few]
    result = take_turns(contenders, rounds, clock)
    return {"One query at a time": query_table(result, ASKED, "cosine")}


def at_once(model, titles, queries, rounds, clock):
    """Many queries together."""
    note("many queries")
    log = clicked_queries(titles, 1)
    workers = Workers(1)
    index = index_of(model, titles, log)
    snapshot = index.snapshot
    rows = np.asarray(index.vectors)
    n_rows = len(rows) + int(snapshot.segments[0].part(MEMORY).memory.offsets[-1])
    more_rows = np.concatenate([rows] * (n_rows // len(rows) + 1))[:n_rows]
    contenders = {
        "cosine": lambda: nearest(unit_rows(model.encode_query(queries)), rows, K, None, workers),
        "cosine, as many vectors as with the memory": lambda: nearest(
            unit_rows(model.encode_query(queries)), more_rows, K, None, workers
        ),
    }
    for name, recipe in {
        "cosine + BM25": Recipe({COSINE: 1.0, BM25: 0.05}),
        "cosine + memory": Recipe({COSINE: 1.0, MEMORY: 1.0}),
        "all parts": ALL,
    }.items():
        ranker = HybridRanker(model, recipe, snapshot.ranker.clicks, snapshot.ranker.fields)
        ranked = Index(snapshot.changed(ranker=ranker), 1)
        contenders[name] = lambda ranked=ranked: ranked.ranked(queries, K)
    result = take_turns(contenders, rounds, clock)
    return {"Many queries at once": query_table(result, len(queries), "cosine")}


def given_titles(model, log, queries, rounds, clock):
    """Titles that are given with each query."""
    rng = np.random.default_rng(2)
    clicks = ClickedQueries.of(log)
    rankers = {
        "cosine": HybridRanker(model, MODEL_ALONE, threads=1),
        "all parts": HybridRanker(model, ALL, clicks, threads=1),
    }
    chosen = [rng.choice(len(log.titles), RANKED, False).tolist() for _ in queries[: 20 * ASKED]]
    jobs = [
        (query, [log.titles[t] for t in titles])
        for query, titles in zip(queries, chosen, strict=False)
    ]
    pairs = np.zeros(RANKED, np.int64), np.arange(RANKED)
    contenders = {}

    def add(name, ranked):
        """Each contender goes through all jobs, some of them in a turn."""
        of_turns = itertools.cycle(jobs)
        contenders[name] = lambda: [ranked(*job) for job in itertools.islice(of_turns, ASKED)]

    for name, ranker in rankers.items():
        add(f"rank, {name}", ranker.rank)
    for name, ranker in rankers.items():
        add(
            f"score_pairs, {name}",
            lambda query, titles, ranker=ranker: ranker.score_pairs([query], titles, *pairs),
        )
    result = take_turns(contenders, rounds, clock)
    return {"Given titles": query_table(result, ASKED, "rank, cosine")}


def fits(quick, rounds, clock):
    """Processor seconds of fitting and calibrating; rankings of given titles."""
    rows = [["log", "pairs", "titles", "dev queries", "fit", "calibrate"]]
    tables = {}
    for name in LOGS[:1] if quick else LOGS:
        folder = DATA / name
        if not folder.exists():
            continue
        note(f"fitting, {name}")
        log = read_click_log(folder / "pairs.tsv")
        model = train(log, epochs=1, hard_negatives=0)
        dev = read_judged_set(folder / "dev")
        seconds = []
        for _ in range(1 if rows[1:] else 2):  # the first time compiles
            start = time.process_time()
            ranker = fit_ranker(model, log, dev, threads=1)
            fitting = time.process_time() - start
            index = Index.build(ranker, dev.titles, threads=1)
            clicks = read_clicks(folder / "dev")
            start = time.process_time()
            calibrate(index, clicks)
            score_bands(index, clicks)
            seconds = [fitting, time.process_time() - start]
        rows.append([
            name, f"{len(log.query_index):,}", f"{len(dev.titles):,}", f"{len(dev.queries):,}",
            *(f"{part:.2f} s" for part in seconds),
        ])  # fmt: skip
        if quick or name == LOGS[-1]:
            tables = given_titles(model, log, dev.queries, rounds, clock)
    return tables | {"Fitting": markdown_table(rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    parser.add_argument("--clock", choices=CLOCKS, default="cpu")
    options = parser.parse_args()
    quick, clock = options.quick, CLOCKS[options.clock]
    few, many, rounds = (1000, 4000, 2) if quick else (10_000, 100_000, 9)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "log"
        simulate(folder, pairs=2000 if quick else 20_000)
        log = read_click_log(folder / "pairs.tsv")
        queries = read_judged_set(folder / "test").queries[:1000]
    model = train(log, epochs=2, hard_negatives=0)
    titles = mixed_titles(log.titles, many)
    tables = one_by_one(model, titles[:few], queries, rounds, clock)
    tables |= at_once(model, titles, queries, 2 if quick else 5, clock)
    tables |= fits(quick, rounds, clock)
    write_tables("ranking-speed", tables, machine(), quick)


if __name__ == "__main__":
    main()
