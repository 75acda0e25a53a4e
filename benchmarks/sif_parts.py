"""What docs/sif.md measures: a function for each part, from a `Laboratory` to the rows of a CSV.

A part's rows are lists of cells, the head first. Correlations are Pearson's r x 100.
"""

import dataclasses
from dataclasses import dataclass

import numpy as np
from sif_lab import (
    AVERAGE,
    CHOICES_OF_A,
    EVERY_WORD,
    ROWS,
    VARIANTS,
    Laboratory,
    Setting,
    Similarity,
    group_means,
    sentences_of,
)
from sif_supervised import A

from sentemb.comparison.baselines.bm25 import BM25
from sentemb.comparison.data_folder import read_data
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.evaluation.significance import compare_all, holm
from sentemb.models.contracts import Ranker
from sentemb.models.vectors.probabilities import relative_frequencies
from sentemb.models.vectors.sif import SIF
from sentemb.models.vectors.word_weights import sif_weights
from sentemb.text.words import plain_words, split_words

# Figure 2a of the paper: a from 1e-5 to 1 in steps of a half power of ten.
SWEEP = tuple(factor * 10.0**-power for power in range(5, 0, -1) for factor in (1, 3)) + (1.0,)
# Figure 2b: where p(w) is from.
SOURCES = ("enwiki", "rank", "sts", "sst2", "occupations", "msdocs_index")
JUDGED = ("dbpedia_entity_v2", "occupations", "tldr", "msdocs_index")
# Words whose weight the paper's guess about sentiment is about.
NEGATIONS = ("not", "no", "never", "nothing")
# Weight of the cosine next to a BM25 score.
LAMBDAS = (1, 2, 5, 10, 20, 50, 100)
_NEAREST = 11


def _hundredth(value):
    return f"{value:.2f}"


def similarity(lab):
    """Every part of the similarity sets by the rows of the paper's Tables 1, 5 and 6."""
    rows = [["vectors", "row", "part", "r"]]
    for name in lab.paths:
        similar = Similarity(lab, name)
        for row, setting in (ROWS | {"WR, 5 components": Setting(components=5)}).items():
            found = similar.measured(setting)
            rows += [[name, row, part, _hundredth(r)] for part, r in found.items()]
    return rows


def skip_gram(lab):
    """The same by word vectors of another kind than GloVe: the skip-gram vectors of the data."""
    path = lab.data / "word_vectors" / "vectors.txt.gz"
    return similarity(Laboratory(lab.data, {"skip-gram": path}))


def model(lab):
    """How far the scores of `SIF` as a linear bag are from those of plain NumPy."""
    rows = [["part", "pairs", "largest difference"]]
    vectors = lab.vectors(lab.main)
    for pairs in lab.pairs:
        if pairs.name not in ("sick test", "2014 images"):
            continue
        made = SIF(vectors, p=lab.counts("enwiki"), keep="texts").fit(pairs.first, pairs.second)
        each = np.arange(len(pairs))
        scores = made.score_pairs(pairs.first, pairs.second, each, each)
        plain = _numpy_scores(vectors, lab.counts("enwiki"), pairs)
        rows.append([pairs.name, len(each), f"{np.abs(scores - plain).max():.1e}"])
    return rows


def _numpy_scores(vectors, counts, pairs):
    """Algorithm 1 as it is printed, sentence by sentence, in float64."""
    total, share = sum(counts.values()), 1 / np.arange(2, len(vectors) + 2)
    share /= share.sum()
    X = np.zeros((2 * len(pairs), vectors.dim))
    for x, text in zip(X, sentences_of(pairs), strict=True):
        rows = [
            vectors.row_of_word[word] for word in plain_words(text) if word in vectors.row_of_word
        ]
        for row in rows:
            p = counts.get(vectors.words[row], 0) / total or share[row]
            x += 1e-3 / (1e-3 + p) * vectors.vectors[row].astype(np.float64)
        x /= max(len(rows), 1)
    u = np.linalg.svd(X, full_matrices=False)[2][0]
    X -= np.outer(X @ u, u)
    X /= np.maximum(np.linalg.norm(X, axis=1), 1e-30)[:, None]
    first, second = np.split(X, 2)
    return (first * second).sum(axis=1)


def _means(setting, similar):
    return {name: _hundredth(r) for name, r in group_means(similar.measured(setting)).items()}


def _table(heads, found):
    """Rows from {cells before the means: {group: mean}}."""
    groups = list(next(iter(found.values())))
    return [[*heads, *groups], *([*key, *means.values()] for key, means in found.items())]


