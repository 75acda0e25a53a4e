"""What the ranking of an export to a search engine loses against that of its index.

For each log the titles of the judged test set are indexed and exported to Elasticsearch, and what
query.json asks for is added up in Python, with the words of the package. The titles with the best
grade of a query count as clicked. The models and their rankers are the defaults with seed 0; they
stay in build/systems. Writes docs/results/exports.md.

    python benchmarks/engines.py [--data DIR] [--threads 1]
"""

import gzip
import json
import tempfile
from collections import defaultdict
from pathlib import Path

import numpy as np
from pages import SETS, options_for, write_tables
from systems import BUILD, ranker_of, trained, with_interval

from sentemb import Index, export
from sentemb.bridges.export.search_engines.scoring import (
    CLICKED,
    COUNTS,
    NEAREST,
    TITLE,
    WORDS,
    count_name,
)
from sentemb.data.best_graded import best_graded
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.significance import compare_all
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.words_and_stems import words_of
from sentemb.system.parallel import Workers
from sentemb.system.tables import markdown_table

METRICS = {"mrr@10": "MRR@10", "hit@1": "hit@1", "recall@10": "recall@10"}
# Queries that are scored at a time.
BLOCK = 256


class Engine:
    """A stand-in for Elasticsearch: a `sentemb.models.contracts.Retriever` over an exported folder.

    Parameters
    ----------
    folder : path
        What ``sentemb export --to elasticsearch`` wrote.
    model : SentenceEncoder
        What embeds queries.
    stem : str or None
        What the analyser of the mapping does.
    """

    def __init__(self, folder, model, stem):
        self._model, self._body = model, json.loads((folder / "query.json").read_text())
        mapping = json.loads((folder / "mapping.json").read_text())
        (bm25,) = mapping["settings"]["index"]["similarity"].values()  # rankers here read words
        lines = []
        for part in sorted(folder.glob("bulk-*")):
            lines += gzip.decompress(part.read_bytes()).splitlines()[1::2]
        documents = [json.loads(line) for line in lines]
        nothing = [0.0] * model.dim
        vectors = [document.get("vector", nothing) for document in documents]
        self._vectors = np.array(vectors, np.float32)
        self._is_unclicked = np.array([CLICKED not in document for document in documents])
        # Of each query its titles, and what ``rank_feature`` reads there.
        self._counts = defaultdict(dict)
        for place, document in enumerate(documents):
            for name, count in document.get(COUNTS, {}).items():
                self._counts[name][place] = count
        texts = {
            TITLE: [document[TITLE] for document in documents],
            CLICKED: [" ".join(document.get(CLICKED, ())) for document in documents],
        }
        both = zip(texts[TITLE], texts[CLICKED], strict=True)
        texts[WORDS] = [" ".join(pair) for pair in both]
        self._words = {
            field: TitleWords(some, bm25["k1"], bm25["b"], words_of(stem))
            for field, some in texts.items()
        }

    def find(self, queries, k):
        """The k titles with the highest scores, as `Retriever` has them."""
        parts = [
            self._found(queries[low : low + BLOCK], k) for low in range(0, len(queries), BLOCK)
        ]
        places, scores = zip(*parts, strict=True)
        return np.concatenate(places), np.concatenate(scores)

    def _found(self, queries, k):
        total = np.zeros((len(queries), len(self._vectors)), np.float32)
        if "knn" in self._body:
            asked = self._model.unit_vectors(queries, "query")
            scores = (1 + asked @ self._vectors.T) / 2
            least = -np.partition(-scores, NEAREST - 1, axis=1)[:, NEAREST - 1 : NEAREST]
            total += np.where((scores >= least) & asked.any(axis=1, keepdims=True), scores, 0)
        for clause in self._body.get("query", {}).get("bool", {}).get("should", []):
            self._add(total, clause, queries, 1.0)
        total[total == 0] = -np.inf
        for one in self._body.get("rescore", []):
            more = np.zeros_like(total)
            clause, factor = one["query"].values()
            self._add(more, clause, queries, factor)
            last = np.argsort(-total, axis=1, kind="stable")[:, one["window_size"] :]
            np.put_along_axis(more, last, 0, axis=1)
            total += more
        places = np.argsort(-total, axis=1, kind="stable")[:, :k]
        scores = np.take_along_axis(total, places, axis=1).astype(np.float64)
        return np.where(np.isfinite(scores), places, -1), scores

    def _add(self, total, clause, queries, factor):
        """Add what a clause of query.json scores."""
        if "constant_score" in clause:
            total += np.float32(factor) * self._is_unclicked
            return
        if "rank_feature" in clause:
            for row, query in zip(total, queries, strict=True):
                for place, count in self._counts.get(count_name(query), {}).items():
                    row[place] += factor * clause["rank_feature"]["boost"] * np.log1p(count)
            return
        ((field, match),) = clause["match"].items()
        words, boost = self._words[field], match.get("boost", 1.0)
        words.lists.add(total, factor * boost, words.look_up(queries), Workers(1))


def rows(data, name, threads):
    """The rows of the table of one log."""
    folder, log, dev = BUILD / name / "seed-0", data / name / "pairs.tsv", data / name / "dev"
    trained(folder, log, dev, threads=threads)
    ranker = ranker_of(folder, log, dev, threads=threads)
    judged = read_judged_set(data / name / "test")
    held_out = HeldOutClicks(best_graded(judged), judged.titles, list(METRICS))
    index = Index.build(ranker, judged.titles, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        export(index, Path(folder) / "out", "elasticsearch")
        engine = Engine(Path(folder) / "out", index.model, index.recipe.stem)
    systems = {
        "model alone": ranker.over(judged.titles).alone("cosine"),
        "query.json": engine,
        "index": index,
    }
    found = {system: held_out.evaluate(one).values for system, one in systems.items()}
    yield ["", *METRICS.values(), "MRR@10 minus index"]
    for system, values in found.items():
        (difference,) = compare_all([values[:, 0]], found["index"][:, 0])
        means = [f"{mean:.3f}" for mean in values.mean(axis=0)]
        yield [system, *means, "-" if system == "index" else with_interval(difference)]


def main():
    options = options_for(__doc__, SETS)
    tables = {}
    for name in options.sets:
        tables[name] = markdown_table(rows(options.data, name, options.threads))
    write_tables("engines", tables)


if __name__ == "__main__":
    main()
