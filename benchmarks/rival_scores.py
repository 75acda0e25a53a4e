"""The rivals as matrices of scores: every title of a judged set for each of its queries.

A rival has one or more settings. `scores` of one setting is an (n_queries, n_titles) float32
matrix; sums of rivals are sums of such matrices.
"""

import csv
import itertools
import json
import tempfile
import time
from collections import Counter
from functools import cached_property
from pathlib import Path

import numpy as np
from pages import ROOT
from scipy.sparse import csr_array
from sif_lab import CHOICES_OF_A
from sklearn.feature_extraction.text import TfidfVectorizer

from sentemb import SIF, SentenceEncoder, train
from sentemb.comparison.baselines.clicked_queries import clicked_queries
from sentemb.comparison.data_folder import read_data
from sentemb.data.best_graded import best_graded
from sentemb.retrieval.bm25 import TitleWords
from sentemb.retrieval.similarity import unit_rows
from sentemb.retrieval.words_and_stems import words_of
from sentemb.system.parallel import Workers

BUILD = ROOT / "build" / "rivals"
GLOVE = ROOT / "build" / "glove" / "150d"
TRANSFORMER = ROOT / "build" / "transformer"
PARTS = ("dev", "test")
STEMS = words_of("english")
# k1 and b of BM25.
PARAMETERS = tuple(itertools.product((0.5, 0.9, 1.5), (0.0, 0.4, 0.75, 0.9)))
# How similar queries of the log vote for their titles: see `Lab.memory`.
NEAREST = (10, 50)
WAYS = ("max", "sum", *NEAREST)
# Queries that are compared with the whole log at a time.
CHUNK = 100


class Part:
    """A judged set, and its best titles as clicks.

    Parameters
    ----------
    judged : JudgedSet
    """

    def __init__(self, judged):
        self.judged, self.clicks = judged, best_graded(judged)
        self.queries, self.titles = judged.queries, judged.titles


class Lab:
    """The data of one log and what the rivals share.

    Parameters
    ----------
    data : path
        The folder with all sets.
    name : str
        Which one.
    """

    def __init__(self, data, name):
        self.name, self.folder = name, BUILD / name
        self._source = data / name
        self.folder.mkdir(parents=True, exist_ok=True)
        found = read_data(data / name)
        self.log = found.log
        self.parts = {"dev": Part(found.dev), "test": Part(found.test)}

    @cached_property
    def clicked(self):
        """Each title of the log with the queries that it was clicked for."""
        return clicked_queries(self.log)

    @cached_property
    def is_clicked(self):
        """(n_queries, n_titles) of the log: 1 where the title was clicked for the query."""
        shape = len(self.log.queries), len(self.log.titles)
        ones = np.ones(len(self.log.clicks), np.float32)
        return csr_array((ones, (self.log.query_index, self.log.title_index)), shape=shape)

    @cached_property
    def ours(self):
        """Our defaults with the seed 0, and the CPU seconds of their training."""
        model, cost = self.folder / "model", self.folder / "training.json"
        if not cost.exists():
            start = time.process_time()
            pairs, dev = self._source / "pairs.tsv", self._source / "dev"
            train(pairs, dev=dev, output=model, threads=1, force=True)
            cost.write_text(json.dumps(time.process_time() - start))
        return SentenceEncoder.from_pretrained(model, 1), json.loads(cost.read_text())

    def of_titles(self, scores, part):
        """Columns for a part's titles from those of the log's titles; 0 for any other title."""
        place = {title: n for n, title in enumerate(self.log.titles)}
        places = np.array([place.get(title.strip(), len(place)) for title in part.titles])
        empty = np.zeros((len(scores), 1), np.float32)
        return np.hstack([scores, empty])[:, places]

    def memory(self, chunks):
        """Scores of the log's titles from the similarity of queries to the log's queries.

        Parameters
        ----------
        chunks : iterable of (m, n_log_queries) float32
            The similarities of some queries at a time.

        Returns
        -------
        dict
            For each of `WAYS` (n_queries, n_titles): the highest similarity among the queries that
            a title was clicked for, their sum, or the sum over those that are among the nearest of
            the whole log.
        """
        by_title = np.argsort(self.log.title_index, kind="stable")
        query_of_pair = self.log.query_index[by_title]
        starts = np.searchsorted(self.log.title_index[by_title], np.arange(len(self.log.titles)))
        found = {way: [] for way in WAYS}
        for chunk in chunks:
            found["max"].append(np.maximum.reduceat(chunk[:, query_of_pair], starts, axis=1))
            found["sum"].append(chunk @ self.is_clicked)
            kths = [min(k, chunk.shape[1]) for k in NEAREST]
            sorted_there = np.partition(chunk, [-k for k in kths], axis=1)
            for way, k in zip(NEAREST, kths, strict=True):
                kept = np.where(chunk >= sorted_there[:, [-k]], chunk, 0)
                found[way].append(kept @ self.is_clicked)
        return {way: np.vstack(rows) for way, rows in found.items()}


