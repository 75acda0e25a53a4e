"""Encoders without recurrence: the bag of trigrams, DSSM and CLSM.

What the paper compares with (its section VI-B), under the same loss, negatives and optimisers.
"""

import math

import numpy as np

from sentemb.errors import SentembError
from sentemb.kernels.activations import tanh_rows
from sentemb.kernels.convolution import pool_windows, spread_to_maxima
from sentemb.kernels.layers import (
    dense_errors,
    dense_tanh,
    set_dense_gradient,
    sum_words,
    tanh_errors,
)
from sentemb.kernels.words import invert_lists, sum_rows
from sentemb.models.encoder import Encoder, ForwardPass, Workspace, whole_number
from sentemb.system.parallel import CHUNKS, one_after_the_other, spans

WINDOWS = (1, 3, 5)


class FeedForward(Encoder):
    """Base: `_layers` says how projected words become an embedding."""

    def forward_tasks(self, weights, batch, workspace):
        """`forward` as a job for `Workers.together`."""
        P = yield from self._project_tasks(weights, batch, workspace)
        state, tasks = self._layers(weights, P, batch.word_index, batch.offsets, workspace)
        yield tasks
        return ForwardPass(batch, _without_empty(state["Y"], batch.offsets), [state])

    def embed(self, weights, P, word_index, offsets, workers):
        """As `RecurrentEncoder.embed`."""
        state, tasks = self._layers(weights, P, word_index, offsets, Workspace())
        workers.run(tasks)
        return _without_empty(state["Y"], offsets)


class Bag(FeedForward):
    """y = W x, x the counts of the text's letter trigrams; block ``W``."""

    name = "bag"

    @property
    def width(self):
        return self.cells

    def shapes(self, n_features):
        return {"table": (n_features, self.cells)}

    def blocks(self, weights):
        return {"W": weights["table"].T}

    def _layers(self, weights, P, word_index, offsets, workspace):
        Y = workspace.empty("Y", (offsets.size - 1, self.cells), P.dtype)
        arguments = (Y, P, 0, np.zeros(self.cells, P.dtype), word_index, offsets)
        return {"Y": Y}, [(sum_words, *arguments, low, high) for _, low, high in spans(len(Y))]

    def backward_tasks(self, weights, done, V, truncation, workspace):
        _no_truncation(self, truncation)
        V = np.ascontiguousarray(V)
        dP, _ = yield from self._gather_words(
            done.batch, [(0, V, *done.batch.texts_of_words)], workspace
        )
        return {"words": dP}


class DSSM(FeedForward):
    """h = tanh(W1 x + b1), y = tanh(W2 h + b2), x as for the `Bag`; Huang et al., CIKM 2013.

    Parameters
    ----------
    cells : int
        Length of y.
    hidden : int
        Length of h.
    """

    name = "dssm"

    def __init__(self, cells, hidden=288):
        super().__init__(cells)
        self.hidden = whole_number("hidden", hidden)

    def settings(self):
        return {"cells": self.cells, "hidden": self.hidden}

    @property
    def width(self):
        return self.hidden

    def shapes(self, n_features):
        return {
            "table": (n_features, self.width),
            "bias": (self.hidden,),
            "output": (self.hidden, self.cells),
            "output_bias": (self.cells,),
        }

    def spreads(self):
        return {"output": 1 / math.sqrt(self.hidden)}

    def blocks(self, weights):
        names = {"W1": "table", "b1": "bias", "W2": "output", "b2": "output_bias"}
        return {block: weights[name].T for block, name in names.items()}

    def _layers(self, weights, P, word_index, offsets, workspace):
        n_texts = offsets.size - 1
        state = {
            "H": workspace.empty("H", (n_texts, self.hidden), P.dtype),
            "Y": workspace.empty("Y", (n_texts, self.cells), P.dtype),
        }
        pool = self._pooling(state, weights, P, word_index, offsets, workspace)
        H, layer = state["H"], (weights["output"], weights["output_bias"])
        tasks = [
            (
                one_after_the_other,
                (*pool, low, high),
                (tanh_rows, H, low, high, 0, self.hidden),
                (dense_tanh, state["Y"], H, *layer, low, high),
            )
            for _, low, high in spans(n_texts)
        ]
        return state, tasks

    def _pooling(self, state, weights, P, word_index, offsets, workspace):
        """The kernel that pools a text's words, before the tanh, and its arguments."""
        return sum_words, state["H"], P, 0, weights["bias"], word_index, offsets

    def backward_tasks(self, weights, done, V, truncation, workspace):
        _no_truncation(self, truncation)
        batch, (state,) = done.batch, done.states
        H, Y = state["H"], state["Y"]
        V = _without_empty(np.ascontiguousarray(V), batch.offsets)
        D = workspace.empty("D", Y.shape, V.dtype)  # at the last layer's pre-activation
        dH = workspace.empty("dH", H.shape, V.dtype)
        parts = {
            name: workspace.zeros(f"d{name}", (CHUNKS, *shape), V.dtype)
            for name, shape in self.shapes(0).items()
            if name != "table"
        }
        transposed = np.ascontiguousarray(weights["output"].T)
        yield [
            (
                one_after_the_other,
                (tanh_errors, D, V, Y, low, high),
                (set_dense_gradient, parts["output"][chunk], H, D, low, high),
                (sum_rows, parts["output_bias"][chunk], D, low, high),
                (dense_errors, dH, D, transposed, low, high),
                (tanh_errors, dH, dH, H, low, high),
                (sum_rows, parts["bias"][chunk], dH, low, high),
                *self._unpooling(state, dH, batch, low, high, workspace),
            )
            for chunk, low, high in spans(batch.n_texts)
        ]
        gradient = {name: part.sum(axis=0) for name, part in parts.items()}
        dP, _ = yield from self._gather_words(
            batch, self._errors_of_words(dH, batch, workspace), workspace
        )
        return gradient | {"words": dP}

    def _unpooling(self, state, dH, batch, low, high, workspace):
        """Tasks that lead the errors at the pooled vectors back to the tokens, where needed."""
        return []

    def _errors_of_words(self, dH, batch, workspace):
        """What `Encoder._gather_words` sums up."""
        return [(0, dH, *batch.texts_of_words)]


