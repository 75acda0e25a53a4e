"""From a click log or labelled pairs to a pair model."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.data.labelled_pairs import LabelledPairs, read_labelled_pairs
from sentemb.errors import SentembError
from sentemb.models.contracts import Ranker
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.pairs.pair_model import PairModel
from sentemb.models.pairs.registry import EMBEDDING, PAIR_MODELS
from sentemb.models.towers.towers import SIDES
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import NEW, SPLITTINGS
from sentemb.training.batches.additions import Additions
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.text_pairs import TextPairs
from sentemb.training.dev import Dev, DevPlan, DevSource, JudgedDev, check_patience
from sentemb.training.identity import Identity
from sentemb.training.inputs import Inputs
from sentemb.training.negative_options import HARD_NEGATIVES
from sentemb.training.negatives.teachers import BM25_TEACHER, Teacher
from sentemb.training.objectives.objective_options import HINGE, LOGISTIC, PAIR_MARGIN
from sentemb.training.objectives.pair_losses import PairObjective
from sentemb.training.pairs.pair_lessons import ClickLessons, LabelledLessons, Lessons, distinct
from sentemb.training.pairs.pair_settings import PairSettings
from sentemb.training.pairs.pair_start import PairStart, start_of, start_of_vectors
from sentemb.training.pairs.pair_task import PairTask
from sentemb.training.run import Run, is_prepared_log, read_log
from sentemb.training.stopping import Interrupted, stop_signals

WORD_FEATURES = "word_features"


def train_pair_model(
    inputs: Inputs, preset: str | None, settings: dict[str, Any], run: Run
) -> PairScorer:
    """Train a pair model; `sentemb.train` describes the parameters.

    Raises `SentembError` for bad settings or data, a place that cannot be written, or a training
    that diverges, and `Interrupted` after Ctrl-C or SIGTERM, once the checkpoint is written.
    """
    run.check(inputs.start_from, None if inputs.teacher == BM25_TEACHER else inputs.teacher)
    labelled, dev, pairs = inputs.labels, inputs.dev, inputs.pairs
    if labelled and inputs.skip_bad_lines:
        raise SentembError("every line of labelled pairs is read; leave skip_bad_lines out")
    # Before the data are read, so that a wrong setting is refused at once.
    given = PairSettings.of(preset, **settings)
    _checked(given, labelled, inputs)
    check_patience(given.patience, dev)
    teacher = None if inputs.teacher is None else Teacher.of(inputs.teacher, run.threads)
    log: ClickLog | LabelledPairs
    if labelled:
        log = _labelled(pairs)
        (queries, _), (titles, _) = distinct(log.first), distinct(log.second)
    else:
        log = _clicks(inputs, settings, run)
        queries, titles = log.queries, log.titles
    judged = _dev(dev, labelled)
    start = _start(inputs, settings, [*queries, *titles], run.note)
    if start is not None:
        settings = _completed(settings, start)
    chosen = PairSettings.of(preset, **settings)
    split = SPLITTINGS[NEW] if start is None else start.vocabulary.split
    model = chosen.pair_model(max(len(split(text)) for text in (*queries, *titles)))
    _check_words(model, chosen, start is not None)
    _check_epochs(model, chosen)
    hard = chosen.hard_negatives
    if hard is None:
        hard = HARD_NEGATIVES if teacher is not None else 0
    chosen = chosen.changed(
        max_words=model.max_words, hard_negatives=hard, objective=_objective(chosen, labelled)
    )
    with Workers(run.threads) as workers:
        vocabulary = None if start is None else start.vocabulary
        lessons = _lessons(log, chosen, model, vocabulary, teacher, workers, run.note)
        del log, queries, titles
        weights = _first_weights(model, lessons, start, chosen.seed, workers, run.note)
        identity = Identity(
            chosen.as_dict(),
            lessons.fingerprint(),
            None if judged is None else judged.fingerprint(),
            _record(start, teacher if hard else None),
        )
        task = PairTask(
            lessons,
            model,
            weights,
            tuned=start is None or chosen.train_vectors,
            settings=chosen,
            objective=PairObjective(chosen.objective, chosen.margin),
            workers=workers,
            dev=judged,
        )
        return PairScorer.of(run.train(task, identity, workers), run.threads)


def _lessons(
    log: ClickLog | LabelledPairs,
    settings: PairSettings,
    model: PairModel,
    vocabulary: Vocabulary | None,
    teacher: Teacher | None,
    workers: Workers,
    note: Callable[[str], None],
) -> Lessons:
    """The examples of a click log, with the teacher's hard negatives, or labelled pairs."""
    texts: dict[str, Any] = {
        "vocabulary": vocabulary,
        "one_list": True,
        "most_words": model.max_words,
        "whole_words": model.reads_whole_words,
    }
    lessons: Lessons
    if isinstance(log, LabelledPairs):
        (queries, _), (titles, _) = distinct(log.first), distinct(log.second)
        text_pairs = TextPairs(queries, titles, word_features=settings.word_features, **texts)
        lessons = LabelledLessons(text_pairs, log, settings)
    else:
        corpus = Corpus(log, settings, **texts)
        lists = None
        if teacher is not None and settings.hard_negatives:
            note("looking up hard negatives")
            with stop_signals() as stop:
                lists = teacher.lists(log, workers, stop.is_set, note)
            if stop.is_set():
                raise Interrupted(
                    "stopped during the look-up; give the same command again", stop.signal
                )
        lessons = ClickLessons(corpus, settings, settings.hard_negatives, lists)
    n_cut = lessons.texts.n_cut
    if n_cut:
        note(f"{n_cut:,} texts are longer than {model.max_words} words and are cut")
    return lessons


