"""The task of training two towers on a click log, in one piece or in parts."""

import abc
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.models.contracts import Embedder
from sentemb.models.files.history import DEV_FIGURE
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.towers import Towers
from sentemb.system.contracts import Arrays
from sentemb.system.growing import scratch_array
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.epochs import Epochs
from sentemb.training.batches.mini_batches import MiniBatch
from sentemb.training.contracts import StoredState
from sentemb.training.dev import Dev
from sentemb.training.negative_options import HARD_AMONG
from sentemb.training.negatives import hard_negatives, look_ups
from sentemb.training.progress import Reached
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.two_towers import Layouts, TwoTowers

_HARD_TITLES = "hard_titles"  # in checkpoints


class TowersTask(abc.ABC):
    """Two towers, the log that they learn from, and their hard negatives.

    This is all that a `sentemb.training.contracts.Task`, which describes the methods, needs besides
    updates. All weights start at random unless there is a ``start``. ``note`` is called when hard
    negatives are looked up, and ``scratch`` is a folder for those that take much memory. `measure`
    measures on ``dev``, and ``metric`` is its figure that decides.

    ``hard_titles``, (n_queries, HARD_AMONG) int32, are the hard negatives of every query, and None
    before the first look-up.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        workers: Workers,
        note: Callable[[str], None],
        start: Start | None = None,
        dev: Dev[Embedder] | None = None,
        scratch: AnyPath | None = None,
    ) -> None:
        self.metric = DEV_FIGURE if dev is None else dev.metric
        self.corpus = corpus
        self.settings = settings
        self.steps = corpus.n_batches(settings.batch_size * settings.parts)
        self.towers = TwoTowers.of(corpus, settings, settings.epochs * self.steps, start)
        self.hard_titles: NDArray[np.int32] | None = None
        self._workers = workers
        self._note = note
        self._dev = dev
        self._scratch = scratch
        # Queries, and titles that they are compared with, of each part.
        self._compared = [(corpus.n_queries, corpus.n_titles)]

    @abc.abstractmethod
    def pairs_before(self, step: int) -> int:
        """Pairs in the steps of an epoch before ``step``."""

    @abc.abstractmethod
    def plan(self, epoch: int, step: int) -> Any:
        """See `Task`."""

    @abc.abstractmethod
    def update(self, batch: Any, update: int) -> float:
        """See `Task`."""

    @abc.abstractmethod
    def _look_up(self, epoch: int, stopped: Callable[[], bool]) -> NDArray[np.int32]:
        """Hard negatives of all queries."""

    def _updates_at(self, update: int) -> int:
        """Updates of each weight before an ``update`` of the loop."""
        return update

    def before_epoch(self, epoch: int, stopped: Callable[[], bool]) -> None:
        """Look up hard negatives if they are due."""
        if self._is_due(epoch):
            self._note(f"epoch {epoch + 1}: {hard_negatives.described(*self._compared[0])}")
            self.hard_titles = None  # old and new lists may not fit into memory
            hard_titles = self._look_up(epoch, stopped)
            if not stopped():  # a resumed training looks them up again
                self.hard_titles = hard_titles

    def preparation(self, epoch: int) -> float:
        """How many updates take as long as a look-up that is due."""
        if not self._is_due(epoch):
            return 0.0
        pairs = sum(hard_negatives.in_pairs(*sizes) for sizes in self._compared)
        return pairs * self.steps / self.corpus.n_pairs

    def _is_due(self, epoch: int) -> bool:
        return bool(self.settings.hard_negatives) and look_ups.are_due(epoch)

    def remarks(self, epoch: int) -> dict[str, Any]:
        """Whether hard negatives were looked up before ``epoch``."""
        return {"hard_negatives_ranked": True} if self._is_due(epoch) else {}

    def flush(self, update: int) -> None:
        self.towers.flush(self._updates_at(update), self._workers)

    def measure(self) -> dict[str, float] | None:
        """Figures on the dev set by name."""
        if self._dev is None:
            return None
        return self._dev.measure(SentenceEncoder.of(self.model(), self._workers.threads))

    def model(self) -> SavedModel:
        """The two towers, without a record of their training."""
        weights = self.towers.weights()
        return SavedModel(Towers.of(self.towers.encoder, self.corpus.vocabulary, weights))

    def state(self) -> Arrays:
        return self.towers.state()

    def lasting(self) -> Arrays:
        """The lists of the last look-up: 120 bytes for each query of the log."""
        return {} if self.hard_titles is None else {_HARD_TITLES: self.hard_titles}

    def check_state(self, stored: StoredState, epoch: int, step: int) -> None:
        self.towers.expect(stored)
        stored.check()
        self._check_hard_titles(stored, epoch, step)
        if not self.towers.may_be_state(stored, self._updates_at(epoch * self.steps + step)):
            raise stored.damaged("it is from a later update than it says")

    def _check_hard_titles(self, stored: StoredState, epoch: int, step: int) -> None:
        if _HARD_TITLES not in stored:
            if self.settings.hard_negatives and look_ups.are_in_use(epoch, step):
                raise stored.damaged(f"{_HARD_TITLES} is missing")
            return
        stored.expect(_HARD_TITLES, (self.corpus.n_queries, HARD_AMONG), np.int32)
        titles = stored[_HARD_TITLES]
        if titles.min() < -1 or titles.max() >= self.corpus.n_titles:
            raise stored.damaged(f"{_HARD_TITLES} has a title that the log does not have")

    def restore(self, stored: StoredState) -> None:
        self.towers.restore(stored)
        self.hard_titles = None
        if _HARD_TITLES in stored:
            hard_titles = stored[_HARD_TITLES]
            self.hard_titles = scratch_array(hard_titles.shape, hard_titles.dtype, self._scratch)
            self.hard_titles[...] = hard_titles


class TwoTowerTask(TowersTask):
    """Two towers that learn from all pairs; a `sentemb.training.contracts.Task`.

    ``epochs`` has the mini-batches. For the parameters and the other attributes see `TowersTask`.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        workers: Workers,
        note: Callable[[str], None],
        start: Start | None = None,
        dev: Dev[Embedder] | None = None,
        scratch: AnyPath | None = None,
    ) -> None:
        super().__init__(corpus, settings, workers, note, start, dev, scratch)
        starts = np.minimum(np.arange(self.steps + 1) * settings.batch_size, corpus.n_pairs)
        self.epochs = Epochs(corpus, settings, starts)

    def pairs_before(self, step: int) -> int:
        return int(self.epochs.starts[step])

    def _look_up(self, epoch: int, stopped: Callable[[], bool]) -> NDArray[np.int32]:
        self.epochs.forget()
        n_queries = self.corpus.n_queries
        return hard_negatives.look_up(
            self.corpus,
            self.towers,
            self._workers,
            stopped,
            seed=self.settings.seed,
            epoch=epoch,
            reached=Reached(f"epoch {epoch + 1}: queries looked up", n_queries, self._note),
            scratch=self._scratch,
        )

    def plan(self, epoch: int, step: int) -> tuple[MiniBatch, Layouts]:
        batch = self.epochs.batch(epoch, step, self.hard_titles)
        return batch, self.towers.lay_out(batch)

    def update(self, batch: tuple[MiniBatch, Layouts], update: int) -> float:
        return self.towers.update(*batch, update, self._workers)
