"""The task of training a classifier on embeddings of texts or pairs of texts."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from lab.classifier.classifier_settings import ClassifierSettings
from lab.classifier.objective import (
    Head,
    class_targets,
    loss_tasks,
    probability_tasks,
    score_targets,
)
from lab.classifier.text_features import Learner, TextFeatures, TrainedTower
from sentemb.data.labelled import ValuedTexts
from sentemb.errors import SentembError
from sentemb.evaluation.correlation import pearson
from sentemb.models.files.history import check_line, without_times
from sentemb.models.files.model_folder import TENSORS
from sentemb.models.files.saved_model import CLASSIFIER
from sentemb.models.files.tensor_files import open_tensors, write_tensors
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.training.contracts import StoredState, UnpreparedTask
from sentemb.training.optimisers.dense_adam import DenseAdam
from sentemb.training.stopping import Diverged

Values: TypeAlias = "ValuedTexts[str] | ValuedTexts[float]"

_PORTION = 4096  # examples whose probabilities are computed at once
_MOST_SCORES = 1000  # most classes that a range of scores may need


# -- what is predicted ------------------------------------------------------------------------


@dataclass(frozen=True)
class Labels:
    """Classes with names: predicted is the most probable one, measured is the accuracy."""

    names: list[str]
    metric: ClassVar = "accuracy"

    @property
    def classes(self) -> int:
        """How many there are."""
        return len(self.names)

    def targets(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Target of the softmax for every value: (k, classes)."""
        index_of = {name: index for index, name in enumerate(self.names)}
        return class_targets(np.array([index_of[value] for value in values]), self.classes)

    def predicted(self, probabilities: np.ndarray) -> list[str]:
        """The most probable label of every row; of equally probable ones the first."""
        return [self.names[index] for index in probabilities.argmax(axis=1)]

    def measure(self, probabilities: np.ndarray, values: Sequence[Any]) -> float:
        """The share of correct labels; a label that training did not have is never correct."""
        return sum(map(str.__eq__, self.predicted(probabilities), values)) / len(values)


@dataclass(frozen=True)
class Scores:
    """Scores from ``lowest`` to ``highest``: predicted is the expectation, measured Pearson's r."""

    lowest: int
    highest: int
    metric: ClassVar = "pearson"

    @property
    def classes(self) -> int:
        """The integers of the range."""
        return self.highest - self.lowest + 1

    def targets(self, values: Sequence[Any]) -> NDArray[np.float64]:
        """Target of the softmax for every value: (k, classes)."""
        return score_targets(values, self.lowest, self.highest)

    def predicted(self, probabilities: np.ndarray) -> NDArray[np.float64]:
        """The expected score of every row, (k,)."""
        return probabilities.astype(np.float64) @ np.arange(self.lowest, self.highest + 1.0)

    def measure(self, probabilities: np.ndarray, values: Sequence[Any]) -> float:
        """Pearson's correlation of predictions and values; 0 if one of both is constant."""
        r = pearson(self.predicted(probabilities), values) if len(values) > 1 else math.nan
        return 0.0 if math.isnan(r) else r


Outcome: TypeAlias = Labels | Scores


def outcome_of(train: Values) -> Outcome:
    """The outcome that a classifier learns to predict from ``train``.

    Raises `SentembError` if there is only one label or score, or the scores reach too far.
    """
    values: Sequence[Any] = train.values
    if isinstance(values[0], str):
        names = sorted(set(values))
        if len(names) == 1:
            raise SentembError(
                f"all examples have the label {names[0]}; give examples of two or more labels"
            )
        return Labels(names)
    lowest, highest = math.floor(min(values)), math.ceil(max(values))
    if lowest == highest:
        raise SentembError(
            f"all examples have the score {lowest}; give examples with different scores"
        )
    if highest - lowest >= _MOST_SCORES:
        raise SentembError(
            f"the scores range from {min(values):g} to {max(values):g}, and every integer in "
            f"between is a class; scale them down to at most {_MOST_SCORES} classes"
        )
    return Scores(lowest, highest)


