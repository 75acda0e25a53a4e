"""What the parts of docs/arc.md share: the data, trainings that are done once, and what they reach.

A training that was stopped continues from its last checkpoint; one that ended is read from
build/arc/models. What a model gets right, query by query, is kept in hits.csv, for paired
comparisons.
"""

import csv
import sys
import time
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path

import numpy as np

import sentemb
from sentemb.data.click_log import read_click_log
from sentemb.data.judged_set import read_judged_set
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.training.checkpoints import has_checkpoints

# Of Table 3, whose trainings are short. The other parts have the first alone unless more are asked
# for: each takes another hour.
SEEDS = (0, 1, 2)
# The paper's models, in the order of its Table 1, with the sizes that are trained here, and
# dropout where it is better on dev.
MODELS = {
    "deepmatch": {},
    "wordembed": {},
    "senmlp": {},
    "senna": {"maps": (100,)},
    "urae": {},
    "arc1": {"maps": (64, 64)},
    "arc2": {"maps": (48, 48, 48)},
}
# What is trained as two towers on the same pairs, from letter trigrams and words.
TOWERS = {"bag": {}, "lstm": {}}
# DeepMatch reads words as topics of the training data, not as vectors.
WITHOUT_VECTORS = ("deepmatch",)
# An auto-encoder could make its loss small by making the vectors alike.
NEVER_TUNED = ("urae",)
EPOCHS = 10
# The same for all pair models; chosen on dev.
TRAINING = {
    "epochs": EPOCHS,
    "patience": 3,
    "decay": "linear",
    "n_negatives": 5,
    "batch_size": 200,
    "learning_rate": 0.001,
    "dropout": 0.0,
}
# As in docs/benchmarks.md, without hard negatives.
TOWER_TRAINING = {"hard_negatives": 0, "epochs": 6}


@dataclass
class Laboratory:
    """Where data come from and models are kept.

    Attributes
    ----------
    data, build, results : Path
        The shared data; a folder for models; the folder of the CSV files.
    threads : int
    seeds : tuple of int
    models, kinds : tuple of str
        Rows to measure, by model and by word vectors; all by default.
    msrp : Path, optional
        A folder with the paraphrase corpus's published files.
    """

    data: Path
    build: Path
    results: Path
    threads: int = 1
    seeds: tuple = SEEDS[:1]
    models: tuple = ()
    kinds: tuple = ()
    msrp: Path | None = None
    _judged: dict = field(default_factory=dict)

    def wants(self, model):
        """Whether a row is to be measured."""
        return not self.models or model in self.models

    def wants_vectors(self, vectors):
        """Whether rows with these word vectors are to be measured."""
        return not self.kinds or vectors in self.kinds

    @cached_property
    def vectors(self):
        """The word vectors, read once."""
        from sentemb.models.vectors.reading import read_word_vectors

        return read_word_vectors(self.data / "word_vectors" / "vectors.txt.gz")

    def log(self, name):
        """The click log of a set."""
        return _log(self.data / name / "pairs.tsv")

    def judged(self, name, part):
        """A judged set, such as ``dev`` of ``completion``."""
        key = name, part
        if key not in self._judged:
            self._judged[key] = read_judged_set(self.data / name / part)
        return self._judged[key]

    def trained(self, key, pairs, dev, model, seed, **settings):
        """A trained model: read if it is there, else trained or continued.

        ``key`` is the name of its folder; the rest is as for `sentemb.train`.
        """
        folder = self.build / "models" / key
        if (folder / "config.json").exists() and not has_checkpoints(folder):
            return sentemb.load(folder)
        if model not in (*TOWERS, *WITHOUT_VECTORS):
            settings = {"vectors": self.vectors, **settings}
        began = time.monotonic()

        def tell(progress):
            if progress.epoch_ended:
                found = f" dev {next(iter(progress.dev.values())):.4f}" if progress.dev else ""
                print(
                    f"{key}: epoch {progress.epoch}, loss {progress.loss:.4f}{found}, "
                    f"{time.monotonic() - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )

        folder.parent.mkdir(parents=True, exist_ok=True)
        return sentemb.train(
            pairs, output=folder, resume=True, model=model, seed=seed, dev=dev,
            threads=self.threads, on_progress=tell, **settings,
        )  # fmt: skip

    def hits(self, name, model, seed, part, scorer=None):
        """Whether the best title of each query is the right one: (n_queries,) of 0 and 1.

        Measured with ``scorer`` if it is not there yet, and kept, for paired comparisons; None if
        it is not there and there is no scorer.
        """
        rows = Rows(
            self.results / "hits.csv", ("training", "model", "seed", "part", "n", "bits"), 4
        )
        if not rows.has(name, model, seed, part):
            if scorer is None:
                return None
            judged = self.judged(name.split("-")[0], part)
            found = evaluate_model(scorer, judged, (1,)).values[:, 0]
            rows.add(name, model, seed, part, found.size, packed(found))
        return unpacked(rows.row(name, model, seed, part))


def packed(hits):
    """Zeros and ones as hexadecimal digits."""
    return np.packbits(hits.astype(bool)).tobytes().hex()


def unpacked(row):
    """Zeros and ones from a row of hits.csv."""
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(row["bits"]), np.uint8))
    return bits[: int(row["n"])].astype(float)


