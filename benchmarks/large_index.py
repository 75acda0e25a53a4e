"""How fast a large index ranks by all parts, against other packages over the same titles.

A catalogue is made up with 2 to 5 clicked queries a title, and asked queries that are not among
them. All contenders run in one process on one thread, one query after the other in turns; times are
processor time. hnswlib and faiss have the vectors of the titles, bm25s and tantivy their words;
tantivy + hnswlib adds the scores of the best 1,000 of each, and looks nothing up in the clicks.
Writes docs/results/search-speed.md.

    python benchmarks/large_index.py [--titles 1000000] [--folder build/large] [--quick]
"""

import argparse
import multiprocessing
import time
from pathlib import Path

import bm25s
import faiss
import hnswlib
import numpy as np
import tantivy
from catalogue import RECIPE, made_catalogue
from pages import ROOT, machine, write_tables
from rounds import note

from sentemb import Index, load, train
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.simulation.simulator import simulate
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.system.tables import markdown_table
from sentemb.text.words import searched_words

K, MANY = 10, 1000
TOGETHER = 1000  # titles of each side of the hybrid
FACTOR = 400  # a filter leaves one title of this number


def catalogue_of(folder, n):
    """The made-up catalogue and the model, both the same in every process."""
    if not (folder / "model").exists():
        simulate(folder / "log", pairs=20_000)
        log = read_click_log(folder / "log" / "pairs.tsv")
        train(log, cells=96, epochs=2, hard_negatives=0).save_pretrained(folder / "model")
    log = read_click_log(folder / "log" / "pairs.tsv")
    return made_catalogue(log, n), load(folder / "model", threads=1)


def make_index(folder, n):
    """Write the index, and the processor time that it takes."""
    catalogue, model = catalogue_of(folder, n)
    began = time.process_time()
    clicks = ClickedQueries.of(ClickLog.from_pairs(catalogue.pairs))
    ranker = HybridRanker(model, RECIPE, clicks, threads=1)
    numbers = np.arange(n) % FACTOR
    index = Index.build(ranker, catalogue.titles, fields={"group": numbers.tolist()}, threads=1)
    index.save(folder / f"index-{n}", force=True)
    seconds = time.process_time() - began
    (folder / f"index-{n}.seconds").write_text(str(seconds), encoding="utf-8")


