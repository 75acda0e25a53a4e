"""What the parts of docs/sif.md share: the data, the word vectors, and similarity by settings."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sentemb.comparison.baselines.baseline import cosines
from sentemb.data.similarity_set import read_similarity_set
from sentemb.evaluation.correlation import pearson
from sentemb.models.vectors.averages import averages, moments, only_known
from sentemb.models.vectors.components import common_components
from sentemb.models.vectors.probabilities import relative_frequencies, zipf
from sentemb.models.vectors.word_weights import (
    idf_code_weights,
    idf_weights,
    sif_weights,
    usif_weights,
)
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.words import plain_words

YEARS = ("2012", "2013", "2014", "2015", "2016")
# Parts whose texts, like those of the years, are compared as pairs, and the name of each.
OTHERS = {"sick test": ("sick", "test"), "stsb dev": ("stsb", "dev"), "stsb test": ("stsb", "test")}
# Where titles are ranked, a is chosen among these on dev.
CHOICES_OF_A = (1e-2, 1e-3, 1e-4, 1e-5)
# The sources of p(w), as tables and charts name them.
SOURCE_NAMES = {
    "enwiki": "Wikipedia",
    "rank": "Zipf's law by rank",
    "sts": "the sentences themselves",
    "sst2": "film reviews (SST)",
    "occupations": "the log of occupations",
    "msdocs_index": "the log of msdocs_index",
}
# The line of the part ``negation`` that has the mean over all words.
EVERY_WORD = "all words"
# The sources that are click logs of a single field.
LOGS = ("occupations", "msdocs_index")
# The sets of the paper's Table 5: idf is counted over their sentences.
_OF_TABLE_5 = ("2012", "2013", "2014", "2015", "sick test")


@dataclass(frozen=True)
class Setting:
    """How the vectors of sentences are made.

    Attributes
    ----------
    weights : {"sif", "usif", "idf", "idf-code", "none"}
    a : float
    p : str
        Source of p(w): a name that `Laboratory.counts` knows, or ``"rank"``.
    unknown : {"rank", "zero", "one"}
        The probability of a word without a count.
    components : int
    weighted : bool
        Whether each component is removed in part, as uSIF does.
    each : bool
        Whether the first and the second sentences have components of their own.
    centre : {"none", "vocabulary", "probability"}
        The mean that is subtracted from the word vectors.
    texts : {"own", "stsb train", "vocabulary"}
        Where the components are from: the pairs that are measured, other texts, or all words.
    """

    weights: str = "sif"
    a: float = 1e-3
    p: str = "enwiki"
    unknown: str = "rank"
    components: int = 1
    weighted: bool = False
    each: bool = False
    centre: str = "none"
    texts: str = "own"


AVERAGE = Setting(weights="none", components=0)
ROWS = {
    "avg": AVERAGE,
    "tf-idf": Setting(weights="idf", components=0),
    "W": Setting(components=0),
    "R": Setting(weights="none"),
    "WR": Setting(),
}
VARIANTS = ROWS | {
    "tf-idf of the code": Setting(weights="idf-code", components=0),
    "tf-idf + R": Setting(weights="idf"),
    "R, per side": Setting(weights="none", each=True),
    "WR, per side": Setting(each=True),
    "WR, 2 components": Setting(components=2),
    "WR, 3 components": Setting(components=3),
    "WR, 5 components": Setting(components=5),
    "WR, 10 components": Setting(components=10),
    "W, centred by the vocabulary": Setting(components=0, centre="vocabulary"),
    "W, centred by p": Setting(components=0, centre="probability"),
    "WR, centred by p": Setting(centre="probability"),
    "uSIF weights": Setting(weights="usif", components=0),
    "uSIF": Setting(weights="usif", components=5, weighted=True),
    "W, p by rank": Setting(p="rank", components=0),
    "WR, p by rank": Setting(p="rank"),
    "WR, unknown p zero": Setting(unknown="zero"),
    "WR, unknown p one": Setting(unknown="one"),
    "WR, component of STS-B train": Setting(texts="stsb train"),
    "WR, component of the vocabulary": Setting(texts="vocabulary"),
}


def read_pairs(path, name):
    """The pairs of sentences of a file, under a name such as ``2014 images``."""
    return dataclasses.replace(read_similarity_set(path), name=name)


def sentences_of(pairs):
    """The first sentences of a similarity set, then the second."""
    return pairs.first + pairs.second


def group_of(name):
    """The year of a part, or the name of a set that is not part of a year."""
    year = name.split()[0]
    return year if year in YEARS else name


def group_means(found):
    """{year or set: mean over its parts} of {name of a part: number}."""
    groups = {}
    for name, value in found.items():
        groups.setdefault(group_of(name), []).append(value)
    return {group: sum(values) / len(values) for group, values in groups.items()}


class Laboratory:
    """Data and word vectors, read when they are needed.

    Parameters
    ----------
    data : Path
        The folder with ``sts`` and the click logs.
    vectors : dict of str to Path
        Word vectors by name.
    threads : int
    scratch : Path, optional
        Where files may be written.
    """

    def __init__(self, data, vectors, threads=1, scratch=None):
        self.data, self.paths, self.scratch = data, vectors, scratch
        self.workers = Workers(threads)
        self._vectors, self._counts = {}, {}

    @property
    def main(self):
        """The name of the vectors with which variants are measured."""
        return "100d" if "100d" in self.paths else next(iter(self.paths))

    @property
    def widest(self):
        """The name of the vectors with which titles are ranked."""
        return list(self.paths)[-1]

    def vectors(self, name):
        """Word vectors, mapped from their file."""
        from sentemb.models.vectors.reading import read_word_vectors

        if name not in self._vectors:
            self._vectors[name] = read_word_vectors(self.paths[name])
        return self._vectors[name]

    @cached_property
    def pairs(self):
        """Every similarity set that is measured."""
        folder = self.data / "sts"
        found = [
            read_pairs(path, f"{year} {path.stem}")
            for year in YEARS
            for path in sorted((folder / year).glob("*.tsv"))
        ]
        return found + [
            read_pairs(folder / place / f"{part}.tsv", name)
            for name, (place, part) in OTHERS.items()
        ]

    @cached_property
    def stsb_train(self):
        """The training pairs of STS-B."""
        return read_pairs(self.data / "sts" / "stsb" / "train.tsv", "stsb train")

    def texts_of(self, source):
        """The texts in which the words of a source of p(w) are counted."""
        if source == "sts":
            return [text for pairs in self.pairs for text in sentences_of(pairs)]
        if source == "sst2":
            lines = (self.data / "sts" / "sst2" / "train.tsv").read_text(encoding="utf-8")
            return [line.split("\t")[1] for line in lines.splitlines()]
        lines = (self.data / source / "pairs.tsv").read_text(encoding="utf-8").splitlines()
        return [text for line in lines for text in line.split("\t")[:2]]

    def counts(self, source):
        """{word: count} of a source of p(w)."""
        if source not in self._counts:
            if source == "enwiki":
                path = self.data / "sts" / "enwiki_vocab_min200.txt"
                lines = path.read_text(encoding="utf-8").splitlines()
                found = {word: int(count) for word, count in map(str.split, lines)}
            else:
                tokens = tokenize(self.texts_of(source), plain_words)
                found = dict(
                    zip(tokens.words, np.bincount(tokens.word_index).tolist(), strict=True)
                )
            self._counts[source] = found
        return self._counts[source]

    @cached_property
    def sentences_for_idf(self):
        """The sentences of the paper's sets, as `Tokens`."""
        some = [pairs for pairs in self.pairs if group_of(pairs.name) in _OF_TABLE_5]
        return tokenize((text for pairs in some for text in sentences_of(pairs)), plain_words)


