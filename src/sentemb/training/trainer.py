"""Algorithm 1: from a click log to a model."""

import contextlib
import copy
import os
import shutil
import signal
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sentemb.bounds import is_finite, is_number
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.data.judged_set import JudgedSet, read_judged_set
from sentemb.errors import SentembError
from sentemb.evaluation.evaluate import evaluate_model
from sentemb.kernels.jit import CACHE_FOLDER
from sentemb.models.towers import Towers
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.history import check_line
from sentemb.storage.model_files import check_place, is_model, load_model, write_model
from sentemb.storage.saved_model import SavedModel
from sentemb.storage.tensor_files import damaged
from sentemb.system.files import make_folder
from sentemb.system.locks import locked
from sentemb.system.parallel import Workers
from sentemb.training import hard_negatives
from sentemb.training.checkpoints import (
    folder_of,
    has_checkpoints,
    remove_checkpoints,
    take_up_checkpoint,
    write_checkpoint,
)
from sentemb.training.corpus import Corpus
from sentemb.training.settings import HARD_AMONG, Settings
from sentemb.training.two_towers import Diverged, TwoTowers

_DEV_CUTOFFS = (1, 3, 10)
_DEV_FIGURE = "ndcg@1"
_HARD_TITLES = "hard_titles"  # in checkpoints


class Interrupted(SentembError):
    """Training was stopped by a signal; the message says how to continue it.

    Attributes
    ----------
    signal : int
        SIGINT (Ctrl-C) or SIGTERM.
    """

    def __init__(self, message, number=signal.SIGINT):
        super().__init__(message)
        self.signal = int(number)


@dataclass(frozen=True)
class Progress:
    """Where a training stands.

    Attributes
    ----------
    epoch, epochs : int
        Counted from 1.
    step, steps : int
        Mini-batches done of this epoch.
    loss : float
        Mean loss a pair since the epoch began.
    pairs_per_second : float
    seconds_left : float
        Of the whole training.
    epoch_ended : bool
        Whether this is the report that closes the epoch.
    dev : dict or None
        NDCG on the dev set, if there is one, in that report.
    """

    epoch: int
    epochs: int
    step: int
    steps: int
    loss: float
    pairs_per_second: float
    seconds_left: float
    epoch_ended: bool = False
    dev: dict | None = None


def train(
    pairs,
    *,
    output=None,
    dev=None,
    preset=None,
    resume=False,
    force=False,
    skip_bad_lines=False,
    threads=None,
    checkpoint_seconds=60.0,
    on_progress=None,
    on_note=None,
    **settings,
):
    """Train a model on a click log.

    Parameters
    ----------
    pairs : path or ClickLog
        See `read_click_log`.
    output : path, optional
        The model directory to write. Without it nothing is written.
    dev : path or JudgedSet, optional
        Measured after every epoch; the model of the best epoch (by NDCG@1) is the result. Without
        it that of the last epoch is.
    preset : {"paper", "large"}, optional
        What the paper used, or a wider model for some minutes of training, instead of the defaults.
    resume : bool
        Go on from the newest checkpoint in ``output``, to the same bits as a run that was never
        stopped; from the beginning if there is none.
    force : bool
        Replace a model that is in ``output``.
    skip_bad_lines : bool
        Count malformed lines of the log instead of stopping at the first.
    threads : int, optional
        By default all processors; the result is the same for any number.
    checkpoint_seconds : float
        Time between checkpoints.
    on_progress : function of a `Progress`, optional
        Called after every mini-batch and every epoch.
    on_note : function of a str, optional
        Called with what is worth knowing on the way.
    **settings
        See `Settings`.

    Returns
    -------
    SentenceEncoder

    Raises
    ------
    SentembError
        For bad settings or data, a place that cannot be written, a loss that is no number.
    Interrupted
        After Ctrl-C, once the checkpoint is written.
    """
    chosen = Settings.of(preset, **settings)
    if not (is_number(checkpoint_seconds) and 0 <= checkpoint_seconds < np.inf):
        raise SentembError(f"checkpoint_seconds must be a number from 0, not {checkpoint_seconds}")
    note = on_note or (lambda message: None)
    if output is not None:
        _check_output(output, resume, force)
    elif resume:
        raise SentembError("resume needs the output of the training to go on with")
    if dev is not None:
        dev = _measurable(dev)
    with Workers(threads) as workers:
        # The log itself is not kept: it takes several times the memory of the corpus.
        corpus = Corpus(_read_log(pairs, skip_bad_lines, chosen, note), chosen)
        training = _Training(corpus, dev, chosen, output, checkpoint_seconds, workers, note)
        with contextlib.nullcontext() if output is None else locked(make_folder(output)):
            if output is not None:
                _check_output(output, resume, force)  # a training may have ended here meanwhile
            if resume and training.is_finished():
                note(f"the training of {output} is finished already")
                remove_checkpoints(output)
                return SentenceEncoder.from_pretrained(output, threads)
            if output is not None:
                training.prepare_output(resume)
            with _stop_signals(training):
                return training.run(on_progress or (lambda progress: None), threads)


