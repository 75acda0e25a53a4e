"""The training loop: epochs of mini-batches of a `Task`, the dev set, checkpoints, stopping.

Epochs, steps (the mini-batches of an epoch) and updates (the mini-batches of the whole training)
are numbered from 0. What people read counts epochs from 1: messages, `Progress`, the history.
"""

import time
import weakref
from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.files.history import best_epoch
from sentemb.models.files.model_files import load_model, write_model
from sentemb.models.files.model_folder import is_model
from sentemb.system.parallel import Workers
from sentemb.training.checkpoints import (
    Checkpoint,
    has_checkpoints,
    member_seeds,
    remove_checkpoints,
    take_up_checkpoint,
    write_checkpoint,
    write_lasting,
)
from sentemb.training.contracts import Task
from sentemb.training.identity import Identity
from sentemb.training.output import make_room
from sentemb.training.position import Position
from sentemb.training.progress import Amounts, Clock, Progress
from sentemb.training.stopping import Diverged, Interrupted, StopRequest

# A checkpoint waits for this many times the seconds that the last one took: they take 5 % at most.
_TIMES_CHECKPOINT = 20


class ModelFiles(NamedTuple):
    """How the models of a task are written to a folder and read from it."""

    write: Callable[[Any, Path], None]
    read: Callable[[Path], Any]