class Rival:
    """What a ranking is made from.

    Attributes
    ----------
    settings : tuple of dict
        What dev chooses among.
    packages : tuple of str
        That it needs, besides the package's own.
    """

    settings = ({},)
    packages = ()

    def __init__(self, lab):
        self.lab = lab

    def is_there(self):
        """Whether the files that it needs are there."""
        return True

    def scores(self, part, **setting):
        """(n_queries, n_titles) float32: higher is better."""
        raise NotImplementedError

    def cost(self, **setting):
        """CPU seconds of training and sentences per CPU second; None for what it has not."""
        return None, None


class BM25(Rival):
    """BM25 with stems over the titles, each with the queries that were clicked on it or without."""

    settings = tuple({"k1": k1, "b": b} for k1, b in PARAMETERS)
    repeats = False

    def _texts(self, part, repeats):
        return part.titles

    def scores(self, part, k1, b, titles=1):
        by_words = TitleWords(self._texts(part, titles), k1, b, STEMS)
        found = np.zeros((len(part.queries), len(part.titles)), np.float32)
        by_words.lists.add(found, 1.0, by_words.look_up(part.queries), Workers(1))
        return found

    def cost(self, titles=1, **setting):
        start = time.process_time()
        TitleWords(self._texts(self.lab.parts["test"], titles), words=STEMS)
        return time.process_time() - start, None


class ClickedBM25(BM25):
    """The title once, twice, ... and each clicked query once."""

    settings = tuple(
        {"k1": k1, "b": b, "titles": titles} for (k1, b), titles in
        itertools.product(PARAMETERS, (1, 2, 3))
    )  # fmt: skip

    def _texts(self, part, repeats):
        clicked = self.lab.clicked
        return [
            " ".join([title] * repeats + clicked.get(title.strip(), [])) for title in part.titles
        ]


class Popularity(Rival):
    """The clicks of a title, whatever the query; as a logarithm, the order is the same."""

    def scores(self, part):
        counts = Counter()
        for title, clicks in zip(self.lab.log.title_index, self.lab.log.clicks, strict=True):
            counts[self.lab.log.titles[title]] += int(clicks)
        row = np.log1p([counts[title.strip()] for title in part.titles]).astype(np.float32)
        return np.tile(row / max(row.max(), 1), (len(part.queries), 1))


class Memory(Rival):
    """Titles of the nearest clicked queries."""

    settings = tuple({"how": way} for way in WAYS)

    def __init__(self, lab):
        super().__init__(lab)
        self._part, self._found = None, {}

    def chunks(self, part):
        """Similarities of a part's queries to the log's, `CHUNK` queries at a time."""
        raise NotImplementedError

    def scores(self, part, how):
        if self._part is not part:
            self._part, self._found = part, self.lab.memory(self.chunks(part))
        return self.lab.of_titles(self._found[how], part)


class Nearest(Memory):
    """The nearest by the cosine of TF-IDF vectors."""

    def splitter(self):
        """What turns queries into vectors."""
        return TfidfVectorizer(dtype=np.float32, analyzer=STEMS)

    def chunks(self, part):
        vectors, log = self._vectors()
        queries = vectors.transform(part.queries)
        for first in range(0, len(part.queries), CHUNK):
            yield (queries[first : first + CHUNK] @ log.T).toarray()

    def cost(self, how):
        start = time.process_time()
        self._vectors()
        return time.process_time() - start, None

    def _vectors(self):
        vectors = self.splitter()
        return vectors, vectors.fit_transform(self.lab.log.queries)


class NearestLetters(Nearest):
    """The same with letter n-grams within words instead of stems."""

    def splitter(self):
        return TfidfVectorizer(dtype=np.float32, analyzer="char_wb", ngram_range=(3, 5))


class Vectors(Rival):
    """Rivals by the cosine of two vectors."""

    def pair(self, part, **setting):
        """Unit vectors of a part's queries and titles."""
        raise NotImplementedError

    def scores(self, part, **setting):
        queries, titles = self.pair(part, **setting)
        return (queries @ titles.T).astype(np.float32)


class Ours(Vectors):
    """Our defaults."""

    def pair(self, part):
        model, _ = self.lab.ours
        queries, titles = model.encode_query(part.queries), model.encode_document(part.titles)
        return unit_rows(queries), unit_rows(titles)

    def cost(self):
        model, seconds = self.lab.ours
        return seconds, rate_of(model.encode_query, self.lab.log.queries)


class TowerMemory(Memory):
    """The nearest by our own query tower."""

    def chunks(self, part):
        model, _ = self.lab.ours
        log, queries = (
            unit_rows(model.encode_query(texts)) for texts in (self.lab.log.queries, part.queries)
        )
        for first in range(0, len(queries), CHUNK):
            yield np.maximum(queries[first : first + CHUNK] @ log.T, 0)

    def cost(self, how):
        return self.lab.ours[1], None