def _first_weights(
    model: PairModel,
    lessons: Lessons,
    start: PairStart | None,
    seed: int,
    workers: Workers,
    note: Callable[[str], None],
) -> Arrays:
    rng = np.random.default_rng([seed, 0])
    if start is not None:
        return start.first_weights(model, rng)
    n_features, seen = len(lessons.texts.vocabulary), lessons.texts.seen(SIDES[0])
    weights = model.initialise(n_features, rng, seen=seen)
    _prepare(model, weights, lessons, seed, workers, note)
    return weights


def _checked(settings: PairSettings, labelled: bool, inputs: Inputs) -> None:
    """Raise a `SentembError` for settings that do not go with the data."""
    if inputs.vectors is not None and inputs.start_from is not None:
        raise SentembError(
            "word vectors come from vectors or from the model in start_from; give one of both"
        )
    if settings.train_vectors and inputs.vectors is None and inputs.start_from is None:
        raise SentembError(
            "without vectors and start_from the words are trained anyway; leave train_vectors out"
        )
    if settings.hard_negatives and inputs.teacher is None:
        raise SentembError(
            "a pair model cannot look through all titles for hard negatives; give a teacher: bm25 "
            "or a two-tower model"
        )
    if settings.hard_negatives == 0 and inputs.teacher is not None:
        raise SentembError("the teacher lists hard negatives; leave it out, or hard_negatives 0")
    objective = _objective(settings, labelled)
    if objective != HINGE and settings.margin != PAIR_MARGIN.default:
        raise SentembError(f"the objective {objective} has no margin; leave margin out")
    if labelled:
        _check_labelled(settings, inputs)


def _check_labelled(settings: PairSettings, inputs: Inputs) -> None:
    """Raise a `SentembError` for what does not go with labelled pairs."""
    if inputs.replay is not None:
        raise SentembError("replay is for click logs, not for labelled pairs; leave it out")
    if inputs.teacher is not None:
        raise SentembError("labelled pairs have their own negatives; leave teacher out")
    if settings.negatives == "log":
        raise SentembError("labelled pairs have their own negatives; leave negatives out")
    if settings.objective == HINGE:
        raise SentembError(
            "the hinge compares a pair with its negatives, which labelled pairs do not have; "
            f"choose objective {LOGISTIC}"
        )


def _check_words(model: PairModel, settings: PairSettings, started: bool) -> None:
    """Raise a `SentembError` for settings of words that the model cannot have."""
    if settings.train_vectors and not model.trains_words:
        raise SentembError(
            f"{model.name} learns from fixed words and never trains them; leave train_vectors out"
        )
    if model.reads_whole_words and settings.word_features == 0 and not started:
        raise SentembError(
            f"{model.name} reads whole words; {WORD_FEATURES} must be at least 1, not 0"
        )


def _check_epochs(model: PairModel, settings: PairSettings) -> None:
    """Raise a `SentembError` if the training ends before its last phase, that of the scores."""
    before = model.phases()[-1].epoch
    if settings.epochs <= before:
        raise SentembError(
            f"the scores of {model.name} are trained from epoch {before + 1} on, and epochs is "
            f"{settings.epochs}; give more epochs"
        )


