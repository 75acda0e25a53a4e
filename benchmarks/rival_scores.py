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
from systems import ranker_of

from sentemb import SIF, SentenceEncoder, train
from sentemb.comparison.baselines.letters import LettersOfClicks
from sentemb.comparison.data_folder import read_data
from sentemb.data.best_graded import best_graded
from sentemb.retrieval.bm25 import Lists, Statistics, count_words
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.similarity import unit_rows
from sentemb.retrieval.words_and_stems import tokens_of, words_of
from sentemb.system.parallel import Workers
from sentemb.text.words import searched_words

BUILD = ROOT / "build" / "rivals"
GLOVE = ROOT / "build" / "glove" / "150d"
TRANSFORMER = ROOT / "build" / "transformer"
PARTS = ("dev", "test")
STEMS = words_of("english")
WORDS = {"plain": searched_words, "stems": STEMS}
# k1, b and words of BM25: the grid of the ranker and beyond.
PARAMETERS = tuple(itertools.product((0.3, 0.6, 0.9, 1.5, 2.5), (0.0, 0.2, 0.4, 0.75, 0.9), WORDS))
# Rounds of expectation and maximisation of IBM-1.
ROUNDS = 8
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
        """The queries that each title of the log was clicked for."""
        return ClickedQueries.of(self.log)

    @cached_property
    def is_clicked(self):
        """(n_queries, n_titles) of the log: 1 where the title was clicked for the query."""
        shape = len(self.log.queries), len(self.log.titles)
        ones = np.ones(len(self.log.clicks), np.float32)
        return csr_array((ones, (self.log.query_index, self.log.title_index)), shape=shape)

    def cost_of_ours(self):
        """The CPU seconds of training our defaults with the seed 0; trains if nothing is kept."""
        cost = self.folder / "training.json"
        if not cost.exists():
            start = time.process_time()
            pairs, dev = self._source / "pairs.tsv", self._source / "dev"
            train(pairs, dev=dev, output=self.folder / "model", threads=1, force=True)
            cost.write_text(json.dumps(time.process_time() - start))
        return json.loads(cost.read_text())

    @cached_property
    def model(self):
        """Our defaults without their ranker."""
        self.cost_of_ours()
        return SentenceEncoder.from_pretrained(self.folder / "model", 1)

    @cached_property
    def ranker(self):
        """The ranker that `sentemb train` fits to dev by default."""
        self.cost_of_ours()
        return ranker_of(self.folder / "model", self._source / "pairs.tsv", self._source / "dev")

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
    """BM25 over the titles."""

    settings = tuple({"k1": k1, "b": b, "words": words} for k1, b, words in PARAMETERS)

    def __init__(self, lab):
        super().__init__(lab)
        self._counted = {}

    def scores(self, part, k1, b, words, **counting):
        counts = self._counts(part, words, **counting)
        lists = Lists.of(counts, Statistics.of(counts), k1, b)
        asked = lists.look_up(tokens_of(part.queries, WORDS[words]))
        found = np.zeros((len(part.queries), len(part.titles)), np.float32)
        lists.add(found, 1.0, asked, Workers(1))
        return found

    def cost(self, k1, b, words, **counting):
        start = time.process_time()
        counts = self._count(self.lab.parts["test"], words, **counting)
        Lists.of(counts, Statistics.of(counts), k1, b)
        return time.process_time() - start, None

    def _counts(self, part, words, **counting):
        """Counts do not depend on k1 and b; those of the last part are kept."""
        key = id(part), words, *counting.values()
        if key not in self._counted:
            self._counted = {k: v for k, v in self._counted.items() if k[0] == key[0]}
            self._counted[key] = self._count(part, words, **counting)
        return self._counted[key]

    def _count(self, part, words):
        nothing = ClickedQueries.nothing()
        clicks = nothing.of_titles(part.titles)
        return count_words(part.titles, clicks, tokens_of((), WORDS[words]), WORDS[words]).whole