class OfSIF(Vectors):
    """Weighted averages of GloVe vectors; weights and common component from the log's texts."""

    settings = tuple({"a": a, "p": p} for p in ("texts", "rank") for a in CHOICES_OF_A)

    def __init__(self, lab):
        super().__init__(lab)
        self._models = {}

    def is_there(self):
        return GLOVE.is_dir()

    def pair(self, part, **setting):
        model, _ = self._model(**setting)
        queries, titles = model.encode_query(part.queries), model.encode_document(part.titles)
        return unit_rows(queries), unit_rows(titles)

    def cost(self, **setting):
        model, seconds = self._model(**setting)
        return seconds, rate_of(model.encode_query, self.lab.log.queries)

    def _model(self, a, p):
        if (a, p) not in self._models:
            parts, log = self.lab.parts.values(), self.lab.log
            judged = [text for part in parts for text in (*part.queries, *part.titles)]
            start = time.process_time()
            made = SIF(GLOVE, a=a, p=p, keep="texts").fit(log.queries, log.titles, 1, judged)
            self._models = {(a, p): (made, time.process_time() - start)}
        return self._models[a, p]


class Labels(Rival):
    """fastText as a classifier of queries whose classes are the titles of the log."""

    settings = tuple({"rate": 0.5, "epochs": epochs} for epochs in (25, 50))
    packages = ("fasttext",)

    def scores(self, part, **setting):
        model, place, _ = self._model(**setting)
        words = np.stack([model.get_sentence_vector(text) for text in part.queries])
        # The vector of a sentence is the mean that the output layer sees, up to its length.
        known = words @ model.get_output_matrix().T
        of_log = known[:, place]
        # A title that is not a class is behind all others.
        return self.lab.of_titles(of_log - of_log.min() + 1, part)

    def cost(self, **setting):
        model, _, seconds = self._model(**setting)
        queries = self.lab.log.queries[:5000]
        return seconds, rate_of(lambda some: [model.get_sentence_vector(one) for one in some],
                                queries)  # fmt: skip

    def _model(self, rate, epochs):
        import fasttext

        path, cost = (self.lab.folder / f"fasttext-{rate:g}-{epochs}.{end}" for end in
                      ("bin", "json"))  # fmt: skip
        if not cost.exists():
            log = self.lab.log
            with tempfile.TemporaryDirectory() as folder:
                lines = Path(folder) / "lines.txt"
                pairs = zip(log.title_index, log.query_index, strict=True)
                lines.write_text(
                    "".join(f"__label__{t} {log.queries[q]}\n" for t, q in pairs), "utf-8"
                )
                start = time.process_time()
                model = fasttext.train_supervised(
                    str(lines), lr=rate, epoch=epochs, dim=100, minn=3, maxn=5, bucket=200_000,
                    loss="ns", thread=1, verbose=0,
                )  # fmt: skip
                seconds = time.process_time() - start
            model.save_model(str(path))
            cost.write_text(json.dumps(seconds))
        model = fasttext.load_model(str(path))
        labels = [int(label.removeprefix("__label__")) for label in model.get_labels()]
        return model, np.argsort(labels), json.loads(cost.read_text())


class Transformer(Vectors):
    """all-MiniLM-L6-v2 as published, from the vectors that benchmarks/transformer.py writes."""

    def is_there(self):
        return bool(self._files())

    def _files(self):
        return sorted(TRANSFORMER.glob(f"{self.lab.name}-zero.npz"))

    @property
    def settings(self):
        """The file, without its ending."""
        return tuple({"run": path.stem.removeprefix(f"{self.lab.name}-")} for path in self._files())

    def pair(self, part, run):
        of = {}
        with np.load(TRANSFORMER / f"{self.lab.name}-{run}.npz") as file:
            for kind in ("queries", "titles"):
                texts, vectors = file[kind].tolist(), file[f"{kind}_vectors"]
                of[kind] = dict(zip(texts, vectors, strict=True))
        return (
            np.stack([of["queries"][text] for text in part.queries]),
            np.stack([of["titles"][text] for text in part.titles]),
        )

    def cost(self, run):
        return None, min((float(row["sentences/s"]) for row in self.history()), default=None)

    def history(self, pattern="*"):
        """The epochs of all runs, or of those whose file names match."""
        rows = []
        for path in sorted(TRANSFORMER.glob(f"{self.lab.name}-{pattern}.csv")):
            with open(path, encoding="utf-8", newline="") as lines:
                rate = path.stem.removeprefix(f"{self.lab.name}-lr")
                rows += [{"rate": rate, **row} for row in csv.DictReader(lines)]
        return rows


class Tuned(Transformer):
    """The same, fine-tuned on the log; dev chooses learning rate and epoch."""

    def _files(self):
        return sorted(TRANSFORMER.glob(f"{self.lab.name}-lr*-epoch*.npz"))

    def cost(self, run):
        rate, epoch = run.split("-epoch")
        rows = self.history(rate)
        seconds = sum(float(row["CPU s"]) for row in rows if int(row["epoch"]) <= int(epoch))
        return seconds, super().cost(run)[1]


def rate_of(encode, texts):
    """Texts per CPU second."""
    start = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - start)