class CLSM(DSSM):
    """h = max over t of tanh(Wc [l(t - r) ... l(t + r)] + bc), y = tanh(Ws h + bs).

    Shen et al., CIKM 2014. Blocks ``Wc1``, ``Wc2``, ... are the slices of Wc from left to right.

    Parameters
    ----------
    cells : int
        Length of y.
    hidden : int
        Feature maps, the length of h.
    window : {1, 3, 5}
        Words under the convolution, 2 r + 1.
    """

    name = "clsm"

    def __init__(self, cells, hidden=288, window=3):
        super().__init__(cells, hidden)
        if window not in WINDOWS:
            raise SentembError(
                f"window must be one of {', '.join(map(str, WINDOWS))}, not {window!r}"
            )
        self.window = window

    def settings(self):
        return {**super().settings(), "window": self.window}

    @property
    def width(self):
        return self.window * self.hidden

    def blocks(self, weights):
        slices = np.split(weights["table"], self.window, axis=1)
        named = {f"Wc{k}": part.T for k, part in enumerate(slices, 1)}
        others = {"bc": "bias", "Ws": "output", "bs": "output_bias"}
        return named | {block: weights[name].T for block, name in others.items()}

    def _pooling(self, state, weights, P, word_index, offsets, workspace):
        state["places"] = workspace.empty("places", state["H"].shape, np.int32)
        return (
            pool_windows,
            state["H"],
            state["places"],
            P,
            weights["bias"],
            word_index,
            offsets,
        )

    def _unpooling(self, state, dH, batch, low, high, workspace):
        D = workspace.empty("D_tokens", (batch.word_index.size, self.hidden), dH.dtype)
        return [(spread_to_maxima, D, dH, state["places"], batch.offsets, low, high)]

    def _errors_of_words(self, dH, batch, workspace):
        D = workspace.empty("D_tokens", (batch.word_index.size, self.hidden), dH.dtype)
        text_of_token = np.repeat(np.arange(batch.n_texts), np.diff(batch.offsets))
        parts = []
        for number in range(self.window):
            # A word stands this far to the right of the middles of the windows that it is in.
            middles = np.arange(batch.word_index.size) - (number - self.window // 2)
            inside = (middles >= batch.offsets[text_of_token]) & (
                middles < batch.offsets[text_of_token + 1]
            )
            words, middles = batch.word_index[inside], middles[inside].astype(np.int32)
            offsets, places, _ = invert_lists(np.arange(words.size + 1), words, batch.n_words)
            parts.append((number * self.hidden, D, offsets, middles[places]))
        return parts


def _without_empty(rows, offsets):
    """``rows`` with zeros for texts without words, which have no embedding."""
    empty = offsets[1:] == offsets[:-1]
    if empty.any():
        rows = np.where(empty[:, None], rows.dtype.type(0), rows)
    return rows


def _no_truncation(encoder, truncation):
    if truncation is not None and truncation.steps is not None:
        raise SentembError(
            f"a {encoder.name} has no steps through time to truncate; leave truncate out"
        )
