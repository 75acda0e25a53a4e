"""One run of a training: its place, its threads, what it reports; whatever is trained."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.data.click_log import ClickLog, Clicks, read_click_log
from sentemb.data.frames import clicks_column, is_frame
from sentemb.data.prepared_log import PreparedLog, is_prepared
from sentemb.errors import SentembError
from sentemb.kernels.compiling.ahead import NOTE
from sentemb.kernels.compiling.jit import CACHE_FOLDER
from sentemb.models.files.model_files import load_model
from sentemb.models.files.saved_model import SavedModel
from sentemb.system.bounds import is_number
from sentemb.system.files import make_folder
from sentemb.system.growing import scratch_folder
from sentemb.system.locks import locked
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.checkpoints import remove_checkpoints
from sentemb.training.contracts import Task
from sentemb.training.identity import Identity
from sentemb.training.loop import ModelFiles, TrainingLoop
from sentemb.training.output import check_output, is_finished
from sentemb.training.progress import Progress
from sentemb.training.stopping import stop_signals


@dataclass(frozen=True, eq=False)
class Run:
    """Options that do not change the trained model; `sentemb.train` describes the attributes."""

    output: AnyPath | None
    resume: bool
    force: bool
    threads: int | None
    checkpoint_seconds: float
    on_progress: Callable[[Progress], None]
    note: Callable[[str], None]

    @property
    def scratch(self) -> Path | None:
        """A folder on the disk of the output; None without an output."""
        return None if self.output is None else scratch_folder(self.output)

    def check(self, start_from: object = None, teacher: object = None) -> None:
        """Raise a `SentembError` unless the run can begin; models that it reads must stay."""
        seconds = self.checkpoint_seconds
        if not (is_number(seconds) and 0 <= seconds < np.inf):
            raise SentembError(f"checkpoint_seconds must be a number from 0, not {seconds}")
        if self.output is not None:
            check_output(self.output, self.resume, self.force)
            _check_stays(start_from, "starts", self.output)
            _check_stays(teacher, "learns", self.output)
        elif self.resume:
            raise SentembError("resume needs the output of the training to continue")

    def train(
        self,
        task: Task[Any, Any],
        identity: Identity,
        workers: Workers,
        files: ModelFiles | None = None,
    ) -> SavedModel:
        """The model of a training from the beginning or from its newest checkpoint.

        ``files`` are those of `TrainingLoop`. Raises `SentembError` if the training diverges, or
        the output cannot be used, and `Interrupted` after Ctrl-C or SIGTERM, once the checkpoint is
        written.
        """
        folder = None if self.output is None else Path(self.output)
        seconds = self.checkpoint_seconds
        loop = TrainingLoop(task, identity, folder, seconds, workers, self.note, files)
        with contextlib.nullcontext() if folder is None else locked(make_folder(folder)):
            if folder is not None:
                # Another training may have ended here while this one read its data.
                check_output(folder, self.resume, self.force)
                if self.resume and is_finished(folder, identity):
                    self.note(f"the training of {folder} is already finished")
                    remove_checkpoints(folder)
                    return load_model(folder)
            loop.prepare(self.resume)
            if not _are_kernels_cached():
                self.note(NOTE)
            with stop_signals() as stop:
                saved: SavedModel = loop.run(self.on_progress, stop)
        return saved


def read_log(
    pairs: Clicks,
    skip_bad_lines: bool,
    negatives: str,
    note: Callable[[str], None],
    name: str = "pairs",
    names: Mapping[str, str] | None = None,
) -> ClickLog:
    """The log of a training, read if it is a path, built if it is a table or a list of pairs.

    ``names`` are the titles that ids have now; see `read_click_log`. Of a table the columns with
    usual names for query, title and, if there is one, clicks are used. Raises `SentembError` if it
    cannot be read, or has none of the ``negatives`` that are asked for.
    """
    if isinstance(pairs, ClickLog):
        log = pairs
    elif isinstance(pairs, str | os.PathLike):
        log = read_click_log(pairs, skip_bad_lines=skip_bad_lines, names=names)
    elif is_frame(pairs):
        log = ClickLog.from_frame(pairs, clicks=clicks_column(pairs))
    elif isinstance(pairs, Iterable):
        log = ClickLog.from_pairs(pairs)
    else:
        raise SentembError(
            f"{name} must be a path, a ClickLog, a table with the columns query and title, or a "
            f"list of (query, title), not {type(pairs).__name__}"
        )
    _look_at(log, negatives, note)
    return log


def open_log(
    pairs: Clicks | PreparedLog,
    skip_bad_lines: bool,
    negatives: str,
    note: Callable[[str], None],
    names: Mapping[str, str] | None = None,
) -> ClickLog | PreparedLog:
    """As `read_log`, or a log of `prepare_log`, mapped if it is a path."""
    if isinstance(pairs, PreparedLog):
        log = pairs
    elif isinstance(pairs, str | os.PathLike) and is_prepared(pairs):
        log = PreparedLog.open(pairs)
    else:
        return read_log(pairs, skip_bad_lines, negatives, note, names=names)
    _look_at(log, negatives, note)
    return log


def is_prepared_log(pairs: Clicks | PreparedLog) -> bool:
    """Whether ``pairs`` is a prepared log or its folder."""
    if isinstance(pairs, str | os.PathLike):
        return is_prepared(pairs)
    return isinstance(pairs, PreparedLog)


def _look_at(log: ClickLog | PreparedLog, negatives: str, note: Callable[[str], None]) -> None:
    """Note bad lines; a `SentembError` for a log without the ``negatives`` that are asked for."""
    if log.bad_lines:
        note(f"{log.bad_lines} bad lines of the log were skipped")
    if negatives == "log" and not log.skipped_index.size:
        raise SentembError(
            "negatives from the log need skipped titles; give a log in JSON lines with them, or "
            "choose other negatives"
        )


def _check_stays(model: object, does: str, output: AnyPath) -> None:
    """Refuse a training that would replace the model that it starts or learns from."""
    if isinstance(model, str | os.PathLike) and os.path.realpath(model) == os.path.realpath(output):
        raise SentembError(
            f"{output}: the training {does} from the model there and would replace it; choose "
            "another output"
        )


def _are_kernels_cached() -> bool:
    try:
        return CACHE_FOLDER is not None and any(CACHE_FOLDER.glob("*.kernel"))
    except OSError:  # the process has given up the rights with which it began
        return False