def contenders_of(index, titles, queries):
    """{name: (seconds to make it, search for the query of a number)} of the other packages."""
    vectors = np.ascontiguousarray(index.vectors)
    rows = index.model.unit_vectors(queries, "query")
    words = [searched_words(query) for query in queries]
    made = {}

    def timed(name, make):
        note(name)
        began = time.process_time()
        search = make()
        made[name] = time.process_time() - began, search

    def flat():
        flat = faiss.IndexFlatIP(vectors.shape[1])
        flat.add(vectors)
        return lambda q: flat.search(rows[q : q + 1], K)

    def ivf():
        lists = min(2048, int(4 * len(titles) ** 0.5))
        ivf = faiss.index_factory(vectors.shape[1], f"IVF{lists},Flat", faiss.METRIC_INNER_PRODUCT)
        ivf.train(vectors[:: max(1, len(titles) // (40 * lists))])
        ivf.add(vectors)
        ivf.nprobe = 32
        return lambda q: ivf.search(rows[q : q + 1], K)

    graph = hnswlib.Index("ip", vectors.shape[1])

    def hnsw():
        graph.init_index(len(titles), ef_construction=80, M=16)
        graph.set_num_threads(1)
        graph.add_items(vectors, num_threads=1)
        graph.set_ef(128)
        return lambda q: graph.knn_query(rows[q : q + 1], K, num_threads=1)

    def bm25s_lists():
        index = bm25s.BM25(method="lucene", backend="numba")
        index.index(list(map(searched_words, titles)), show_progress=False)
        return lambda q: index.retrieve([words[q]], k=K, n_threads=1, show_progress=False)

    schema = tantivy.SchemaBuilder()
    schema.add_text_field("title", tokenizer_name="whitespace")
    schema = schema.build()
    lists = tantivy.Index(schema)

    def top(q, k):
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(schema, "title", word))
            for word in words[q]
        ]
        return lists.searcher().search(tantivy.Query.boolean_query(terms), k, count=False).hits

    def tantivy_lists():
        writer = lists.writer(300_000_000, 1)
        for title in titles:
            writer.add_document(tantivy.Document(title=[" ".join(searched_words(title))]))
        writer.commit()
        writer.wait_merging_threads()
        lists.reload()
        return lambda q: top(q, K)

    def hybrid():
        def search(q):
            graph.set_ef(TOGETHER)
            numbers, distances = graph.knn_query(rows[q : q + 1], TOGETHER, num_threads=1)
            graph.set_ef(128)
            scores = dict(zip(numbers[0].tolist(), (8 * (1 - distances[0])).tolist(), strict=True))
            for score, address in top(q, TOGETHER):  # one segment: its numbers are the titles
                scores[address.doc] = scores.get(address.doc, 0) + score
            return sorted(scores, key=scores.__getitem__, reverse=True)[:K]

        return search

    timed("faiss, IndexFlatIP", flat)
    timed("faiss, IVF with 32 probed lists", ivf)
    timed("hnswlib, ef 128", hnsw)
    timed("bm25s", bm25s_lists)
    timed("tantivy", tantivy_lists)
    timed("tantivy + hnswlib, 1,000 of each", hybrid)
    return made


def spread(seconds):
    return f"{np.median(seconds) * 1e3:.2f} ms", f"{np.quantile(seconds, 0.95) * 1e3:.2f} ms"


def against_others(index, titles, queries, making):
    """Contenders in turns, query by query."""
    searches = {
        "sentemb": (making, lambda q: index.ranked([queries[q]], K)),
        "sentemb, exact": (0.0, lambda q: index.ranked([queries[q]], K, exact=True)),
    } | contenders_of(index, titles, queries)
    seconds = {name: [] for name in searches}
    note("queries")
    for q in range(len(queries)):
        for name, (_, search) in searches.items():
            began = time.process_time()
            search(q)
            seconds[name].append(time.process_time() - began)
    exact, near = (index.ranked(queries, K, exact=exact) for exact in (True, False))
    is_near = near.scores >= exact.scores[:, -1:]
    rows = [["", "made in", "median of a query", "95 % are below"]]
    for name, (making_of, _) in searches.items():
        made = f"{making_of:.0f} s" if making_of else ""
        rows.append([name, made, *spread(seconds[name][1:])])
    recall = [["", "recall@10"], ["sentemb", f"{is_near.mean():.4f}"]]
    return {
        "A large catalogue": markdown_table(rows),
        "Recall of a large catalogue": markdown_table(recall),
    }


def own_jobs(index, queries):
    """Other searches of a large index."""
    note("other searches")
    begun = [query[:3] for query in queries[:50]]
    many = (queries * (MANY // len(queries) + 1))[:MANY]
    jobs = {
        f"each of {MANY:,} queries at once": (MANY, lambda: index.ranked(many, K)),
        f"a filter that leaves one title in {FACTOR}": (
            50, lambda: [index.search(query, where="group = 7") for query in queries[:50]],
        ),
        "a facet": (20, lambda: [index.search(query, facets=["group"]) for query in queries[:20]]),
        "a suggestion": (50, lambda: [index.suggest(text) for text in begun]),
    }  # fmt: skip
    index.suggest("zzz")
    rows = [["", "time"]]
    for name, (count, job) in jobs.items():
        began = time.process_time()
        job()
        rows.append([name, f"{(time.process_time() - began) / count * 1e3:.2f} ms"])
    return {"Other searches of a large catalogue": markdown_table(rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--titles", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "large")
    parser.add_argument("--quick", action="store_true", help="few titles, results not written")
    options = parser.parse_args()
    n, folder = 40_000 if options.quick else options.titles, options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"index-{n}").exists():
        note(f"an index of {n:,} titles")
        process = multiprocessing.get_context("spawn").Process(target=make_index, args=(folder, n))
        process.start()  # whose memory is free then
        process.join()
    making = float((folder / f"index-{n}.seconds").read_text(encoding="utf-8"))
    faiss.omp_set_num_threads(1)
    titles, queries = catalogue_of(folder, n)[0][::2]
    index = Index.open(folder / f"index-{n}", threads=1)
    queries = queries[: 50 if options.quick else 200]
    tables = against_others(index, titles, queries, making) | own_jobs(index, queries)
    write_tables("large-index", tables, machine(), options.quick)


if __name__ == "__main__":
    main()
