"""The base of all encoders: passes cut into tasks for threads.

An encoder describes shapes and holds no weights. A tower's weights are a dict of stacked arrays
passed to every call, so that training can pass the point at which a gradient is taken and a
gradient check a perturbed copy.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.input_layer import RowGradient, gather_weighted_rows
from sentemb.models.contracts import GradientPoint
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.registry import ENCODERS
from sentemb.models.towers.truncation import Truncation
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.packing import Packing
from sentemb.models.words.word_reader import WordReader
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch


class Embed(Protocol):
    """`Encoder.embed` with the weights of one tower."""

    def __call__(
        self,
        P: np.ndarray,
        word_index: NDArray[np.int32],
        offsets: NDArray[np.int64],
        workers: Workers,
    ) -> np.ndarray:
        """Embed texts; the arguments are those of `Encoder.embed`."""
        ...


@dataclass
class ForwardPass:
    """State of a forward pass for the backward pass.

    embeddings : (n_texts, dim) float, zero for a text without words
    states : what the encoder's kernels wrote; for a recurrent encoder, one entry per direction
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


class Encoder(WordReader):
    """Base of all encoders.

    An encoder defines ``name``, `dim`, `width`, `shapes`, `blocks`, `embed`, and the jobs
    `forward_tasks` and `backward_tasks`.

    ``settings`` are the hyper-parameters that `sentemb.models.towers.registry` declares for this
    encoder. They become attributes; one that is left out, or None where that is allowed, has its
    default.
    """

    name: str
    # Whether it reads word by word, so that it has steps and gates.
    recurrent = False

    if TYPE_CHECKING:  # the hyper-parameters, which come from the declarations

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **settings: Any) -> None:
        for parameter in ENCODERS.entry(self.name).parameters:
            value = parameter.checked(settings.get(parameter.name, parameter.default))
            setattr(self, parameter.name, parameter.default if value is None else value)

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as a model's configuration file has them."""
        return {name: getattr(self, name) for name in ENCODERS.entry(self.name).names}

    def is_reached(self, block: str, longest: int) -> bool:
        """Whether a block of parameters can have a gradient in texts of at most ``longest`` words.

        ``block`` is its name without tower and direction.
        """
        return True

    @property
    def dim(self) -> int:
        """Length of an embedding."""
        return self.cells

    def lay_out(self, batch: TextBatch) -> Layout:
        """The layout of ``batch``, with all that the passes use already computed.

        The passes compute it on demand; doing it here lets training overlap it with the previous
        mini-batch.
        """
        return Layout(batch).computed(self._layout_parts())

    def _layout_parts(self) -> tuple[str, ...]:
        """The parts of a `Layout` that the passes use."""
        return ("words_of_features",)

    def word_vector_columns(self) -> slice:
        """The columns of ``table`` that can start as word vectors, as they are.

        Those whose numbers the encoder adds up, averages or hands on. If there are as many as a
        word vector has numbers, a training that starts from word vectors copies them there; all
        other columns start as a random projection. Empty where the encoder has none.
        """
        return slice(0, 0)

    # -- forward ------------------------------------------------------------------------------

    def forward(self, weights: Arrays, batch: TextBatch, workers: Workers) -> ForwardPass:
        """Embed the texts of ``batch``, keeping the state for `backward`."""
        point = point_of(weights, batch.input_rows)
        return workers.together(self.forward_tasks(point, Layout(batch), Workspace()))[0]

    def forward_tasks(
        self, point: GradientPoint, layout: Layout, workspace: Workspace
    ) -> Job[ForwardPass]:
        """`forward` as a job for `Workers.together`.

        The gradient is to be taken at ``point``; see `point_of` for the weights as they are.
        ``layout`` is from `lay_out`. ``workspace`` holds what the pass returns until it is used
        again.
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
        """Embed texts, (n_texts, dim) float, without keeping state for a backward pass.

        ``P`` (n_words, width) float are the projected words; ``word_index`` and ``offsets`` are as
        in `TextBatch`.
        """
        raise NotImplementedError

    def embedder(self, weights: Arrays) -> Embed:
        """`embed` for many calls with these weights, which must not change meanwhile."""
        return partial(self.embed, weights)

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

        ``done`` is from `forward` with the same ``weights``. ``V`` (n_texts, dim) float is dL/dy of
        every text, summed over all pairs that the text takes part in.

        Returns gradients in the shapes of ``weights``, except that ``table`` has only the batch's
        rows: (batch.input_rows.size, width). Raises `SentembError` if ``truncation`` is given to an
        encoder without recurrence.
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

        The result has ``words`` in place of ``table``: the gradient at every distinct word's
        projection, (n_words, width). Valid until the workspace is used again. The gradient at an
        input row is the sum of those of the words with its feature.
        """
        raise NotImplementedError