@cache
def _log(path):
    return read_click_log(path)


class Rows:
    """The rows of a CSV file, each written as soon as it is measured.

    Parameters
    ----------
    path : Path
    fields : tuple of str
        The columns; the first ``n_keys`` of them say which measurement a row is.
    n_keys : int
    """

    def __init__(self, path, fields, n_keys):
        self.path, self.fields, self._n_keys = path, fields, n_keys
        self.rows = read(path) if path.exists() else []

    def has(self, *key):
        """Whether a measurement is there."""
        return self.row(*key) is not None

    def row(self, *key):
        """The row of a measurement, a dict of str; None if it is not there."""
        names = self.fields[: self._n_keys]
        wanted = list(map(str, key))
        return next((row for row in self.rows if [row[n] for n in names] == wanted), None)

    def add(self, *values):
        """Add a row and write the file."""
        row = dict(zip(self.fields, map(str, values), strict=True))
        self.rows.append(row)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, self.fields, lineterminator="\n")
            writer.writeheader()
            writer.writerows(self.rows)
        print(*(value[:100] for value in row.values()), file=sys.stderr, flush=True)


def read(path):
    """The rows of a CSV file, each a dict of str."""
    with open(path, encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def curve(scorer):
    """What a training says of its epochs.

    Returns
    -------
    figures, losses : str
        The figure on dev and the training loss, epoch by epoch, as one cell each.
    kept : int
        The epoch that was kept, counted from 1.
    seconds : float
    """
    history = scorer.history
    # An auto-encoder learns first; its epochs have no figure, because the scores are still random.
    figures = [next(iter((entry["dev"] or {"none": 0.0}).values())) for entry in history]
    cells = (" ".join(f"{x:.4f}" for x in some)
             for some in (figures, [entry["loss"] for entry in history]))  # fmt: skip
    return *cells, int(np.argmax(figures)) + 1, history[-1]["seconds"]


def n_parameters(scorer):
    """Trained numbers; of a pair model without its word vectors."""
    if isinstance(scorer, sentemb.PairScorer):
        return sum(
            array.size
            for name, array in scorer.weights.items()
            if name != "table" or scorer.model.name in WITHOUT_VECTORS
        )
    sides = dict.fromkeys(id(side) for side in scorer.weights.values())
    return sum(
        array.size
        for side in scorer.weights.values()
        if sides.pop(id(side), True) is None
        for array in side.values()
    )


def shuffled(text, rng):
    """The words of a text in another order; the same if it has only one order."""
    words = text.split()
    if len(set(words)) > 1:
        order = words
        while order == words:
            order = [words[k] for k in rng.permutation(len(words))]
        words = order
    return " ".join(words)