class ClickedBM25(BM25):
    """The title once, twice, ... and each clicked query once, or by its share of the clicks."""

    settings = tuple(
        {**setting, "titles": titles, "clicks": clicks} for setting, titles, clicks in
        itertools.product(BM25.settings, (1, 2, 3), ("pairs", "shares"))
    )  # fmt: skip

    def _count(self, part, words, titles, clicks):
        queries = tokens_of(self.lab.log.queries, WORDS[words])
        of_titles = self.lab.clicked.of_titles([title.strip() for title in part.titles])
        if clicks == "pairs":
            of_titles = of_titles._replace(shares=np.ones_like(of_titles.shares))
        repeated = [" ".join([title] * titles) for title in part.titles]
        return count_words(repeated, of_titles, queries, WORDS[words]).whole


class Letters(Rival):
    """The TF-IDF cosine of query and title by letter n-grams within words."""

    def scores(self, part):
        vectors = TfidfVectorizer(dtype=np.float32, analyzer="char_wb", ngram_range=(3, 5))
        titles = vectors.fit_transform(part.titles)
        return (vectors.transform(part.queries) @ titles.T).toarray()


class Translation(Rival):
    """IBM-1: how likely the words of a title are translated into those of the query.

    Brown et al., 1993, trained on the pairs of the log; a word that no word of the title explains
    has its frequency in the log's queries.
    """

    settings = tuple({"share": share} for share in (0.3, 0.5, 0.7, 0.9))

    def scores(self, part, share):
        of_words, number, frequency = self._translations
        counts = _counted(part.titles, number)
        lengths = np.maximum(counts.sum(axis=1), 1)[:, None]
        found = np.zeros((len(part.queries), len(part.titles)), np.float32)
        for row, query in enumerate(part.queries):
            columns = [number[word] for word in STEMS(query) if word in number]
            likely = (counts @ of_words[:, columns]).toarray() / lengths
            found[row] = np.log(share * likely + (1 - share) * frequency[columns]).sum(axis=1)
        return found

    @cached_property
    def _translations(self):
        """P(query word | title word), (n_words, n_words), words by number, and their frequency."""
        log = self.lab.log
        words = {word for text in (*log.queries, *log.titles) for word in STEMS(text)}
        number = {word: n for n, word in enumerate(sorted(words))}
        shape = len(number), len(number)
        of_query, of_title = (_counted(texts, number) for texts in (log.queries, log.titles))
        Q, T = of_query[log.query_index], of_title[log.title_index]
        # One entry for each word of a pair's query and each word of its title.
        pair = np.repeat(np.arange(Q.shape[0]), np.diff(Q.indptr))
        sizes = np.diff(T.indptr)[pair]
        entry = np.repeat(np.arange(pair.size), sizes)
        place = np.arange(entry.size) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        place += T.indptr[pair[entry]]
        cells, cell = np.unique(
            T.indices[place].astype(np.int64) * shape[0] + Q.indices[entry], return_inverse=True
        )
        source, target = np.divmod(cells, shape[0])
        likely = np.ones(cells.size)
        for _ in range(ROUNDS):
            share = likely[cell] * T.data[place]
            share /= np.bincount(entry, share, pair.size)[entry]
            expected = np.bincount(cell, share * Q.data[entry], cells.size)
            likely = expected / np.bincount(source, expected, shape[0])[source]
        frequency = np.asarray(Q.sum(axis=0), float).ravel() + 0.5
        P = csr_array((likely, (source, target)), shape=shape).tocsc()
        return P, number, frequency / frequency.sum()

    def cost(self, share):
        start = time.process_time()
        self.__dict__.pop("_translations", None)
        _ = self._translations
        return time.process_time() - start, None


def _counted(texts, number):
    """(n_texts, n_words) how often each text has each known word."""
    rows = [[number[word] for word in STEMS(text) if word in number] for text in texts]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.fromiter(itertools.chain.from_iterable(rows), np.int64, indptr[-1])
    counts = csr_array((np.ones(indptr[-1]), indices, indptr), shape=(len(texts), len(number)))
    counts.sum_duplicates()
    return counts


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


