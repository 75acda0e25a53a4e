"""How fast a large index ranks by all parts, against other packages over the same titles.

A catalogue is made up with 2 to 5 clicked queries a title. Asked are queries that are not among
them, queries that are, and whole titles. All contenders run in one process on one thread, after
some queries that are not measured; each query is asked of all in turn, the next one first of the
next contender. Times are processor time. hnswlib and faiss have the vectors of the titles, bm25s
and tantivy their words; tantivy + hnswlib adds the scores of the best 1,000 of each, and looks
nothing up in the clicks.
Then the commands that make, change and open such an index are measured, each in a process of its
own. Writes docs/results/search-speed.md. 300,000 titles take 6 minutes, a million 20, 6 GB of
memory and 6 GB of disk.

    python benchmarks/large_index.py [--titles 300000] [--folder build/large] [--quick]
"""

import argparse
import multiprocessing
import resource
import shutil
import sys
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
from scale import measured

from sentemb import Index, load, train
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.simulation.simulator import simulate
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.ranking.floor import FEATURES, Floor, Letters
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.searcher import MOST_MATCHES
from sentemb.system.tables import markdown_table
from sentemb.text.words import searched_words

K, MANY, WARM = 10, 1000, 100
TOGETHER = 1000  # titles of each side of the hybrid
FACTOR = 400  # a filter leaves one title of this number
CHANGED = 100  # titles that are added and removed; a sync changes one in this many
# A program that opens an index and asks a first query.
FIRST = "import sys; from sentemb import Index; Index.open(sys.argv[1], 1).search(sys.argv[2])"


def catalogue_of(folder, n):
    """The made-up catalogue and the model, both the same in every process."""
    if not (folder / "model").exists():
        simulate(folder / "log", pairs=20_000)
        log = read_click_log(folder / "log" / "pairs.tsv")
        train(log, cells=96, epochs=2, hard_negatives=0).save_pretrained(folder / "model")
    log = read_click_log(folder / "log" / "pairs.tsv")
    return made_catalogue(log, n), load(folder / "model", threads=1)


def make_files(folder, n):
    """Write a model whose ranker has the clicks of the catalogue and a floor, and the titles.

    The floor refuses no query.
    """
    catalogue, model = catalogue_of(folder, n)
    clicks = ClickedQueries.of(ClickLog.from_pairs(catalogue.pairs))
    ranker = HybridRanker(model, RECIPE, clicks, threads=1)
    letters = Letters.of(ranker.fields.whole)
    ranker.floor = Floor((0.0,) * (1 + len(FEATURES)), -1.0, letters)
    model.save_pretrained(folder / f"model-{n}")
    ranker.save(folder / f"model-{n}")
    lines = [f"p{t}\t{title}\t{t % FACTOR}" for t, title in enumerate(catalogue.titles)]
    changed = [line.replace("\t", "\tnew ", t % CHANGED == 0) for t, line in enumerate(lines)]
    added = [f"new{line}" for line in lines[:CHANGED]]
    for name, some in (("titles", lines), ("synced", changed), ("added", added)):
        text = "\n".join(["id\ttitle\tgroup", *some, ""])
        (folder / f"{name}-{n}.tsv").write_text(text, encoding="utf-8")
    removed = "".join(f"p{t}\n" for t in range(CHANGED))
    (folder / f"removed-{n}.txt").write_text(removed, encoding="utf-8")


