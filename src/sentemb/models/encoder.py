"""What all encoders share: projecting each word once, and passes cut into tasks for threads.

An encoder describes shapes and holds no weights. A tower's weights are a dict of stacked arrays
passed to every call, so that training can pass the point at which a gradient is taken and a
gradient check a perturbed copy. The input weights are ``table`` (n_features, width), one row per
letter trigram or word. `blocks` gives all arrays the names and shapes that the papers use.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.words import RowGradient, gather_rows, gather_weighted_rows, sum_rows
from sentemb.models.input_rows import point_of
from sentemb.models.layout import Layout
from sentemb.models.packing import Packing
from sentemb.models.registry import entry_of
from sentemb.models.truncation import Truncation
from sentemb.protocols import Arrays, GradientPoint, KernelTask
from sentemb.system.parallel import CHUNKS, Workers, one_after_the_other, spans
from sentemb.text.batch import TextBatch

_T = TypeVar("_T")
# A job for `Workers.together`: yields the tasks of each phase, returns its result.
Job: TypeAlias = Generator[list[KernelTask], None, _T]
# Column, errors, offsets and rows, as `Encoder._gather_words` sums them up.
WordErrors: TypeAlias = tuple[int, np.ndarray, NDArray[np.int64], NDArray[np.int32]]


class Workspace:
    """Arrays that are reused for the next batch instead of being allocated again."""

    def __init__(self) -> None:
        self._arrays: dict[str, np.ndarray] = {}

    def empty(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An array with arbitrary contents, valid until ``name`` is requested again."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self._arrays[name] = np.empty(size + size // 4, dtype)
        return array[:size].reshape(shape)

    def zeros(self, name: str, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """As `empty`, filled with zeros."""
        array = self.empty(name, shape, dtype)
        array[...] = 0
        return array


@dataclass
class ForwardPass:
    """What the backward pass needs from a forward pass.

    Attributes
    ----------
    layout : Layout
    embeddings : (n_texts, dim) float
        Zero for a text without words.
    states : list of dict of arrays
        What the encoder's kernels wrote; for a recurrent encoder, one entry per direction.
    """

    layout: Layout
    embeddings: np.ndarray
    states: list[dict[str, np.ndarray]] = field(default_factory=list)

    @property
    def batch(self) -> TextBatch:
        """The texts."""
        return self.layout.batch

    @property
    def packing(self) -> Packing:
        """The packed rows of the texts."""
        return self.layout.packing


class Encoder:
    """Base of all encoders.

    An encoder defines ``name``, `dim`, `width`, `shapes`, `blocks`, `embed`, and the jobs
    `forward_tasks` and `backward_tasks`.

    Parameters
    ----------
    **settings
        The hyper-parameters that `sentemb.models.registry` declares for this encoder. They become
        attributes; one that is left out, or None where that is allowed, has its default.
    """

    name: str
    # Whether it reads word by word, so that it has steps and gates.
    recurrent = False

    if TYPE_CHECKING:  # the hyper-parameters, which come from the declarations

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **settings: Any) -> None:
        for parameter in entry_of(self.name).parameters:
            value = parameter.checked(settings.get(parameter.name, parameter.default))
            setattr(self, parameter.name, parameter.default if value is None else value)

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as a model's configuration file has them."""
        return {name: getattr(self, name) for name in entry_of(self.name).names}

    def is_reached(self, block: str, longest: int) -> bool:
        """Whether a block of parameters can have a gradient in texts of ``longest`` words.

        Parameters
        ----------
        block : str
            Its name without tower and direction.
        longest : int
            Words of the longest text.
        """
        return True

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return self.cells

    @property
    def width(self) -> int:
        """Length of a projected word."""
        raise NotImplementedError

    def lay_out(self, batch: TextBatch) -> Layout:
        """The layout of ``batch``, with all that the passes use already computed.

        The passes compute it on demand; doing it here lets training overlap it with the previous
        mini-batch.
        """
        return Layout(batch).computed(self._layout_parts())

    def _layout_parts(self) -> tuple[str, ...]:
        """The parts of a `Layout` that the passes use."""
        return ("words_of_features",)

    # -- weights ------------------------------------------------------------------------------

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        raise NotImplementedError

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays under the names and in the shapes that the papers use.

        Works on weights and on gradients.
        """
        raise NotImplementedError

    def initialise(
        self,
        n_features: int,
        rng: np.random.Generator,
        dtype: DTypeLike = np.float32,
        seen: NDArray[np.integer] | None = None,
    ) -> Arrays:
        """Initial weights: ``table`` ~ N(0, 0.05²), each matrix in `spreads` ~ N(0, its²), else 0.

        Parameters
        ----------
        n_features : int
            Rows of ``table``.
        rng : numpy.random.Generator
            Source of the normal numbers.
        dtype : float32 or float64
            Type of the weights.
        seen : (k,) int, optional
            Features that this tower meets in training. The rows of all others start at zero and
            stay there.
        """
        weights = {name: np.zeros(shape, dtype) for name, shape in self.shapes(n_features).items()}
        rows = np.arange(n_features) if seen is None else seen
        weights["table"][rows] = 0.05 * rng.standard_normal((rows.size, self.width), np.float32)
        for name, spread_of_name in self.spreads().items():
            weights[name][...] = spread_of_name * rng.standard_normal(weights[name].shape)
        return weights

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial dense matrices by name; the others start at zero."""
        return {}

    def word_vector_columns(self) -> slice:
        """The columns of ``table`` that can start as word vectors, as they are.

        Those whose numbers the encoder adds up, averages or hands on. If there are as many as a
        word vector has numbers, a training that starts from word vectors copies them there; all
        other columns start as a random projection. Empty where the encoder has none.
        """
        return slice(0, 0)

    # -- forward ------------------------------------------------------------------------------

    def word_bias(self, weights: Arrays, dtype: DTypeLike) -> np.ndarray:
        """The vector that is added to every projected word: (width,) of ``dtype``."""
        return np.zeros(self.width, dtype)

    def project(self, weights: Arrays, batch: TextBatch, workers: Workers) -> np.ndarray:
        """W l plus `word_bias` of every distinct word of ``batch``: (n_words, width) float."""
        point = point_of(weights, batch.input_rows)
        return workers.together(self._project_tasks(point, batch, Workspace()))[0]

    def _project_tasks(
        self, point: GradientPoint, batch: TextBatch, workspace: Workspace
    ) -> Job[np.ndarray]:
        rows = point.input_rows
        P = workspace.empty("P", (batch.n_words, self.width), rows.dtype)
        yield rows.project_tasks(
            P,
            self.word_bias(point.weights, rows.dtype),
            batch.feature_offsets,
            batch.feature_ids,
            batch.feature_counts,
        )
        return P

    def forward(self, weights: Arrays, batch: TextBatch, workers: Workers) -> ForwardPass:
        """Embed the texts of ``batch``, keeping what `backward` needs."""
        point = point_of(weights, batch.input_rows)
        return workers.together(self.forward_tasks(point, Layout(batch), Workspace()))[0]

    def forward_tasks(
        self, point: GradientPoint, layout: Layout, workspace: Workspace
    ) -> Job[ForwardPass]:
        """`forward` as a job for `Workers.together`.

        Parameters
        ----------
        point : GradientPoint
            Where the gradient is to be taken; see `point_of` for the weights as they are.
        layout : Layout
            From `lay_out`.
        workspace : Workspace
            Holds what the pass returns until it is used again.
        """
        raise NotImplementedError

    def embed(
        self,
        weights: Arrays,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts without keeping what a backward pass would need.

        Parameters
        ----------
        weights : dict of arrays
            The tower's weights.
        P : (n_words, width) float
            Projected words.
        word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
            As in `TextBatch`.
        workers : Workers
            Threads to compute with.

        Returns
        -------
        (n_texts, dim) float
        """
        raise NotImplementedError

    # -- backward -----------------------------------------------------------------------------

    def backward(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        workers: Workers,
        *,
        truncation: Truncation | None = None,
    ) -> Arrays:
        """The gradient of the loss, computed from its gradient at the embeddings.

        Parameters
        ----------
        weights : dict of arrays
            As given to `forward`.
        done : ForwardPass
            From `forward` with the same weights.
        V : (n_texts, dim) float
            dL/dy of every text, summed over all pairs that the text takes part in.
        workers : Workers
            Threads to compute with.
        truncation : Truncation, optional
            For recurrent encoders only.

        Returns
        -------
        dict of arrays
            Gradients in the shapes of ``weights``, except that ``table`` has only the batch's
            rows: (batch.input_rows.size, width).

        Raises
        ------
        SentembError
            If ``truncation`` is given to an encoder without recurrence.
        """
        (gradient,) = workers.together(
            self.backward_tasks(weights, done, V, truncation, Workspace())
        )
        rows = RowGradient(gradient.pop("words"), *done.layout.words_of_features)
        table = np.empty((done.batch.input_rows.size, self.width), rows.words.dtype)
        workers.over(len(table), gather_weighted_rows, table, rows)
        return gradient | {"table": table}

    def backward_tasks(
        self,
        weights: Arrays,
        done: ForwardPass,
        V: np.ndarray,
        truncation: Truncation | None,
        workspace: Workspace,
    ) -> Job[Arrays]:
        """`backward` as a job for `Workers.together`, without the last sum.

        Returns
        -------
        dict of arrays
            As `backward` returns, with ``words`` in place of ``table``: the gradient at every
            distinct word's projection, (n_words, width), valid until the workspace is used again.
            The gradient at an input row is the sum of those of the words with its feature.
        """
        raise NotImplementedError

    def _gather_words(
        self,
        batch: TextBatch,
        parts: Sequence[WordErrors],
        workspace: Workspace,
    ) -> Job[tuple[np.ndarray, np.ndarray]]:
        """The gradient at the projected words, as a job.

        Parameters
        ----------
        batch : TextBatch
            The texts of the pass.
        parts : list of (column, errors, offsets, rows)
            ``dP[w, column:]`` gets the sum of ``errors[rows[e]]`` over the entries e of list w.
        workspace : Workspace
            Holds the result.

        Returns
        -------
        dP, bias : (n_words, width), (width,) float
            ``bias`` is the sum of ``dP`` over all words.
        """
        dtype = parts[0][1].dtype
        dP = workspace.empty("dP", (batch.n_words, self.width), dtype)
        bias = workspace.zeros("dbias", (CHUNKS, self.width), dtype)
        tasks = []
        for chunk, first, end in spans(batch.n_words):
            gathers = [
                (gather_rows, dP, column, errors, offsets, rows, first, end)
                for column, errors, offsets, rows in parts
            ]
            tasks.append((one_after_the_other, *gathers, (sum_rows, bias[chunk], dP, first, end)))
        yield tasks
        return dP, bias.sum(axis=0)
