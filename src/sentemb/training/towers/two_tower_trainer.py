"""From a click log to two towers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.data.prepared_log import PreparedLog
from sentemb.errors import SentembError
from sentemb.models.contracts import Embedder
from sentemb.models.files.history import best_epoch
from sentemb.models.files.saved_model import SavedModel
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.towers.towers import SIDES
from sentemb.models.vectors.features import VectorSource
from sentemb.system.cluster import Cluster, Executor, Process, opened_if
from sentemb.system.parallel import Workers
from sentemb.text.words import NEW
from sentemb.training.batches.additions import Additions
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.teacher_vectors import TeacherVectors
from sentemb.training.dev import Dev, DevPlan, check_patience
from sentemb.training.identity import Identity
from sentemb.training.inputs import Inputs
from sentemb.training.objectives.objective_options import HINGE
from sentemb.training.progress import Progress
from sentemb.training.run import Run, is_prepared_log, open_log
from sentemb.training.towers.before_and_after import FirstTitles
from sentemb.training.towers.log_vectors import embed_log
from sentemb.training.towers.parts_task import PartsTask
from sentemb.training.towers.seeds import (
    DEV_OF_AVERAGE,
    MEMBER_FILES,
    Train,
    at_once,
    one_by_one,
    train_members,
)
from sentemb.training.towers.settings import SHARE, TEACHER_SHARE, Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.two_tower_task import TowersTask, TwoTowerTask

# How near to twice the margin the loss of an epoch is when all texts are alike.
_COLLAPSED = 0.01


def train_two_towers(
    inputs: Inputs, preset: str | None, settings: dict[str, Any], run: Run
) -> SentenceEncoder:
    """Train two towers; `sentemb.train` describes parameters and errors."""
    n_seeds, skip_bad_lines, start_from = inputs.seeds, inputs.skip_bad_lines, inputs.start_from
    pairs: Any = inputs.pairs  # no labelled pairs: `TrainedFamily.check` refuses them
    dev: Any = inputs.dev
    additions = Additions.of(inputs.replay, inputs.catalogue)
    vectors = VectorSource.of(inputs.vectors, inputs.vector_dim, inputs.vector_words)
    start = None if start_from is None else Start.of(start_from)
    if start is not None:
        settings = start.settings(preset, settings)
        start.check_vectors(vectors is not None)
    settings = _with_share(settings, inputs.teacher is not None)
    chosen = Settings.of(preset, **settings)
    Settings.of(preset, **{**settings, "seed": chosen.seed + n_seeds - 1})  # there is a last seed
    run.check(start_from, inputs.teacher)
    if inputs.dask is not None and chosen.parts == 1 and n_seeds == 1:
        raise SentembError(
            "dask trains the parts of a log or several seeds; give parts or seeds too, or leave "
            "dask out"
        )
    check_patience(chosen.patience, dev)
    plan = DevPlan.of(dev)
    plan.check_catalogue(additions.titles)
    if is_prepared_log(pairs):
        _check_prepared(plan, additions)
    with Workers(run.threads) as workers, opened_if(inputs.dask) as cluster:
        # The log itself is not kept: it takes several times the memory of the corpus.
        log = open_log(pairs, skip_bad_lines, chosen.negatives, run.note, additions.names)
        more_titles = additions.titles or ()
        if isinstance(log, ClickLog):
            # Queries are held out of the replayed pairs too, and the whole catalogue is ranked.
            log = additions.with_replay(log, chosen.seed, skip_bad_lines, run.note)
            log, held_out = plan.apply(log, run.note, more_titles)
        else:
            held_out = plan.given(log.queries, log.titles, run.note, more_titles)
        if start is None:
            settings = Settings.for_log(preset, settings, len(log.clicks))
            chosen = Settings.of(preset, **settings)
        known = None if start is None else start.towers.vocabulary
        grow = start is not None and start.grows(chosen.model)
        splitting = chosen.splitting or (NEW if isinstance(log, ClickLog) else log.splitting)
        of_words = None if vectors is None else partial(vectors.features, note=run.note)
        corpus = Corpus(
            log,
            chosen,
            known,
            max_word_features=chosen.max_word_features,
            splitting=splitting,
            grow=grow,
            vectors=of_words,
        )
        corpus.teacher, of_teacher = _vectors_of_teacher(inputs, log, chosen, run)
        del log
        if start is not None:
            (_note_new_features if grow else _note_unknown_words)(corpus, start, run.note)
        identity = Identity(
            chosen.as_dict(),
            corpus.fingerprint(),
            None if held_out is None else held_out.fingerprint(),
            None if start is None else start.record(),
            plan.record(),
            _vectors_record(vectors, corpus),
            n_seeds,
            of_teacher,
        )
        del vectors
        if start is not None and n_seeds > 1:
            start = replace(start, is_ours=False)  # every member begins with its arrays
        executor = Process(workers.threads) if cluster is None else cluster
        task_of = _Tasks(corpus, workers, held_out, run, executor)
        task = task_of(chosen, run.note, start)
        change = _Change(task, corpus, held_out, chosen.seed, workers) if grow else None
        if n_seeds == 1:
            del start  # the towers have what they need of it
            watched = replace(run, on_progress=_noting_collapse(run.on_progress, chosen, run.note))
            saved = watched.train(task, identity, workers)
        else:
            n_bytes = task.model().model.nbytes
            del task
            each = [
                Settings.of(preset, **{**settings, "seed": seed}) for seed in identity.each_seed()
            ]
            train = _Members(task_of, start, each, identity).of(cluster)
            saved = train_members(train, identity, held_out, n_bytes, run)
        if change is not None:
            change.note(saved, run.note)
        return SentenceEncoder.of(saved, run.threads)


def _with_share(settings: dict[str, Any], has_teacher: bool) -> dict[str, Any]:
    """``settings`` with the default share of a teacher, if there is one."""
    name = TEACHER_SHARE.name
    if has_teacher:
        return {name: SHARE, **settings}
    if settings.get(name) is not None:
        raise SentembError(f"{name} is that of a teacher; give teacher too")
    return settings


def _vectors_of_teacher(
    inputs: Inputs, log: ClickLog | PreparedLog, settings: Settings, run: Run
) -> tuple[TeacherVectors | None, dict[str, Any] | None]:
    """The vectors that the teacher, if there is one, has for the texts of ``log``; its record."""
    if inputs.teacher is None:
        return None, None
    return embed_log(inputs.teacher, log.queries, log.titles, settings.teacher_share, run)


def _check_prepared(plan: DevPlan, additions: Additions) -> None:
    """Refuse what would read all pairs of a prepared log into memory."""
    if plan.share:
        raise SentembError(
            "dev cannot be a share of a prepared log; run `sentemb split LOG -o DIR`, then "
            "`sentemb prepare DIR/pairs.tsv -o OUT`, and give DIR/dev.tsv as dev"
        )
    if additions.old is not None:
        raise SentembError(
            "replay cannot add to a prepared log; join both logs and prepare them: `cat OLD NEW | "
            "sentemb prepare - -o OUT`"
        )


@dataclass(frozen=True, eq=False)
class _Tasks:
    """Makes the tasks of a training: one for each seed."""

    corpus: Corpus
    workers: Workers
    dev: Dev[Embedder] | None
    run: Run
    executor: Executor

    def __call__(
        self, settings: Settings, note: Callable[[str], None], start: Start | None
    ) -> TowersTask:
        common = self.corpus, settings, self.workers, note, start, self.dev, self.run.scratch
        if settings.parts == 1:
            return TwoTowerTask(*common)
        return PartsTask(*common, executor=self.executor)


class _Members:
    """Trains the members of a training of several seeds.

    Every member starts from ``start``, if there is one. ``settings`` are those of each seed, and
    ``identity`` is that of the average.
    """

    def __init__(
        self, task_of: _Tasks, start: Start | None, settings: list[Settings], identity: Identity
    ) -> None:
        self._task_of, self._start = task_of, start
        self._settings = dict(zip(identity.each_seed(), settings, strict=True))
        self._identities = {
            seed: replace(identity, settings=chosen.as_dict(), seeds=1)
            for seed, chosen in self._settings.items()
        }

    def of(self, cluster: Cluster | None) -> Train:
        """How they are trained: a worker takes a member whose log is not in parts."""
        if cluster is None or next(iter(self._settings.values())).parts > 1:
            return partial(one_by_one, self._here)
        return partial(at_once, partial(self._on_workers, cluster), self._identities)

    def _here(self, seed: int, run: Run) -> SavedModel:
        chosen = self._settings[seed]
        task = self._task_of(chosen, run.note, self._start)
        watch = _noting_collapse(run.on_progress, chosen, run.note)
        return replace(run, on_progress=watch).train(
            task, self._identities[seed], self._task_of.workers, MEMBER_FILES
        )

    def _on_workers(
        self, cluster: Cluster, seeds: Sequence[int]
    ) -> Iterator[tuple[SavedModel, list[str]]]:
        common = cluster.keep((self._task_of.corpus, self._task_of.dev, self._start))
        portions = ((common, self._settings[seed], self._identities[seed]) for seed in seeds)
        return cluster.in_order(_train_alone, portions)


def _train_alone(
    common: tuple[Corpus, Dev[Embedder] | None, Start | None],
    settings: Settings,
    identity: Identity,
) -> tuple[SavedModel, list[str]]:
    """The model of one seed and the notes of its training, on a worker: with one thread."""
    corpus, dev, start = common
    notes: list[str] = []
    watch = _noting_collapse(lambda progress: None, settings, notes.append)
    run = Run(None, False, False, 1, 0.0, watch, notes.append)
    with Workers(1) as workers:
        task = TwoTowerTask(corpus, settings, workers, run.note, start, dev)
        return run.train(task, identity, workers, MEMBER_FILES), notes


class _Change:
    """Changes by a training that continues from a model.

    ``task`` is the training before its first update; the other arguments are those of the training.
    """

    def __init__(
        self,
        task: TowersTask,
        corpus: Corpus,
        dev: Dev[Embedder] | None,
        seed: int,
        workers: Workers,
    ) -> None:
        queries = None if dev is None else dev.queries
        self._firsts = FirstTitles(corpus, queries, seed, workers)
        self._metric = task.metric
        self._dev, self._before = task.measure(), self._firsts.of(task.model().towers())

    def note(self, trained: SavedModel, note: Callable[[str], None]) -> None:
        """Note the dev figures before and after, and how many first titles are the same."""
        best = best_epoch(trained.history, self._metric)
        after = trained.training.get(DEV_OF_AVERAGE) if best is None else best["dev"]
        if self._dev is not None and after is not None:
            note(f"dev before: {_in_words(self._dev)}; after: {_in_words(after)}")
        note(self._firsts.change(self._before, self._firsts.of(trained.towers())))


def _vectors_record(vectors: VectorSource | None, corpus: Corpus) -> dict[str, Any] | None:
    """Where the features of word vectors are from; None without any of the training's own."""
    features = corpus.vocabulary.vectors
    return None if vectors is None or features is None else vectors.record(features)


