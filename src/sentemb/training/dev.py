"""The dev set: what is measured after every epoch to find the best one.

It is a judged set, or held-out clicks: a file of them, or a share of the queries of the log that is
trained on. For held-out clicks the whole catalogue is ranked, that is all titles of the log and of
the held-out clicks.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, TypeAlias, TypeVar

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.data.held_out_clicks import read_held_out
from sentemb.data.judged_set import JudgedSet
from sentemb.data.seen_queries import never_typed_and_typed
from sentemb.data.splitting import hold_out_clicks, is_share, share_of, split_log
from sentemb.errors import SentembError
from sentemb.evaluation.held_out import HeldOutClicks
from sentemb.evaluation.metrics import JudgedScores, ndcg
from sentemb.models.contracts import Embedder, Ranker
from sentemb.models.face import keeping_text_warnings
from sentemb.models.files.history import CLICKS_FIGURE, DEV_FIGURE
from sentemb.retrieval.nearest import TitleVectors
from sentemb.system.paths import AnyPath

DEV_CUTOFFS = (1, 3, 10)
# The first one decides which epoch is the best.
CLICKS_METRICS = (CLICKS_FIGURE, "hit@1", "recall@10")
# Queries of the log that lose single clicks where a share is held out: enough to fit the
# weight of clicks to.
MOST_TYPED = 400
# The seed of the split, whatever that of the training is: dev figures of trainings with different
# seeds are of the same queries, those that `sentemb split` holds out by default.
SPLIT_SEED = 0

ModelT_contra = TypeVar("ModelT_contra", contravariant=True)
DevSource: TypeAlias = AnyPath | float | JudgedSet | ClickLog


class Dev(Protocol[ModelT_contra]):
    """A dev set for models of some kind."""

    @property
    def metric(self) -> str:
        """The metric that decides which epoch is the best."""
        ...

    @property
    def queries(self) -> list[str]:
        """The queries that titles are ranked for."""
        ...

    def fingerprint(self) -> str:
        """A hash of everything that decides the figures."""
        ...

    def measure(self, model: ModelT_contra) -> dict[str, float]:
        """Figures by name, rounded as a training's history keeps them; `metric` is the first."""
        ...


@dataclass(frozen=True, eq=False)
class JudgedDev:
    """A judged set, measured by NDCG."""

    judged: JudgedSet
    metric: str = DEV_FIGURE

    @property
    def queries(self) -> list[str]:
        """See `Dev`."""
        return self.judged.queries

    def fingerprint(self) -> str:
        """See `Dev`."""
        return self.judged.fingerprint()

    def measure(self, model: Ranker) -> dict[str, float]:
        """NDCG by name, such as ``{"ndcg@1": 0.8}``."""
        judged = self.judged
        query_index = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
        pairs = judged.queries, judged.titles, query_index, judged.title_index
        mean = self._scores.mean(model.score_pairs(*pairs)).tolist()
        return {f"ndcg@{k}": round(value, 6) for k, value in zip(DEV_CUTOFFS, mean, strict=True)}

    @cached_property
    def _scores(self) -> JudgedScores:
        """Values of the judged set that every epoch needs."""
        return JudgedScores(self.judged, DEV_CUTOFFS)


class ClicksDev:
    """Held-out clicks, for which the titles of the log and of the clicks themselves are ranked.

    ``titles`` are those of the log that is trained on, and of a catalogue; the attribute has all
    titles that are ranked, each once. ``typed`` are held-out clicks of queries of the log, which
    the weights of a ranking are fitted to; nothing is measured on them, as the model knows them.
    """

    metric = CLICKS_FIGURE

    def __init__(
        self, clicks: ClickLog, titles: Sequence[str], typed: ClickLog | None = None
    ) -> None:
        self.clicks, self.typed = clicks, typed
        of_typed = () if typed is None else typed.titles
        self.titles = list(dict.fromkeys([*titles, *clicks.titles, *of_typed]))
        self._held_out = HeldOutClicks(clicks, self.titles, CLICKS_METRICS)

    @property
    def queries(self) -> list[str]:
        """See `Dev`."""
        return self.clicks.queries

    def fingerprint(self) -> str:
        """See `Dev`."""
        clicks = self.clicks
        digest = hashlib.sha256()
        for texts in (clicks.queries, clicks.titles, self.titles):
            digest.update("\n".join([*texts, ""]).encode())
        for array in (clicks.query_index, clicks.title_index):
            digest.update(array.tobytes())
        return digest.hexdigest()

    def measure(self, model: Embedder) -> dict[str, float]:
        """MRR@10, hit@1 and recall@10 by name."""
        with keeping_text_warnings():
            # The warnings name texts that the model cannot read, the same after every epoch.
            evaluation = self._held_out.evaluate(TitleVectors(model, self.titles))
        return {
            name: round(float(value), 6)
            for name, value in zip(evaluation.metrics, evaluation.mean, strict=True)
        }