def _read_log(pairs, skip_bad_lines, settings, note):
    if not isinstance(pairs, ClickLog):
        if not isinstance(pairs, str | os.PathLike):
            raise SentembError(f"pairs must be a path or a ClickLog, not {type(pairs).__name__}")
        pairs = read_click_log(pairs, skip_bad_lines=skip_bad_lines)
    if pairs.bad_lines:
        note(f"{pairs.bad_lines} bad lines of the log were skipped")
    if settings.negatives == "log" and not pairs.skipped_index.size:
        raise SentembError(
            "negatives from the log need skipped titles; give a log in JSON lines with them, or "
            "choose negatives from the batch"
        )
    return pairs


class _Zeros:
    """A ranker that knows nothing."""

    def score_pairs(self, queries, docs, query_index, doc_index):
        return np.zeros(len(query_index))


def _measurable(dev):
    """The judged set ``dev`` (path or `JudgedSet`), once measuring on it has been tried."""
    name = "the dev set"
    if not isinstance(dev, JudgedSet):
        name, dev = dev, read_judged_set(dev)
    try:
        evaluate_model(_Zeros(), dev, _DEV_CUTOFFS)
    except SentembError as error:
        raise SentembError(f"{name}: {error}") from error
    return dev


class _Training:
    """One run, from a fresh start or a checkpoint."""

    def __init__(self, corpus, dev, settings, output, checkpoint_seconds, workers, note):
        self.settings = settings
        self.output = None if output is None else Path(output)
        self.dev = dev
        self.checkpoint_seconds = checkpoint_seconds
        self.workers = workers
        self.note = note
        self.stop = threading.Event()
        self.stop_signal = signal.SIGINT

        self.corpus = corpus
        self.steps = self.corpus.n_batches(settings.batch_size)
        self.towers = TwoTowers(self.corpus, settings, settings.epochs * self.steps)
        # What must be the same for a checkpoint to fit.
        self.identity = {
            "settings": settings.as_dict(),
            "log": corpus.fingerprint(),
            "dev": None if dev is None else dev.fingerprint(),
        }

        self.epoch = 0
        self.step = 0
        self.loss_sum = 0.0  # of this epoch's mini-batches
        self.history = []
        self.hard_titles = None  # of every query, once they have been looked up
        self.best = None  # {"epoch", the figure}
        self._best_weights = None
        self._best_saved = True
        self._seconds = 0.0  # of this epoch, before this run of the process

    @property
    def updates(self):
        """Mini-batches done since the beginning."""
        return self.epoch * self.steps + self.step

    # -- the loop -----------------------------------------------------------------------------

    def run(self, on_progress, threads):
        settings = self.settings
        if not _are_kernels_cached():
            self.note("compiling kernels, once; this takes some seconds")
        began, done_before = time.monotonic(), self.updates
        last_checkpoint = began
        while self.epoch < settings.epochs and not self._out_of_patience():
            order = self.corpus.order(settings.seed, self.epoch)
            epoch_began = time.monotonic() - self._seconds
            if settings.hard_negatives and self.step == 0 and hard_negatives.are_due(self.epoch):
                self._look_up_hard_negatives(epoch_began)
            planned = []  # mini-batches to come: one, made while the one before is trained on
            self._plan(order, self.step, planned)
            while self.step < self.steps:
                batch, layouts = planned.pop()
                self.workers.meanwhile(self._plan, order, self.step + 1, planned)
                try:
                    self.loss_sum += self.towers.update(batch, layouts, self.updates, self.workers)
                except Diverged as diverged:
                    raise self._diverged(diverged) from None
                self.step += 1
                now = time.monotonic()
                on_progress(self._progress(epoch_began, began, done_before))
                self._stop_if_asked(now - epoch_began)
                if now - last_checkpoint >= self.checkpoint_seconds:
                    self._checkpoint(now - epoch_began)
                    last_checkpoint = time.monotonic()
            self._end_epoch(epoch_began, on_progress, began, done_before)
        return self._finish(threads)

    def _look_up_hard_negatives(self, epoch_began):
        self.note(f"epoch {self.epoch + 1}: looking up hard negatives")
        self.hard_titles = hard_negatives.look_up(self.corpus, self.towers, self.workers, self.stop)
        # They are looked up anew on going on: an epoch not begun has no use for those before.
        self._stop_if_asked(time.monotonic() - epoch_began)

    def _plan(self, order, step, planned):
        """Append the mini-batch of ``step`` and its layouts to ``planned``."""
        if step < self.steps:
            first = step * self.settings.batch_size
            pairs = order[first : first + self.settings.batch_size]
            batch = self.corpus.mini_batch(pairs, self.settings, self.epoch, step, self.hard_titles)
            planned.append((batch, self.towers.lay_out(batch)))

    def _end_epoch(self, epoch_began, on_progress, began, done_before):
        """Flush, measure, remember the best; the epoch's line of history."""
        self.towers.flush((self.epoch + 1) * self.steps, self.workers)
        seconds = time.monotonic() - epoch_began
        dev = None
        if self.dev is not None:
            mean = evaluate_model(self._live_model(), self.dev, _DEV_CUTOFFS).mean
            dev = {f"ndcg@{k}": round(float(value), 6) for k, value in zip(_DEV_CUTOFFS, mean)}
            if self.best is None or dev[_DEV_FIGURE] > self.best[_DEV_FIGURE]:
                self.best = {"epoch": self.epoch + 1, **dev}
                self._best_weights = copy.deepcopy(self.towers.weights())
                self._best_saved = False
        self.history.append(
            {
                "epoch": self.epoch + 1,
                "step": (self.epoch + 1) * self.steps,
                "loss": round(self.loss_sum / self.steps, 6),
                "dev": dev,
                "pairs_per_second": round(self.corpus.n_pairs / max(seconds, 1e-9), 1),
                "seconds": round(self._seconds_before() + seconds, 3),
            }
        )
        on_progress(
            replace(self._progress(epoch_began, began, done_before), epoch_ended=True, dev=dev)
        )
        self.epoch += 1
        self.step, self.loss_sum, self._seconds = 0, 0.0, 0.0

    def _seconds_before(self):
        """What the epochs before this one took."""
        return self.history[-1].get("seconds", 0.0) if self.history else 0.0

    def _finish(self, threads):
        """The best model, or the last, saved if it was asked for."""
        model = self._model(self._best_weights or self.towers.weights(), finished=True)
        if self.output is not None:
            try:
                write_model(model, self.output)
            except SentembError as error:
                raise SentembError(f"{error}; make room there and go on with --resume") from error
            remove_checkpoints(self.output)
        return SentenceEncoder.of(model, threads)

    def _out_of_patience(self):
        if self.settings.patience is None or self.best is None:
            return False
        return self.epoch - self.best["epoch"] >= self.settings.patience

    def _progress(self, epoch_began, began, done_before):
        now = time.monotonic()
        pairs = min(self.step * self.settings.batch_size, self.corpus.n_pairs)
        done = self.updates
        left = self.settings.epochs * self.steps - done
        return Progress(
            epoch=self.epoch + 1,
            epochs=self.settings.epochs,
            step=self.step,
            steps=self.steps,
            loss=self.loss_sum / self.step,
            pairs_per_second=pairs / max(now - epoch_began, 1e-9),
            seconds_left=left * (now - began) / max(done - done_before, 1),
        )

    # -- models -------------------------------------------------------------------------------

    def _model(self, weights, finished=False) -> SavedModel:
        towers = Towers.of(self.towers.encoder, self.corpus.vocabulary, weights)
        return SavedModel(
            towers,
            training={
                **self.settings.as_dict(),
                "pairs": self.corpus.n_pairs,
                "log": self.identity["log"],
                "dev": self.identity["dev"],
                "finished": finished,
            },
            history=self.history,
        )

    def _live_model(self):
        return SentenceEncoder.of(self._model(self.towers.weights()), self.workers.threads)

    # -- stopping and going on ----------------------------------------------------------------

    def is_finished(self):
        """Whether ``output`` holds the result of just this training."""
        if not is_model(self.output):
            return False
        started = has_checkpoints(self.output)
        try:
            training = load_model(self.output).training
        except SentembError:
            if started:  # the model is written again in the end
                return False
            raise
        # Version 0.1.0 did not write whether a training is finished.
        finished = training.get("finished", not started)
        known = {key: training.get(key) for key in self.settings.as_dict()}
        if started:
            # They may be of a later training that is to replace the model.
            return finished and self.identity == {
                "settings": known,
                "log": training.get("log"),
                "dev": training.get("dev"),
            }
        self._check_same({**training, "settings": known})
        return finished

    def prepare_output(self, resume):
        """Take up a checkpoint, or see to it that the model will have room."""
        if resume and take_up_checkpoint(self.output, self._restore, self.note):
            self.note(f"going on at epoch {self.epoch + 1}, step {self.step} of {self.steps}")
            return
        if resume:
            self.note("no checkpoint yet; starting from the beginning")
        remove_checkpoints(self.output)
        make_folder(folder_of(self.output))
        weights = self.towers.weights().values()
        size = sum(array.nbytes for tower in weights for array in tower.values())
        free = shutil.disk_usage(self.output).free
        if free < size:
            folder_of(self.output).rmdir()
            if not any(self.output.iterdir()):
                self.output.rmdir()
            raise SentembError(
                f"{self.output}: the model needs {size / 1e6:.1f} MB and {free / 1e6:.1f} MB are "
                "free there; make room or choose another place"
            )

    def _stop_if_asked(self, seconds):
        """``seconds``: of this epoch."""
        if self.stop.is_set():
            self._checkpoint(seconds)
            raise Interrupted(self._how_to_go_on(), self.stop_signal)

    def _checkpoint(self, seconds):
        if self.output is None:
            return
        try:
            if not self._best_saved:
                write_model(self._model(self._best_weights), self.output)
                self._best_saved = True
            progress = {
                "identity": self.identity,
                "epoch": self.epoch,
                "step": self.step,
                "loss_sum": self.loss_sum,
                "seconds": seconds,
                "history": self.history,
                "best": self.best,
            }
            arrays = self.towers.state()
            if self.hard_titles is not None:
                arrays[_HARD_TITLES] = self.hard_titles
            write_checkpoint(self.output, self.updates, arrays, progress)
        except SentembError as error:
            # The training itself is unharmed; there may be room again at the next checkpoint.
            self.note(f"no checkpoint could be written: {error}")

    def _restore(self, file):
        """Take up a checkpoint, an open `TensorFile`; nothing is changed if it is damaged."""
        self._check_progress(file)
        self._check_same(file.metadata["identity"])
        state = self.towers.state()
        for name, array in state.items():
            file.expect(name, array.shape, array.dtype)
        file.check()
        progress = file.metadata
        hard_titles = self._hard_titles_of(file)
        updates = progress["epoch"] * self.steps + progress["step"]
        if progress["step"] > self.steps or not self.towers.may_be_state(file, updates):
            raise damaged(file.path, "it is of a later time than it says")
        best_weights = None
        if progress["best"] is not None:
            best_weights = load_model(self.output).model.each

        for name, array in state.items():
            array[...] = file[name]
        self.hard_titles, self._best_weights = hard_titles, best_weights
        self.epoch, self.step = progress["epoch"], progress["step"]
        self.loss_sum, self._seconds = progress["loss_sum"], progress["seconds"]
        self.history, self.best = progress["history"], progress["best"]

    def _check_progress(self, file):
        """A checkpoint says where the training stood; raise a `Damaged` if that cannot be."""
        at = file.metadata
        try:
            right = (
                isinstance(at["identity"], dict)
                and isinstance(at["identity"]["settings"], dict)
                and type(at["epoch"]) is type(at["step"]) is int
                and 0 <= at["epoch"] < at["identity"]["settings"]["epochs"]
                and at["step"] >= 0
                and is_finite(at["loss_sum"])
                and is_finite(at["seconds"])
                and isinstance(at["history"], list)
                and (at["best"] is None or is_finite(at["best"][_DEV_FIGURE]))
                and (at["best"] is None or type(at["best"]["epoch"]) is int)
            )
            if right:
                for line in at["history"]:
                    check_line(line)
        except (KeyError, TypeError, SentembError):
            right = False
        if not right:
            raise damaged(file.path, "it does not say where the training stood")

    def _hard_titles_of(self, file):
        epoch, step = file.metadata["epoch"], file.metadata["step"]
        if _HARD_TITLES not in file:
            if self.settings.hard_negatives and hard_negatives.are_in_use(epoch, step):
                raise damaged(file.path, f"{_HARD_TITLES} is missing")
            return None
        file.expect(_HARD_TITLES, (self.corpus.n_queries, HARD_AMONG), np.int32)
        titles = file[_HARD_TITLES]
        if titles.min() < -1 or titles.max() >= self.corpus.n_titles:
            raise damaged(file.path, f"{_HARD_TITLES} has a title that the log does not have")
        return titles

    def _check_same(self, identity):
        """Raise a `SentembError` if ``identity`` is of another training."""
        mine, known = self.settings.as_dict(), identity["settings"]
        key = next((key for key in mine if known.get(key) != mine[key]), None)
        if key is not None:
            raise SentembError(
                f"{self.output}: was trained with {key} = {known.get(key)}, not {mine[key]}; "
                "resume with the same settings, or start again with --force"
            )
        if identity.get("log") != self.identity["log"]:
            raise SentembError(
                f"{self.output}: was trained on another click log; give that one, or start again "
                "with --force"
            )
        # Version 0.1.0 did not write which dev set it was.
        if "dev" in identity and identity["dev"] != self.identity["dev"]:
            raise SentembError(
                f"{self.output}: was trained with another dev set, or without one; give the same, "
                "or start again with --force"
            )

    def _diverged(self, what):
        where = f"epoch {self.epoch + 1}, step {self.step + 1}"
        kept = ""
        if self.output is not None:
            if not self._best_saved:
                write_model(self._model(self._best_weights), self.output)
            whole = is_model(self.output)
            kept = f"; the model in {self.output} is from before that" if whole else ""
            if not whole:
                remove_checkpoints(self.output)
        return SentembError(f"{what} at {where}; lower the learning rate{kept}")

    def _how_to_go_on(self):
        where = f"stopped at epoch {self.epoch + 1}, step {self.step} of {self.steps}"
        if self.output is None:
            return f"{where}; nothing was kept, as there is no output"
        return f"{where}; go on with the same command and --resume"