def job(command):
    """The row of a command: its processor time, and the most memory that it had."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    facts = measured(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = sum(getattr(after, of) - getattr(before, of) for of in ("ru_utime", "ru_stime"))
    return [f"{seconds:.2f} s", f"{facts['own']:,.0f} MB", f"{facts['all']:,.0f} MB"]


def own_commands(folder, n, query):
    """The rows of the commands that make, open and change an index, each a process of its own."""
    index, copy = folder / f"index-{n}", folder / "changed"
    sentemb = [sys.executable, "-m", "sentemb", "index", "--threads", "1"]
    rows = [["", "processor time", "memory of its own", "with pages of files"]]

    def show(name, command):
        note(name)
        rows.append([name, *job(command)])

    titles = folder / f"titles-{n}.tsv"
    make = [*sentemb, folder / f"model-{n}", titles, "-o", index, "--force"]
    show("`index`", make)
    show("opening and the first query", [sys.executable, "-c", FIRST, index, query])
    for name, of, option in (
        (f"`--add` {CHANGED} titles", "added", "--add"),
        (f"`--remove` {CHANGED} titles", "removed", "--remove"),
        (f"`--sync`, where one title in {CHANGED} differs", "synced", "--sync"),
    ):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(index, copy)
        (listed,) = folder.glob(f"{of}-{n}.*")
        show(name, [*sentemb, copy, option, listed])
    shutil.rmtree(copy)
    return rows


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


# Shown for every kind of query.
COMPARED = "sentemb", "sentemb, exact", "tantivy + hnswlib, 1,000 of each"


def drawn_queries(catalogue, n):
    """``n`` queries of each kind that people type, by the name of the kind."""
    rng = np.random.default_rng(1)
    pairs, titles = (rng.integers(0, len(of), n).tolist() for of in catalogue[1::-1])
    return {
        "that nobody typed before": catalogue.asked[:n],
        "of the log": [catalogue.pairs[row][0] for row in pairs],
        "whole titles": [catalogue.titles[row] for row in titles],
    }


def spread(seconds):
    return f"{np.median(seconds) * 1e3:.2f} ms", f"{np.quantile(seconds, 0.95) * 1e3:.2f} ms"


def against_others(index, titles, kinds, warm, making):
    """Contenders in turns, query by query; ``warm`` are queries that are not measured."""
    queries = [*warm, *(query for of_kind in kinds.values() for query in of_kind)]
    searches = {
        "sentemb": (making, lambda q: index.ranked([queries[q]], K)),
        "sentemb, exact": ("", lambda q: index.ranked([queries[q]], K, exact=True)),
    }
    packages = Packages(index, titles, queries)
    for name, make in CONTENDERS.items():
        note(name)
        began = time.process_time()
        search = make(packages)
        searches[name] = f"{time.process_time() - began:.0f} s", search
    seconds = {name: [] for name in searches}
    note("queries")
    turns = [*searches.items()]
    for q in range(len(queries)):
        # Who follows a look at all vectors finds nothing in the processor's caches.
        for name, (_, search) in turns[q % len(turns) :] + turns[: q % len(turns)]:
            began = time.process_time()
            search(q)
            seconds[name].append(time.process_time() - began)
    exact, near = (index.ranked(queries, K, exact=exact) for exact in (True, False))
    is_near = near.scores >= exact.scores[:, -1:]
    parts = [*parts_of(kinds, len(warm))]
    first = parts[0]
    rows = [["", "made in", "median of a query", "95 % are below"]]
    for name, (making_of, _) in searches.items():
        rows.append([name, making_of, *spread(seconds[name][first])])
    of_kinds = [["queries", "by", "median", "95 % are below", "found"]]
    for kind, part in zip(kinds, parts, strict=True):
        for name in COMPARED:
            found = f"{is_near[part].mean():.4f}" if name == "sentemb" else ""
            of_kinds.append([kind, name, *spread(seconds[name][part]), found])
    n_found = f"{counted(index, queries[first][:50]):.4f}"
    return {
        "A large catalogue": markdown_table(rows),
        "A large catalogue by kind of query": markdown_table(of_kinds),
        "Recall of a large catalogue": markdown_table(
            [["", "found"], ["titles that are sorted and counted", n_found]]
        ),
    }


def parts_of(kinds, first):
    """The place of each kind among all queries."""
    for queries in kinds.values():
        yield slice(first, first + len(queries))
        first += len(queries)


def counted(index, queries):
    """The share of the titles that sorts and facets are over which a search with these finds."""
    n_found = n_all = 0
    for query in queries:
        of_counts = {"k": MOST_MATCHES, "sort": "group"}
        every = {hit.id for hit in index.search(query, exact=True, **of_counts)}
        n_found += len(every & {hit.id for hit in index.search(query, **of_counts)})
        n_all += len(every)
    return n_found / n_all


def own_jobs(index, queries):
    """Other searches of a large index."""
    note("other searches")
    begun = [query[:3] for query in queries[:50]]
    many = (queries * (MANY // len(queries) + 1))[:MANY]
    jobs = {
        f"each of {MANY:,} queries at once": (MANY, lambda: index.ranked(many, K)),
        f"each of {MANY:,} exact ones": (MANY, lambda: index.ranked(many, K, exact=True)),
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
    parser.add_argument("--titles", type=int, default=300_000)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "large")
    parser.add_argument("--quick", action="store_true", help="few titles, results not written")
    options = parser.parse_args()
    n, folder = 40_000 if options.quick else options.titles, options.folder
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / f"removed-{n}.txt").exists():
        note(f"a catalogue of {n:,} titles")
        process = multiprocessing.get_context("spawn").Process(target=make_files, args=(folder, n))
        process.start()  # whose memory is free then
        process.join()
    catalogue = catalogue_of(folder, n)[0]
    kinds = drawn_queries(catalogue, 50 if options.quick else 200)
    titles, queries = catalogue.titles, next(iter(kinds.values()))
    commands = own_commands(folder, n, queries[0])
    faiss.omp_set_num_threads(1)
    index = Index.open(folder / f"index-{n}", threads=1)
    warm = catalogue.asked[-WARM:]
    tables = against_others(index, titles, kinds, warm, commands[1][1]) | own_jobs(index, queries)
    tables["Making and changing a large catalogue"] = markdown_table(commands)
    write_tables("large-index", tables, machine(), options.quick)


if __name__ == "__main__":
    main()
