"""Tables 2 and 3 of the SIF paper: sentence vectors as features, and what word order is worth.

Table 2 trains the classifier of the paper's appendix A.2 on fixed SIF vectors (weighted averages
without the removal of a component; with it too, at the same a, because the appendix says that its
projection can absorb the removal). Table 3 trains an RNN and an LSTM together with the same
classifier, on texts as they are and with the words of every text shuffled; the inputs are the same
word vectors, times a random matrix, and are trained too. Every result is written to
docs/results/sif/supervised.csv as soon as it is there, so a stopped run continues. Without
``--data`` there is nothing to measure.

    python benchmarks/sif_supervised.py VECTORS [--data ../shared/data] [--minutes 25]
"""

import argparse
import csv
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from lab.classifier.training import train_classifier
from pages import DATA, RESULTS

from sentemb.data.labelled import ValuedTexts, read_labelled, read_valued, score_of
from sentemb.models.towers import make_encoder
from sentemb.models.towers.towers import Towers
from sentemb.models.vectors.averages import averages, only_known
from sentemb.models.vectors.counts import read_counts
from sentemb.models.vectors.probabilities import relative_frequencies
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.word_weights import sif_weights
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import split_words

CSV = RESULTS / "sif" / "supervised.csv"
FIELDS = (
    "vectors", "table", "task", "system", "a", "order", "seed", "dev", "test", "epoch", "seconds"
)  # fmt: skip
SEEDS = (0, 1, 2)
# The paper tries these (appendix A.2). As there, the best on dev counts; here it is that of seed 0.
A = (1e-2, 3e-2, 1e-3, 3e-3)
ORDERS = ("original", "shuffled")
REMOVED = "SIF, component removed"


@dataclass(frozen=True)
class Task:
    """A supervised task of the paper.

    Attributes
    ----------
    files : str
        Where train, dev and test are, below the data.
    reader : function of a path
    fixed, rnn, lstm : dict
        Settings of the training on fixed vectors and together with an encoder, chosen on dev. The
        best epoch on dev counts.
    """

    files: str
    reader: object
    fixed: dict
    rnn: dict
    lstm: dict


def read_scored(path):
    """Lines of ``score<TAB>text<TAB>text``."""
    return read_valued(path, score_of, "score", (2,))


TASKS = {
    "similarity": Task(
        files="sts/sick/{}.tsv", reader=read_scored,
        fixed={"epochs": 10, "learning_rate": 0.0005},
        rnn={"epochs": 15, "patience": 3, "learning_rate": 0.001},
        lstm={"epochs": 15, "patience": 3, "learning_rate": 0.002},
    ),
    "entailment": Task(
        files="sts/sick/{}.entailment.tsv", reader=read_labelled,
        fixed={"epochs": 10, "learning_rate": 0.001},
        rnn={"epochs": 15, "patience": 3, "learning_rate": 0.001},
        lstm={"epochs": 15, "patience": 3, "learning_rate": 0.001},
    ),
    "sentiment": Task(
        files="sts/sst2/{}.tsv", reader=read_labelled,
        fixed={"epochs": 4, "learning_rate": 0.001},
        rnn={"epochs": 3, "patience": 1, "batch_size": 100, "learning_rate": 0.001},
        lstm={"epochs": 3, "patience": 1, "batch_size": 100, "learning_rate": 0.001},
    ),
}  # fmt: skip
CELLS = 100
# With it the inputs of the cells begin with a standard deviation of about a half.
INPUT_SCALE = 0.5


@cache
def examples(data, task):
    """train, dev and test of a task."""
    files = str(Path(data) / TASKS[task].files)
    return tuple(TASKS[task].reader(files.format(split)) for split in ("train", "dev", "test"))


def words_of(data):
    """All words of all tasks, once each, in order of first appearance."""
    sets = (some for task in TASKS for some in examples(data, task))
    return tokenize(text for some in sets for side in some.sides for text in side).words


class SIFVectors:
    """The weighted average of a text's word vectors, divided by the sum of the weights.

    The authors' supervised code divides so; their unsupervised code divides by the number of words.
    A text without known words is zero.

    Parameters
    ----------
    vectors : WordVectors
    counts : mapping
        Word -> count; a word without one has the weight 1, as in the authors' code.
    a : float
    """

    def __init__(self, vectors, counts, a):
        weights = sif_weights(relative_frequencies(vectors.words, counts, unknown="zero"), a)
        self.row_of_word = vectors.row_of_word
        rows = vectors.vectors.astype(np.float64) * weights[:, None]
        self.table = np.column_stack([rows, weights])

    def __call__(self, texts):
        """(k, dim) float64."""
        tokens = tokenize(texts)
        tokens = only_known(tokens, np.array([word in self.row_of_word for word in tokens.words]))
        table = self.table[[self.row_of_word[word] for word in tokens.words]]
        with Workers(1) as workers:
            X = averages(table, tokens, workers)
        return X[:, :-1] / np.maximum(X[:, -1:], np.finfo(float).tiny)


