"""The settings, click log and dev set that must be the same for a training to be resumed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentemb.errors import SentembError

# In the record of a model.
START, DEV_SPLIT, SEEDS = "start_from", "dev_split", "seeds"
VECTORS, TEACHER = "vectors", "teacher"


@dataclass(frozen=True)
class Identity:
    """Everything that decides the result of a training.

    settings : `Settings.as_dict`
    log, dev : fingerprints of the click log and of the dev set
    start : the model that the training started from, as `Start.record` gives it; its ``sha256``
        counts
    dev_split : how the dev set was split from the log, as `DevPlan.record` gives it. It is recorded
        only: ``log`` and ``dev`` are those of the parts.
    vectors : the word vectors that are features, as `VectorSource.record` gives them; their
        ``sha256`` counts
    seeds : how many models are trained and averaged, the first with the seed in ``settings``
    teacher : the embedding whose cosines two towers learn, as `embed_log` records it; its
        ``sha256`` counts
    """

    settings: dict[str, Any]
    log: str
    dev: str | None
    start: dict[str, str] | None = None
    dev_split: dict[str, Any] | None = None
    vectors: dict[str, Any] | None = None
    seeds: int = 1
    teacher: dict[str, Any] | None = None

    def each_seed(self) -> range:
        """The seeds of the models that are trained."""
        first = self.settings["seed"]
        return range(first, first + self.seeds)

    def as_dict(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        return {
            "settings": self.settings,
            "log": self.log,
            "dev": self.dev,
            "start": _hash_of(self.start),
            **({} if self.vectors is None else {VECTORS: _hash_of(self.vectors)}),
            **({} if self.teacher is None else {TEACHER: _hash_of(self.teacher)}),
            **({} if self.seeds == 1 else {SEEDS: self.seeds}),
        }

    def record(self, n_pairs: int, finished: bool) -> dict[str, Any]:
        """As a model keeps it: how it was trained, and whether the training is finished."""
        return {
            **self.settings,
            "pairs": n_pairs,
            "log": self.log,
            "dev": self.dev,
            **({} if self.dev_split is None else {DEV_SPLIT: self.dev_split}),
            **({} if self.start is None else {START: self.start}),
            **({} if self.vectors is None else {VECTORS: self.vectors}),
            **({} if self.teacher is None else {TEACHER: self.teacher}),
            **({} if self.seeds == 1 else {SEEDS: list(self.each_seed())}),
            "finished": finished,
        }

    def in_record(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The identity in a model's `record`, in the form of `as_dict`."""
        known = {key: record.get(key) for key in self.settings}
        data = {key: record.get(key) for key in ("log", "dev")}
        seeds = record.get(SEEDS)
        n_seeds = {SEEDS: len(seeds)} if isinstance(seeds, list) else {}
        read = {key: _hash_of(record[key]) for key in (VECTORS, TEACHER) if key in record}
        start = _hash_of(record.get(START))
        return {"settings": known, **data, "start": start, **read, **n_seeds}

    def check(self, stored: Mapping[str, Any], output: object) -> None:
        """Raise a `SentembError` if ``stored``, as of `as_dict`, is another training."""
        # First, because it decides many settings.
        if stored.get("start") != _hash_of(self.start):
            raise SentembError(
                f"{output}: started from another model, other word vectors or another teacher, or "
                "from none; give the same, or start again with --force"
            )
        if stored.get(VECTORS) != _hash_of(self.vectors):
            raise SentembError(
                f"{output}: was trained with other word vectors (--vectors), with another "
                "--vector-dim or --vector-words, or without; give the same, or start again with "
                "--force"
            )
        if stored.get(TEACHER) != _hash_of(self.teacher):
            raise SentembError(
                f"{output}: was trained with another teacher (--teacher), or without; give the "
                "same, or start again with --force"
            )
        n_seeds = stored.get(SEEDS, 1)
        if n_seeds != self.seeds:
            raise SentembError(
                f"{output}: was trained with {SEEDS} = {n_seeds}, not {self.seeds}; resume with "
                "the same settings, or start again with --force"
            )
        mine, known = self.settings, stored["settings"]
        key = next((key for key in mine if known.get(key) != mine[key]), None)
        if key is not None:
            raise SentembError(
                f"{output}: was trained with {key} = {known.get(key)}, not {mine[key]}; "
                "resume with the same settings, or start again with --force"
            )
        if stored.get("log") != self.log:
            raise SentembError(
                f"{output}: was trained on another click log; give that one, or start again "
                "with --force"
            )
        if stored.get("dev") != self.dev:
            raise SentembError(
                f"{output}: was trained with another dev set, or without one; give the same, "
                "or start again with --force"
            )


def _hash_of(start: Any) -> Any:
    """The hash in the record of the model that a training started from; None without one."""
    return start.get("sha256") if isinstance(start, dict) else None
