"""Does a pair model put the best titles of a two-tower model into a better order?

For each log, two towers are trained with default settings: the LSTM that finds the candidates, and
a bag. The LSTM ranks all titles of the judged set for every query; its best 30 are re-ranked by

- pair models that learned from the same log, with the LSTM as the teacher of hard negatives;
- the sum of the LSTM and another system: a pair model, the bag, BM25.

The scores of each query are standardised before they are added up; the weight of the second system
is chosen on dev. Test figures come with paired bootstrap intervals of the difference to the LSTM
alone. Writes docs/results/rerank.md with its CSV. Models and finished logs stay in build/rerank: a
run that was stopped continues there; remove the folder to begin from nothing.

    python benchmarks/rerank.py [--data ../shared/data] [--sets tldr] [--threads 1]
"""

import sys

import numpy as np
from pages import ROOT, options_for, write_tables
from systems import kept, with_interval

from sentemb import load, train
from sentemb.comparison.baselines.bm25 import BM25
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import JudgedSet, read_judged_set
from sentemb.evaluation.evaluate import judged_run
from sentemb.evaluation.fusion import fuse
from sentemb.evaluation.metrics import ndcg
from sentemb.evaluation.reranking import RunTitles, rank_pairs
from sentemb.evaluation.significance import compare_all
from sentemb.system.tables import markdown_table

SETS = ("tldr", "msdocs_index")
PARTS = ("dev", "test")
DEPTH = 30
CUTOFFS = (1, 3, 10)
WEIGHTS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0)
MODELS = ROOT / "build" / "rerank"
TOWERS = {"lstm": {}, "bag": {"model": "bag"}}
# What all pair models share.
COMMON = {
    "teacher": "lstm", "n_negatives": 3, "hard_negatives": 3, "max_words": 16, "decay": "linear",
    "learning_rate": 0.003,
}  # fmt: skip
FIXED = {"start_from": "bag", "train_vectors": False}
TUNED = {"start_from": "bag", "train_vectors": True}
WORDEMBED = {"model": "wordembed"}
ARC1 = {"model": "arc1", "maps": (48, 48), "mlp": 100}
ARC2 = {"model": "arc2", "maps": (48, 48), "mlp": 100, "learning_rate": 0.002}
# By label: passes over each log that it is trained on, and its settings.
PAIR_MODELS = {
    "wordembed": ({"tldr": 5, "msdocs_index": 2}, {**WORDEMBED, **FIXED}),
    "wordembed, vectors tuned": ({"tldr": 5}, {**WORDEMBED, **TUNED}),
    "arc1, vectors tuned": ({"msdocs_index": 2}, {**ARC1, **TUNED}),
    "arc2, vectors tuned": ({"tldr": 4}, {**ARC2, **TUNED}),
}


