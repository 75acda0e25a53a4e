"""The rows of the table: what is compared, and which settings are tried on dev for each."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from sentemb.comparison.data_folder import Data
from sentemb.comparison.row import Point, Row, distinct
from sentemb.comparison.store import SUM, is_row_name
from sentemb.comparison.vector_rows import VECTOR_ROWS
from sentemb.errors import SentembError
from sentemb.models.contracts import Ranker
from sentemb.models.files.model_files import load_model
from sentemb.models.files.model_folder import RANKER, RANKER_FILE, TENSORS
from sentemb.models.loading import load
from sentemb.models.parameters import trained_parameters
from sentemb.search.ranking.opening import load_ranker
from sentemb.search.ranking.ranker_files import has_ranker
from sentemb.search.ranking.recipe import COSINE
from sentemb.system.bounds import brief, plain
from sentemb.system.files import path_of, reading
from sentemb.system.paths import AnyPath
from sentemb.training.negatives.teachers import BM25_TEACHER
from sentemb.training.pairs.pair_settings import PairSettings
from sentemb.training.towers.settings import Settings

# Learning rates that are tried for every encoder.
_RATES = ({"learning_rate": 0.0025}, {"learning_rate": 0.005})
# The same for pair models.
_PAIR_RATES = ({"learning_rate": 0.001}, {"learning_rate": 0.003})
_HARD = "-hard"


@dataclass(frozen=True)
class EncoderRow(Row):
    """A row that `sentemb.train` trains; its best epoch is chosen on dev too.

    ``grid`` has settings to choose from, in addition to the fixed ones.
    """

    needs_log: bool = True
    grid: tuple[Point, ...] = _RATES
    kind: ClassVar[str] = "encoder"

    @property
    def is_random(self) -> bool:
        return True

    def points(self) -> list[Point]:
        made = (Settings.of(**self.fixed, **point).as_dict() for point in self.grid)
        return distinct({key: value for key, value in all.items() if key != "seed"} for all in made)

    def fit(self, settings: Point, data: Data, seed: int) -> tuple[Ranker, int]:
        from sentemb.training.trainer import train

        assert data.log is not None  # the runner passes over rows that need a log
        model: Any = train(data.log, dev=data.dev, seed=seed, **settings)
        return model, trained_parameters(model)


@dataclass(frozen=True)
class PairRow(EncoderRow):
    """A row that `sentemb.train` trains as a pair model, on the words of the log.

    A ``teacher`` among the fixed settings lists hard negatives.
    """

    grid: tuple[Point, ...] = _PAIR_RATES
    kind: ClassVar[str] = "pair model"

    def points(self) -> list[Point]:
        teacher = {name: self.fixed[name] for name in self.fixed if name == "teacher"}
        settings = {name: value for name, value in self.fixed.items() if name not in teacher}
        made = (PairSettings.of(**settings, **point).as_dict() | teacher for point in self.grid)
        return distinct({key: value for key, value in all.items() if key != "seed"} for all in made)


@dataclass(frozen=True)
class ModelRow(Row):
    """An existing model, which is measured and not trained."""

    kind: ClassVar[str] = "model"

    @property
    def is_random(self) -> bool:
        return False

    @classmethod
    def of(cls, folder: AnyPath) -> "ModelRow":
        """The row of the model in ``folder``, with the name of the folder."""
        path = path_of(folder)
        load_model(path)  # reject a bad model directory before training anything
        path = path.resolve()
        if not is_row_name(path.name):
            raise SentembError(f"{brief(path.name)} cannot name a row; rename the folder")
        with reading(path / TENSORS) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        return cls(path.name, {"path": path, "sha256": digest})

    def points(self) -> list[Point]:
        return [{"sha256": self.fixed["sha256"]}]

    def fit(self, settings: Point, data: Data, seed: int) -> tuple[Ranker, int]:
        model = load(self.fixed["path"])
        return model, trained_parameters(model)


@dataclass(frozen=True)
class RankerRow(ModelRow):
    """The ranker of an existing model, or one of its parts."""

    kind: ClassVar[str] = "ranker"

    @classmethod
    def all_of(cls, folder: AnyPath) -> list[ModelRow]:
        """The rows of the model in ``folder``: its ranker and the parts of it, or the model alone.

        The ranker has the name of the folder, a part that name and its own.
        """
        row = ModelRow.of(folder)
        if not has_ranker(folder):
            return [row]
        ranker = load_ranker(folder)
        if ranker.recipe.parts == (COSINE,):
            return [row]
        with reading(path_of(folder) / RANKER / RANKER_FILE) as file:
            fixed = {**row.fixed, "ranker": hashlib.file_digest(file, "sha256").hexdigest()}
        rows: list[ModelRow] = [cls(row.name, {**fixed, "part": SUM})]
        for part in ranker.recipe.rankings:
            name = f"{row.name}-{part}"
            if not is_row_name(name):
                raise SentembError(f"{brief(name)} cannot name a row; rename the folder")
            rows.append(cls(name, {**fixed, "part": part}))
        return rows

    def points(self) -> list[Point]:
        return [{name: self.fixed[name] for name in ("sha256", "ranker", "part")}]

    def fit(self, settings: Point, data: Data, seed: int) -> tuple[Ranker, int]:
        ranker = load_ranker(self.fixed["path"])
        part = self.fixed["part"]
        return ranker if part == SUM else ranker.alone(part), trained_parameters(ranker.model)


def some_of(names: Iterable[str]) -> str:
    """The first few names, as a message lists them."""
    shown = [plain(name) for name in names]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:4], "..."])


def _baseline(row_name: str, needs_log: bool = False, **settings: Any) -> Row:
    return Row(row_name, {"name": row_name, **settings}, needs_log)


def _pair(row_name: str, **settings: Any) -> Row:
    """A pair model that is small enough for every seed to be trained in minutes."""
    model = row_name.removesuffix(_HARD)
    hard = {"teacher": BM25_TEACHER} if row_name.endswith(_HARD) else {}
    return PairRow(row_name, {"model": model, "patience": 2, **settings, **hard})


def _encoder(row_name: str, **settings: Any) -> Row:
    """An encoder without hard negatives, which have rows of their own."""
    return EncoderRow(row_name, {"hard_negatives": 0, **settings})


# A row is the model of its name, on a small log too.
_SEPARATE = {"shared_towers": False, "bag_dim": 0}

ROWS: dict[str, Row] = {
    row.name: row
    for row in (
        _baseline("random"),
        _baseline("unigram"),
        _baseline("bm25"),
        _baseline("bm25-stem", name="bm25", stem=True),
        _baseline("plsa", needs_log=True),
        _baseline("doc2vec", needs_log=True),
        _baseline("skip-thought"),
        *VECTOR_ROWS,
        _encoder("bag", model="bag"),
        _encoder("dssm", model="dssm"),
        *(_encoder(f"clsm-{window}", model="clsm", window=window) for window in (1, 3, 5)),
        _encoder("rnn-288", model="rnn", cells=288),
        *(_encoder(f"lstm-{cells}", cells=cells, **_SEPARATE) for cells in (32, 64, 96)),
        *(_encoder(f"lstm-96-n{n}", n_negatives=n, **_SEPARATE) for n in (2, 4, 6, 8)),
        _encoder("lstm-96-bag", **{**_SEPARATE, "bag_dim": 96}),
        *(_encoder(f"bilstm-{cells}", model="bilstm", cells=cells) for cells in (96, 192)),
        *(EncoderRow(f"{model}-hard", {"model": model}) for model in ("bag", "dssm")),
        EncoderRow("lstm-96-hard", _SEPARATE),
        EncoderRow("lstm-96-paper", {"preset": "paper"}, grid=({},)),
        EncoderRow("bilstm-large", {"preset": "large"}, grid=({}, {"hard_negatives": 6})),
        _pair("wordembed"),
        _pair("senna", maps=(64,)),
        _pair("senmlp"),
        _pair("arc1", maps=(64, 64)),
        *(_pair(name, maps=(64, 64, 64)) for name in ("arc2", "arc2-hard")),
    )
}


def rows_of(names: Sequence[str] | None = None) -> list[Row]:
    """The rows called ``names`` (list of str), in the order of the table.

    None means all rows except those of pair models: they take longer than all others together,
    and rank titles less well.
    """
    if names is None:
        return [row for row in ROWS.values() if not isinstance(row, PairRow)]
    if not isinstance(names, (list, tuple)):
        raise SentembError(f"the rows are {brief(names)}; give a list of their names")
    for name in names:
        if not isinstance(name, str) or name not in ROWS:
            raise SentembError(
                f"there is no row {brief(name)}; choose from {some_of(ROWS)}; `--models list` "
                "shows them all"
            )
    return [row for row in ROWS.values() if row.name in names]
