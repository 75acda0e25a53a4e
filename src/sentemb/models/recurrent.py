"""What the recurrent encoders share: one or two directions through the words of a text, and back.

Beside the last y(t) of each direction an embedding may hold a linear bag of the same features,
Wbag x, which needs no way through time: what the words say whatever their order, so that the cells
are free for the rest.

The weights of an encoder are stacked for the kernels:

=============  ===================================  ==========================================
name           shape                                holds
=============  ===================================  ==========================================
``table``      (n_features,                         every W_g transposed, side by side,
               directions * G * n + bag)            then Wbag transposed
``bias``       (directions * G * n,)                every b_g
``recurrent``  (directions, n, G * n)               every Wrec_g transposed, side by side
``peepholes``  (directions, 3, n) or                Wp_1, Wp_2, Wp_3: diagonals, or
               (directions, 3, n, n)                transposed matrices
=============  ===================================  ==========================================

`blocks` gives them back under the paper's names and in the paper's shapes.
"""

import numpy as np

from sentemb.kernels.layers import sum_words
from sentemb.kernels.recurrent import set_recurrent_gradient
from sentemb.models.encoder import Encoder, ForwardPass, Workspace, whole_number
from sentemb.models.packing import Packing
from sentemb.models.truncation import Truncation
from sentemb.system.parallel import CHUNKS, one_after_the_other, spans


class RecurrentEncoder(Encoder):
    """Base of `RNN`, `LSTM` and `BiLSTM`.

    Parameters
    ----------
    cells : int
        n, from 1 to 1000, in each direction.
    bag : int
        Numbers of the linear bag beside the outputs, from 1 to 1000; 0 for none.
    """

    recurrent = True
    directions = 1
    # The paper's numbers of the stacked gates, "" for the RNN, which has none.
    gates = ("",)

    def __init__(self, cells, bag=0):
        super().__init__(cells)
        self.bag = whole_number("bag", bag, least=0)

    def settings(self):
        return {**super().settings(), "bag": self.bag}

    @property
    def n_outputs(self):
        """Length of the last y(t) of all directions, the first part of an embedding."""
        return self.directions * self.cells

    @property
    def dim(self):
        return self.n_outputs + self.bag

    @property
    def gate_width(self):
        """Columns of one direction in the stacked arrays, G n."""
        return len(self.gates) * self.cells

    @property
    def bag_column(self):
        """Where Wbag begins in ``table``."""
        return self.directions * self.gate_width

    @property
    def width(self):
        return self.bag_column + self.bag

    # -- weights ------------------------------------------------------------------------------

    def shapes(self, n_features):
        """Shapes of the stacked arrays by name."""
        return {
            "table": (n_features, self.width),
            "bias": (self.bag_column,),
            "recurrent": (self.directions, self.cells, self.gate_width),
        }

    def spreads(self):
        return {"recurrent": 0.2 / np.sqrt(self.cells)}

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
        if self.bag:
            named["Wbag"] = weights["table"][:, self.bag_column :].T
        return named

    def _peephole_blocks(self, weights, prefix, direction):
        return {}

    def lay_out(self, batch):
        texts_of_words = batch.texts_of_words if self.bag else None
        return batch.packing, batch.rows_of_words, batch.words_of_rows, texts_of_words

    # -- forward ------------------------------------------------------------------------------

    def word_bias(self, weights):
        if not self.bag:
            return weights["bias"]
        return np.concatenate([weights["bias"], np.zeros(self.bag, weights["bias"].dtype)])

    def forward_tasks(self, weights, batch, workspace):
        """`forward` as a job for `Workers.together`."""
        packing = batch.packing
        P = yield from self._project_tasks(weights, batch, workspace)
        embeddings = np.zeros((batch.n_texts, self.dim), P.dtype)
        done = ForwardPass(batch, embeddings)
        tasks = []
        for direction in range(self.directions):
            state, kernel, arguments = self._prepare(weights, direction, packing, P, workspace)
            done.states.append(state)
            tasks += [(kernel, *arguments, chunk, CHUNKS) for chunk in range(CHUNKS)]
        X = workspace.empty("X", (batch.n_texts, self.bag), P.dtype)
        yield tasks + self._bag_tasks(X, P, batch.word_index, batch.offsets)
        for direction, state in enumerate(done.states):
            part = slice(direction * self.cells, (direction + 1) * self.cells)
            embeddings[packing.order, part] = state["Y"][packing.last_rows]
        embeddings[:, self.n_outputs :] = X
        return done

    def _bag_tasks(self, X, P, word_index, offsets):
        """Tasks that set X (n_texts, bag) to the sums of the words' Wbag l."""
        if not self.bag:
            return []
        bias = np.zeros(self.bag, P.dtype)
        arguments = (X, P, self.bag_column, bias, word_index, offsets)
        return [(sum_words, *arguments, low, high) for _, low, high in spans(len(X))]

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
        X = np.empty((offsets.size - 1, self.bag), P.dtype)
        blocks = [(embed_block, number) for number in range(packing.n_blocks)]
        workers.run(blocks + self._bag_tasks(X, P, word_index, offsets))
        if self.bag:
            embeddings[:, self.n_outputs :] = X
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

    def _backward_by_traces(self, weights, done, V, form, truncation):
        from sentemb.gradients.traces import trace_backward

        return trace_backward(self, weights, done, V, form, truncation or Truncation())

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
        scans = self._scans(weights, done, V, truncation or Truncation(), workspace)
        tasks = []
        for direction, (D, chunks) in enumerate(scans):
            own = {name: part[direction] for name, part in parts.items()}
            for chunk, scan in enumerate(chunks):
                sums = self._prepare_sums(own, done.states[direction], D, packing, chunk)
                tasks.append((one_after_the_other, scan, *sums))
        yield tasks
        gradient = {name: part.sum(axis=1) for name, part in parts.items()}

        errors = [
            (direction * self.gate_width, D, *lists)
            for direction, ((D, _), lists) in enumerate(zip(scans, batch.rows_of_words))
        ]
        if self.bag:
            V_bag = np.ascontiguousarray(V[:, self.n_outputs :])
            errors.append((self.bag_column, V_bag, *batch.texts_of_words))
        dP, bias = yield from self._gather_words(batch, errors, workspace)
        return gradient | {"bias": bias[: self.bag_column], "words": dP}

    def _prepare_sums(self, parts, state, D, packing, chunk):
        """Tasks that set a chunk's part of every gradient that is a sum over tokens.

        They follow the chunk's scan at once, while its errors are in the processor's cache.
        """
        dR, steps = parts["recurrent"][chunk], (packing.block_steps, packing.step_rows)
        return [(set_recurrent_gradient, dR, state["Y"], D, *steps, chunk, CHUNKS)]