# -- examples ---------------------------------------------------------------------------------


class Examples:
    """Values and texts, prepared for features."""

    def __init__(self, values: Values, features: TextFeatures) -> None:
        self.values = values.values
        self.count = len(values)
        self.n_sides = len(values.sides)
        self.prepared = features.prepare([text for side in values.sides for text in side])

    def texts_of(self, examples: NDArray[np.integer]) -> NDArray[np.int32]:
        """The numbers of their texts: all first texts, then all second ones."""
        return np.concatenate(
            [examples + side * self.count for side in range(self.n_sides)], dtype=np.int32
        )


def probabilities(
    head: Head,
    weights: Arrays,
    features: TextFeatures,
    examples: Examples,
    workers: Workers,
) -> np.ndarray:
    """The probability of every class for all examples: (count, classes) float."""
    parts, space = [], Workspace()
    for low in range(0, examples.count, _PORTION):
        numbers = np.arange(low, min(low + _PORTION, examples.count))
        planned = features.plan(examples.prepared, examples.texts_of(numbers))

        def job(planned: Any = planned) -> Job[np.ndarray]:
            inputs, _ = yield from features.forward_tasks(planned, space)
            return (yield from probability_tasks(head, weights, inputs, space))

        parts += workers.together(job())
    return np.concatenate(parts)


# -- the task ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class ClassifierWeights:
    """All weights of a classifier; ``tower`` is empty for fixed embeddings."""

    head: Arrays
    tower: Arrays

    @property
    def named(self) -> Arrays:
        """All arrays under one name each, as files hold them."""
        both = {"head": self.head, "tower": self.tower}
        return {f"{part}.{name}": a for part, arrays in both.items() for name, a in arrays.items()}

    @property
    def nbytes(self) -> int:
        """Bytes of all weights."""
        return sum(array.nbytes for array in self.named.values())

    def copy(self) -> ClassifierWeights:
        """The same with arrays of its own."""
        head, tower = (
            {name: array.copy() for name, array in arrays.items()}
            for arrays in (self.head, self.tower)
        )
        return ClassifierWeights(head, tower)


@dataclass(frozen=True, eq=False)
class SavedClassifier:
    """A trained classifier, as `SavedModel` is a trained model."""

    model: ClassifierWeights
    training: dict[str, Any] = field(default_factory=dict)
    history: Sequence[dict[str, Any]] = ()