def variants(lab):
    """Means of the years for each variant of SIF."""
    similar = Similarity(lab, lab.main)
    found = {(row,): _means(setting, similar) for row, setting in VARIANTS.items()}
    return _table(["row"], found)


def splitting(lab):
    """The same rows with texts split at white space."""
    found = {}
    for split, function in (("words", plain_words), ("white space", split_words)):
        similar = Similarity(lab, lab.main, function)
        for row in ("avg", "tf-idf", "W", "R", "WR"):
            found[split, row] = _means(ROWS[row], similar)
    return _table(["split", "row"], found)


def sweep(lab):
    """W and WR by a, and without weights: Figure 2a."""
    found = {}
    for name in lab.paths:
        similar = Similarity(lab, name)
        for row in ("W", "WR"):
            for a in SWEEP:
                setting = dataclasses.replace(ROWS[row], a=a)
                found[name, row, f"{a:g}"] = _means(setting, similar)
        found[name, "avg", ""] = _means(AVERAGE, similar)
        found[name, "R", ""] = _means(ROWS["R"], similar)
    return _table(["vectors", "row", "a"], found)


def sources(lab):
    """W and WR by the source of p(w): Figure 2b."""
    similar = Similarity(lab, lab.main)
    found = {}
    for source in SOURCES:
        words = "" if source == "rank" else sum(lab.counts(source).values())
        for row in ("W", "WR"):
            setting = dataclasses.replace(ROWS[row], p=source)
            found[source, words, row] = _means(setting, similar)
    return _table(["source", "words", "row"], found)


def component(lab):
    """What the removed component is: its nearest words, and how much of the sentences it is."""
    rows = [["sentences", "share", "nearest words"]]
    similar = Similarity(lab, lab.main)
    vectors = similar.vectors
    for pairs in lab.pairs:
        if pairs.name in ("sick test", "stsb dev", "2014 images", "2015 headline"):
            found = similar.component(sentences_of(pairs), Setting())
            nearest = vectors.nearest(found.directions[0], _NEAREST)
            words = " ".join(word for word, _ in nearest)
            rows.append([pairs.name, f"{found.shares[0]:.3f}", words])
    return rows


# -- ranking --------------------------------------------------------------------------------------


class Remembered(Ranker):
    """A ranker that keeps the scores of the last judged set, which are asked for with every λ."""

    def __init__(self, ranker):
        self.ranker, self._asked, self._scores = ranker, None, None

    def score_pairs(self, queries, titles, query_index, title_index):
        """See `Ranker`."""
        if self._asked is not queries:
            self._scores = self.ranker.score_pairs(queries, titles, query_index, title_index)
            self._asked = queries
        return self._scores


@dataclass(frozen=True)
class Hybrid(Ranker):
    """BM25 with stems plus a weight times the cosine of a model."""

    bm25: Ranker
    model: Ranker
    weight: float

    def score_pairs(self, queries, titles, query_index, title_index):
        """See `Ranker`."""
        arguments = queries, titles, query_index, title_index
        return self.bm25.score_pairs(*arguments) + self.weight * self.model.score_pairs(*arguments)


# The rows that all others of a set are tested against.
TESTED = ("avg", "tf-idf", "bm25-stem")


def p_against(row):
    """The column of p-values of the differences from a row."""
    return f"p against {row}"


# How the table of a model is made from word vectors, for the rows of the ranking.
RANKERS = {
    "avg": {"weights": "none", "components": 0},
    "tf-idf": {"weights": "idf", "components": 0},
    "W": {"components": 0},
    "WR": {},
    "WR, p by rank": {"p": "rank"},
    "WR, per side": {"sides": "each"},
    "W, 3 components removed": {"components": 3},
}


def ranking(lab):
    """Zero-shot ranking with general word vectors, alone and together with BM25."""
    rows = [["set", "row", "NDCG@1", "NDCG@3", "NDCG@10", "settings", *map(p_against, TESTED)]]
    for name in JUDGED:
        dev, test, texts = _ranking_data(lab.data / name)
        table = _Rankers(name, test)
        bm25 = _best([BM25(**point, stem=True) for point in BM25.grid], dev)
        table.add("bm25-stem", bm25, f"k1 {bm25.k1}, b {bm25.b}")
        made = {}
        for row, settings in RANKERS.items():
            given = {"p": lab.counts("enwiki"), **settings}
            grid = [given] if "weights" in given else [given | {"a": a} for a in CHOICES_OF_A]
            models = (_model(lab.vectors(lab.widest), point, texts, dev, test) for point in grid)
            made[row], point = _best_with(zip(models, grid, strict=True), dev)
            table.add(row, made[row], f"a {point['a']:g}" if "a" in point else "")
        first = Remembered(bm25)
        sums = (
            (Hybrid(first, model, weight), f"{row}, λ {weight}")
            for row, model in ((row, Remembered(made[row])) for row in ("WR", "WR, per side"))
            for weight in LAMBDAS
        )
        best, chosen = _best_with(sums, dev)
        table.add("bm25-stem + λ cos", best, chosen)
        rows += table.tested()
    return rows


