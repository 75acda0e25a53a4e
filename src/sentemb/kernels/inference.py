"""The LSTM of equations (2) where only the last y(t) is wanted: nothing is kept for a gradient.

A block of texts runs side by side in arrays that stay in the processor's cache. A gate that is
multiplied with a tanh shares its division: sigmoid(a) tanh(b) is one fraction. So the last digits
differ from those of `lstm_forward`, by at most 4e-7 in an embedding of unit length.
"""

import numpy as np

from sentemb.kernels.activations import gated_tanh, sigmoid, tanh
from sentemb.kernels.compiling.jit import inner_kernel, kernel
from sentemb.kernels.matmul import add_matmul_first, add_row
from sentemb.kernels.prefetch import AHEAD, prefetch_row


@kernel
def sum_features(P, table, bias, offsets, ids, values, first, end):
    """P[w] = b + sum_k value_k W[id_k] for the words ``first`` to ``end``.

    The bits of `project_words`, which also takes velocities and compiles four times as long.

    P : (n_words, width) float, written; bias : (width,) float
    table : (n_features, width) float; row k holds column k of every stacked input matrix W_g
    offsets, ids, values : (n_words + 1,) int64, (n_entries,) int32, (n_entries,) float32
    """
    for w in range(first, end):
        p = P[w]
        for j in range(p.size):
            p[j] = bias[j]
        for entry in range(offsets[w], offsets[w + 1]):
            if entry + AHEAD < offsets[end]:
                prefetch_row(table, ids[entry + AHEAD])
            value = P.dtype.type(values[entry])
            row = table[ids[entry]]
            for j in range(p.size):
                p[j] += value * row[j]


@kernel
def embed_lstm(
    embeddings,
    P,
    word_index,
    offsets,
    order,
    recurrent,
    panels,
    diagonals,
    before,
    after,
    output_gate,
    first,
    end,
):
    """The embeddings of the texts ``order[first:end]``, as one block.

    The arguments are not bundled: unpacking tuples would slow down the embedding of one text.

    embeddings : (n_texts, directions n + bag_dim) float, written: the last y(t) of each direction,
        then the sum of the words' Wbag l
    P : (n_words, directions G n + bag_dim) float, W l + b of every word, then Wbag l
    word_index, offsets : (n_tokens,) int32, (n_texts + 1,) int64
    order : (n,) int64, texts with words, from long to short
    recurrent : (directions, n, G n) float, as `lstm_forward` has them for one direction
    panels : (directions, n, G n) float, `panels_of` each of them
    diagonals : (directions, 3, n) float, those of Wp_1, Wp_2, Wp_3; (directions, 3, 0) unless the
        peepholes are diagonal
    before, after : (directions, n, G n) float, what c(t-1) and c(t) add to the gates: Wp_3^T and
        Wp_2^T, and Wp_1^T, in the columns of their gates, zeros elsewhere; (directions, 0, 0)
        unless the peepholes are full matrices
    output_gate : 0 or 1
    """
    directions, n, width = recurrent.shape
    texts = end - first
    bag = np.uint64(directions * n)
    Z = np.empty((texts, width), P.dtype)
    C = np.empty((texts, n), P.dtype)
    Y = np.empty((texts, n), P.dtype)
    # A row is named by its number, not sliced: a slice in a loop with branches counts references,
    # which takes longer than the row. An unsigned column needs no check whether it is negative.
    for direction in range(directions):
        column, unit = np.uint64(direction * width), np.uint64(direction * n)
        own_recurrent, own_diagonals = recurrent[direction], diagonals[direction]
        own_panels, own_before, own_after = panels[direction], before[direction], after[direction]
        running = texts
        for t in range(offsets[order[first] + 1] - offsets[order[first]]):
            for k in range(running):
                text = order[first + k]
                token = offsets[text + 1] - 1 - t if direction else offsets[text] + t
                if t + 1 < offsets[text + 1] - offsets[text]:
                    prefetch_row(P, word_index[token - 1 if direction else token + 1])
                if t == 0 and k + AHEAD < running:
                    text = order[first + k + AHEAD]
                    prefetch_row(
                        P, word_index[offsets[text + 1] - 1 if direction else offsets[text]]
                    )
                word = word_index[token]
                for j in range(np.uint64(width)):
                    Z[k, j] = P[word, column + j]
            if t > 0:
                if running == 1:
                    add_row(Z, Y, own_panels, t % 2 == 0)
                else:
                    add_matmul_first(Z, Y, own_recurrent, running)
                if before.size:
                    add_matmul_first(Z, C, own_before, running)
            _set_cells(C, Z, own_diagonals, output_gate, running, t)
            if after.size:
                add_matmul_first(Z, C, own_after, running)
            _set_outputs(Y, Z, C, own_diagonals, output_gate, running)
            while running > 0:
                text = order[first + running - 1]
                if offsets[text + 1] - offsets[text] > t + 1:
                    break
                running -= 1
                for j in range(np.uint64(n)):
                    embeddings[text, unit + j] = Y[running, j]
    column = np.uint64(directions * width)
    for k in range(first, end):
        text = order[k]
        for j in range(np.uint64(P.shape[1]) - column):
            embeddings[text, bag + j] = 0
        for token in range(offsets[text], offsets[text + 1]):
            word = word_index[token]
            for j in range(np.uint64(P.shape[1]) - column):
                embeddings[text, bag + j] += P[word, column + j]


@inner_kernel
def _set_cells(C, Z, diagonals, output_gate, running, t):
    """c(t) of the texts that still run, from the gates before their activation.

    C : (at least running, n) float, written; Z : (at least running, G n) float; diagonals : (3, n)
    or (3, 0) float; output_gate, t : int
    """
    n = np.uint64(C.shape[1])
    input_ = np.uint64(output_gate) * n
    candidate, forget = input_ + n, input_ + n + n
    has_forget = np.uint64(Z.shape[1]) > forget
    for k in range(running):
        if t == 0:
            for j in range(n):
                C[k, j] = 0
        elif diagonals.size:
            for j in range(n):
                Z[k, input_ + j] += diagonals[2, j] * C[k, j]
            if has_forget:
                for j in range(n):
                    Z[k, forget + j] += diagonals[1, j] * C[k, j]
        if has_forget:
            for j in range(n):
                C[k, j] *= sigmoid(Z[k, forget + j])
        for j in range(n):
            C[k, j] += gated_tanh(Z[k, input_ + j], Z[k, candidate + j])


@inner_kernel
def _set_outputs(Y, Z, C, diagonals, output_gate, running):
    """y(t) of the texts that still run: shapes as for `_set_cells`."""
    n = C.shape[1]
    for k in range(running):
        if output_gate and diagonals.size:
            for j in range(n):
                Z[k, j] += diagonals[0, j] * C[k, j]
        if output_gate:
            for j in range(n):
                Y[k, j] = gated_tanh(Z[k, j], C[k, j])
        else:
            for j in range(n):
                Y[k, j] = tanh(C[k, j])
