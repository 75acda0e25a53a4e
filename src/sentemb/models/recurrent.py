"""What the recurrent encoders share: trigrams to words, one or two directions, and back.

An encoder is the shape of a model, not its weights: the weights are a dict of arrays that every
method takes, so that training can hand in a mini-batch's rows at the look-ahead point and gradient
checks a copy that they nudge. The arrays are stacked for the kernels:

=============  ===================================  ==========================================
name           shape                                holds
=============  ===================================  ==========================================
``table``      (n_trigrams, directions * G * n)     every W_g transposed, side by side
``bias``       (directions * G * n,)                every b_g
``recurrent``  (directions, n, G * n)               every Wrec_g transposed, side by side
``peepholes``  (directions, 3, n) or                Wp_1, Wp_2, Wp_3: diagonals, or
               (directions, 3, n, n)                transposed matrices
=============  ===================================  ==========================================

`blocks` gives them back under the paper's names and in the paper's shapes.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.recurrent import set_recurrent_gradient
from sentemb.kernels.words import gather_rows, gather_weighted_rows, project_words, sum_rows
from sentemb.parallel import CHUNKS, one_after_the_other, spans, spread
from sentemb.text.packing import Packing

FORMS = ("scan", "trace", "printed")
MAX_CELLS = 1000


@dataclass(frozen=True)
class Truncation:
    """Through how many steps, from each text's own end, errors travel back.

    Attributes
    ----------
    steps : int or None
        The paper's T; None is the whole text.
    keep_cell_path : bool
        Beyond the window, whether the error still runs along the cell (``cec``, what the paper's
        Appendix A does) or stops (``window``).
    """

    steps: int | None = None
    keep_cell_path: bool = False

    @property
    def window(self):
        return np.iinfo(np.int64).max if self.steps is None else self.steps


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
        y at the last word of every text, zero for a text without words.
    packing : Packing
    states : list
        One per direction: the rows that the encoder's kernels wrote.
    """

    batch: object
    embeddings: np.ndarray
    packing: Packing
    states: list = field(default_factory=list)


