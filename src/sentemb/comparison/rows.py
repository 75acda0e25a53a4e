"""The rows of the table: what is compared, and what is tried on dev for each."""

import hashlib
from dataclasses import dataclass, field

from sentemb.baselines import make_baseline
from sentemb.bounds import brief, plain
from sentemb.comparison.store import is_row_name
from sentemb.errors import SentembError
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import TENSORS, load_model
from sentemb.system.files import path_of, reading
from sentemb.training.settings import Settings

# Learning rates that are tried for every encoder.
_RATES = ({"learning_rate": 0.0025}, {"learning_rate": 0.005})


@dataclass(frozen=True)
class Row:
    """One line of the table; as it stands here, a baseline.

    Attributes
    ----------
    name : str
    fixed : dict
        Settings that stay as they are; of a baseline with its ``name`` among them.
    needs_log : bool
        Whether it learns from a click log.
    """

    name: str
    fixed: dict = field(default_factory=dict)
    needs_log: bool = False
    kind = "baseline"

    def points(self):
        """What to choose from on dev, the defaults first: a list of dicts of all settings."""
        name = self.fixed["name"]
        plain = make_baseline(**self.fixed)
        made = [plain, *(make_baseline(**{**self.fixed, **point}) for point in plain.grid)]
        return _distinct({"name": name, **baseline.settings()} for baseline in made)

    @property
    def is_random(self):
        """Whether a seed matters."""
        return make_baseline(**self.fixed).is_random

    def fit(self, settings, data, seed, threads):
        """A ranker with ``settings`` and the numbers that fitting set: (ranker, int)."""
        ranker = make_baseline(**settings).fit(data.log, data.titles, seed)
        return ranker, ranker.n_parameters


@dataclass(frozen=True)
class EncoderRow(Row):
    """A row that `sentemb.train` makes; its best epoch is chosen on dev too.

    Attributes
    ----------
    grid : tuple of dict
        Settings to choose from beside those that are fixed.
    """

    needs_log: bool = True
    grid: tuple = _RATES
    kind = "encoder"
    is_random = True

    def points(self):
        made = (Settings.of(**self.fixed, **point).as_dict() for point in self.grid)
        return _distinct(
            {key: value for key, value in all.items() if key != "seed"} for all in made
        )

    def fit(self, settings, data, seed, threads):
        from sentemb.training.trainer import train

        model = train(data.log, dev=data.dev, seed=seed, threads=threads, **settings)
        return model, trained_parameters(model)


@dataclass(frozen=True)
class ModelRow(Row):
    """A model that is there already, measured as it is."""

    kind = "model"
    is_random = False

    @classmethod
    def of(cls, path):
        """The row of the model in the folder ``path``, called as the folder."""
        path = path_of(path)
        load_model(path)  # reject a bad model directory before training anything
        path = path.resolve()
        if not is_row_name(path.name):
            raise SentembError(f"{brief(path.name)} cannot name a row; rename the folder")
        with reading(path / TENSORS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.name, {"path": path, "sha256": digest})

    def points(self):
        return [{"sha256": self.fixed["sha256"]}]

    def fit(self, settings, data, seed, threads):
        model = SentenceEncoder.from_pretrained(self.fixed["path"], threads)
        return model, trained_parameters(model)


def trained_parameters(model):
    """Numbers that training can move: rows of features that a tower met, and all dense arrays.

    The rows that a tower did not meet are zero, see `Encoder.initialise`.
    """
    total = 0
    for weights in {id(side): side for side in model.weights.values()}.values():
        table = weights["table"]
        total += int(table.any(axis=1).sum()) * table.shape[1]
        total += sum(array.size for name, array in weights.items() if name != "table")
    return total


def apart(point, points):
    """What sets a point apart from the other ``points``, in words; "" for the only one."""
    return ", ".join(
        f"{key} {value}"
        for key, value in point.items()
        if any(other[key] != value for other in points)
    )


def some_of(names):
    """The first few of some names as a message lists them."""
    names = [plain(name) for name in names]
    return ", ".join(names if len(names) <= 5 else [*names[:4], "..."])


def _distinct(points):
    kept = []
    for point in points:
        if point not in kept:
            kept.append(point)
    return kept


def _baseline(row_name, needs_log=False, **settings):
    return Row(row_name, {"name": row_name, **settings}, needs_log)


def _encoder(row_name, **settings):
    """Without hard negatives, which are a row of their own: encoders differ in nothing else."""
    return EncoderRow(row_name, {"hard_negatives": 0, **settings})


ROWS = {
    row.name: row
    for row in (
        _baseline("random"),
        _baseline("unigram"),
        _baseline("bm25"),
        _baseline("bm25-stem", name="bm25", stem=True),
        _baseline("plsa", needs_log=True),
        _baseline("doc2vec", needs_log=True),
        _baseline("skip-thought"),
        _encoder("bag", model="bag"),
        _encoder("dssm", model="dssm"),
        *(_encoder(f"clsm-{window}", model="clsm", window=window) for window in (1, 3, 5)),
        _encoder("rnn-288", model="rnn", cells=288),
        *(_encoder(f"lstm-{cells}", cells=cells) for cells in (32, 64, 96)),
        *(_encoder(f"lstm-96-n{n}", n_negatives=n) for n in (2, 4, 6, 8)),
        _encoder("lstm-96-bag", bag=96),
        *(_encoder(f"bilstm-{cells}", model="bilstm", cells=cells) for cells in (96, 192)),
        *(EncoderRow(f"{model}-hard", {"model": model}) for model in ("bag", "dssm")),
        EncoderRow("lstm-96-hard"),
        EncoderRow("lstm-96-paper", {"preset": "paper"}, grid=({},)),
        EncoderRow("bilstm-large", {"preset": "large"}, grid=({}, {"hard_negatives": 6})),
    )
}


def rows_of(names=None):
    """The rows called ``names`` (list of str), in the table's order; all if None."""
    if names is None:
        return list(ROWS.values())
    if not isinstance(names, (list, tuple)):
        raise SentembError(f"the rows are {brief(names)}; give a list of their names")
    for name in names:
        if not isinstance(name, str) or name not in ROWS:
            raise SentembError(
                f"there is no row {brief(name)}; choose from {some_of(ROWS)}; `--models list` "
                "shows them all"
            )
    return [row for row in ROWS.values() if row.name in names]
