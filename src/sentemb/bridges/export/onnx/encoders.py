"""The forward pass of every encoder as an ONNX graph; see `sentemb.bridges.export.onnx.model`.

The graphs compute what `Encoder.embed` computes, in float32, from the same stacked weights. Where
the paper has a recursion they have a Scan. The LSTM operator of ONNX takes dense inputs, while here
an input is a sum of rows of a table; with an identity matrix in between, it has five times as many
products to compute. It has no full peepholes either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sentemb.bridges.export.onnx.graph import FLOAT32, FLOAT64, INT64, Graph
from sentemb.errors import SentembError
from sentemb.models.towers.bag import Bag
from sentemb.models.towers.bilstm import BiLSTM
from sentemb.models.towers.clsm import CLSM
from sentemb.models.towers.dan import DAN
from sentemb.models.towers.dssm import DSSM
from sentemb.models.towers.encoder import Encoder
from sentemb.models.towers.ensemble import Ensemble
from sentemb.models.towers.feed_forward import Layered
from sentemb.models.towers.lstm import LSTM
from sentemb.models.towers.recurrent import RecurrentEncoder
from sentemb.models.towers.rnn import IRNN, RNN
from sentemb.system.contracts import Arrays

# Element type and shape of each input.
INPUTS: Mapping[str, tuple[int, list[str]]] = {
    "features": (INT64, ["entries"]),
    "counts": (FLOAT32, ["entries"]),
    "word_offsets": (INT64, ["words + 1"]),
    "words": (INT64, ["tokens"]),
    "text_offsets": (INT64, ["texts + 1"]),
}
# Lower than any number that a float32 layer computes.
_LOWEST = float(np.finfo(np.float32).min)


class GraphTexts:
    """The inputs of a graph and all values that every encoder needs of them.

    words : the projections of the distinct words, (n_words + 1, width) float32. The last row is
        zero: it takes the places where a text has no word.
    n_words : the number of distinct words, (1,) int64
    """

    def __init__(self, graph: Graph, table: np.ndarray, bias: np.ndarray) -> None:
        self.graph = graph
        rows = graph.add("Gather", graph.constant(table, "table"), "features")
        counted = graph.add("Mul", rows, graph.as_column("counts"))
        projected = self._sums(counted, "word_offsets", table.shape[1])
        if bias.any():
            projected = graph.add("Add", projected, graph.constant(bias, "bias"))
        padding = graph.constant(np.zeros((1, table.shape[1]), np.float32))
        self.words = graph.add("Concat", projected, padding, axis=0)
        self.n_words = graph.add("Sub", graph.size("word_offsets"), graph.integers(1))

    def _sums(self, rows: str, offsets: str, columns: int) -> str:
        """The sums of the rows between neighbouring offsets: (n, columns) float32.

        Differences of running sums, which float64 makes exact enough. (Adding with ScatterND loses
        sums in onnxruntime when several threads write to one row.)
        """
        graph = self.graph
        nothing = graph.constant(np.zeros((1, columns)))
        wide = graph.add("Cast", rows, to=FLOAT64)
        running = graph.add(
            "CumSum",
            graph.add("Concat", nothing, wide, axis=0),
            graph.constant(np.array(0, np.int64)),
        )
        ends = graph.add("Gather", running, graph.slice(offsets, 0, 1, None))
        starts = graph.add("Gather", running, graph.slice(offsets, 0, 0, -1))
        return graph.add("Cast", graph.add("Sub", ends, starts), to=FLOAT32)

    # -- texts --------------------------------------------------------------------------------

    @cached_property
    def starts(self) -> str:
        """Where each text begins among the tokens, (n_texts,) int64."""
        return self.graph.slice("text_offsets", 0, 0, -1)

    @cached_property
    def ends(self) -> str:
        """Where each text ends among the tokens, (n_texts,) int64."""
        return self.graph.slice("text_offsets", 0, 1, None)

    @cached_property
    def lengths(self) -> str:
        """The number of words of each text, (n_texts,) int64."""
        return self.graph.add("Sub", self.ends, self.starts)

    @cached_property
    def n_texts(self) -> str:
        """(1,) int64."""
        return self.graph.size(self.starts)

    @cached_property
    def divisors(self) -> str:
        """The number of words of each text, or 1: (n_texts, 1) float32."""
        return self._at_least_one(self.graph.add("Cast", self.lengths, to=FLOAT32))

    def _at_least_one(self, counts: str) -> str:
        least = self.graph.constant(np.array([1], np.float32))
        return self.graph.as_column(self.graph.add("Max", counts, least))

    def sum_words(self, words: str, columns: int) -> str:
        """The sum of some columns of the words of each text, (n_texts, columns) float32."""
        return self._sums(self.graph.add("Gather", words, "words"), "text_offsets", columns)

    def average_of_known(self, words: str, columns: int) -> str:
        """The average of the words that are not zero, (n_texts, columns) float32."""
        graph = self.graph
        largest = graph.add("ReduceMax", graph.add("Abs", words), axes=[1], keepdims=1)
        zero = graph.constant(np.zeros(1, np.float32))
        known = graph.add("Cast", graph.add("Greater", largest, zero), to=FLOAT32)
        count = graph.add("Squeeze", self.sum_words(known, 1), graph.integers(1))
        return graph.add("Div", self.sum_words(words, columns), self._at_least_one(count))

    @cached_property
    def forward(self) -> str:
        """The row of ``words`` that each text reads at each step, (T, n_texts) int64."""
        return self._word_rows(lambda steps: self.graph.add("Add", self.starts, steps))

    @cached_property
    def backward(self) -> str:
        """As `forward`, each text from its last word to its first."""
        last = self.graph.add("Sub", self.ends, self.graph.integers(1))
        return self._word_rows(lambda steps: self.graph.add("Sub", last, steps))

    @cached_property
    def _steps(self) -> str:
        """0 to T - 1 as (T, 1); T is that of the longest text and at least 1."""
        graph = self.graph
        lengths = graph.add("Concat", self.lengths, graph.integers(1), axis=0)
        longest = graph.add("ReduceMax", lengths, keepdims=0)
        start, step = (graph.constant(np.array(value, np.int64)) for value in (0, 1))
        return graph.as_column(graph.add("Range", start, longest, step))

    def _word_rows(self, tokens: Callable[[str], str]) -> str:
        graph = self.graph
        inside = graph.add("Less", self._steps, self.lengths)
        words = graph.add("Concat", "words", self.n_words, axis=0)
        token = graph.add("Where", inside, tokens(self._steps), graph.size("words"))
        return graph.add("Gather", words, token)

    def scan(
        self,
        states: list[str],
        inputs: list[str],
        step: Callable[[Graph, list[str], list[str]], list[str]],
    ) -> list[str]:
        """As `Graph.scan`; a text that has ended at a step keeps its states.

        The middle one of ``inputs`` says where texts end.
        """

        def masked(body: Graph, before: list[str], now: list[str]) -> list[str]:
            inside = body.as_column(body.add("Less", now[len(now) // 2], self.n_words))
            after = step(body, before, now)
            return [
                body.add("Where", inside, new, old) for new, old in zip(after, before, strict=True)
            ]

        return self.graph.scan(states, inputs, masked)


def add_embeddings(graph: Graph, encoder: Encoder, weights: Arrays) -> str:
    """Append one tower to ``graph``, which is empty; its inputs will be `INPUTS`.

    ``weights`` are stacked, float32. Returns the name of the embeddings, (n_texts, dim) float32, of
    unit length; zeros for a text without words. Raises `SentembError` for an encoder that is not
    one of `sentemb.models.towers`.
    """
    texts = GraphTexts(graph, weights["table"], encoder.word_bias(weights, np.float32))
    return _units(graph, _embeddings(texts, encoder, weights, texts.words))


def _embeddings(texts: GraphTexts, encoder: Encoder, weights: Arrays, words: str) -> str:
    """The embeddings that an encoder computes from ``words``, (n_words + 1, its width)."""
    add = _ENCODERS.get(type(encoder))
    if add is None:
        raise SentembError(
            f"the model {encoder.name} cannot be exported to ONNX; choose another target, or add "
            "its graph to sentemb.bridges.export.onnx.encoders"
        )
    return add(texts, encoder, weights, words)


def _units(graph: Graph, rows: str) -> str:
    """The rows at unit length; a zero row stays zero.

    The largest number is divided out first, so that no square leaves the range of float32.
    """
    zero, unit = (graph.constant(np.array([value], np.float32)) for value in (0, 1))

    def divided(values: str, by: str) -> str:
        safe = graph.add("Where", graph.add("Equal", by, zero), unit, by)
        return graph.add("Div", values, safe)

    largest = graph.add("ReduceMax", graph.add("Abs", rows), axes=[1], keepdims=1)
    scaled = divided(rows, largest)
    return divided(scaled, graph.add("ReduceL2", scaled, axes=[1], keepdims=1))


def _columns(graph: Graph, words: str, first: int, end: int, width: int) -> str:
    """Columns of ``words``, which has ``width``."""
    return words if end - first == width else graph.slice(words, 1, first, end)


# -- recurrent encoders -----------------------------------------------------------------------


_Step = Callable[[Graph, list[str], list[str]], list[str]]


def _recurrent(
    texts: GraphTexts,
    encoder: RecurrentEncoder,
    words: str,
    n_states: int,
    step_of: Callable[[int, str], _Step],
) -> str:
    """The first state after the last word of each direction, then the bag.

    ``step_of(direction, words)`` is the step of a Scan over rows of ``words``.
    """
    graph = texts.graph
    parts = []
    for direction in range(encoder.directions):
        column = direction * encoder.gate_width
        direction_words = _columns(graph, words, column, column + encoder.gate_width, encoder.width)
        states = [graph.zeros(texts.n_texts, encoder.cells)] * n_states
        word_rows = texts.backward if direction else texts.forward
        parts.append(texts.scan(states, [word_rows], step_of(direction, direction_words))[0])
    if isinstance(encoder, IRNN):
        parts = [graph.add("Div", part, texts.divisors) for part in parts]
    if encoder.bag_dim:
        bag = _columns(graph, words, encoder.bag_column, encoder.width, encoder.width)
        parts.append(texts.sum_words(bag, encoder.bag_dim))
    return parts[0] if len(parts) == 1 else graph.add("Concat", *parts, axis=1)


def _rnn(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    """Equation (1), which has the state y."""

    def step_of(direction: int, direction_words: str) -> _Step:
        recurrent = texts.graph.constant(weights["recurrent"][direction], "recurrent")

        def step(body: Graph, states: list[str], now: list[str]) -> list[str]:
            z = body.add("Gemm", *states, recurrent, body.add("Gather", direction_words, *now))
            return [z if encoder.linear else body.add("Tanh", z)]

        return step

    return _recurrent(texts, encoder, words, 1, step_of)


def _lstm(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    """Equations (2), which have the states y and c."""
    product = "MatMul" if encoder.peepholes == "full" else "Mul"

    def step_of(direction: int, direction_words: str) -> _Step:
        recurrent = texts.graph.constant(weights["recurrent"][direction], "recurrent")

        def gate(body: Graph, z: str, number: int, cell: str) -> str:
            if encoder.peepholes != "none":
                peephole = weights["peepholes"][direction, number - 1]
                seen = body.add(product, cell, body.constant(peephole, "peephole"))
                z = body.add("Add", z, seen)
            return body.add("Sigmoid", z)

        def step(body: Graph, states: list[str], now: list[str]) -> list[str]:
            y, c = states
            z = body.add("Gemm", y, recurrent, body.add("Gather", direction_words, *now))
            parts = body.add_many("Split", z, outputs=len(encoder.gates), axis=1)
            named = dict(zip(encoder.gates, parts, strict=True))
            new = body.add("Mul", gate(body, named["3"], 3, c), body.add("Tanh", named["4"]))
            retained = body.add("Mul", gate(body, named["2"], 2, c), c) if "2" in named else c
            cell = body.add("Add", retained, new)
            output = body.add("Tanh", cell)
            if "1" in named:  # the output gate looks at the new c(t)
                output = body.add("Mul", gate(body, named["1"], 1, cell), output)
            return [output, cell]

        return step

    return _recurrent(texts, encoder, words, 2, step_of)


# -- encoders without recurrence --------------------------------------------------------------


def _bag(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    return texts.sum_words(words, encoder.cells)


def _dssm(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    graph = texts.graph
    bias = graph.constant(weights["bias"], "bias")
    summed = graph.add("Add", texts.sum_words(words, encoder.hidden), bias)
    return _layers(texts, encoder, weights, graph.add("Tanh", summed))


def _dan(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    return _layers(texts, encoder, weights, texts.average_of_known(words, encoder.hidden))


def _clsm(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    """The largest window of each map; beyond the ends of a text a window sees the zero row."""
    graph, reach, hidden = texts.graph, encoder.window // 2, encoder.hidden
    slices = [
        _columns(graph, words, k * hidden, (k + 1) * hidden, encoder.width)
        for k in range(encoder.window)
    ]
    inputs = [texts.forward]
    if reach:
        n_steps = graph.size(texts.forward)
        outside = graph.add(
            "Expand",
            texts.n_words,
            graph.add("Concat", graph.integers(reach), texts.n_texts, axis=0),
        )
        longer = graph.add("Concat", outside, texts.forward, outside, axis=0)
        inputs = []
        for k in range(encoder.window):
            end = graph.add("Add", n_steps, graph.integers(k))
            bounds = graph.integers(k), end, graph.integers(0)
            inputs.append(graph.add("Slice", longer, *bounds))
    bias = graph.constant(weights["bias"], "bias")

    def step(body: Graph, states: list[str], now: list[str]) -> list[str]:
        z = bias
        for part, rows in zip(slices, now, strict=True):
            z = body.add("Add", z, body.add("Gather", part, rows))
        return [body.add("Max", states[0], z)]

    lowest = graph.zeros(texts.n_texts, hidden, _LOWEST)
    (pooled,) = texts.scan([lowest], inputs, step)
    return _layers(texts, encoder, weights, graph.add("Tanh", pooled))


def _layers(texts: GraphTexts, encoder: Layered, weights: Arrays, rows: str) -> str:
    """The dense layers over the pooled vectors; zeros for texts without words."""
    graph = texts.graph
    for matrix, bias in encoder.dense_layers:
        inputs = graph.constant(weights[matrix], "matrix"), graph.constant(weights[bias], "bias")
        rows = graph.add("Gemm", rows, *inputs)
        if not encoder.linear:
            rows = graph.add("Tanh", rows)
    zero = graph.integers(0)
    has_words = graph.as_column(graph.add("Greater", texts.lengths, zero))
    return graph.add("Where", has_words, rows, graph.constant(np.zeros(1, np.float32)))


# -- several encoders -------------------------------------------------------------------------


def _ensemble(texts: GraphTexts, encoder: Any, weights: Arrays, words: str) -> str:
    """The embeddings of the members, each of unit length, side by side."""
    parts = []
    for member, its_weights, columns in encoder.each_member(weights):
        its_words = texts.graph.slice(words, 1, columns.start, columns.stop)
        parts.append(_units(texts.graph, _embeddings(texts, member, its_weights, its_words)))
    return texts.graph.add("Concat", *parts, axis=1)


_ENCODERS: dict[type[Encoder], Callable[[GraphTexts, Any, Arrays, str], str]] = {
    LSTM: _lstm,
    BiLSTM: _lstm,
    RNN: _rnn,
    IRNN: _rnn,
    Bag: _bag,
    DSSM: _dssm,
    CLSM: _clsm,
    DAN: _dan,
    Ensemble: _ensemble,
}