class RecurrentEncoder:
    """Base of `RNN`, `LSTM` and `BiLSTM`.

    Parameters
    ----------
    cells : int
        n, from 1 to 1000, in each direction.
    """

    name = None
    directions = 1
    # The paper's numbers of the stacked gates, "" for the RNN, which has none.
    gates = ("",)

    def __init__(self, cells):
        if not (isinstance(cells, int) and 1 <= cells <= MAX_CELLS):
            raise SentembError(f"cells must be a whole number from 1 to {MAX_CELLS}, not {cells!r}")
        self.cells = cells

    @property
    def dim(self):
        """Length of an embedding."""
        return self.directions * self.cells

    @property
    def gate_width(self):
        """Columns of one direction in the stacked arrays, G n."""
        return len(self.gates) * self.cells

    @property
    def width(self):
        return self.directions * self.gate_width

    def settings(self):
        """What makes this encoder anew: a dict for the model's configuration file."""
        return {"cells": self.cells}

    # -- weights ------------------------------------------------------------------------------

    def shapes(self, n_trigrams):
        """Shapes of the stacked arrays by name."""
        return {
            "table": (n_trigrams, self.width),
            "bias": (self.width,),
            "recurrent": (self.directions, self.cells, self.gate_width),
        }

    def initialise(self, n_trigrams, rng, dtype=np.float32, seen=None):
        """Fresh weights: W ~ N(0, 0.05²), Wrec ~ N(0, 0.2² / n), all else zero.

        Parameters
        ----------
        n_trigrams : int
        rng : numpy.random.Generator
        dtype : float32 or float64
        seen : (k,) int, optional
            Trigrams that this tower meets in training; the rows of all others start, and so stay,
            at zero.
        """
        weights = {name: np.zeros(shape, dtype) for name, shape in self.shapes(n_trigrams).items()}
        rows = np.arange(n_trigrams) if seen is None else seen
        weights["table"][rows] = 0.05 * rng.standard_normal((rows.size, self.width), np.float32)
        recurrent = weights["recurrent"]
        recurrent[...] = 0.2 / np.sqrt(self.cells) * rng.standard_normal(recurrent.shape)
        return weights

    def blocks(self, weights):
        """Views of stacked arrays under the paper's names: W1 (n, d), Wrec1 (n, n), b1 (n,), ...

        Works on weights and on gradients alike. Of a two-way model the names begin with
        ``forward.`` and ``backward.``.
        """
        named = {}
        n = self.cells
        for direction in range(self.directions):
            prefix = ("forward.", "backward.")[direction] if self.directions == 2 else ""
            column = direction * self.gate_width
            for slot, gate in enumerate(self.gates):
                part = slice(column + slot * n, column + (slot + 1) * n)
                own = slice(slot * n, (slot + 1) * n)
                named[f"{prefix}W{gate}"] = weights["table"][:, part].T
                named[f"{prefix}Wrec{gate}"] = weights["recurrent"][direction, :, own].T
                named[f"{prefix}b{gate}"] = weights["bias"][part]
            named.update(self._peephole_blocks(weights, prefix, direction))
        return named

    def _peephole_blocks(self, weights, prefix, direction):
        return {}

    def lay_out(self, batch):
        """Work out what of the passes depends on the texts alone; the batch keeps it.

        The passes would do it themselves; planning a mini-batch does it beside the one before.
        """
        return batch.packing, batch.rows_of_words, batch.words_of_rows

    # -- forward ------------------------------------------------------------------------------

    def project(self, weights, batch, workers, workspace=None):
        """W l + b of every distinct word of ``batch``: (n_words, width) float.

        Parameters as for `forward`.
        """
        return workers.together(self._project_tasks(weights, batch, workspace or Workspace()))[0]

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
            weights["bias"],
            batch.trigram_offsets,
            batch.trigram_ids,
            batch.trigram_counts,
        )
        return P

    def forward(self, weights, batch, workers, workspace=None):
        """Embed the texts of ``batch``.

        Parameters
        ----------
        weights : dict of arrays
            With ``velocity`` and ``lead`` beside it, ``table`` is taken at the look-ahead point:
            see `Nesterov.look_ahead`.
        batch : TextBatch
        workers : Workers
        workspace : Workspace, optional
            Where the arrays of the pass come from; by default they are new.

        Returns
        -------
        ForwardPass
        """
        return workers.together(self.forward_tasks(weights, batch, workspace or Workspace()))[0]

    def forward_tasks(self, weights, batch, workspace):
        """`forward` as a job for `Workers.together`."""
        packing = batch.packing
        P = yield from self._project_tasks(weights, batch, workspace)
        embeddings = np.zeros((batch.n_texts, self.dim), P.dtype)
        done = ForwardPass(batch, embeddings, packing)
        tasks = []
        for direction in range(self.directions):
            state, kernel, arguments = self._prepare(weights, direction, packing, P, workspace)
            done.states.append(state)
            tasks += [(kernel, *arguments, chunk, CHUNKS) for chunk in range(CHUNKS)]
        yield tasks
        for direction, state in enumerate(done.states):
            part = slice(direction * self.cells, (direction + 1) * self.cells)
            embeddings[packing.order, part] = state["Y"][packing.last_rows]
        return done

    def embed(self, weights, P, word_index, offsets, workers):
        """Embed texts without keeping what a backward pass would need.

        Parameters
        ----------
        weights : dict of arrays
        P : (n_words, width) float
            Projected words.
        word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
        workers : Workers

        Returns
        -------
        (n_texts, dim) float
        """
        packing = Packing(word_index, offsets)
        embeddings = np.zeros((offsets.size - 1, self.dim), P.dtype)
        scratch = [Workspace() for _ in range(workers.threads)]

        def embed_block(number):
            workspace = scratch.pop()
            self._embed_block(embeddings, weights, P, packing.block(number), workspace)
            scratch.append(workspace)

        # Block by block, so that what the kernels write stays in the processor's cache.
        workers.run([(embed_block, number) for number in range(packing.n_blocks)])
        return embeddings

    def _embed_block(self, embeddings, weights, P, block, workspace):
        for direction in range(self.directions):
            state, kernel, arguments = self._prepare(weights, direction, block, P, workspace)
            kernel(*arguments, 0, 1)
            part = slice(direction * self.cells, (direction + 1) * self.cells)
            # Lists of numbers as indices would take a single text longer than its words do.
            one = block.order.size == 1
            texts, last_rows = (
                (block.order[0], block.last_rows[0]) if one else (block.order, block.last_rows)
            )
            embeddings[texts, part] = state["Y"][last_rows]

    # -- backward -----------------------------------------------------------------------------

    def backward(self, weights, done, V, workers, *, form="scan", truncation=None, workspace=None):
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
            the paper's traces with the signals that it prints, which is not the gradient.
        truncation : Truncation, optional

        Returns
        -------
        dict of arrays
            Gradients, shaped as ``weights``, but for ``table`` only of the batch's rows:
            (batch.rows.size, width).
        """
        truncation = truncation or Truncation()
        workspace = workspace or Workspace()
        if form == "scan":
            (gradient,) = workers.together(
                self.backward_tasks(weights, done, V, truncation, workspace)
            )
            dP = gradient.pop("words")
            table = np.empty((done.batch.rows.size, self.width), dP.dtype)
            workers.over(len(table), gather_weighted_rows, table, dP, *done.batch.words_of_rows)
            return gradient | {"table": table}
        if form in FORMS:
            from sentemb.models.trace_form import trace_backward

            return trace_backward(self, weights, done, V, form, truncation)
        raise SentembError(f"form must be one of {', '.join(FORMS)}, not {form!r}")

    def input_errors(self, weights, done, V, workers, truncation=None):
        """dL/d(W l(t) + b) of every token: what the scan finds before any sum over tokens.

        Parameters
        ----------
        weights, done, V, workers, truncation : as for `backward`

        Returns
        -------
        list of (n_rows, G n) float
            One per direction, gates stacked as in the weights; `Packing.rows_of_tokens` says which
            row belongs to which token.
        """
        scans = self._scans(weights, done, V, truncation or Truncation(), Workspace())
        workers.run([scan for _, chunks in scans for scan in chunks])
        return [D for D, _ in scans]

    def _scans(self, weights, done, V, truncation, workspace):
        """For each direction the errors D that will be found, and the tasks that find them."""
        V = np.ascontiguousarray(V)
        scans = []
        for direction, state in enumerate(done.states):
            D = workspace.empty(f"D{direction}", (done.packing.n_rows, self.gate_width), V.dtype)
            kernel, arguments = self._prepare_backward(
                weights, direction, state, done.packing, D, V, truncation
            )
            scans.append((D, [(kernel, *arguments, chunk, CHUNKS) for chunk in range(CHUNKS)]))
        return scans

    def backward_tasks(self, weights, done, V, truncation, workspace):
        """The gradient by the form ``scan``, as a job for `Workers.together`.

        Parameters as for `backward`.

        Returns
        -------
        dict of arrays
            As of `backward`, with ``words`` in the place of ``table``: the gradient at every
            distinct word's projection, (n_words, width), valid until the workspace is used again.
            A trigram's row gets the sum of those of its words.
        """
        batch, packing = done.batch, done.packing
        parts = {}  # of the gradient, a sum for each chunk: name -> (directions, CHUNKS, ...)
        for name, shape in self.shapes(0).items():
            if name not in ("table", "bias"):
                shape = (self.directions, CHUNKS, *shape[1:])
                parts[name] = workspace.empty(f"d{name}", shape, V.dtype)
        scans = self._scans(weights, done, V, truncation, workspace)
        tasks = []
        for direction, (D, chunks) in enumerate(scans):
            own = {name: part[direction] for name, part in parts.items()}
            for chunk, scan in enumerate(chunks):
                sums = self._prepare_sums(own, done.states[direction], D, packing, chunk)
                tasks.append((one_after_the_other, scan, *sums))
        yield tasks
        gradient = {name: part.sum(axis=1) for name, part in parts.items()}

        dP = workspace.empty("dP", (batch.n_words, self.width), V.dtype)
        bias = workspace.zeros("dbias", (CHUNKS, self.width), V.dtype)
        tasks = []
        for chunk, first, end in spans(batch.n_words):
            gathers = [
                (gather_rows, dP, direction * self.gate_width, D, *lists, first, end)
                for direction, ((D, _), lists) in enumerate(zip(scans, batch.rows_of_words))
            ]
            tasks.append((one_after_the_other, *gathers, (sum_rows, bias[chunk], dP, first, end)))
        yield tasks
        return gradient | {"bias": bias.sum(axis=0), "words": dP}

    def _prepare_sums(self, parts, state, D, packing, chunk):
        """Tasks that set a chunk's part of every gradient that is a sum over tokens.

        They follow the chunk's scan at once, while its errors are in the processor's cache.
        """
        dR, steps = parts["recurrent"][chunk], (packing.block_steps, packing.step_rows)
        return [(set_recurrent_gradient, dR, state["Y"], D, *steps, chunk, CHUNKS)]
