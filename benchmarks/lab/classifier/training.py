"""Train a classifier of texts, or of pairs of texts, on their embeddings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lab.classifier.classifier_settings import (
    HIDDEN_FOR_LABELS,
    HIDDEN_FOR_SCORES,
    MAP_DIM,
    ClassifierSettings,
)
from lab.classifier.classifier_task import (
    ClassifierTask,
    Examples,
    Labels,
    Outcome,
    SavedClassifier,
    Values,
    fingerprint,
    probabilities,
)
from lab.classifier.objective import Head
from lab.classifier.text_features import FixedVectors, TextFeatures, TrainedTower
from sentemb.data.labelled import ValuedTexts
from sentemb.errors import SentembError
from sentemb.models.towers.towers import Towers
from sentemb.system.bounds import is_number
from sentemb.system.contracts import Arrays
from sentemb.system.files import make_folder
from sentemb.system.html_tables import facts_table
from sentemb.system.locks import locked
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts
from sentemb.training.checkpoints import remove_checkpoints
from sentemb.training.identity import Identity
from sentemb.training.loop import ModelFiles, TrainingLoop
from sentemb.training.output import check_output, is_finished
from sentemb.training.progress import Progress
from sentemb.training.stopping import stop_signals


class Classifier:
    """A trained classifier, from `train_classifier`.

    Attributes
    ----------
    labels : list of str or None
        The labels that it predicts; None for scores.
    history : list of dict
        One entry per epoch: ``loss``, and in ``dev`` the ``accuracy`` or ``pearson`` on the dev
        set.
    training : dict
        How it was trained.
    """

    def __init__(
        self,
        head: Head,
        outcome: Outcome,
        features: TextFeatures,
        saved: SavedClassifier,
        threads: int | None,
    ) -> None:
        self._head = head
        self._outcome = outcome
        self._weights: Arrays = saved.model.head
        self._features = features.of(saved.model.tower)
        self._threads = threads
        self.labels: list[str] | None = outcome.names if isinstance(outcome, Labels) else None
        self.history = list(saved.history)
        self.training = saved.training

    def __repr__(self) -> str:
        what = "pairs of texts" if self._head.paired else "texts"
        return f"Classifier({self._outcome!r} of {what})"

    def _repr_html_(self) -> str:
        last = self.history[-1] if self.history else {}
        return facts_table(
            {
                "predicts": self._outcome if self.labels is None else None,
                "reads": "pairs of texts" if self._head.paired else "texts",
                "labels": None if self.labels is None else ", ".join(self.labels),
                "epochs of training": len(self.history),
                "loss in the last epoch": last.get("loss"),
                **{f"dev, last epoch: {name}": x for name, x in last.get("dev", {}).items()},
            }
        )

    def probabilities(
        self, texts: Iterable[str], second_texts: Iterable[str] | None = None
    ) -> np.ndarray:
        """The probability of every class.

        Parameters
        ----------
        texts : iterable of str
            The texts, or the first of each pair.
        second_texts : iterable of str, optional
            The second texts, for a classifier of pairs.

        Returns
        -------
        (k, classes) float32 or float64
            Classes in the order of `labels`; for scores the integers of their range.

        Raises
        ------
        SentembError
            If second texts are given to a classifier of single texts, or missing for one of pairs,
            or if the lists differ in length.
        """
        sides = [as_texts(texts)] + ([] if second_texts is None else [as_texts(second_texts)])
        if len(sides) != (2 if self._head.paired else 1):
            raise SentembError(
                "the classifier was trained on pairs; give texts and second_texts"
                if self._head.paired
                else "the classifier was trained on single texts; leave second_texts out"
            )
        if not sides[0] and not sides[-1]:
            return np.empty((0, self._head.classes), np.float32)
        # The values are not used.
        given = ValuedTexts([""] * len(sides[0]), *sides)
        with Workers(self._threads) as workers:
            examples = Examples(given, self._features)
            return probabilities(self._head, self._weights, self._features, examples, workers)

    def predict(
        self, texts: Iterable[str], second_texts: Iterable[str] | None = None
    ) -> list[str] | NDArray[np.float64]:
        """Predict the label or the score of texts, or of pairs of texts.

        Parameters
        ----------
        texts, second_texts
            As for `probabilities`.

        Returns
        -------
        list of str, or (k,) float64
            The most probable labels, or the expected scores.
        """
        return self._outcome.predicted(self.probabilities(texts, second_texts))

    def measure(self, examples: Values) -> float:
        """Accuracy, or Pearson's correlation of predicted and given scores.

        Parameters
        ----------
        examples : ValuedTexts
            A test set of the same form as the training set.
        """
        return self._outcome.measure(self.probabilities(*examples.sides), examples.values)


def train_classifier(
    train: Values,
    dev: Values | None = None,
    *,
    features: Callable[[list[str]], np.ndarray] | Towers,
    output: AnyPath | None = None,
    resume: bool = False,
    force: bool = False,
    threads: int | None = None,
    checkpoint_seconds: float = 60.0,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    **settings: Any,
) -> Classifier:
    """Train a classifier of texts, or of pairs of texts, on their embeddings.

    For a pair the classifier reads the product and the absolute difference of the two embeddings
    (Tai et al., ACL 2015), for a single text its embedding. A sigmoid layer and a softmax follow.
    The classes are the labels, or the integers in the range of the scores; the predicted score is
    the expectation. Fixed embeddings first pass through a linear map (Arora et al., ICLR 2017).

    Parameters
    ----------
    train : ValuedTexts
        The examples; their values are labels (str) or scores (float). `read_labelled` reads
        labels. For scores, take a `SimilaritySet` s: ``ValuedTexts(s.scores.tolist(), s.first,
        s.second)``.
    dev : ValuedTexts, optional
        Measured after every epoch by accuracy, or by Pearson's correlation for scores. The result
        is the classifier of the best epoch; without ``dev`` it is that of the last.
    features : function of a list of str, or Towers
        For fixed embeddings, a function that returns one row per text, such as
        `SentenceEncoder.encode`. For a tower that is trained together with the classifier and reads
        both texts, ``Towers.of(encoder, vocabulary, {"query": weights})``: training starts from a
        copy of these weights.
    output : path, optional
        A folder for checkpoints and the best weights. Without it nothing is written.
    resume : bool
        Continue from the newest checkpoint in ``output``, to the same bits. A finished training is
        read from there. Needs the same examples, features and settings.
    force : bool
        Replace a model that is in ``output``.
    threads : int, optional
        By default one per processor. The result is the same for any number.
    checkpoint_seconds : float
        Seconds between checkpoints, and at least 20 times as many as the last one took; 0 writes
        one after every mini-batch.
    on_progress : function of a `Progress`, optional
        Called after every mini-batch and every epoch.
    on_note : function of a str, optional
        Called with each message about the training.
    **settings
        ``hidden`` (50 units for scores, 150 for labels), ``map_dim`` (2400 for fixed embeddings,
        otherwise 0, which leaves the map out), ``epochs`` (20), ``batch_size`` (25),
        ``learning_rate`` of Adam (0.001), ``seed`` (0), ``patience`` (epochs without a better
        figure on ``dev`` before training stops; by default never).

    Returns
    -------
    Classifier

    Raises
    ------
    SentembError
        For bad settings or data, a place that cannot be written, or a training that diverges.
    sentemb.training.stopping.Interrupted
        After Ctrl-C or SIGTERM, once the checkpoint is written.

    Examples
    --------
    ::

        model = SIF("glove.6B.100d.txt").fit(titles=texts)
        reviews = read_labelled("reviews.tsv")
        classifier = train_classifier(reviews, features=model.encode)
        classifier.predict(["a fine film", "a dull film"])
    """
    chosen = _settings(train, dev, isinstance(features, Towers), checkpoint_seconds, settings)
    note = on_note or _ignore
    if output is not None:
        check_output(output, resume, force)
    elif resume:
        raise SentembError("resume needs the output of the training to continue")
    with Workers(threads) as workers:
        text_features = _features_of(features, train.texts[0])
        task = ClassifierTask(train, dev, text_features, chosen, workers)
        identity = Identity(
            chosen.as_dict() | {"predicts": asdict(task.outcome)},
            fingerprint(train.fingerprint(), task.fingerprint()),
            None if dev is None else dev.fingerprint(),
        )
        folder = None if output is None else Path(output)
        files = ModelFiles(task.write, task.read)
        loop = TrainingLoop(task, identity, folder, checkpoint_seconds, workers, note, files)
        with contextlib.nullcontext() if folder is None else locked(make_folder(folder)):
            if folder is not None:
                check_output(folder, resume, force)
            if folder is not None and resume and is_finished(folder, identity, task.read):
                note(f"the training of {folder} is already finished")
                remove_checkpoints(folder)
                saved = task.read(folder)
            else:
                loop.prepare(resume)
                with stop_signals() as stop:
                    saved = loop.run(on_progress or _ignore, stop)
    return Classifier(task.head, task.outcome, text_features, saved, threads)


def _ignore(report: object) -> None:
    pass


def _settings(
    train: Values,
    dev: Values | None,
    is_trained: bool,
    checkpoint_seconds: float,
    given: dict[str, Any],
) -> ClassifierSettings:
    """All settings, with the defaults that depend on the examples and the features."""
    known = ClassifierSettings.__dataclass_fields__
    unknown = sorted(given.keys() - known.keys())
    if unknown:
        raise SentembError(f"unknown setting {unknown[0]}; there are {', '.join(sorted(known))}")
    if not (is_number(checkpoint_seconds) and 0 <= checkpoint_seconds < np.inf):
        raise SentembError(f"checkpoint_seconds must be a number from 0, not {checkpoint_seconds}")
    for name, values in (("train", train), ("dev", dev)):
        if not isinstance(values, ValuedTexts) and not (values is None and name == "dev"):
            raise SentembError(
                f"{name} must be a ValuedTexts, not {type(values).__name__}; read one with "
                "read_labelled"
            )
    if dev is not None and len(dev.sides) != len(train.sides):
        raise SentembError(
            "train has pairs and dev single texts, or vice versa; give the same kind"
        )
    if dev is not None and isinstance(dev.values[0], str) != isinstance(train.values[0], str):
        raise SentembError("train has labels and dev scores, or vice versa; give the same kind")
    chosen = ClassifierSettings(**given)
    if chosen.hidden is None:
        is_labelled = isinstance(train.values[0], str)
        chosen = replace(chosen, hidden=HIDDEN_FOR_LABELS if is_labelled else HIDDEN_FOR_SCORES)
    if chosen.map_dim is None:
        chosen = replace(chosen, map_dim=0 if is_trained else MAP_DIM)
    return chosen


def _features_of(features: Callable[[list[str]], np.ndarray] | Towers, text: str) -> TextFeatures:
    if isinstance(features, Towers):
        return TrainedTower(features.copy())
    if callable(features):
        return FixedVectors.of_function(features, text)
    raise SentembError(
        f"features must be a function of a list of texts or Towers, not {type(features).__name__}"
    )
