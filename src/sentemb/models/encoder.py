"""What all encoders share: words projected once, weights apart from the shape, jobs for threads.

An encoder is the shape of a model, not its weights: the weights are a dict of arrays that every
method takes, so that training can hand in a mini-batch's rows at the look-ahead point and gradient
checks a copy that they nudge. The input weights are ``table`` (rows of features, width), one row a
letter trigram or word; `blocks` gives all arrays under the names and in the shapes of the papers.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.words import gather_rows, gather_weighted_rows, project_words, sum_rows
from sentemb.system.parallel import CHUNKS, one_after_the_other, spans, spread

FORMS = ("scan", "trace", "printed")
MAX_CELLS = 1000


class Workspace:
    """Arrays that are used again for the next batch instead of being allocated anew."""

    def __init__(self):
        self._arrays = {}

    def empty(self, name, shape, dtype):
        """An array with arbitrary contents, valid until ``name`` is asked for again."""
        size = math.prod(shape)
        array = self._arrays.get(name)
        if array is None or array.size < size or array.dtype != dtype:
            array = self._arrays[name] = np.empty(size + size // 4, dtype)
        return array[:size].reshape(shape)

    def zeros(self, name, shape, dtype):
        array = self.empty(name, shape, dtype)
        array[...] = 0
        return array


@dataclass
class ForwardPass:
    """What the backward pass needs of a forward pass.

    Attributes
    ----------
    batch : TextBatch
    embeddings : (n_texts, dim) float
        Zero for a text without words.
    states : list
        What the encoder's kernels wrote; of a recurrent one, one entry per direction.
    """

    batch: object
    embeddings: np.ndarray
    states: list = field(default_factory=list)

    @property
    def packing(self):
        return self.batch.packing


class Encoder:
    """Base of all encoders.

    An encoder defines ``name``, `dim`, `width`, `shapes`, `blocks`, `embed`, and the two jobs
    `forward_tasks` and `backward_tasks`.

    Parameters
    ----------
    cells : int
        1 to 1000.
    """

    name = None
    # Whether it reads word by word, so that there are steps, gates and traces to look at.
    recurrent = False

    def __init__(self, cells):
        self.cells = whole_number("cells", cells)

    def settings(self):
        """What makes this encoder anew: a dict for the model's configuration file."""
        return {"cells": self.cells}

    @property
    def dim(self):
        """Length of an embedding."""
        return self.cells

    @property
    def width(self):
        """Length of a projected word."""
        raise NotImplementedError

    def lay_out(self, batch):
        """Work out what of the passes depends on the texts alone; the batch keeps it.

        The passes would do it themselves; planning a mini-batch does it beside the one before.
        """
        return batch.words_of_rows

    # -- weights ------------------------------------------------------------------------------

    def initialise(self, n_features, rng, dtype=np.float32, seen=None):
        """Fresh weights: input weights ~ N(0, 0.05²), what `spreads` names ~ N(0, its²), else zero.

        Parameters
        ----------
        n_features : int
        rng : numpy.random.Generator
        dtype : float32 or float64
        seen : (k,) int, optional
            Features that this tower meets in training; the rows of all others start, and so stay,
            at zero.
        """
        weights = {name: np.zeros(shape, dtype) for name, shape in self.shapes(n_features).items()}
        rows = np.arange(n_features) if seen is None else seen
        weights["table"][rows] = 0.05 * rng.standard_normal((rows.size, self.width), np.float32)
        for name, spread_of_name in self.spreads().items():
            weights[name][...] = spread_of_name * rng.standard_normal(weights[name].shape)
        return weights

    def spreads(self):
        """Standard deviations of the fresh dense matrices by name."""
        return {}

    # -- forward ------------------------------------------------------------------------------

    def word_bias(self, weights):
        """What is added to every projected word, (width,)."""
        return np.zeros(self.width, weights["table"].dtype)

    def project(self, weights, batch, workers):
        """W l, with the bias of words, of every distinct word of ``batch``: (n_words, width)."""
        return workers.together(self._project_tasks(weights, batch, Workspace()))[0]

    def _project_tasks(self, weights, batch, workspace):
        table, lead = weights["table"], weights.get("lead")
        if lead is None:
            lead = np.zeros(batch.rows.size, table.dtype)
        P = workspace.empty("P", (batch.n_words, self.width), table.dtype)
        yield spread(
            batch.n_words,
            project_words,
            P,
            table,
            weights.get("velocity", table),
            lead,
            batch.rows,
            self.word_bias(weights),
            batch.trigram_offsets,
            batch.trigram_ids,
            batch.trigram_counts,
        )
        return P

    def forward(self, weights, batch, workers):
        """Embed the texts of ``batch``.

        Parameters
        ----------
        weights : dict of arrays
            With ``velocity`` and ``lead`` beside it, ``table`` is taken at the look-ahead point:
            see `Nesterov.look_ahead`.
        batch : TextBatch
        workers : Workers

        Returns
        -------
        ForwardPass
        """
        return workers.together(self.forward_tasks(weights, batch, Workspace()))[0]

    # -- backward -----------------------------------------------------------------------------

    def backward(self, weights, done, V, workers, *, form="scan", truncation=None):
        """The gradient of the loss from its gradient at the embeddings.

        Parameters
        ----------
        weights : dict of arrays
            As given to `forward`.
        done : ForwardPass
        V : (n_texts, dim) float
            dL/dy of every text, summed over all pairs that the text takes part in.
        workers : Workers
        form : {"scan", "trace", "printed"}
            The production kernel; the paper's traces with exact signals, equal to it to rounding;
            the paper's traces with the signals that it prints, which is not the gradient. The last
            two are of recurrent encoders only.
        truncation : Truncation, optional
            Of recurrent encoders only.

        Returns
        -------
        dict of arrays
            Gradients, shaped as ``weights``, but for ``table`` only of the batch's rows:
            (batch.rows.size, width).
        """
        if form not in FORMS:
            raise SentembError(f"form must be one of {', '.join(FORMS)}, not {form!r}")
        if form != "scan":
            return self._backward_by_traces(weights, done, V, form, truncation)
        (gradient,) = workers.together(
            self.backward_tasks(weights, done, V, truncation, Workspace())
        )
        dP = gradient.pop("words")
        table = np.empty((done.batch.rows.size, self.width), dP.dtype)
        workers.over(len(table), gather_weighted_rows, table, dP, *done.batch.words_of_rows)
        return gradient | {"table": table}

    def _backward_by_traces(self, weights, done, V, form, truncation):
        raise SentembError(
            f"the form {form} follows the paper through time, and a {self.name} has none; "
            "use the form scan"
        )

    def _gather_words(self, batch, parts, workspace):
        """The gradient at the projected words: a job.

        Parameters
        ----------
        batch : TextBatch
        parts : list of (column, errors, offsets, rows)
            ``dP[w, column:]`` gets the sum of ``errors[rows[e]]`` over the entries e of list w.
        workspace : Workspace

        Returns
        -------
        dP, bias : (n_words, width), (width,) float
            The second is the sum of the first over all words.
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


def whole_number(name, value, least=1):
    """``value`` if it is a size that an encoder can have."""
    if not (isinstance(value, int) and least <= value <= MAX_CELLS):
        raise SentembError(
            f"{name} must be a whole number from {least} to {MAX_CELLS}, not {value!r}"
        )
    return value
