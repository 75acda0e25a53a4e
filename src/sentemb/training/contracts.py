"""Protocols of the logs, tasks, optimisers and checkpoints of the training loop.

The protocols are structural: a class with the right members fulfils one without inheriting from it.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sentemb.models.contracts import GradientPoint
from sentemb.system.contracts import Arrays, KernelTask, Runner, WordsOfFeatures

# What a log source returns for texts, what a task plans for an update, and what it trains.
TextsT_co = TypeVar("TextsT_co", covariant=True)
BatchT = TypeVar("BatchT")
ModelT_co = TypeVar("ModelT_co", covariant=True)


@runtime_checkable
class Optimiser(Protocol):
    """Owns the weights of one tower while they are trained."""

    @property
    def weights(self) -> Arrays:
        """The live weights. Call `flush` before reading ``table``."""
        ...

    def point(self, rows: NDArray[np.int32], update: int) -> GradientPoint:
        """The point at which the gradient of ``update`` is taken.

        Parameters
        ----------
        rows : (n_rows,) int32
            The input rows of the mini-batch.
        update : int
            From 0.
        """
        ...

    def step_tasks(
        self,
        point: GradientPoint,
        gradient: Arrays,
        words_of_features: WordsOfFeatures,
        update: int,
        rate: float,
    ) -> Generator[list[KernelTask], None, float]:
        """One update of the weights, as a job for `Workers.together`.

        Parameters
        ----------
        point : GradientPoint
            The point that `point` returned for this update.
        gradient : dict of arrays
            The gradient there, as `Encoder.backward_tasks` returns it: ``words`` in place of
            ``table``.
        words_of_features : (n_rows + 1,) int64, (n_entries,) int32, (n_entries,) float32
            Offsets, words and values: the words that hold each input row's feature, and its value
            in each.
        update : int
            From 0.
        rate : float
            The learning rate.

        Returns
        -------
        float
            The factor that re-normalised the gradient: 1 unless it was too long.
        """
        ...

    def flush(self, update: int, workers: Runner) -> None:
        """Bring every weight to its value before ``update``; a no-op if no update is deferred."""
        ...

    def state(self) -> Arrays:
        """All arrays that a checkpoint must keep, by name."""
        ...


class Windows(Protocol):
    """The pairs of a log in some order, window by window, so that no more need be in memory."""

    @property
    def starts(self) -> NDArray[np.int64]:
        """The position of the first pair of every window, and the number of pairs."""
        ...

    def window(self, number: int) -> NDArray[np.int64]:
        """The pairs of one window, (k,) int64."""
        ...


@runtime_checkable
class LogSource(Protocol[TextsT_co]):
    """The pairs of a click log in a form that training can take mini-batches from."""

    @property
    def n_pairs(self) -> int:
        """Number of pairs of a query and a clicked title."""
        ...

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the log."""
        ...

    def order(self, seed: int, epoch: int) -> Windows:
        """The order in which ``epoch`` goes through the pairs."""
        ...

    def texts(self, side: str, numbers: NDArray[np.int32]) -> TextsT_co:
        """Some texts of ``side``, in this order.

        Parameters
        ----------
        side : {"query", "document"}
            Queries or titles.
        numbers : (k,) int32
            Which queries or titles, all different.
        """
        ...


class StoredState(Protocol):
    """The arrays of a checkpoint. None is read before it is asked for."""

    def __contains__(self, name: object) -> bool:
        """Whether there is an array ``name``."""
        ...

    def __getitem__(self, name: str) -> np.ndarray:
        """Read an array."""
        ...

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of array ``name``, or None if the file lacks it."""
        ...

    def expect(self, name: str, shape: Sequence[int], dtype: Any) -> None:
        """Raise `damaged` unless array ``name`` exists with this shape and dtype."""
        ...

    def check(self) -> None:
        """Read every array; raise `damaged` unless all are finite and match the checksum."""
        ...

    def damaged(self, why: str) -> Exception:
        """The error to raise for a file that cannot be used."""
        ...


@runtime_checkable
class Task(Protocol[BatchT, ModelT_co]):
    """The model, its loss and its updates, as the training loop uses them.

    Epochs, steps (the mini-batches of an epoch) and updates (the mini-batches of the whole
    training) are numbered from 0.
    """

    @property
    def steps(self) -> int:
        """Mini-batches per epoch."""
        ...

    @property
    def metric(self) -> str:
        """The metric that decides which epoch is the best; `measure` returns it."""
        ...

    def pairs_before(self, step: int) -> int:
        """Pairs in the mini-batches of an epoch before ``step``."""
        ...

    def before_epoch(self, epoch: int, stopped: Callable[[], bool]) -> None:
        """Prepare for ``epoch``.

        Called before every epoch that starts with its first mini-batch: again after a resume at
        step 0, and not after a resume at a later step.

        Parameters
        ----------
        epoch : int
            From 0.
        stopped : function
            Whether the user has asked to stop. A long preparation may then return unfinished.
        """
        ...

    def preparation(self, epoch: int) -> float:
        """How many updates take as long as `before_epoch`, estimated; 0 if it does nothing."""
        ...

    def remarks(self, epoch: int) -> dict[str, Any]:
        """History of ``epoch`` besides its loss and dev figures, as a JSON-serialisable dict."""
        ...

    def plan(self, epoch: int, step: int) -> BatchT:
        """One mini-batch.

        Runs while the mini-batch before it is trained on, so it must not use the weights.
        """
        ...

    def update(self, batch: BatchT, update: int) -> float:
        """Train on one mini-batch; return its mean loss before the step.

        Raises
        ------
        Diverged
            If the loss is not a number or the weights have become huge.
        """
        ...

    def flush(self, update: int) -> None:
        """Bring every weight to its value before ``update``."""
        ...

    def measure(self) -> dict[str, float] | None:
        """How good the model is on the dev set: figures by name, higher is better.

        None without a dev set. Called after every epoch, after `flush`.
        """
        ...

    def model(self) -> ModelT_co:
        """The model with weights that later updates leave alone. Call `flush` before."""
        ...

    def state(self) -> Arrays:
        """All but `lasting` that a checkpoint must keep, by name. Nothing is flushed."""
        ...

    def lasting(self) -> Arrays:
        """Arrays that a checkpoint must keep too, and that never change.

        They are written once. `before_epoch` may put other arrays in their place.
        """
        ...

    def check_state(self, stored: StoredState, epoch: int, step: int) -> None:
        """Raise ``stored.damaged`` unless this can be `state` and `lasting` before ``step``."""
        ...

    def restore(self, stored: StoredState) -> None:
        """Continue from what they returned, once `check_state` has accepted it."""
        ...


class UnpreparedTask:
    """Base of a `Task` that prepares nothing before an epoch."""

    def before_epoch(self, epoch: int, stopped: Callable[[], bool]) -> None:
        """Nothing to prepare."""

    def preparation(self, epoch: int) -> float:
        """There is none."""
        return 0.0

    def lasting(self) -> Arrays:
        """No arrays: all of them change with every update."""
        return {}

    def remarks(self, epoch: int) -> dict[str, Any]:
        """Nothing to remark."""
        return {}
