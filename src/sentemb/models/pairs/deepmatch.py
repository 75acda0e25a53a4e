"""DeepMatch: local decisions on topics that both texts touch, combined by an MLP."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sentemb.kernels.input_layer import invert_lists, sum_rows
from sentemb.kernels.layers import dense, product_rows, set_dense_gradient
from sentemb.kernels.local_decisions import (
    WordColumns,
    decide,
    errors_at_sums,
    errors_at_words,
    sum_topics,
)
from sentemb.kernels.mlp import relu_errors
from sentemb.models.pairs.head import PAIR_LAYER, Pass
from sentemb.models.pairs.pair_model import FirstStage, PairModel, Pairs, Scoring, Texts
from sentemb.models.pairs.pair_topics import topics_of_words
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.workspace import Job
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import PRODUCTS, Workers, one_after_the_other, spans, spread
from sentemb.text.batch import TextBatch

# Units of the first layer per topic.
_UNITS = 5
# Topics of a word on each side.
_SLOTS = 8


class DeepMatch(PairModel):
    """s = MLP(z), where unit k of z is a local decision on the words of one topic.

    z_k = g_k max(0, (sum_i u_ki)(sum_j v_kj) + b_k) over the words x_i of the query and y_j of the
    title that are in the topic of unit k. The gate g_k is 1 if both texts have such words. A word
    has weights u for each of its topics as a word of a query, and v as a word of a title; they are
    trained. The topics are found before the training (`prepare`) and stay fixed.

    The competitor DeepMatch of Hu et al. (NIPS 2014), section 5.1, "3 hidden layers and 1,000 nodes
    in the first hidden layer", after Lu and Li, "A deep architecture for matching short texts",
    NIPS 2013: topics of parallel texts give patches of words; units of the first layer decide on
    patches; higher layers combine the decisions. Choices and departures:

    - Topics come from PLSA (Hofmann 1999), where Lu and Li use LDA. In both a pair is one text
      whose two sides have separate vocabularies.
    - There is a topic for every 5 units, 200 for 1,000 units, because EM takes time in proportion
      to topics. The 5 units are 5 bilinear forms of rank one on the words of a topic.
    - A word is in the at most 8 topics that have the largest p(topic | word), if it is above
      1 / topics. So a frequent word is in 8 topics, not in nearly all.
    - Lu and Li connect the layers by topics of a second, coarser analysis. Here the layers after
      the first are fully connected: ``mlp_layers`` of ``mlp`` units.
    - All units are ReLU, as in the other models of Hu et al.; Lu and Li use sigmoids.
    - Weights u and v start positive: their words were found together in pairs.

    The row of a word in ``table`` holds its topics, which have no gradient, and its weights. The
    vocabulary must consist of whole words.
    """

    name = "deepmatch"
    defaults: ClassVar[dict[str, Any]] = PairModel.defaults | {"mlp_layers": 2}

    @property
    def topics(self) -> int:
        """The number of topics."""
        return -(-int(self.nodes) // _UNITS)

    @property
    def width(self) -> int:
        """Topics and weights of a word on both sides."""
        return 2 * _SLOTS * (1 + _UNITS)

    @property
    def inputs(self) -> int:
        """The number of local decisions."""
        return int(self.nodes)

    @property
    def reads_whole_words(self) -> bool:
        """Yes: a word has its own topics."""
        return True

    def _columns(self, side: str) -> WordColumns:
        number = SIDES.index(side)
        weight = 2 * _SLOTS + number * _SLOTS * _UNITS
        return WordColumns(number * _SLOTS, weight, _SLOTS, _UNITS, self.topics)

    # -- weights ------------------------------------------------------------------------------

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        """The biases of the local decisions."""
        return {"nodes_bias": (self.nodes,)}

    def own_blocks(self, weights: Arrays) -> Arrays:
        """The biases as ``b``."""
        return {"b": weights["nodes_bias"]}

    def table_spread(self) -> float:
        """Products of two sums of weights should be about 1."""
        return 1.0

    def spreads(self) -> dict[str, float]:
        """He's; of the units of the first layer only those of some topics are on."""
        spreads = super().spreads()
        first = self.head.layers[0][0]
        return spreads | {first: math.sqrt(2 / min(self.nodes, 10 * _UNITS))}

    def initialise(
        self,
        n_features: int,
        rng: np.random.Generator,
        dtype: DTypeLike = np.float32,
        seen: NDArray[np.integer] | None = None,
    ) -> Arrays:
        """As `WordReader.initialise`, with positive weights and with topics drawn at random."""
        weights = super().initialise(n_features, rng, dtype, seen)
        table = weights["table"]
        table[:, 2 * _SLOTS :] = np.abs(table[:, 2 * _SLOTS :])
        rows = np.arange(n_features) if seen is None else seen
        table[rows, : 2 * _SLOTS] = rng.integers(1, self.topics + 1, (rows.size, 2 * _SLOTS))
        return weights

    def prepare(
        self,
        weights: Arrays,
        queries: TextBatch,
        titles: TextBatch,
        pairs: tuple[NDArray[np.integer], NDArray[np.integer]],
        seed: int,
        workers: Workers,
        note: Callable[[str], None],
    ) -> None:
        """Find the topics of the pairs and write those of every word to ``table``."""
        note(f"looking for {self.topics} topics")
        table = weights["table"]
        shares = topics_of_words(queries, titles, pairs, len(table), self.topics, seed, workers)
        for number in range(len(SIDES)):
            of_side = shares[number * len(table) : (number + 1) * len(table)]
            best = np.argsort(-of_side, axis=1, kind="stable")[:, :_SLOTS]
            is_in = np.take_along_axis(of_side, best, axis=1) * self.topics > 1
            columns = slice(number * _SLOTS, number * _SLOTS + best.shape[1])
            table[:, number * _SLOTS : (number + 1) * _SLOTS] = 0
            table[:, columns] = np.where(is_in, best + 1, 0)

    # -- passes -------------------------------------------------------------------------------

    def decisions(self, weights: Arrays, done: Scoring) -> list[np.ndarray]:
        """As `PairModel.decisions`, with the topics of all words."""
        topics = np.rint(weights["table"][:, : 2 * _SLOTS])
        return [*super().decisions(weights, done), topics]

    def read_tasks(self, given: Pass, side: str, texts: Texts) -> Job[FirstStage]:
        """As `PairModel.read_tasks`: the sums of the weights by unit, and which topics are on."""
        S = np.empty((texts.n_texts, self.nodes), given.P.dtype)
        on = np.empty((texts.n_texts, self.topics), np.uint8)
        arguments = self._columns(side), texts.word_index, texts.offsets
        cost = self._cost_of_text(texts)
        yield spread(texts.n_texts, sum_topics, S, on, given.P, *arguments, cost=cost)
        return FirstStage(texts, {"S": S, "on": on})

    def _cost_of_text(self, texts: Texts) -> float:
        """The cost of the sums over the words of a text; see `spans`."""
        return self.nodes * (1 + texts.mean_words)

    def score_tasks(self, given: Pass, pairs: Pairs) -> Job[Scoring]:
        """As `PairModel.score_tasks`."""
        weights, _, space, dropout = given
        queries, titles, query_index, title_index = pairs
        n_pairs, dtype = query_index.size, weights["table"].dtype
        Z = space.empty("Z", (n_pairs, self.nodes), dtype)
        A = space.empty("A", (n_pairs, self.mlp), dtype)
        matrix, bias = (weights[name] for name in self.head.layers[0])
        x, y = queries.arrays, titles.arrays
        pair_inputs = x["S"], x["on"], query_index, y["S"], y["on"], title_index, _UNITS
        tasks: list[KernelTask] = []
        for _, low, high in spans(n_pairs, matrix.size / PRODUCTS):
            calls: list[KernelTask] = [(decide, Z, weights["nodes_bias"], *pair_inputs, low, high)]
            if dropout is not None:
                calls += dropout.tasks(Z, PAIR_LAYER, low, high)
            calls.append((dense, A, Z, matrix, bias, low, high))
            tasks.append((one_after_the_other, *calls))
        yield tasks
        scores, values = yield from self.head.score_tasks(given, A)
        return Scoring(scores, *pairs, {**values, "Z": Z})

    def backward_tasks(
        self, given: Pass, done: Scoring, V: np.ndarray, words: bool = True
    ) -> Job[tuple[Arrays, Arrays]]:
        """As `PairModel.backward_tasks`; topics have the gradient 0."""
        weights, P, space, dropout = given
        gradient, dA = yield from self.head.backward_tasks(given, done.arrays, V)
        Z, dtype = done.arrays["Z"], V.dtype
        matrix = self.head.layers[0][0]
        back = np.ascontiguousarray(weights[matrix].T)
        D = space.empty("D", Z.shape, dtype)
        numbers = weights[matrix].size
        pairs_of_parts = spans(len(Z), 2 * numbers / PRODUCTS, sums=numbers)
        matrices = space.zeros("dW1", (len(pairs_of_parts), *weights[matrix].shape), dtype)
        biases = space.zeros("db", (len(pairs_of_parts), self.nodes), dtype)
        scale = 1.0 if dropout is None else dropout.scale
        tasks: list[KernelTask] = []
        for part, low, high in pairs_of_parts:
            calls = (
                (set_dense_gradient, matrices[part], Z, dA, low, high),
                (product_rows, D, dA, back, low, high),
                (relu_errors, D, Z, scale, low, high),
                (sum_rows, biases[part], D, low, high),
            )
            tasks.append((one_after_the_other, *calls))
        yield tasks
        gradient |= {matrix: matrices.sum(axis=0), "nodes_bias": biases.sum(axis=0)}
        if not words:
            return gradient, {}
        readings = done.queries, done.titles
        indices = done.query_index, done.title_index
        errors: Arrays = {}
        tasks = []
        for side, reading, index, partner, partner_index in zip(
            SIDES, readings, indices, readings[::-1], indices[::-1], strict=True
        ):
            texts = reading.texts
            one_each = np.arange(index.size + 1)
            offsets, pairs = invert_lists(one_each, index, texts.n_texts)
            dS = space.empty(f"dS {side}", reading.arrays["S"].shape, dtype)
            dX = space.empty(f"dX {side}", (texts.word_index.size, self.width), dtype)
            lists = self._columns(side), texts.word_index, texts.offsets
            sums = partner.arrays["S"], offsets, pairs, partner_index
            for _, low, high in spans(texts.n_texts, 2 * self._cost_of_text(texts)):
                calls_of_side = (
                    (errors_at_sums, dS, D, *sums, low, high),
                    (errors_at_words, dX, dS, P, *lists, low, high),
                )
                tasks.append((one_after_the_other, *calls_of_side))
            errors[side] = dX
        yield tasks
        return gradient, errors