class ClassifierTask(UnpreparedTask):
    """A classifier, the examples that it learns from, and its embeddings.

    A `sentemb.training.contracts.Task`, which describes the methods. The weights of ``features``
    are changed in place; ``settings`` have ``hidden`` and ``map_dim`` set.
    """

    def __init__(
        self,
        train: Values,
        dev: Values | None,
        features: TextFeatures,
        settings: ClassifierSettings,
        workers: Workers,
    ) -> None:
        self.outcome = outcome_of(train)
        self.metric = self.outcome.metric
        self.settings = settings
        self.features = features
        self.examples = Examples(train, features)
        self._dev = None if dev is None else Examples(dev, features)
        self._targets = self.outcome.targets(train.values)
        self.head = Head(
            features.dim,
            paired=self.examples.n_sides == 2,
            hidden=settings.hidden or 0,
            classes=self.outcome.classes,
            map_dim=settings.map_dim or 0,
        )
        self.adam = DenseAdam(self.head.initialise(np.random.default_rng(settings.seed)))
        self._learner = Learner(features) if isinstance(features, TrainedTower) else None
        self.steps = -(-self.examples.count // settings.batch_size)
        self._workers = workers
        self._space, self._tower_space = Workspace(), Workspace()
        self._order: tuple[int, NDArray[np.int64]] = -1, np.empty(0, np.int64)

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the embeddings."""
        return self.features.fingerprint(self.examples.prepared)

    def pairs_before(self, step: int) -> int:
        return min(step * self.settings.batch_size, self.examples.count)

    def plan(self, epoch: int, step: int) -> tuple[Any, NDArray[np.float64]]:
        numbers = self._order_of(epoch)[self.pairs_before(step) : self.pairs_before(step + 1)]
        planned = self.features.plan(self.examples.prepared, self.examples.texts_of(numbers))
        return planned, self._targets[numbers]

    def _order_of(self, epoch: int) -> NDArray[np.int64]:
        if self._order[0] != epoch:
            rng = np.random.default_rng([self.settings.seed, epoch])
            self._order = epoch, rng.permutation(self.examples.count)
        return self._order[1]

    def update(self, batch: tuple[Any, NDArray[np.float64]], update: int) -> float:
        (loss,) = self._workers.together(self._update_tasks(*batch, update))
        return float(loss)

    def _update_tasks(self, planned: Any, targets: NDArray[np.float64], update: int) -> Job[float]:
        rate = self.settings.learning_rate
        inputs, done = yield from self.features.forward_tasks(planned, self._tower_space)
        losses, gradient, dH = yield from loss_tasks(
            self.head, self.adam.weights, inputs, targets, self._space
        )
        loss = float(losses.sum())
        if not math.isfinite(loss):
            raise Diverged("the loss is not a number")
        if self._learner is not None:
            yield from self._learner.step_tasks(done, dH, update, rate, self._tower_space)
        yield self.adam.step_tasks(gradient, update, rate)
        return loss

    def flush(self, update: int) -> None:
        """No-op: Adam never defers an update."""

    def measure(self) -> dict[str, float] | None:
        """Accuracy or Pearson's r, by name."""
        if self._dev is None:
            return None
        predicted = probabilities(
            self.head, self.adam.weights, self.features, self._dev, self._workers
        )
        return {self.metric: round(self.outcome.measure(predicted, self._dev.values), 6)}

    def model(self) -> SavedClassifier:
        """All weights, without a record of their training."""
        live = ClassifierWeights(self.adam.weights, self.features.weights)
        return SavedClassifier(live.copy())

    def state(self) -> Arrays:
        arrays = {f"head.{name}": array for name, array in self.adam.state().items()}
        if self._learner is not None:
            tower_state = self._learner.adam.state()
            arrays |= {f"tower.{name}": array for name, array in tower_state.items()}
        return arrays

    def check_state(self, stored: StoredState, epoch: int, step: int) -> None:
        for name, array in self.state().items():
            stored.expect(name, array.shape, array.dtype)
        stored.check()
        if any(stored[name].min(initial=0) < 0 for name in self.state() if "second_" in name):
            raise stored.damaged("a second moment is below zero")

    def restore(self, stored: StoredState) -> None:
        for name, array in self.state().items():
            array[...] = stored[name]

    # -- files --------------------------------------------------------------------------------

    def write(self, saved: SavedClassifier, folder: Path) -> None:
        """Write a classifier to ``folder``: weights, record and history in one file."""
        metadata = {CLASSIFIER: saved.training, "history": without_times(saved.history)}
        write_tensors(folder / TENSORS, saved.model.named, metadata)

    def read(self, folder: Path) -> SavedClassifier:
        """Read the file that `write` wrote for a classifier of this shape.

        Raises `SentembError` if the file is damaged, or holds something else.
        """
        weights = self.model().model
        with open_tensors(folder / TENSORS) as file:
            training, history = (file.metadata.get(key) for key in (CLASSIFIER, "history"))
            if not isinstance(training, dict) or not isinstance(history, list):
                raise file.damaged("it is not a classifier")
            for line in history:
                check_line(line)
            for name, array in weights.named.items():
                file.expect(name, array.shape, array.dtype)
            file.check()
            for name, array in weights.named.items():
                array[...] = file[name]
        return SavedClassifier(weights, training, history)


def fingerprint(*parts: str) -> str:
    """One hash of several."""
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