def trained(data, name, label, threads, settings):
    """The model ``label`` of a log; it is trained if it is missing."""
    folder = MODELS / name / label
    if not (folder / "config.json").exists():
        print(f"{name}: training {label}", file=sys.stderr, flush=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        log, dev = data / name / "pairs.tsv", data / name / "dev"
        train(log, dev=dev, output=folder, threads=threads, **settings)
    return load(folder, threads)


def best(tower, judged):
    """The run of the best titles of two towers among all titles of a judged set."""
    queries = tower.encode_query(judged.queries, normalize_embeddings=True)
    titles = tower.encode_document(judged.titles, normalize_embeddings=True)
    run = {}
    for query_id, query in zip(judged.query_ids, queries, strict=True):
        cosines = titles @ query
        places = np.argsort(-cosines, kind="stable")[:DEPTH]
        run[query_id] = {judged.title_ids[place]: float(cosines[place]) for place in places}
    return run


class Collection:
    """A judged set, the best titles of a tower for each query, and who scores them.

    Parameters
    ----------
    judged : JudgedSet
    tower : SentenceEncoder
    """

    def __init__(self, judged, tower):
        self.judged = judged
        queries = dict(zip(judged.query_ids, judged.queries, strict=True))
        self._texts = queries, dict(zip(judged.title_ids, judged.titles, strict=True))
        self.run = best(tower, judged)
        self.candidates = RunTitles.of(self.run, judged.query_ids, judged.title_ids, DEPTH)

    def reranked(self, ranker):
        """The run of a model over the candidates."""
        return rank_pairs(ranker, *self._texts, self.candidates)

    def reranked_by_bm25(self):
        """The run of BM25 with stems over the candidates; all titles are its collection."""
        judged, found = self.judged, self.candidates
        query_index = np.repeat(np.arange(len(judged.queries)), np.diff(found.offsets))
        scores = BM25(stem=True).score_pairs(
            judged.queries, judged.titles, query_index, found.titles
        )
        run = {query_id: {} for query_id in judged.query_ids}
        for q, title, score in zip(query_index, found.titles, scores.tolist(), strict=True):
            run[judged.query_ids[q]][judged.title_ids[title]] = score
        return run

    def ceiling(self):
        """The run that puts the candidates into the best order."""
        grades = {}
        for q, query_id in enumerate(self.judged.query_ids):
            span = slice(*self.judged.offsets[[q, q + 1]])
            ids = [self.judged.title_ids[title] for title in self.judged.title_index[span]]
            grades[query_id] = dict(zip(ids, self.judged.grade[span].tolist(), strict=True))
        return {
            query_id: {id: float(grades[query_id].get(id, 0)) for id in some}
            for query_id, some in self.run.items()
        }


def part_of_log(log, n_queries=1000):
    """A judged set of queries of a log: all its titles, of which the clicked ones have grade 1."""
    rng = np.random.default_rng(0)
    some = np.sort(rng.choice(len(log.queries), min(n_queries, len(log.queries)), replace=False))
    offsets, clicked = log.titles_of_queries()
    counts = np.diff(offsets)[some]
    titles = np.concatenate([clicked[slice(*offsets[[q, q + 1]])] for q in some])
    return JudgedSet(
        [f"q{q}" for q in some],
        [log.queries[q] for q in some],
        [f"t{title}" for title in range(len(log.titles))],
        log.titles,
        np.concatenate([[0], np.cumsum(counts)]),
        titles,
        np.ones(titles.size, np.int32),
    )


class Measured:
    """Systems on the dev and the test set of one log, and on queries of the log itself.

    Parameters
    ----------
    data : path
    name : str
        Which log.
    threads : int
    """

    def __init__(self, data, name, threads):
        self._data, self._name, self._threads = data, name, threads
        self.tower = self._trained("lstm", TOWERS["lstm"])
        self._log = part_of_log(read_click_log(data / name / "pairs.tsv"))
        judged = {part: read_judged_set(data / name / part) for part in PARTS}
        self.found = {part: Collection(one, self.tower) for part, one in judged.items()}
        self.of_log = Collection(self._log, self.tower)
        self.rankers = {"bag": self._trained("bag", TOWERS["bag"])}
        for label, (epochs, settings) in PAIR_MODELS.items():
            if name in epochs:
                completed = self._completed({"epochs": epochs[name], **settings})
                self.rankers[label] = self._trained(label, completed)

    def _trained(self, label, settings):
        return trained(self._data, self._name, label, self._threads, settings)

    def _completed(self, settings):
        """The settings of a training, with the folders of the towers that they name."""
        own = {**COMMON, **settings}
        for key in ("start_from", "teacher"):
            if own.get(key) in TOWERS:
                own[key] = MODELS / self._name / own[key]
        return own

    def systems(self):
        """Label, weight of the second system, and values per query over all titles and judged.

        Values are (n_queries, 3): NDCG at the cut-offs of the queries of test.
        """
        test = self.found["test"]
        tower_judged = judged_run(self.tower, test.judged)
        yield "LSTM", None, self._values(test.run), self._values(tower_judged)
        for label, ranker in self.rankers.items():
            run, of_judged = test.reranked(ranker), judged_run(ranker, test.judged)
            yield label, None, self._values(run), self._values(of_judged)
            weight = self._weight(self.found["dev"].reranked(ranker))
            yield (
                f"LSTM + {label}", weight, self._values(fuse(test.run, run, weight)),
                self._values(fuse(tower_judged, of_judged, weight)),
            )  # fmt: skip
        run, of_judged = test.reranked_by_bm25(), judged_run(BM25(stem=True), test.judged)
        yield "BM25", None, self._values(run), self._values(of_judged)
        weight = self._weight(self.found["dev"].reranked_by_bm25())
        yield (
            "LSTM + BM25", weight, self._values(fuse(test.run, run, weight)),
            self._values(fuse(tower_judged, of_judged, weight)),
        )  # fmt: skip

    def _values(self, run):
        values = ndcg(self.found["test"].judged, run, CUTOFFS).values
        return values[~np.isnan(values).any(axis=1)]

    def _weight(self, run):
        """The weight with the highest NDCG@1 on dev, where ``run`` is added to the tower's."""
        dev = self.found["dev"]
        return max(WEIGHTS, key=lambda weight: ndcg(dev.judged, fuse(dev.run, run, weight)).mean[0])

    def on_the_log(self):
        """Label and NDCG@1 over queries that the models were trained with."""
        yield "LSTM", ndcg(self._log, self.of_log.run, CUTOFFS).mean[0]
        for label, ranker in self.rankers.items():
            yield label, ndcg(self._log, self.of_log.reranked(ranker), CUTOFFS).mean[0]


def numbers(values):
    """NDCG at the cut-offs, formatted."""
    return " / ".join(f"{value:.3f}" for value in values.mean(axis=0))


def section(name, measured):
    """{heading: table} of one log."""
    found = list(measured.systems())
    (_, _, tower, tower_judged), *others = found
    differences = [
        compare_all([values[:, column] for _, _, values, _ in others], tower[:, column])
        for column in (0, 2)
    ]
    rows = [
        ["re-ranked by", "weight", "all titles NDCG@1 / @3 / @10", "NDCG@1 minus LSTM",
         "NDCG@10 minus LSTM", "judged titles NDCG@1 / @3 / @10"],
        ["-", "-", numbers(tower), "-", "-", numbers(tower_judged)],
    ]  # fmt: skip
    for k, (label, weight, values, of_judged) in enumerate(others):
        rows.append(
            [label, "-" if weight is None else f"{weight}", numbers(values),
             *(with_interval(some[k]) for some in differences), numbers(of_judged)]
        )  # fmt: skip
    of_log = [["system", "NDCG@1"], *([label, f"{v:.3f}"] for label, v in measured.on_the_log())]
    return {
        name: list(markdown_table(rows)),
        f"{name}, queries of the log": list(markdown_table(of_log)),
    }


def main():
    options = options_for(__doc__, SETS)
    for name in options.sets:
        tables = kept(
            MODELS / name / "tables.json",
            lambda name=name: section(name, Measured(options.data, name, options.threads)),
        )
        write_tables("rerank", tables)


if __name__ == "__main__":
    main()
