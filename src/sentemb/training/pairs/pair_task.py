"""The task of training a pair model."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.errors import SentembError
from sentemb.evaluation.binary import count_predictions, labelled_scores
from sentemb.kernels.lengths import are_below
from sentemb.models.contracts import Ranker
from sentemb.models.files.history import ACCURACY, DEV_FIGURE
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.loading import face_of
from sentemb.models.pairs.head import Dropout, Pass
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.pair_model import PairModel, Pairs, Phase, Scoring, Texts
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.training.contracts import StoredState, UnpreparedTask
from sentemb.training.dev import Dev
from sentemb.training.objectives.pair_losses import PairObjective
from sentemb.training.optimisers.pair_optimisers import PairAdam, PairSGD
from sentemb.training.optimisers.renormalisation import SPARSE
from sentemb.training.pairs.pair_lessons import Lessons, PairBatch
from sentemb.training.pairs.pair_settings import SGD, PairSettings
from sentemb.training.stopping import Diverged

# A weight this large is of no use in any layer: the training has diverged.
_WILD_WEIGHT = 1e6


class Planned(NamedTuple):
    """A mini-batch and all of its update that needs no weights."""

    batch: PairBatch
    layout: Layout


class _Part(NamedTuple):
    """A phase of the training, and its optimiser; ``tuned`` says whether words are trained too."""

    phase: Phase
    optimiser: PairAdam | PairSGD
    tuned: bool


class PairTask(UnpreparedTask):
    """A pair model and the examples that it learns from.

    A `sentemb.training.contracts.Task`, which describes the methods. ``weights`` are those at the
    start; they are changed in place. ``tuned`` says whether the word vectors are trained; `measure`
    ranks or classifies ``dev``.
    """

    def __init__(
        self,
        lessons: Lessons,
        pair_model: PairModel,
        weights: Arrays,
        tuned: bool,
        settings: PairSettings,
        objective: PairObjective,
        workers: Workers,
        dev: Dev[Ranker] | LabelledPairs | None = None,
    ) -> None:
        self.lessons, self.settings = lessons, settings
        self.pair_model, self.weights = pair_model, weights
        self.steps = lessons.steps
        self.metric = DEV_FIGURE
        if dev is not None:
            self.metric = ACCURACY if isinstance(dev, LabelledPairs) else dev.metric
        self._objective, self._workers, self._dev = objective, workers, dev
        self._tuned = tuned and pair_model.trains_words
        self._parts = [self._part(phase) for phase in pair_model.phases()]
        self._now = self._parts[0]
        self._space = Workspace()

    def _part(self, phase: Phase) -> _Part:
        names = phase.arrays or tuple(self.weights)
        tuned = self._tuned and SPARSE in names
        weights = {name: self.weights[name] for name in names}
        kind = PairSGD if self.settings.optimiser == SGD else PairAdam
        return _Part(phase, kind(weights, tuned), tuned)

    def _part_of(self, epoch: int) -> _Part:
        """The last one that has begun in ``epoch``."""
        return [part for part in self._parts if part.phase.epoch <= epoch][-1]

    def pairs_before(self, step: int) -> int:
        return self.lessons.examples_before(step)

    def plan(self, epoch: int, step: int) -> Planned:
        batch = self.lessons.batch(epoch, step)
        parts = ("words_of_features", "tokens_of_words") if self._tuned else ()
        return Planned(batch, Layout(batch.texts).computed(parts))

    def update(self, batch: Planned, update: int) -> float:
        self._now = self._part_of(update // self.steps)
        with np.errstate(over="ignore", invalid="ignore"):  # a training that diverges is stopped
            (loss,) = self._workers.together(self._update_tasks(*batch, update))
        changed = dict(self.weights)
        # Only the rows of the mini-batch: the whole table may be larger than all other work.
        table = changed.pop("table")
        if self._tuned:
            changed["table"] = table[batch.batch.texts.input_rows]
        if not all(are_below(array.reshape(-1), _WILD_WEIGHT) for array in changed.values()):
            raise Diverged("the weights have become huge")
        return float(loss)

    def _update_tasks(self, batch: PairBatch, layout: Layout, update: int) -> Job[float]:
        model, weights, space = self.pair_model, self.weights, self._space
        phase, optimiser, tuned = self._now
        point = point_of(weights, batch.texts.input_rows)
        P = yield from model.project_tasks(point, batch.texts, space)
        dX: np.ndarray | None = None
        if phase.reconstructs:
            loss, gradient = yield from self._reconstruction_tasks(P, batch)
        else:
            loss, gradient, dX = yield from self._score_tasks(P, batch, tuned, update)
        if not math.isfinite(loss):
            raise Diverged("the loss is not a number")
        words = None
        if dX is not None:
            gathered = yield from model.gather_words_tasks(
                batch.texts, [(0, dX, *layout.tokens_of_words)], space
            )
            gradient["words"], words = gathered[0], layout.words_of_features
        # Each phase begins with an optimiser of its own.
        phase_update = update - phase.epoch * self.steps
        yield from optimiser.step_tasks(
            gradient, batch.texts.input_rows, words, phase_update, self._rate(update)
        )
        return loss

    def _score_tasks(
        self, P: np.ndarray, batch: PairBatch, tuned: bool, update: int
    ) -> Job[tuple[float, Arrays, np.ndarray | None]]:
        """The loss of the scores, its gradient, and that at the tokens if ``tuned``."""
        dropout = Dropout.of(self.settings.dropout, self.settings.seed, update)
        given = Pass(self.weights, P, self._space, dropout)
        done = yield from score_batch_tasks(self.pair_model, given, batch)
        loss, V, _ = self._objective.at(done.scores, batch.targets)
        gradient, errors = yield from self.pair_model.backward_tasks(given, done, V, words=tuned)
        dX = np.concatenate([errors[side] for side in SIDES]) if tuned else None
        return loss, gradient, dX

    def _reconstruction_tasks(self, P: np.ndarray, batch: PairBatch) -> Job[tuple[float, Arrays]]:
        """The mean loss of the queries and of the first title of each example, and its gradient.

        The other titles of an example are the first ones of others.
        """
        titles = np.unique(batch.title_index[batch.targets.offsets[:-1]]) + batch.n_queries
        numbers = np.concatenate([np.arange(batch.n_queries), titles])
        texts = Texts(batch.texts.word_index, batch.texts.offsets).take(numbers)
        given = Pass(self.weights, P, self._space)
        losses, gradient, _ = yield from self.pair_model.reconstruction_tasks(given, texts)
        return float(losses.mean(dtype=np.float64)), gradient

    def _rate(self, update: int) -> float:
        rate: float = self.settings.learning_rate
        if self.settings.decay == "linear":
            rate *= 1 - update / (self.settings.epochs * self.steps)
        return rate

    def flush(self, update: int) -> None:
        """No update is ever deferred; only remembers where the training is."""
        self._now = self._part_of(max(0, update - 1) // self.steps)

    def measure(self) -> dict[str, float] | None:
        """Figures on the dev set by name; None before the scores are trained."""
        if self._dev is None or self._now.phase.reconstructs:
            return None
        face = face_of(self._with(self.weights), self._workers.threads)
        try:
            return self._measured(face)
        except SentembError as error:
            raise Diverged("the scores on dev are not finite") from error

    def _measured(self, face: Ranker) -> dict[str, float]:
        """The figures of a model on the dev set."""
        assert self._dev is not None
        if not isinstance(self._dev, LabelledPairs):
            return self._dev.measure(face)
        scores = labelled_scores(face, self._dev)
        accuracy = count_predictions(scores, self._dev.labels, 0.0).accuracy
        return {ACCURACY: round(accuracy, 6)}

    def model(self) -> SavedModel:
        """The pair model, without a record of its training."""
        fixed = () if self._tuned else (SPARSE,)
        return self._with(
            {name: a if name in fixed else a.copy() for name, a in self.weights.items()}
        )

    def _with(self, weights: Arrays) -> SavedModel:
        return SavedModel(Matcher(self.pair_model, self.lessons.texts.vocabulary, weights))

    def state(self) -> Arrays:
        return {
            name: array for part in self._parts for name, array in part.optimiser.state().items()
        }

    def check_state(self, stored: StoredState, epoch: int, step: int) -> None:
        for name, array in self.state().items():
            stored.expect(name, array.shape, array.dtype)
        stored.check()
        if any(stored[name].min(initial=0) < 0 for name in self.state() if "second_" in name):
            raise stored.damaged("a second moment is below zero")

    def restore(self, stored: StoredState) -> None:
        for name, array in self.state().items():
            array[...] = stored[name]


def score_batch_tasks(model: PairModel, given: Pass, batch: PairBatch) -> Job[Scoring]:
    """The scores of a mini-batch, as a job for `Workers.together`."""
    word_index, offsets = batch.texts.word_index, batch.texts.offsets
    middle = offsets[batch.n_queries]
    sides = (
        Texts(word_index[:middle], offsets[: batch.n_queries + 1]),
        Texts(word_index[middle:], offsets[batch.n_queries :] - middle),
    )
    queries = yield from model.read_tasks(given, SIDES[0], sides[0])
    titles = yield from model.read_tasks(given, SIDES[1], sides[1])
    pairs = Pairs(queries, titles, batch.query_index, batch.title_index)
    return (yield from model.score_tasks(given, pairs))