class WithoutComponent:
    """Features without the common component of some texts: their first singular vector.

    Parameters
    ----------
    features : SIFVectors
    texts : list of str
    """

    def __init__(self, features, texts):
        self.features = features
        X = features(texts)
        self.component = np.linalg.eigh(X.T @ X)[1][:, -1]

    def __call__(self, texts):
        """(k, dim) float64."""
        X = self.features(texts)
        return X - np.outer(X @ self.component, self.component)


def shuffled(some, seed):
    """The same texts, each with its words in random order."""
    rng = np.random.default_rng(seed)
    sides = ([" ".join(rng.permutation(split_words(text))) for text in side] for side in some.sides)
    return ValuedTexts(some.values, *sides)


def tower_of(name, vectors, seed):
    """An encoder whose inputs are the word vectors times a random matrix."""
    encoder = make_encoder(name, cells=CELLS)
    vocabulary = Vocabulary([], vectors.words)
    rng = np.random.default_rng([seed, 1])
    weights = encoder.initialise(len(vocabulary), rng)
    length = np.sqrt(np.mean(np.sum(np.square(vectors.vectors, dtype=np.float64), axis=1)))
    mixing = INPUT_SCALE / length * rng.standard_normal((vectors.dim, encoder.width))
    weights["table"][...] = vectors.vectors @ mixing
    return Towers.of(encoder, vocabulary, {"query": weights})


def measured(train, dev, test, features, **settings):
    """Percent on dev and test of a new classifier, its best epoch and the seconds it took."""
    began = time.perf_counter()
    classifier = train_classifier(train, dev, features=features, **settings)
    figures = [next(iter(line["dev"].values())) for line in classifier.history]
    return {
        "dev": f"{100 * max(figures):.2f}",
        "test": f"{100 * classifier.measure(test):.2f}",
        "epoch": 1 + int(np.argmax(figures)),
        "seconds": f"{time.perf_counter() - began:.0f}",
    }


def of_sif(data, task, system, a, seed, vectors, counts):
    """A row of Table 2."""
    features, sets = SIFVectors(vectors, counts, a), examples(data, task)
    if system == REMOVED:
        features = WithoutComponent(features, [text for side in sets[0].sides for text in side])
    return measured(*sets, features, seed=seed, **TASKS[task].fixed)


def of_tower(data, task, name, order, seed, vectors):
    """A row of Table 3."""
    sets = examples(data, task)
    if order == "shuffled":
        sets = [shuffled(some, [seed, number]) for number, some in enumerate(sets)]
    return measured(*sets, tower_of(name, vectors, seed), seed=seed, **getattr(TASKS[task], name))


def rows_of(path):
    """The results so far."""
    if not path.exists():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def chosen_a(rows, task):
    """The a of the best dev figure of a task with seed 0."""
    tried = [row for row in rows if (row["task"], row["system"], row["seed"]) == (task, "SIF", "0")]
    return max(tried, key=lambda row: float(row["dev"]))["a"]


def plan(rows):
    """What is to be measured, one seed of everything first: (table, task, system, a, order, seed).

    Parameters
    ----------
    rows : function
        The results so far, which say what a the seeds after the first have.
    """
    for seed in SEEDS:
        for task in TASKS:
            for a in A if seed == SEEDS[0] else [float(chosen_a(rows(), task))]:
                yield "2", task, "SIF", a, "original", seed
            yield "2", task, REMOVED, float(chosen_a(rows(), task)), "original", seed
        for task in TASKS:
            for name in ("rnn", "lstm"):
                for order in ORDERS:
                    yield "3", task, name, "", order, seed


def run(vectors_path, data=DATA, minutes=np.inf, path=CSV, say=print):
    """Measure what is not in the file yet; begin nothing after ``minutes``."""
    data = Path(data)
    if not (data / "sts").is_dir():
        say(f"{data}/sts is not there: Tables 2 and 3 of the SIF paper are skipped")
        return rows_of(path)
    began = time.monotonic()
    name = Path(vectors_path).stem
    vectors = read_word_vectors(vectors_path, words=words_of(data))
    counts = read_counts(data / "sts" / "enwiki_vocab_min200.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    for key in plan(lambda: rows_of(path)):
        rows = rows_of(path)
        row = dict(zip(FIELDS, (name, *map(str, key)), strict=False))
        if any(all(old[field] == row[field] for field in row) for old in rows):
            continue
        if time.monotonic() - began > 60 * minutes:
            break
        _, task, system, a, order, seed = key
        if system in ("SIF", REMOVED):
            row |= of_sif(data, task, system, a, seed, vectors, counts)
        else:
            row |= of_tower(data, task, system, order, seed, vectors)
        say(", ".join(map(str, row.values())))
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
            if not rows:
                writer.writeheader()
            writer.writerow(row)
    return rows_of(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("vectors", help="word vectors in any format that sentemb reads")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--minutes", type=float, default=25, help="begin nothing after that")
    given = parser.parse_args()
    run(given.vectors, given.data, given.minutes)


if __name__ == "__main__":
    main()