def _are_kernels_cached():
    try:
        return CACHE_FOLDER is not None and any(CACHE_FOLDER.glob("*.kernel"))
    except OSError:  # the process has given up the rights with which it began
        return False


@contextlib.contextmanager
def _stop_signals(training):
    """Let Ctrl-C and termination end the training after its mini-batch, with a checkpoint.

    A second Ctrl-C acts at once. A signal that is ignored stays so (a shell lets jobs in the
    background ignore Ctrl-C), and outside the main thread signals are not ours to take.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ask_to_stop(number, frame):
        if signal.SIGINT in before:
            signal.signal(signal.SIGINT, before[signal.SIGINT])
        training.stop_signal = number
        training.stop.set()

    before = {
        number: signal.signal(number, ask_to_stop)
        for number in (signal.SIGINT, signal.SIGTERM)
        if signal.getsignal(number) not in (signal.SIG_IGN, None)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _check_output(output, resume, force):
    if resume and force:
        raise SentembError("resume goes on with what is there and force replaces it; choose one")
    check_place(output)
    if resume or force:
        return
    if is_model(output):
        raise SentembError(
            f"{output}: a model is there already; use --resume to go on with it, --force to "
            "replace it, or choose another place"
        )
    if has_checkpoints(output):
        raise SentembError(
            f"{output}: a training that was stopped is there; use --resume to go on with it, "
            "--force to start again, or choose another place"
        )
