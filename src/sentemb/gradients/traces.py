"""The gradient as the paper accumulates it: traces dc/dW forward in time, times error signals.

Text by text and dense over each text's own trigrams: slow, plain, and independent of the reverse
scan that training uses. With exact signals it equals the scan; with the signals that the paper
prints it shows how far those are from the gradient.
"""

import numpy as np

from sentemb.kernels.traces import accumulate_products, accumulate_trace


def trace_backward(encoder, weights, done, V, form, truncation):
    """As `RecurrentEncoder.backward`, for the forms ``trace`` and ``printed``."""
    batch, packing = done.batch, done.packing
    gradient = {name: np.zeros_like(array) for name, array in weights.items() if name != "table"}
    gradient["table"] = np.zeros((batch.rows.size, encoder.width), V.dtype)
    for direction, state in enumerate(done.states):
        row_of_token = packing.rows_of_tokens(direction)
        for text in range(batch.n_texts):
            tokens = np.arange(batch.offsets[text], batch.offsets[text + 1])
            if tokens.size == 0:
                continue
            if direction == 1:  # read from the last word to the first
                tokens = tokens[::-1]
            rows = row_of_token[tokens]
            v = np.ascontiguousarray(V[text, direction * encoder.cells :][: encoder.cells])
            first = max(0, tokens.size - truncation.window)
            start = 0 if truncation.keep_cell_path else first
            signals = encoder.signals(weights, direction, state, rows, v, form, first)
            trigrams, L = _trigram_counts(batch, batch.word_index[tokens], v.dtype)
            values = encoder.gate_values(state, rows)
            _add_text(encoder, gradient, direction, trigrams, L, values, signals, start, first)
    if encoder.bag:
        _add_bag(encoder, gradient, batch, V[:, encoder.n_outputs :])
    return gradient


def _add_bag(encoder, gradient, batch, V):
    """dWbag = sum over the texts of v x^T, which has no steps."""
    for v, start, end in zip(V, batch.offsets, batch.offsets[1:]):
        if start == end:
            continue
        trigrams, L = _trigram_counts(batch, batch.word_index[start:end], v.dtype)
        gradient["table"][trigrams, encoder.bag_column :] += np.outer(L.sum(axis=0), v)


def _trigram_counts(batch, words, dtype):
    """The distinct trigrams of a text and l(t) over them: (k,), (T, k)."""
    spans = [slice(batch.trigram_offsets[w], batch.trigram_offsets[w + 1]) for w in words]
    trigrams = np.unique(np.concatenate([batch.trigram_ids[span] for span in spans]))
    L = np.zeros((len(spans), trigrams.size), dtype)
    for t, span in enumerate(spans):
        L[t, np.searchsorted(trigrams, batch.trigram_ids[span])] = batch.trigram_counts[span]
    return trigrams, L


def _add_text(encoder, gradient, direction, trigrams, L, values, signals, start, first):
    """Add one text's gradient, gate by gate."""
    n, k = encoder.cells, trigrams.size
    y, c = values["y"], values.get("c", values["y"])
    ones = np.ones((len(L), 1), L.dtype)
    # u(t) = [l(t); y(t-1); 1; c(t-1)], the output gate's peepholes looking at c(t) instead
    U = np.hstack([L, _delayed(y), ones, _delayed(c)])
    U_output = np.hstack([U[:, :-n], c])
    f = np.ascontiguousarray(values.get("f", np.ones_like(y)))
    for slot, gate in enumerate(encoder.gates):
        dX = np.zeros((n, U.shape[1]), L.dtype)
        if gate in ("", "1"):
            accumulate_products(dX, U_output, signals[slot], first)
        else:
            factor = _factor(gate, values)
            accumulate_trace(dX, U, factor, f, signals[slot], start, first)
        column = direction * encoder.gate_width + slot * n
        gradient["table"][trigrams, column : column + n] += dX[:, :k].T
        gradient["recurrent"][direction, :, slot * n : (slot + 1) * n] += dX[:, k : k + n].T
        gradient["bias"][column : column + n] += dX[:, k + n]
        if "peepholes" in gradient and gate in ("1", "2", "3"):
            full = dX[:, k + n + 1 :]
            diagonal = encoder.peepholes == "diagonal"
            part = np.diagonal(full) if diagonal else full.T
            gradient["peepholes"][direction, int(gate) - 1] += part


def _factor(gate, values):
    """b_g(t), the derivative of c(t) by the pre-activation of gate g: (T, n)."""
    i, y_g = values["i"], values["y_g"]
    if gate == "2":
        return _delayed(values["c"]) * values["f"] * (1 - values["f"])
    if gate == "3":
        return y_g * i * (1 - i)
    return i * (1 - y_g**2)


def _delayed(rows):
    """Every row moved down one step, zero first."""
    return np.vstack([np.zeros_like(rows[:1]), rows[:-1]])
