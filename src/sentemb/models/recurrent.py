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
from sentemb.kernels.recurrent import add_recurrent_gradient
from sentemb.kernels.words import (
    gather_rows,
    gather_weighted_rows,
    invert_lists,
    project_words,
)
from sentemb.models.packing import Packing, words_of_rows
from sentemb.parallel import CHUNKS

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

    # -- forward ------------------------------------------------------------------------------

    def project(self, weights, batch, workers, workspace=None):
        """W l + b of every distinct word of ``batch``: (n_words, width) float.

        Parameters as for `forward`.
        """
        workspace = workspace or Workspace()
        table, lead = weights["table"], weights.get("lead")
        if lead is None:
            lead = np.zeros(batch.rows.size, table.dtype)
        P = workspace.empty("P", (batch.n_words, self.width), table.dtype)
        workers.over(
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
        workspace = workspace or Workspace()
        packing = Packing(batch.word_index, batch.offsets)
        P = self.project(weights, batch, workers, workspace)
        embeddings = np.zeros((batch.n_texts, self.dim), P.dtype)
        done = ForwardPass(batch, embeddings, packing)
        tasks = []
        for direction in range(self.directions):
            state, kernel, arguments = self._prepare(weights, direction, packing, P, workspace)
            done.states.append(state)
            tasks += [(kernel, *arguments, chunk, CHUNKS) for chunk in range(CHUNKS)]
        workers.run(tasks)
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

        def embed_block(block):
            workspace = scratch.pop()
            texts = packing.block(block)
            for direction in range(self.directions):
                state, kernel, arguments = self._prepare(weights, direction, texts, P, workspace)
                kernel(*arguments, 0, 1)
                part = slice(direction * self.cells, (direction + 1) * self.cells)
                embeddings[texts.order, part] = state["Y"][texts.last_rows]
            scratch.append(workspace)

        # Block by block, so that what the kernels write stays in the processor's cache.
        workers.run([(embed_block, block) for block in range(packing.n_blocks)])
        return embeddings

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
            gradient = self.backward_to_words(
                weights, done, V, workers, truncation=truncation, workspace=workspace
            )
            dP = gradient.pop("words")
            table = np.empty((done.batch.rows.size, self.width), dP.dtype)
            lists = words_of_rows(done.batch)
            workers.over(len(table), gather_weighted_rows, table, dP, *lists)
            return gradient | {"table": table}
        if form in FORMS:
            from sentemb.models.trace_form import trace_backward

            return trace_backward(self, weights, done, V, form, truncation)
        raise SentembError(f"form must be one of {', '.join(FORMS)}, not {form!r}")

    def input_errors(self, weights, done, V, workers, *, truncation=None, workspace=None):
        """dL/d(W l(t) + b) of every token: what the scan finds before any sum over tokens.

        Parameters
        ----------
        weights, done, V, workers, truncation : as for `backward`
        workspace : Workspace, optional
            Where the errors lie, by default in new arrays.

        Returns
        -------
        list of (n_rows, G n) float
            One per direction, gates stacked as in the weights; `Packing.rows_of_tokens` says which
            row belongs to which token.
        """
        truncation = truncation or Truncation()
        workspace = workspace or Workspace()
        packing = done.packing
        V = np.ascontiguousarray(V)
        errors, tasks = [], []
        for direction, state in enumerate(done.states):
            D = workspace.empty(f"D{direction}", (packing.n_rows, self.gate_width), V.dtype)
            errors.append(D)
            kernel, arguments = self._prepare_backward(
                weights, direction, state, packing, D, V, truncation
            )
            tasks += [(kernel, *arguments, chunk, CHUNKS) for chunk in range(CHUNKS)]
        workers.run(tasks)
        return errors

    def backward_to_words(self, weights, done, V, workers, *, truncation=None, workspace=None):
        """The gradient by the form ``scan``, but for ``table`` only as far as the words.

        Parameters as for `backward`.

        Returns
        -------
        dict of arrays
            As of `backward`, with ``words`` in the place of ``table``: the gradient at every
            distinct word's projection, (n_words, width), valid until the workspace is used again.
            A trigram's row gets the sum of those of its words.
        """
        workspace = workspace or Workspace()
        batch, packing = done.batch, done.packing
        dtype = V.dtype
        n, width = self.cells, self.gate_width
        errors = self.input_errors(
            weights, done, V, workers, truncation=truncation, workspace=workspace
        )
        # A second run: the products over all steps of a block need the block's scan to be over.
        sums, recurrent_parts = [], []
        for direction, (state, D) in enumerate(zip(done.states, errors)):
            dR = workspace.zeros(f"dR{direction}", (CHUNKS, n, width), dtype)
            recurrent_parts.append(dR)
            steps = (packing.block_steps, packing.step_rows)
            sums += [
                (add_recurrent_gradient, dR[chunk], state["Y"], D, *steps, chunk, CHUNKS)
                for chunk in range(CHUNKS)
            ]
        gradient = {}
        peephole_sums, peephole_parts = self._peephole_tasks(done, errors, workspace)
        workers.run(sums + peephole_sums)
        gradient["recurrent"] = np.stack([part.sum(axis=0) for part in recurrent_parts])
        if peephole_parts:
            gradient["peepholes"] = np.stack([part.sum(axis=0) for part in peephole_parts])

        dP = workspace.empty("dP", (batch.n_words, self.width), dtype)
        for direction, D in enumerate(errors):
            words = packing.words[direction]
            each_alone = np.arange(words.size + 1)
            offsets, rows, _ = invert_lists(each_alone, words, batch.n_words)
            column = direction * width
            workers.over(batch.n_words, gather_rows, dP, column, D, offsets, rows)
        gradient["bias"] = dP.sum(axis=0)
        return gradient | {"words": dP}

    def _peephole_tasks(self, done, errors, workspace):
        return [], []