def own_vectors(lab):
    """Ranking by word vectors that were trained on the log itself."""
    from sentemb.models.vectors.skip_gram import train_word_vectors

    rows = [["set", "row", "NDCG@1", "NDCG@3", "NDCG@10", "settings"]]
    for name in JUDGED[1:]:
        dev, test, texts = _ranking_data(lab.data / name)
        table = _Rankers(name, test)
        vectors = train_word_vectors(read_data(lab.data / name).log)
        for row in ("avg", "W", "WR", "WR, per side"):
            grid = [{"a": a, "p": p} for p in ("rank", "texts") for a in CHOICES_OF_A]
            grid = [RANKERS[row] | point for point in (grid if row != "avg" else [{}])]
            models = (_model(vectors, point, texts, dev, test) for point in grid)
            best, point = _best_with(zip(models, grid, strict=True), dev)
            table.add(row, best, f"a {point['a']:g}, p {point['p']}" if "a" in point else "")
        rows += table.rows
    return rows


def _model(vectors, settings, texts, dev, test):
    """A model with the words that these texts and judged sets have."""
    judged = [*dev.queries, *dev.titles, *test.queries, *test.titles]
    return SIF(vectors, keep="texts", **settings).fit(*texts, also=judged)


def _ranking_data(folder):
    """Dev, test, and the texts of each side: of the log, or without one the judged texts."""
    if (folder / "pairs.tsv").exists():
        data = read_data(folder)
        return data.dev, data.test, (data.log.queries, data.log.titles)
    dev, test = (read_judged_set(folder / part) for part in ("dev", "test"))
    return dev, test, (test.queries, test.titles)


def _best(rankers, dev):
    return max(rankers, key=lambda ranker: evaluate_model(ranker, dev).mean[0])


def _best_with(pairs, dev):
    """The pair of a ranker and its settings that is best on dev."""
    found = ((evaluate_model(ranker, dev).mean[0], ranker, point) for ranker, point in pairs)
    return max(found, key=lambda one: one[0])[1:]


class _Rankers:
    """The rows of one set, and the NDCG@1 of every query, with which they are tested."""

    def __init__(self, name, test):
        self.name, self.test = name, test
        self.rows, self._values = [], {}

    def add(self, row, ranker, settings=""):
        found = evaluate_model(ranker, self.test)
        ndcg = (f"{value:.3f}" for value in found.mean)
        self.rows.append([self.name, row, *ndcg, settings])
        values = found.values[:, 0]
        self._values[row] = values[np.isfinite(values)]
        print(*self.rows[-1], flush=True)

    def tested(self):
        """The rows with the p-value of each against the tested ones, by Holm within the set."""
        columns = []
        for reference in TESTED:
            others = [row for row in self._values if row != reference]
            differences = compare_all(
                [self._values[row] for row in others], self._values[reference]
            )
            p_values = holm([difference.p for difference in differences])
            columns.append(dict(zip(others, p_values, strict=True)))
        return [
            [*cells, *(f"{p[cells[1]]:.4f}" if cells[1] in p else "" for p in columns)]
            for cells in self.rows
        ]


def negation(lab):
    """The SIF weights of negating words, and of all words of the film reviews, by a."""
    counts, reviews = lab.counts("enwiki"), lab.counts("sst2")
    p = dict(zip(reviews, relative_frequencies(list(reviews), counts, unknown="zero"), strict=True))
    times = np.array(list(reviews.values()))
    rows = [["a", "word", "p(w)", "weight"]]
    for a in sorted(A):
        weights = dict(zip(p, sif_weights(np.array(list(p.values())), a), strict=True))
        rows += [[a, word, f"{p[word]:.2e}", f"{weights[word]:.3f}"] for word in NEGATIONS]
        mean = np.average(list(weights.values()), weights=times)
        rows.append([a, EVERY_WORD, "", f"{mean:.3f}"])
    return rows


PARTS = {
    "similarity": similarity,
    "skip-gram": skip_gram,
    "model": model,
    "variants": variants,
    "splitting": splitting,
    "sweep": sweep,
    "sources": sources,
    "component": component,
    "ranking": ranking,
    "own-vectors": own_vectors,
    "negation": negation,
}
