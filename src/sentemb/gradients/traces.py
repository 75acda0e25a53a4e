"""The gradient as the paper accumulates it: traces dc/dW forward in time, times error signals.

It goes text by text and is dense over each text's own features: slow, plain, and independent of the
reverse scan that training uses. With exact signals it equals the scan; with the signals that the
paper prints it shows how far those are from the gradient.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.gradients.check_options import FORM
from sentemb.gradients.recursion import delayed
from sentemb.kernels.traces import (
    accumulate_products,
    accumulate_trace,
    lstm_exact_signals,
    lstm_printed_signals,
    rnn_signals,
)
from sentemb.models.towers.encoder import Encoder, ForwardPass
from sentemb.models.towers.lstm import LSTM
from sentemb.models.towers.rnn import RNN
from sentemb.models.towers.truncation import Truncation
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch

# The slot of each gate in the signals: that of the stacked weights if no gate is missing.
_SLOTS = {"": 0, "1": 0, "3": 1, "4": 2, "2": 3}
# The production kernels; the paper's traces with exact signals, equal to them up to rounding; the
# paper's traces with the signals that it prints, which is not the gradient.
FORMS = FORM.choices


def has_traces(encoder: Encoder) -> bool:
    """Whether the forms ``trace`` and ``printed`` exist for ``encoder``."""
    return isinstance(encoder, LSTM | RNN)


def check_form(encoder: Encoder, form: str) -> None:
    """Raise a `SentembError` if ``form`` is unknown, or does not exist for ``encoder``."""
    FORM.checked(form)
    if form == "scan" or has_traces(encoder):
        return
    if encoder.recurrent:
        reason = f"the paper has no traces for model {encoder.name}, which the form {form} needs"
    else:
        reason = (
            f"the form {form} follows the paper through time, and model {encoder.name} has none"
        )
    raise SentembError(f"{reason}; use the form scan")


def gradient_of_form(
    encoder: Encoder,
    weights: Arrays,
    done: ForwardPass,
    V: np.ndarray,
    workers: Workers,
    form: str = "scan",
    truncation: Truncation | None = None,
) -> Arrays:
    """The gradient in one of `FORMS`; parameters and result as for `Encoder.backward`."""
    check_form(encoder, form)
    if form == "scan":
        return encoder.backward(weights, done, V, workers, truncation=truncation)
    return trace_gradient(encoder, weights, done, V, form, truncation)


def trace_gradient(
    encoder: Any,
    weights: Arrays,
    done: ForwardPass,
    V: np.ndarray,
    form: str = "trace",
    truncation: Truncation | None = None,
) -> Arrays:
    """The gradient by traces, as `Encoder.backward` returns it.

    ``done`` is from `Encoder.forward` with these ``weights``; ``V`` (n_texts, dim) float is dL/dy
    of every text. The form "trace" has exact signals, "printed" those that the paper prints. Raises
    `SentembError` for an encoder without traces.
    """
    check_form(encoder, form)
    truncation = truncation or Truncation()
    batch, packing = done.batch, done.packing
    V = encoder.by_length(V, batch.offsets)
    gradient = {name: np.zeros_like(array) for name, array in weights.items() if name != "table"}
    gradient["table"] = np.zeros((batch.input_rows.size, encoder.width), V.dtype)
    signals_of = _lstm_signals if isinstance(encoder, LSTM) else _rnn_signals
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
            signals = signals_of(encoder, weights, direction, state, rows, v, form, first)
            counts = _feature_counts(batch, batch.word_index[tokens], v.dtype)
            values = encoder.gate_values(state, rows)
            _add_text(encoder, gradient, direction, counts, values, signals, start, first)
    if encoder.bag_dim:
        _add_bag(encoder, gradient, batch, V[:, encoder.n_outputs :])
    return gradient


def _lstm_signals(
    encoder: LSTM,
    weights: Arrays,
    direction: int,
    state: dict[str, np.ndarray],
    rows: NDArray[np.int64],
    v: np.ndarray,
    form: str,
    first: int,
) -> np.ndarray:
    """The error signals of one text: (4, T, n), gates in the order of `_SLOTS`.

    The ``direction`` 1 reads from right to left. ``state`` and ``rows`` (T,) are as for
    `RecurrentEncoder.gate_values`; ``v`` (n,) float is dL/dy of the last step. Steps before
    ``first`` get no error. ``form`` is as for `trace_gradient`.
    """
    n = encoder.cells
    values = encoder.gate_values(state, rows)
    c, h = values["c"], state["H"][rows]
    o = np.ascontiguousarray(values.get("o", np.ones_like(c)))
    signals = np.zeros((4, *o.shape), o.dtype)
    R = np.zeros((4, n, n), o.dtype)
    stacked = weights["recurrent"][direction]
    for slot, gate in enumerate(encoder.gates):
        R[_SLOTS[gate]] = stacked[:, slot * n : (slot + 1) * n].T
    if form == "printed":
        lstm_printed_signals(signals, v, o, h, R, first)
        return signals
    Wp = np.zeros((3, n, n), o.dtype)
    if encoder.peepholes != "none":
        for gate in {"1", "2", "3"}.intersection(encoder.gates):
            given = weights["peepholes"][direction, int(gate) - 1]
            Wp[int(gate) - 1] = np.diag(given) if encoder.peepholes == "diagonal" else given.T
    f = values.get("f", np.ones_like(c))
    i, y_g, c_last = values["i"], values["y_g"], delayed(c)
    lstm_exact_signals(signals, v, o, i, y_g, f, h, c_last, R, Wp, first)
    return signals


def _rnn_signals(
    encoder: RNN,
    weights: Arrays,
    direction: int,
    state: dict[str, np.ndarray],
    rows: NDArray[np.int64],
    v: np.ndarray,
    form: str,
    first: int,
) -> np.ndarray:
    """As `_lstm_signals`: (1, T, n). What the paper prints for the RNN is exact."""
    y = state["Y"][rows]
    signals = np.zeros((1, *y.shape), y.dtype)
    R = np.ascontiguousarray(weights["recurrent"][direction].T)
    rnn_signals(signals[0], v, encoder.slopes(y), R, first)
    return signals


def _add_bag(encoder: LSTM | RNN, gradient: Arrays, batch: TextBatch, V: np.ndarray) -> None:
    """dWbag = sum over the texts of v x^T, which has no steps."""
    for v, start, end in zip(V, batch.offsets[:-1], batch.offsets[1:], strict=True):
        if start == end:
            continue
        features, L = _feature_counts(batch, batch.word_index[start:end], v.dtype)
        gradient["table"][features, encoder.bag_column :] += np.outer(L.sum(axis=0), v)


def _feature_counts(
    batch: TextBatch, words: NDArray[np.int32], dtype: np.dtype
) -> tuple[NDArray[np.int32], np.ndarray]:
    """The distinct features of a text and l(t) over them: (k,), (T, k)."""
    spans = [slice(batch.feature_offsets[w], batch.feature_offsets[w + 1]) for w in words]
    features = np.unique(np.concatenate([batch.feature_ids[span] for span in spans]))
    L = np.zeros((len(spans), features.size), dtype)
    for t, span in enumerate(spans):
        L[t, np.searchsorted(features, batch.feature_ids[span])] = batch.feature_values[span]
    return features, L


def _add_text(
    encoder: Any,
    gradient: Arrays,
    direction: int,
    counts: tuple[NDArray[np.int32], np.ndarray],
    values: Arrays,
    signals: np.ndarray,
    start: int,
    first: int,
) -> None:
    features, L = counts
    n, k = encoder.cells, features.size
    y, c = values["y"], values.get("c", values["y"])
    ones = np.ones((len(L), 1), L.dtype)
    # u(t) = [l(t); y(t-1); 1; c(t-1)], the output gate's peepholes looking at c(t) instead
    U = np.hstack([L, delayed(y), ones, delayed(c)])
    U_output = np.hstack([U[:, :-n], c])
    f = np.ascontiguousarray(values.get("f", np.ones_like(y)))
    for slot, gate in enumerate(encoder.gates):
        dX = np.zeros((n, U.shape[1]), L.dtype)
        signal = signals[_SLOTS[gate]]
        if gate in ("", "1"):
            accumulate_products(dX, U_output, signal, first)
        else:
            factor = _factor(gate, values)
            accumulate_trace(dX, U, factor, f, signal, start, first)
        column = direction * encoder.gate_width + slot * n
        gradient["table"][features, column : column + n] += dX[:, :k].T
        gradient["recurrent"][direction, :, slot * n : (slot + 1) * n] += dX[:, k : k + n].T
        gradient["bias"][column : column + n] += dX[:, k + n]
        if "peepholes" in gradient and gate in ("1", "2", "3"):
            full = dX[:, k + n + 1 :]
            diagonal = encoder.peepholes == "diagonal"
            part = np.diagonal(full) if diagonal else full.T
            gradient["peepholes"][direction, int(gate) - 1] += part


def _factor(gate: str, values: Arrays) -> np.ndarray:
    """b_g(t), the derivative of c(t) by the pre-activation of gate g: (T, n)."""
    i, y_g = values["i"], values["y_g"]
    if gate == "2":
        return delayed(values["c"]) * values["f"] * (1 - values["f"])
    if gate == "3":
        return y_g * i * (1 - i)
    return i * (1 - y_g**2)
