"""How fast an index is made and searched, against NumPy, faiss, usearch and bm25s.

Titles are mixed from those of a simulated log, and a model is trained on that log for two epochs.
Contenders take turns in one process; ratios compare neighbouring turns. Writes
docs/results/search-speed.md.

    python benchmarks/index_speed.py [--quick] [--clock cpu]
"""

import argparse
import tempfile
from pathlib import Path

import bm25s
import faiss
import numpy as np
from pages import machine, write_tables
from rounds import CLOCKS, DisagreementError, Result, note, query_table, take_turns
from sif_speed import COMMAND, in_process
from synthetic import mixed_titles
from targets import times
from threadpoolctl import threadpool_limits
from usearch.index import MetricKind
from usearch.index import search as usearch_search

from sentemb import Index, train
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.data.lines import write_lines
from sentemb.data.simulation.simulator import simulate
from sentemb.retrieval.bm25 import K1, B, TitleWords
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.nearest import nearest
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.parallel import Workers, available_threads
from sentemb.system.tables import markdown_table
from sentemb.text.words import searched_words

K = 10
# Rows of one product of the contender that is a bare matrix product, and of one look-up in it.
BLOCK = 65_536


def numpy_top(queries, titles):
    """The usual short program: products in blocks, then the best of each block and of all."""
    places, scores = [], []
    for first in range(0, len(titles), BLOCK):
        products = queries @ titles[first : first + BLOCK].T
        best = np.argpartition(products, -K, axis=1)[:, -K:]
        places.append(best + first)
        scores.append(np.take_along_axis(products, best, axis=1))
    places, scores = np.hstack(places), np.hstack(scores)
    order = np.argsort(-scores, axis=1)[:, :K]
    return np.take_along_axis(places, order, axis=1)


def bare_product(queries, titles):
    """Nothing but the products, block by block; the better of the two ways to write them."""
    across = np.ascontiguousarray(queries.T)
    for first in range(0, len(titles), BLOCK):
        titles[first : first + BLOCK] @ across


def agree(found, scores, exact):
    """The share of found titles that score at least as much as the k-th of exact search."""
    return float((scores[np.arange(len(found))[:, None], found] >= exact[:, -1:] - 1e-6).mean())


def searches(index, queries, rounds, clock):
    """{heading: table} that compare searches in one running process."""
    titles = np.asarray(index.vectors)
    types = {
        "sentemb": titles,
        "sentemb, float16": titles.astype(np.float16),
        "sentemb, int8": Int8Rows.of(titles),
    }
    flat = faiss.IndexFlatIP(titles.shape[1])
    flat.add(titles)
    tables = {}
    faiss.omp_set_num_threads(1)
    with threadpool_limits(1):
        for m in (1, 64):
            note(f"{m} queries on one thread")
            some = queries[:m]
            contenders = {
                name: lambda own=own, some=some: nearest(some, own, K)
                for name, own in types.items()
            }
            contenders["NumPy: product, argpartition"] = lambda some=some: numpy_top(some, titles)
            contenders["faiss, IndexFlatIP"] = lambda some=some: flat.search(some, K)
            if m == 1:
                contenders["usearch, exact"] = lambda some=some: usearch_search(
                    titles, some[0], K, MetricKind.IP, exact=True, threads=1
                )
            result = take_turns(contenders, rounds if m == 1 else 3, clock)
            plural = "One query" if m == 1 else f"{m} queries at once"
            tables[f"{plural}, one thread"] = query_table(result, m, "sentemb")
    threads = available_threads()
    note(f"{len(queries)} queries on {threads} threads")
    faiss.omp_set_num_threads(threads)
    with Workers(threads) as workers:
        contenders = {
            "product alone": lambda asked: bare_product(asked, titles),
            "sentemb": lambda asked: nearest(asked, titles, K, workers=workers),
            "sentemb, int8": lambda asked: nearest(
                asked, types["sentemb, int8"], K, workers=workers
            ),
            "faiss, IndexFlatIP": lambda asked: flat.search(asked, K),
        }
        seconds = {}
        for name, search in contenders.items():
            search(queries[:64])  # warms up
            began = clock()
            search(queries)
            seconds[name] = [clock() - began]
        result = Result(seconds)
    title = f"{len(queries):,} queries at once, {threads} threads"
    tables[title] = query_table(result, len(queries), "product alone")
    return tables | {"Recall": recall(titles, types, queries)}


def recall(titles, types, queries):
    """What rounded vectors find of the 10 best titles."""
    note("recall")
    rows = [["", "recall@10", "MB"]]
    some = queries[:200]
    scores = some.astype(np.float64) @ titles.T.astype(np.float64)
    _, exact = nearest(some, titles, K)
    sizes = (4, 2, 1)
    for (name, own), size in zip(types.items(), sizes, strict=True):
        places, _ = nearest(some, own, K)
        rows.append(
            [name, f"{agree(places, scores, exact):.4f}", f"{titles.size * size / 1e6:.0f}"]
        )
    return markdown_table(rows)