class Similarity:
    """Correlations of cosines with people's scores, for one set of word vectors.

    Computes with the functions of `sentemb.models.vectors` that `SIF` consists of. Each file is
    split into words once for all settings.

    Parameters
    ----------
    lab : Laboratory
    name : str
        The name of the word vectors.
    split : callable
        From a text to its words.
    """

    def __init__(self, lab, name, split=plain_words):
        self.lab, self.split = lab, split
        self.vectors = lab.vectors(name)
        self._tokens = {}

    def measured(self, setting):
        """{name: Pearson's r x 100} of all pairs of sentences."""
        weights, mean, fixed = self._prepared(setting)
        return {
            pairs.name: 100
            * pearson(self._cosines(pairs, setting, weights, mean, fixed), pairs.scores)
            for pairs in self.lab.pairs
        }

    def scores(self, pairs, setting):
        """The cosine of each pair."""
        return self._cosines(pairs, setting, *self._prepared(setting))

    def component(self, texts, setting):
        """The common components of some texts."""
        weights, mean, _ = self._prepared(setting)
        tokens = self._known(texts)
        table = self._table(self.vectors.rows(tokens.words), weights, mean)
        return common_components(moments(table, tokens, self.lab.workers), setting.components)

    def _prepared(self, setting):
        """Weights of all words, the mean to subtract, and fixed components or None."""
        p = self._probabilities(setting)
        weights = self._weights(p, setting)
        mean = np.zeros(self.vectors.dim)
        if setting.centre != "none":
            shares = np.ones(len(p)) if setting.centre == "vocabulary" else p
            mean = shares @ self.vectors.vectors.astype(np.float64) / shares.sum()
        fixed = None
        if setting.texts != "own":
            # A text of one word is its weighted vector.
            own = self.vectors.words if setting.texts == "vocabulary" else (
                sentences_of(self.lab.stsb_train))  # fmt: skip
            plain = dataclasses.replace(setting, texts="own")
            fixed = self.component(own, plain)
        return weights, mean, fixed

    def _probabilities(self, setting):
        words = self.vectors.words
        if setting.p == "rank":
            return zipf(len(words))
        return relative_frequencies(words, self.lab.counts(setting.p), setting.unknown)

    def _weights(self, p, setting):
        if setting.weights == "none":
            return np.ones(len(p))
        if setting.weights == "sif":
            return sif_weights(p, setting.a)
        if setting.weights == "usif":
            return usif_weights(p)
        formula = {"idf": idf_weights, "idf-code": idf_code_weights}[setting.weights]
        return formula(self.vectors.words, self.lab.sentences_for_idf)

    def _known(self, texts):
        tokens = tokenize(texts, self.split)
        return only_known(tokens, self.vectors.rows(tokens.words) >= 0)

    def _table(self, rows, weights, mean):
        own = self.vectors.vectors[rows].astype(np.float64) - mean
        return (weights[rows, None] * own).astype(np.float32)

    def _cosines(self, pairs, setting, weights, mean, fixed):
        if pairs.name not in self._tokens:
            self._tokens[pairs.name] = [self._known(texts) for texts in (pairs.first, pairs.second)]
        sides = self._tokens[pairs.name]
        tables = [self._table(self.vectors.rows(some.words), weights, mean) for some in sides]
        workers = self.lab.workers
        if fixed is None:
            found = [moments(*side, workers) for side in zip(tables, sides, strict=True)]
            if not setting.each:
                found = [found[0] + found[1]] * 2
            removed = [common_components(m, setting.components, setting.weighted) for m in found]
        else:
            removed = [fixed, fixed]
        X, Y = (
            own.removed(averages(table, some, workers), workers)
            for table, some, own in zip(tables, sides, removed, strict=True)
        )
        return cosines(X, Y)
