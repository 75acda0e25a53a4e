"""Algorithm 1: from a click log to a model."""

import contextlib
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.bounds import is_number
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.former_names import former_names
from sentemb.hyperparameters import formerly
from sentemb.kernels.jit import CACHE_FOLDER
from sentemb.objectives.options import HINGE
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.files import make_folder
from sentemb.system.locks import locked
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.checkpoints import remove_checkpoints
from sentemb.training.corpus import Corpus
from sentemb.training.dev import read_dev
from sentemb.training.identity import Identity
from sentemb.training.loop import TrainingLoop
from sentemb.training.output import check_output, is_finished
from sentemb.training.progress import Progress
from sentemb.training.settings import HYPERPARAMETERS, Settings
from sentemb.training.start import Start
from sentemb.training.stopping import stop_signals
from sentemb.training.two_tower_task import TwoTowerTask

# How near to twice the margin the loss of an epoch is when all texts are alike.
_COLLAPSED = 0.01


@former_names(**formerly(HYPERPARAMETERS))
def train(
    pairs: AnyPath | ClickLog,
    *,
    output: AnyPath | None = None,
    dev: AnyPath | JudgedSet | None = None,
    start_from: AnyPath | SentenceEncoder | None = None,
    preset: str | None = None,
    resume: bool = False,
    force: bool = False,
    skip_bad_lines: bool = False,
    threads: int | None = None,
    checkpoint_seconds: float = 60.0,
    on_progress: Callable[[Progress], None] | None = None,
    on_note: Callable[[str], None] | None = None,
    **settings: Any,
) -> SentenceEncoder:
    """Train a model on a click log.

    Parameters
    ----------
    pairs : path or ClickLog
        See `read_click_log`.
    output : path, optional
        The model folder to write. Without it nothing is written.
    dev : path or JudgedSet, optional
        A judged set on which the model is measured after every epoch. The result is the model of
        the best epoch by NDCG@1; without ``dev`` it is the model of the last epoch.
    start_from : path or SentenceEncoder, optional
        A model whose weights and vocabulary the training starts from; it is not changed. Its
        settings are the defaults of ``model``, the model's shape and ``shared_towers``; separate
        towers may start from a shared one. If it is a ``bag`` and another ``model`` is trained, its
        rows are word vectors: the input weights start as ``rows Q``, where Q is random, from the
        seed, with the variance 1 / dim, or the identity for numbers that are only added up or
        averaged, if there are as many: ``bag_dim``, ``hidden`` of a ``dan``, ``cells`` of an
        ``irnn`` without ``bag_dim``. The word vectors and Q are then trained as one matrix.
        Features of the log that the model does not know are not read.
    preset : {"paper", "large"}, optional
        Other defaults: the paper's, or those of a wider model that takes a few minutes to train.
    resume : bool
        Continue from the newest checkpoint in ``output``, to the same bits as a run that was never
        stopped. Without a checkpoint, start from the beginning.
    force : bool
        Replace a model that is in ``output``.
    skip_bad_lines : bool
        Count malformed lines of the log instead of stopping at the first.
    threads : int, optional
        By default one per processor. The result is the same for any number.
    checkpoint_seconds : float
        Seconds between checkpoints.
    on_progress : function of a `Progress`, optional
        Called after every mini-batch and every epoch.
    on_note : function of a str, optional
        Called with each message about the training.
    **settings
        See `Settings`.

    Returns
    -------
    SentenceEncoder

    Raises
    ------
    SentembError
        For bad settings or data, a place that cannot be written, or a training that diverges.
    Interrupted
        After Ctrl-C or SIGTERM, once the checkpoint is written.
    """
    start = None if start_from is None else Start.of(start_from)
    if start is not None:
        settings = start.settings(preset, settings)
    chosen = Settings.of(preset, **settings)
    if not (is_number(checkpoint_seconds) and 0 <= checkpoint_seconds < np.inf):
        raise SentembError(f"checkpoint_seconds must be a number from 0, not {checkpoint_seconds}")
    note = on_note or _ignore
    if output is not None:
        check_output(output, resume, force)
        if start is not None:
            _check_start_stays(start_from, output)
    elif resume:
        raise SentembError("resume needs the output of the training to continue")
    judged = None if dev is None else read_dev(dev)
    with Workers(threads) as workers:
        # The log itself is not kept: it takes several times the memory of the corpus.
        log = _read_log(pairs, skip_bad_lines, chosen, note)
        corpus = Corpus(log, chosen, None if start is None else start.towers.vocabulary)
        del log
        if start is not None:
            _note_unknown_words(corpus, start, note)
        identity = Identity(
            chosen.as_dict(),
            corpus.fingerprint(),
            None if judged is None else judged.fingerprint(),
            None if start is None else start.record(),
        )
        task = TwoTowerTask(corpus, chosen, workers, note, start, judged)
        del start  # the towers have what they need of it
        folder = None if output is None else Path(output)
        loop = TrainingLoop(task, identity, folder, checkpoint_seconds, workers, note)
        with contextlib.nullcontext() if folder is None else locked(make_folder(folder)):
            if folder is not None:
                # Another training may have ended here while this one read its log.
                check_output(folder, resume, force)
                if resume and is_finished(folder, identity):
                    note(f"the training of {folder} is already finished")
                    remove_checkpoints(folder)
                    return SentenceEncoder.from_pretrained(folder, threads)
            loop.prepare(resume)
            if not _are_kernels_cached():
                note("compiling kernels, once; this takes some seconds")
            with stop_signals() as stop:
                report = _noting_collapse(on_progress or _ignore, chosen, note)
                return SentenceEncoder.of(loop.run(report, stop), threads)


def _ignore(report: object) -> None:
    pass


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


def _read_log(
    pairs: AnyPath | ClickLog,
    skip_bad_lines: bool,
    settings: Settings,
    note: Callable[[str], None],
) -> ClickLog:
    if isinstance(pairs, ClickLog):
        log = pairs
    elif isinstance(pairs, str | os.PathLike):
        log = read_click_log(pairs, skip_bad_lines=skip_bad_lines)
    else:
        raise SentembError(f"pairs must be a path or a ClickLog, not {type(pairs).__name__}")
    if log.bad_lines:
        note(f"{log.bad_lines} bad lines of the log were skipped")
    if settings.negatives == "log" and not log.skipped_index.size:
        raise SentembError(
            "negatives from the log need skipped titles; give a log in JSON lines with them, or "
            "choose negatives from the batch"
        )
    return log


def _check_start_stays(start_from: object, output: AnyPath) -> None:
    """Refuse a training that would replace the model that it starts from."""
    if isinstance(start_from, str | os.PathLike) and os.path.realpath(
        start_from
    ) == os.path.realpath(output):
        raise SentembError(
            f"{output}: the training starts from the model there and would replace it; choose "
            "another output"
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


def _are_kernels_cached() -> bool:
    try:
        return CACHE_FOLDER is not None and any(CACHE_FOLDER.glob("*.kernel"))
    except OSError:  # the process has given up the rights with which it began
        return False