class TrainingLoop:
    """One training, from the beginning or from a checkpoint.

    The model of ``task`` is a `SavedModel`, or another dataclass with the attributes ``model``,
    ``training`` and ``history``. The caller has locked ``output``, the model folder. ``files`` are
    by default those of a `SavedModel`.
    """

    def __init__(
        self,
        task: Task[Any, Any],
        identity: Identity,
        output: Path | None,
        checkpoint_seconds: float,
        workers: Workers,
        note: Callable[[str], None],
        files: ModelFiles | None = None,
    ) -> None:
        self.task = task
        self.identity = identity
        self.epochs: int = identity.settings["epochs"]
        self.patience: int | None = identity.settings["patience"]
        self.output = output
        self.checkpoint_seconds = checkpoint_seconds
        self.workers = workers
        self.note = note
        self.files = files or ModelFiles(write_model, load_model)
        self.at = Position()
        self._best: Any = None  # the model of the best epoch so far
        self._best_is_saved = True
        # The lasting arrays that have a file, and its name. The task may do without them.
        self._lasting: dict[str, tuple[weakref.ref[np.ndarray], str]] = {}

    @property
    def updates(self) -> int:
        """Updates done since the beginning."""
        return self.at.epoch * self.task.steps + self.at.step

    # -- the loop -----------------------------------------------------------------------------

    def run(self, on_progress: Callable[[Progress], None], stop: StopRequest) -> Any:
        """Train to the end; the result is the model of the best epoch on dev, or the last one.

        Raises `Interrupted` after ``stop`` was set, once the checkpoint or the finished model is
        written, and `SentembError` if the training diverges, or the model cannot be written.
        """
        self._on_progress, self._stop = on_progress, stop
        self._clock = Clock()
        # The preparations of the first 0, 1, 2, … epochs.
        self._prepared = [0.0, *accumulate(map(self.task.preparation, range(self.epochs)))]
        self._next_checkpoint = time.monotonic() + self.checkpoint_seconds
        while self.at.epoch < self.epochs and not self._out_of_patience():
            self._clock.start_epoch(self.at.seconds)
            self._train_epoch()
            self._end_epoch()
        saved = self._finish()
        if self._stop.is_set():  # what comes after the training must not begin
            raise self._interrupted("stopped once all epochs were done")
        return saved

    def _train_epoch(self) -> None:
        task, at = self.task, self.at
        if at.step == 0:
            task.before_epoch(at.epoch, self._stop.is_set)
            self._stop_if_asked()
            self._clock.did("preparation", task.preparation(at.epoch))
        planned: list[Any] = []  # at most one mini-batch, planned while the last one is trained on
        self._plan(at.step, planned)
        while at.step < task.steps:
            batch = planned.pop()
            self.workers.meanwhile(self._plan, at.step + 1, planned)
            try:
                at.loss_sum += task.update(batch, self.updates)
            except Diverged as diverged:
                raise self._diverged(diverged) from None
            finally:
                self.workers.catch_up()
            at.step += 1
            self._clock.did("updates")
            self._on_progress(self._progress())
            self._stop_if_asked()
            if time.monotonic() >= self._next_checkpoint:
                self._write_checkpoint()

    def _plan(self, step: int, planned: list[Any]) -> None:
        """Append the mini-batch of ``step``, if the epoch has one, to ``planned``."""
        if step < self.task.steps:
            planned.append(self.task.plan(self.at.epoch, step))

    def _end_epoch(self) -> None:
        """Measure the model, keep it if it is the best, and write the epoch's line of history."""
        at, steps = self.at, self.task.steps
        self.task.flush(self.updates)
        seconds = self._clock.epoch_seconds()
        try:
            dev = self.task.measure()
        except Diverged as diverged:
            raise self._diverged(diverged) from None
        before = at.history[-1].get("seconds", 0.0) if at.history else 0.0
        line = {
            "epoch": at.epoch + 1,
            "step": self.updates,
            "loss": round(at.loss_sum / steps, 6),
            "dev": dev,
            "pairs_per_second": round(self.task.pairs_before(steps) / max(seconds, 1e-9), 1),
            "seconds": round(before + seconds, 3),
            **self.task.remarks(at.epoch),
        }
        at.history.append(line)
        if self._best_epoch() is line:
            self._best = None  # two of them may not fit into memory
            self._best = self.task.model()
            self._best_is_saved = False
        self._clock.did("measures")
        self._on_progress(replace(self._progress(measured=1), epoch_ended=True, dev=dev))
        at.start_next_epoch()

    def _best_epoch(self) -> dict[str, Any] | None:
        """The line of the best epoch so far; None without a dev set."""
        return best_epoch(self.at.history, self.task.metric)

    def _out_of_patience(self) -> bool:
        best = self._best_epoch()
        if self.patience is None or best is None:
            return False
        return self.at.epoch - best["epoch"] >= self.patience

    def _progress(self, measured: int = 0) -> Progress:
        """How far the training is, after ``measured`` measures of this epoch."""
        at, steps, clock = self.at, self.task.steps, self._clock
        pairs = self.task.pairs_before(at.step)
        whole = Amounts(self.epochs * steps, self._prepared[-1], self.epochs)
        done = Amounts(self.updates, self._prepared[at.epoch + 1], at.epoch + measured)
        left = Amounts(*(total - amount for total, amount in zip(whole, done, strict=True)))
        return Progress(
            epoch=at.epoch + 1,
            epochs=self.epochs,
            step=at.step,
            steps=steps,
            loss=at.loss_sum / at.step,
            pairs_per_second=pairs / max(clock.epoch_seconds(), 1e-9),
            seconds_left=clock.seconds_for(left),
            seconds_in_all=clock.seconds_for(whole),
        )

    # -- the result ---------------------------------------------------------------------------

    def _saved(self, model: Any, finished: bool = False) -> Any:
        """``model`` with the record and the history of this training."""
        record = self.identity.record(self.task.pairs_before(self.task.steps), finished)
        return replace(model, training=record, history=self.at.history)

    def _finish(self) -> Any:
        """The best or the last model, in the output folder too."""
        saved = self._saved(self._best or self.task.model(), finished=True)
        if self.output is not None:
            try:
                self.files.write(saved, self.output)
            except SentembError as error:
                why = f"{error}; make room there and continue with --resume"
                raise SentembError(why) from error
            remove_checkpoints(self.output)
        return saved

    def _save_best(self, output: Path) -> None:
        """Write the best model so far, unless ``output`` has it."""
        if self._best is not None and not self._best_is_saved:
            self.files.write(self._saved(self._best), output)
            self._best_is_saved = True

    def _diverged(self, what: Diverged) -> SentembError:
        """The error for a training that cannot continue; what is in ``output`` stays there."""
        where = f"epoch {self.at.epoch + 1}, step {min(self.at.step + 1, self.task.steps)}"
        remark = ""
        if self.output is not None:
            self._save_best(self.output)
            if is_model(self.output):
                remark = f"; the model in {self.output} is from before that"
            else:
                remove_checkpoints(self.output)
        return SentembError(f"{what} at {where}; lower the learning rate{remark}")

    # -- stopping and resuming ----------------------------------------------------------------

    def prepare(self, resume: bool) -> None:
        """Restore the newest checkpoint, or see that the output folder has room for the model."""
        output = self.output
        if output is None:
            return
        if resume and take_up_checkpoint(
            output, lambda file: self._restore(file, output), self.note
        ):
            where = f"epoch {self.at.epoch + 1}, step {self.at.step} of {self.task.steps}"
            self.note(f"continuing at {where}")
            return
        if resume and member_seeds(output):
            raise SentembError(
                f"{output}: a training of several seeds was stopped there; give the same number of "
                "seeds to resume it, or start again with --force"
            )
        if resume:
            which = "no checkpoint can be used" if has_checkpoints(output) else "no checkpoint yet"
            self.note(f"{which}; starting from the beginning")
        make_room(output, self.task.model().model.nbytes)

    def _restore(self, file: Checkpoint, output: Path) -> None:
        """Continue from a checkpoint; nothing is changed if it is damaged."""
        identity: Any = file.metadata.get("identity")
        try:
            at = Position.of(file.metadata, identity, self.task.metric)
        except SentembError as error:
            raise file.damaged(str(error)) from error
        self.identity.check(identity, output)
        if at.step > self.task.steps:
            raise file.damaged("an epoch does not have that many steps")
        self.task.check_state(file, at.epoch, at.step)
        best = None
        if best_epoch(at.history, self.task.metric) is not None:
            best = self.files.read(output)
        self.task.restore(file)
        self.at, self._best = at, best
        self._lasting = {
            name: (weakref.ref(array), file.references[name])
            for name, array in self.task.lasting().items()
            if name in file.references
        }

    def _stop_if_asked(self) -> None:
        if not self._stop.is_set():
            return
        self._write_checkpoint()
        where = f"epoch {self.at.epoch + 1}, step {self.at.step} of {self.task.steps}"
        raise self._interrupted(f"stopped at {where}")

    def _interrupted(self, where: str) -> Interrupted:
        how = "nothing was kept, as there is no output"
        if self.output is not None:
            how = "continue with the same command and --resume"
        return Interrupted(f"{where}; {how}", self._stop.signal)

    def _write_checkpoint(self) -> None:
        if self.output is None:
            return
        progress = {
            "identity": self.identity.as_dict(),
            **self.at.as_dict(self._clock.epoch_seconds()),
        }
        began = time.monotonic()
        try:
            self._save_best(self.output)
            lasting = self._write_lasting(self.output)
            write_checkpoint(self.output, self.updates, self.task.state(), progress, lasting)
        except SentembError as error:
            # The training itself is unharmed; there may be room again at the next checkpoint.
            self.note(f"no checkpoint could be written: {error}")
        ended = time.monotonic()
        wait = max(self.checkpoint_seconds, _TIMES_CHECKPOINT * (ended - began))
        self._next_checkpoint = ended + (wait if self.checkpoint_seconds else 0)

    def _write_lasting(self, output: Path) -> dict[str, str]:
        """Write the lasting arrays that have no file yet; the names of all their files."""
        known, self._lasting = self._lasting, {}
        for name, array in self.task.lasting().items():
            written = known.get(name)
            if written is None or written[0]() is not array:
                written = weakref.ref(array), write_lasting(output, name, array)
            self._lasting[name] = written
        return {name: file_name for name, (_, file_name) in self._lasting.items()}