@dataclass(frozen=True, eq=False)
class DevPlan:
    """The dev set of a training whose log is not read yet.

    read : None for a share, and without a dev set
    share : the share of the log's queries that is held out; 0 unless the dev set is a share
    """

    read: JudgedSet | ClickLog | None = None
    share: float = 0

    @classmethod
    def of(cls, dev: DevSource | None) -> "DevPlan":
        """The plan for ``dev``, which is read if it is a path.

        Raises `SentembError` if it is not a dev set, cannot be read, or nothing can be measured on
        it.
        """
        if dev is None:
            return cls()
        if is_share(dev):
            share = share_of("dev", dev)
            if not share:
                raise SentembError("dev is a share of 0; give one such as 5%, or leave dev out")
            return cls(share=share)
        read = dev
        if isinstance(dev, str | os.PathLike):
            read = read_held_out(dev)
        if isinstance(read, JudgedSet):
            _check_judged(read, "the dev set" if dev is read else str(dev))
        elif not isinstance(read, ClickLog):
            raise SentembError(
                "dev must be a path, a share such as 5%, a JudgedSet or a ClickLog, not "
                f"{type(dev).__name__}"
            )
        return cls(read)

    @property
    def is_of_clicks(self) -> bool:
        """Whether the dev set is one of held-out clicks."""
        return bool(self.share) or isinstance(self.read, ClickLog)

    def check_catalogue(self, titles: Sequence[str] | None) -> None:
        """Raise a `SentembError` for a catalogue that the dev set does not rank."""
        if titles is not None and not self.is_of_clicks:
            raise SentembError(
                "the catalogue is ranked for held-out clicks; give dev, for example 5%, or leave "
                "catalogue out"
            )

    def apply(
        self, log: ClickLog, note: Callable[[str], None], titles: Sequence[str] = ()
    ) -> tuple[ClickLog, Dev[Embedder] | None]:
        """The log to train on and the dev set.

        ``note`` is called with a message about the held-out part; ``titles`` are more titles that
        are ranked for held-out clicks.
        """
        if self.share:
            train, clicks, _ = split_log(log, dev=self.share, test=0, seed=SPLIT_SEED)
            assert train is not None and clicks is not None  # `split_log` refuses empty sides
            typed, singles = None, ""
            if train.clicks.max() > 1:
                titles = [*train.titles, *titles]
                train, typed = hold_out_clicks(train, self.share, SPLIT_SEED, MOST_TYPED)
                singles = f", and {int(typed.clicks.sum()):,} single clicks of others"
            n_queries, n_pairs = len(clicks.queries), clicks.query_index.size
            note(
                f"{n_queries:,} of {len(log.queries):,} queries are held out for dev, with "
                f"{n_pairs:,} pairs{singles}; {train.query_index.size:,} pairs are left to train on"
            )
            return train, ClicksDev(clicks, [*train.titles, *titles], typed)
        return log, self.given(log.queries, log.titles, note, titles)

    def given(
        self,
        queries: Sequence[str],
        log_titles: Sequence[str],
        note: Callable[[str], None],
        titles: Sequence[str] = (),
    ) -> Dev[Embedder] | None:
        """The dev set if it is not a share; the parameters are those of `apply`, for any log."""
        if not isinstance(self.read, ClickLog):
            return None if self.read is None else JudgedDev(self.read)
        never, typed = never_typed_and_typed(self.read, queries)
        if typed is not None:
            n_known, n_all = len(typed.queries), len(self.read.queries)
            note(
                f"{n_known:,} of the {n_all:,} dev queries are also in the log: "
                + (
                    "for them the dev figures are too high"
                    if never is self.read
                    else "epochs are compared by the others"
                )
            )
        return ClicksDev(never, [*log_titles, *titles], typed)

    def record(self) -> dict[str, Any] | None:
        """How the queries can be held out again, as the trained model records it."""
        return {"share": self.share, "seed": SPLIT_SEED} if self.share else None


def check_patience(patience: int | None, dev: object) -> None:
    """Raise a `SentembError` for a training that is to stop by a dev set and has none."""
    if patience is not None and dev is None:
        raise SentembError(
            "patience counts epochs without a better dev figure, but there is no dev set; give "
            "one, for example 5% to hold out that share of the log's queries"
        )


def _check_judged(judged: JudgedSet, name: str) -> None:
    """Raise a `SentembError` if NDCG cannot be computed."""
    try:
        ndcg(judged, {}, DEV_CUTOFFS)
    except SentembError as error:
        raise SentembError(f"{name}: {error}") from error