def _noting_collapse(
    on_progress: Callable[[Progress], None], settings: Settings, note: Callable[[str], None]
) -> Callable[[Progress], None]:
    """``on_progress``, which also notes once if the hinge has made all texts alike.

    Every cosine is then about 1, and each of the two hinges of a pair is the margin.
    """
    if settings.objective != HINGE:
        return on_progress
    noted: list[int] = []

    def report(progress: Progress) -> None:
        on_progress(progress)
        is_collapsed = math.isclose(progress.loss, 2 * settings.margin, rel_tol=_COLLAPSED)
        if progress.epoch_ended and is_collapsed and not noted:
            noted.append(progress.epoch)
            note(
                f"epoch {progress.epoch}: the loss is twice the margin: nearly all texts have the "
                "same embedding; lower the learning rate or take another model or objective"
            )

    return report


def _in_words(figures: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items())


def _note_new_features(corpus: Corpus, start: Start, note: Callable[[str], None]) -> None:
    """Note how the vocabulary has grown; a `SentembError` if the log has only new features."""
    known, grown = start.towers.vocabulary, corpus.vocabulary
    seen = np.concatenate([corpus.seen(side) for side in SIDES])
    if not np.isin(seen, grown.rows_of(known)).any():
        raise SentembError(
            f"no letter trigram of the log is in the vocabulary of {start}; start from a model of "
            "the same language"
        )
    note(
        f"{len(grown.trigrams) - len(known.trigrams):,} letter trigrams and "
        f"{len(grown.words) - len(known.words):,} words of the log are new and are added to the "
        f"vocabulary of {start}"
    )


def _note_unknown_words(corpus: Corpus, start: Start, note: Callable[[str], None]) -> None:
    share = corpus.unknown_share()
    if share == 1:
        raise SentembError(
            f"no word of the log is in the vocabulary of {start}; start from a model of the same "
            "language"
        )
    note(
        f"{share:.1%} of the words of the log are not in the vocabulary of {start} and are ignored"
    )