class LettersWithClicks(Rival):
    """`sentemb evaluate --compare-with letters-clicks`: letter n-grams and clicks, untrained."""

    def scores(self, part):
        found = LettersOfClicks(part.titles, self.lab.log, threads=1)
        chunks = range(0, len(part.queries), CHUNK)
        return np.vstack([found.scores(part.queries[first : first + CHUNK]) for first in chunks])


class Vectors(Rival):
    """Rivals by the cosine of two vectors."""

    def pair(self, part, **setting):
        """Unit vectors of a part's queries and titles."""
        raise NotImplementedError

    def scores(self, part, **setting):
        queries, titles = self.pair(part, **setting)
        return (queries @ titles.T).astype(np.float32)


class Model(Vectors):
    """The model of our defaults alone."""

    def pair(self, part):
        model = self.lab.model
        queries, titles = model.encode_query(part.queries), model.encode_document(part.titles)
        return unit_rows(queries), unit_rows(titles)

    def cost(self):
        rate = rate_of(self.lab.model.encode_query, self.lab.log.queries)
        return self.lab.cost_of_ours(), rate


class Ours(Rival):
    """What `sentemb train` makes by default: the model and its fitted ranker."""

    def scores(self, part):
        ranker = self.lab.ranker.over(part.titles)
        places, scores = ranker.find(part.queries, len(part.titles))
        found = np.empty((len(part.queries), len(part.titles)), np.float32)
        np.put_along_axis(found, places, scores.astype(np.float32), axis=1)
        return found

    def cost(self):
        return self.lab.cost_of_ours(), None


class TowerMemory(Memory):
    """The nearest by our own query tower."""

    def chunks(self, part):
        model = self.lab.model
        log, queries = (
            unit_rows(model.encode_query(texts)) for texts in (self.lab.log.queries, part.queries)
        )
        for first in range(0, len(queries), CHUNK):
            yield np.maximum(queries[first : first + CHUNK] @ log.T, 0)

    def cost(self, how):
        return self.lab.cost_of_ours(), None


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
        return sorted(self._folder.glob("zero.npz"))

    @property
    def _folder(self):
        return TRANSFORMER / self.lab.name

    @property
    def settings(self):
        """The file, without its ending."""
        return tuple({"run": path.stem} for path in self._files())

    def pair(self, part, run):
        of = {}
        with np.load(self._folder / f"{run}.npz") as file:
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
        for path in sorted(self._folder.glob(f"{pattern}.csv")):
            with open(path, encoding="utf-8", newline="") as lines:
                rate = path.stem.removeprefix("lr")
                rows += [{"rate": rate, **row} for row in csv.DictReader(lines)]
        return rows


class Tuned(Transformer):
    """The same, fine-tuned on the log; dev chooses learning rate and epoch."""

    def _files(self):
        return sorted(self._folder.glob("lr*-epoch*.npz"))

    def cost(self, run):
        rate, epoch = run.split("-epoch")
        rows = self.history(rate)
        seconds = sum(float(row["CPU s"]) for row in rows if int(row["epoch"]) <= int(epoch))
        return seconds, super().cost(run)[1]


class TunedMemory(Memory):
    """The nearest clicked query by the fine-tuned transformer of the best epoch."""

    def is_there(self):
        return bool(self._files())

    def _files(self):
        return sorted((TRANSFORMER / self.lab.name).glob("lr*-epoch*.npz"))

    def chunks(self, part):
        with np.load(self._files()[-1]) as file:
            log = file["log_queries_vectors"]
            of = dict(zip(file["queries"].tolist(), file["queries_vectors"], strict=True))
        queries = np.stack([of[text] for text in part.queries])
        for first in range(0, len(queries), CHUNK):
            yield np.maximum(queries[first : first + CHUNK] @ log.T, 0)


def rate_of(encode, texts):
    """Texts per CPU second."""
    start = time.process_time()
    encode(texts)
    return len(texts) / (time.process_time() - start)
