"""How fast a large index ranks by all parts, against other packages over the same titles.

A catalogue is made up with 2 to 5 clicked queries a title, and asked queries that are not among
them. All contenders run in one process on one thread, one query after the other in turns; times are
processor time. hnswlib and faiss have the vectors of the titles, bm25s and tantivy their words;
tantivy + hnswlib adds the scores of the best 1,000 of each, and looks nothing up in the clicks.
Writes docs/results/search-speed.md.

    python benchmarks/large_index.py [--titles 300000] [--folder build/large] [--quick]
"""

import argparse
import multiprocessing
import resource
import shutil
import time
from concurrent.futures import ProcessPoolExecutor
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


class Packages:
    """The other packages: each method makes an index and returns its search for query ``q``."""

    def __init__(self, index, titles, queries):
        self.vectors = np.ascontiguousarray(index.vectors)
        self.rows = index.model.unit_vectors(queries, "query")
        self.titles = [searched_words(title) for title in titles]
        self.words = [searched_words(query) for query in queries]

    def row(self, q):
        return self.rows[q : q + 1]

    def faiss_flat(self):
        flat = faiss.IndexFlatIP(self.vectors.shape[1])
        flat.add(self.vectors)
        return lambda q: flat.search(self.row(q), K)

    def faiss_lists(self):
        n, dim = self.vectors.shape
        count = min(2048, int(4 * n**0.5))
        lists = faiss.index_factory(dim, f"IVF{count},Flat", faiss.METRIC_INNER_PRODUCT)
        lists.train(self.vectors[:: max(1, n // (40 * count))])
        lists.add(self.vectors)
        lists.nprobe = 32
        return lambda q: lists.search(self.row(q), K)

    def hnswlib(self):
        graph = self.graph = hnswlib.Index("ip", self.vectors.shape[1])
        graph.init_index(len(self.vectors), ef_construction=80, M=16)
        graph.set_num_threads(1)
        graph.add_items(self.vectors, num_threads=1)
        return lambda q: self._near(q, K, 128)[0]

    def _near(self, q, k, breadth):
        self.graph.set_ef(breadth)
        numbers, distances = self.graph.knn_query(self.row(q), k, num_threads=1)
        return numbers[0].tolist(), distances[0].tolist()

    def bm25s(self):
        lists = bm25s.BM25(method="lucene", backend="numba")
        lists.index(self.titles, show_progress=False)
        return lambda q: lists.retrieve([self.words[q]], k=K, n_threads=1, show_progress=False)

    def tantivy(self):
        schema = tantivy.SchemaBuilder()
        schema.add_text_field("title", tokenizer_name="whitespace")
        self.schema = schema.build()
        lists = tantivy.Index(self.schema)
        writer = lists.writer(300_000_000, 1)
        for words in self.titles:
            writer.add_document(tantivy.Document(title=[" ".join(words)]))
        writer.commit()
        writer.wait_merging_threads()
        lists.reload()
        self.searcher = lists.searcher()
        return lambda q: self._top(q, K)

    def _top(self, q, k):
        terms = [
            (tantivy.Occur.Should, tantivy.Query.term_query(self.schema, "title", word))
            for word in self.words[q]
        ]
        return self.searcher.search(tantivy.Query.boolean_query(terms), k, count=False).hits

    def hybrid(self):
        """The sum of the two before; without a look at the store for the id of a title."""

        def search(q):
            numbers, distances = self._near(q, TOGETHER, TOGETHER)
            scores = {t: 8 * (1 - d) for t, d in zip(numbers, distances, strict=True)}
            for score, address in self._top(q, TOGETHER):
                scores[address.doc] = scores.get(address.doc, 0) + score
            return sorted(scores, key=scores.__getitem__, reverse=True)[:K]

        return search


CONTENDERS = {
    "faiss, IndexFlatIP": Packages.faiss_flat,
    "faiss, 32 lists of an IVF": Packages.faiss_lists,
    "hnswlib, ef 128": Packages.hnswlib,
    "bm25s": Packages.bm25s,
    "tantivy": Packages.tantivy,
    "tantivy + hnswlib, 1,000 of each": Packages.hybrid,
}


def spread(seconds):
    return f"{np.median(seconds) * 1e3:.2f} ms", f"{np.quantile(seconds, 0.95) * 1e3:.2f} ms"


def against_others(index, titles, queries, making):
    """Contenders in turns, query by query."""
    searches = {
        "sentemb": (making, lambda q: index.ranked([queries[q]], K)),
        "sentemb, exact": (0.0, lambda q: index.ranked([queries[q]], K, exact=True)),
    }
    packages = Packages(index, titles, queries)
    for name, make in CONTENDERS.items():
        note(name)
        began = time.process_time()
        search = make(packages)
        searches[name] = time.process_time() - began, search
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


def change(path, what, n):
    """The processor time of a change, from opening to the end of writing, and the memory in GB."""
    copy = path.with_name(f"{path.name}-changed")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(path, copy)
    began = time.process_time()
    index = Index.open(copy, threads=1)
    if what == "add":
        titles = [f"{index.titles[t]} zz{t}" for t in range(100)]
        index.add(titles, [f"new{t}" for t in range(100)], fields={"group": list(range(100))})
    elif what == "remove":
        index.remove([str(t * (n // 100)) for t in range(100)])
    else:
        titles = [f"{title} zz" if t % 100 == 0 else title for t, title in enumerate(index.titles)]
        groups = {"group": (np.arange(n) % FACTOR).tolist()}
        index.sync(titles, list(index), fields=groups)
    index.save(copy, force=True)
    seconds = time.process_time() - began
    shutil.rmtree(copy)
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def changes(folder, n):
    """What a change of a large index costs, each in a process of its own."""
    note("changes")
    rows = [["", "processor time", "most memory"]]
    names = {"add": "100 titles added", "remove": "100 titles removed", "sync": "1 % synchronised"}
    for what, name in names.items():
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, context) as pool:
            seconds, memory = pool.submit(change, folder / f"index-{n}", what, n).result()
        rows.append([name, f"{seconds:.2f} s", f"{memory:.2f} GB"])
    return {"Changes of a large catalogue": markdown_table(rows)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--titles", type=int, default=300_000)
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
    tables |= changes(folder, n)
    write_tables("large-index", tables, machine(), options.quick)


if __name__ == "__main__":
    main()