def bm25s_index(titles):
    """The titles in bm25s: numbers from its `Tokenizer` take less time than lists of words."""
    tokenizer = bm25s.tokenization.Tokenizer(False, searched_words, stopwords=None)
    words = tokenizer.tokenize(titles, return_as="tuple", allow_empty=False, show_progress=False)
    index = bm25s.BM25(K1, B, method="lucene", backend="numba")
    index.index(words, show_progress=False)
    return index


def bm25s_scores(index, queries):
    """The scores of the best titles in bm25s: Numba takes less time than NumPy."""
    words = [searched_words(query) for query in queries]
    return index.retrieve(words, k=K, n_threads=1, show_progress=False).scores


def word_match(titles, queries):
    """BM25 from titles and queries as strings, here and in bm25s: processor time of one thread.

    Both have the same words, k1, b and formula, and their scores are compared. Titles of equal
    scores are in no set order in bm25s.
    """
    note("BM25")
    ours, theirs = TitleWords(titles, threads=1), bm25s_index(titles)
    # A title without a word of the query has the score -inf here and 0 there.
    scores = np.maximum(ours.find(queries, K)[1], 0), bm25s_scores(theirs, queries)
    if not np.allclose(*scores, rtol=1e-5, atol=1e-5):
        raise DisagreementError("scores of bm25s differ")
    jobs = {
        f"index of {len(titles):,} titles": (
            1, lambda: TitleWords(titles, threads=1), lambda: bm25s_index(titles),
        ),
        "one query": (
            len(queries),
            lambda: [ours.find([query], K) for query in queries],
            lambda: [bm25s_scores(theirs, [query]) for query in queries],
        ),
        f"each of {len(queries):,} queries at once": (
            len(queries), lambda: ours.find(queries, K), lambda: bm25s_scores(theirs, queries),
        ),
    }  # fmt: skip
    rows = [["", "sentemb", "bm25s"]]
    for what, (count, *pair) in jobs.items():
        result = take_turns(dict(zip(("ours", "bm25s"), pair, strict=True)), 3, CLOCKS["cpu"])
        own, other = (1e3 * result.time(name).median / count for name in result.seconds)
        ratio = times(result.ratio("bm25s"))
        rows.append([what, f"{own:,.3f} ms", f"{other:,.3f} ms, {ratio}"])
    return {"BM25": markdown_table(rows)}


def commands(folder, model, n):
    """The commands, each in a process of its own."""
    rows = [["command", "seconds", "peak memory"]]
    titles, index = folder / "titles.tsv", folder / "index"
    query = "cheap hotel in paris"
    jobs = {
        f"`sentemb index`, {n:,} titles": ("index", model, titles, "-o", index),
        "`sentemb index --dtype int8`": (
            "index", model, titles, "-o", folder / "int8", "--dtype", "int8",
        ),
        "`sentemb search`, float32": ("search", index, query),
        "`sentemb search`, int8": ("search", folder / "int8", query),
        "`sentemb index --add`, 1,000 titles": (
            "index", index, "--add", folder / "new.tsv", "-o", folder / "more",
        ),
    }  # fmt: skip
    in_process(COMMAND, "search", "--help")  # compiled code and files are in the system's cache
    for what, arguments in jobs.items():
        note(what)
        if "search" in what:
            in_process(COMMAND, *arguments)
        seconds, peak, _ = in_process(COMMAND, *arguments)
        rows.append([what, f"{seconds:.1f} s", f"{peak:,.0f} MB"])
    return markdown_table(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, results not written")
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    options = parser.parse_args()
    quick, clock = options.quick, CLOCKS[options.clock]
    n, m, rounds = (20_000, 100, 2) if quick else (1_000_000, 1000, 9)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        note("a simulated log and a model")
        simulate(folder / "log", pairs=2000 if quick else 20_000)
        log = read_click_log(folder / "log" / "pairs.tsv")
        model = train(log, cells=96, epochs=2, hard_negatives=0)
        model.save_pretrained(folder / "model")
        titles = mixed_titles(log.titles, n + 1000)
        lines = [f"t{place}\t{title}" for place, title in enumerate(titles)]
        write_lines(folder / "titles.tsv", lines[:n])
        write_lines(folder / "new.tsv", lines[n:])
        tables = {"Commands": commands(folder, folder / "model", n)}
        index = Index.open(folder / "index")
        asked = read_judged_set(folder / "log" / "test").queries
        asked = (asked * (m // len(asked) + 1))[:m]
        queries = unit_rows(model.encode_query(asked))
        tables |= searches(index, queries, rounds, clock)
        tables |= word_match(titles[:100_000], asked)
    write_tables("index-speed", tables, machine(), quick)


if __name__ == "__main__":
    main()