def _prepare(
    model: PairModel,
    weights: Arrays,
    lessons: Lessons,
    seed: int,
    workers: Workers,
    note: Callable[[str], None],
) -> None:
    """`PairModel.prepare` with all texts and pairs of the lessons."""
    texts = lessons.texts
    numbers = texts.n_queries, texts.n_titles
    queries, titles = (
        texts.texts(side, np.arange(n, dtype=np.int32))
        for side, n in zip(SIDES, numbers, strict=True)
    )
    model.prepare(weights, queries, titles, lessons.right_pairs(), seed, workers, note)


def _objective(settings: PairSettings, labelled: bool) -> str:
    if settings.objective is not None:
        return str(settings.objective)
    return LOGISTIC if labelled else HINGE


def _labelled(pairs: object) -> LabelledPairs:
    if isinstance(pairs, str | os.PathLike):
        pairs = read_labelled_pairs(pairs)
    if not isinstance(pairs, LabelledPairs):
        raise SentembError(f"pairs must be a path or LabelledPairs, not {type(pairs).__name__}")
    pairs.check_both_labels()
    return pairs


def _clicks(inputs: Inputs, settings: dict[str, Any], run: Run) -> ClickLog:
    """The log of the training with the pairs that are replayed."""
    pairs: Any = inputs.pairs
    if is_prepared_log(pairs):
        raise SentembError(
            "a pair model cannot be trained on a prepared log; give the log that it was made from"
        )
    skip = inputs.skip_bad_lines
    log = read_log(pairs, skip, settings.get("negatives", "corpus"), run.note)
    additions = Additions.of(inputs.replay, None)
    return additions.with_replay(log, settings.get("seed", 0), skip, run.note)


def _dev(
    dev: DevSource | LabelledPairs | None, labelled: bool
) -> Dev[Ranker] | LabelledPairs | None:
    """The dev set of the kind that goes with the training."""
    if dev is None:
        return None
    if labelled:
        if isinstance(dev, JudgedSet):
            raise SentembError("dev is a judged set; give labelled pairs")
        return _labelled(dev)
    if isinstance(dev, LabelledPairs):
        raise SentembError("dev is a set of labelled pairs; give a judged set")
    plan = DevPlan.of(dev)
    if not isinstance(plan.read, JudgedSet):
        raise SentembError(
            "on held-out clicks a pair model would have to score every title for every query after "
            "every epoch; give a judged set as dev"
        )
    return JudgedDev(plan.read)


def _start(
    inputs: Inputs, settings: dict[str, Any], texts: list[str], note: Callable[[str], None]
) -> PairStart | None:
    if inputs.vectors is not None:
        return start_of_vectors(inputs.vectors, texts, note)
    if inputs.start_from is not None:
        return start_of(inputs.start_from, settings)
    return None


def _completed(settings: dict[str, Any], start: PairStart) -> dict[str, Any]:
    """``settings`` with those that follow from the start.

    Raises `SentembError` if a setting contradicts it.
    """
    name = PAIR_MODELS.model.checked(settings.get("model", PAIR_MODELS.model.default))
    if start.weights is None and EMBEDDING not in PAIR_MODELS.entry(name).parameters:
        raise SentembError(
            f"{name} gives words weights of its own and reads no word vectors; leave out "
            "vectors and start_from"
        )
    requested = settings.get(EMBEDDING.name)
    dim = start.settings.get(EMBEDDING.name)
    if requested is not None and requested != dim:
        raise SentembError(
            f"{start.name}: the word vectors have {dim} numbers, not {requested}; leave "
            f"{EMBEDDING.name} out"
        )
    if settings.get(WORD_FEATURES) is not None:
        raise SentembError(
            f"{WORD_FEATURES} does not apply: the features are those of {start.name}; leave "
            f"{WORD_FEATURES} out"
        )
    return {**settings, **start.settings, WORD_FEATURES: 0}


def _record(start: PairStart | None, teacher: Teacher | None) -> dict[str, str] | None:
    """The record of the models that a training started from and learned from."""
    records = [record.record() for record in (start, teacher) if record is not None]
    if not records:
        return None
    if len(records) == 1 and teacher is None:
        return records[0]
    hashes = "\n".join(
        f"{'' if start is None else 'start'} {record['sha256']}" for record in records
    )
    return {
        "name": " and ".join(record["name"] for record in records),
        "sha256": hashlib.sha256(hashes.encode()).hexdigest(),
    }
