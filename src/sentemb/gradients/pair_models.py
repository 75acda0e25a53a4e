"""Pair models on made-up lists of titles, as training has them: one check for each of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.gradients.check_options import SCALE
from sentemb.gradients.problem import CheckedProblem
from sentemb.gradients.whole_batch import BatchForms, in_parts, made_up_batch
from sentemb.kernels.input_layer import RowGradient, gather_weighted_rows
from sentemb.models.pairs import make_pair_model
from sentemb.models.pairs.head import Dropout, Pass
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.pair_model import PairModel, Pairs, Scoring, Texts
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.input_rows import point_of
from sentemb.models.words.workspace import Job, Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.training.objectives.objective_options import (
    HINGE,
    LOGISTIC,
    PAIR_MARGIN,
    PAIR_OBJECTIVE,
)
from sentemb.training.objectives.pair_losses import PairObjective, PairTargets

_MOST_WEIGHTS = 5_000_000
# Of the entries of a gradient, with a hinge: parts that a right pair and a negative share cancel.
_LEAST = 1e-6
# The settings that mainly decide how many there are.
_SIZES = "embedding", "maps", "mlp"


class PairPasses:
    """Scores and gradients of given pairs at the present weights of a pair model.

    matcher : the model; its weights may change between calls
    queries, titles : the texts of each side; words beyond ``max_words`` are not read
    query_index, title_index : (n_pairs,) int; pair k is ``queries[query_index[k]]`` with
        ``titles[title_index[k]]``
    dropout : the same in all passes
    """

    def __init__(
        self,
        matcher: Matcher,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
        workers: Workers,
        dropout: Dropout | None = None,
    ) -> None:
        self.matcher = matcher
        self._workers, self._dropout, self._space = workers, dropout, Workspace()
        self._index = query_index.astype(np.int32), title_index.astype(np.int32)
        split, most = matcher.vocabulary.split, matcher.model.max_words
        cut = [" ".join(split(text)[:most]) for text in (*queries, *titles)]
        self._batch = batch = matcher.vocabulary.batch(cut)
        self._layout = Layout(batch)
        middle, n = batch.offsets[len(queries)], len(queries)
        self._texts = {
            SIDES[0]: Texts(batch.word_index[:middle], batch.offsets[: n + 1]),
            SIDES[1]: Texts(batch.word_index[middle:], batch.offsets[n:] - middle),
        }

    def forward(self) -> Scoring:
        """The scores, and the state for the backward pass; valid until the next pass."""
        return self._workers.together(self._forward_tasks())[0][1]

    def gradient(self, V: np.ndarray) -> Arrays:
        """The gradient by the paper's names of the parameters; ``V`` (n_pairs,) float is dL/ds."""
        gradient = self._workers.together(self._backward_tasks(V))[0]
        words = RowGradient(gradient.pop("words"), *self._layout.words_of_features)
        rows = np.empty((self._batch.input_rows.size, self.matcher.model.width), V.dtype)
        self._workers.over(len(rows), gather_weighted_rows, rows, words)
        # Features that are not in these texts have no part in the loss.
        table = np.zeros_like(self.matcher.weights["table"])
        table[self._batch.input_rows] = rows
        return self.matcher.model.blocks({**gradient, "table": table})

    def _forward_tasks(self) -> Job[tuple[Pass, Scoring]]:
        model, weights = self.matcher.model, self.matcher.weights
        point = point_of(weights, self._batch.input_rows)
        P = yield from model.project_tasks(point, self._batch, self._space)
        queries, titles = SIDES
        given = Pass(weights, P, self._space, self._dropout)
        first = yield from model.read_tasks(given, queries, self._texts[queries])
        second = yield from model.read_tasks(given, titles, self._texts[titles])
        done = yield from model.score_tasks(given, Pairs(first, second, *self._index))
        return given, done

    def _backward_tasks(self, V: np.ndarray) -> Job[Arrays]:
        model = self.matcher.model
        given, done = yield from self._forward_tasks()
        gradient, errors = yield from model.backward_tasks(given, done, V)
        dX = np.concatenate([errors[side] for side in SIDES])
        tokens = [(0, dX, *self._layout.tokens_of_words)]
        dP, _ = yield from model.gather_words_tasks(self._batch, tokens, self._space)
        return {**gradient, "words": dP}


class PairModelProblem(CheckedProblem):
    """The training loss of a pair model on made-up lists: a query, its title, and negatives.

    The last list belongs to the query of the first one, and its title is a negative there. With the
    hinge the loss does not depend on the bias of the output, so that block is left out.

    model, settings : one of `sentemb.models.pairs.PAIR_MODELS`, and its settings
    lengths : words of the queries; the titles have the same lengths in another order
    n_negatives : negatives per list
    objective : "hinge" or "logistic"; None is the hinge
    dropout : share of the values that are dropped, the same ones in all passes
    """

    def __init__(
        self,
        model: str,
        lengths: tuple[int, ...],
        n_negatives: int,
        seed: int,
        objective: str | None,
        dropout: float,
        **settings: Any,
    ) -> None:
        pair_model = make_pair_model(model, **settings)
        loss = _loss(model, objective)
        self.name = model
        self.settings = {**pair_model.settings(), "objective": loss.name}
        self.settings |= {"dropout": dropout, "lengths": lengths, "n_negatives": n_negatives}
        self.settings["seed"] = seed
        # A product of weights of different layers is linear in each one.
        self.piecewise_linear = loss.name == HINGE and pair_model.piecewise_linear
        self._loss = loss
        self.rng = rng = np.random.default_rng(seed)
        queries, titles, query_index, title_index = _made_up_lists(lengths, n_negatives, rng)
        self.queries = queries
        matcher = _made_up_matcher(pair_model, [*queries, *titles], rng)
        self._passes = PairPasses(
            matcher,
            queries,
            titles,
            query_index,
            title_index,
            Workers(1),
            Dropout.of(dropout, seed),
        )
        self.least = _LEAST if loss.name == HINGE else 0.0
        size = n_negatives + 1
        n_lists = query_index.size // size
        self._targets = PairTargets.of_lists(np.arange(n_lists + 1) * size, np.ones(n_lists))
        self.parameters = self._shown(matcher.parameters())

    def loss(self) -> float:
        self._done = self._passes.forward()
        loss, _, self._of_loss = self._loss.at(self._done.scores, self._targets)
        return loss

    def gradient(self, form: str = "scan") -> dict[str, Arrays]:
        _, V, _ = self._loss.at(self._passes.forward().scores, self._targets)
        return self._shown(self._passes.gradient(V))

    def branches(self) -> bytes:
        """Every ReLU, maximum and hinge of the last `loss`."""
        matcher = self._passes.matcher
        made = matcher.model.decisions(matcher.weights, self._done)
        return b"".join([*(array.tobytes() for array in made), self._of_loss])

    def is_reached(self, block: str) -> bool:
        """A bias of the MLP cancels in every triple whose pairs switch on the same units."""
        name, model = block.rsplit(".", 1)[1], self._passes.matcher.model
        match = re.fullmatch(r"c(\d)", name)
        if match is None or self._loss.name != HINGE:
            return model.is_reached(name)
        self.loss()
        offsets, active = self._targets.offsets, np.frombuffer(self._of_loss, np.bool_)
        rights = np.repeat(offsets[:-1], np.diff(offsets))
        layers = range(int(match[1]), model.mlp_layers + 1)
        on = np.hstack([self._done.arrays[f"Y{layer}"] > 0 for layer in layers])
        return bool(np.any(on[active] != on[rights[active]]))

    def whole_batch(self, n_texts: int) -> Iterator[BatchForms]:
        """Pairs of some queries with some titles, each in several pairs; nothing is dropped."""
        rng, matcher = np.random.default_rng(self.settings["seed"]), self._passes.matcher
        words = " ".join(self.queries).split()
        queries, titles = (made_up_batch(words, n, rng) for n in (1 + n_texts // 3, n_texts))
        of_query, of_title = (rng.integers(len(side), size=n_texts) for side in (queries, titles))
        V, workers = rng.standard_normal(n_texts), Workers(1)

        def of(part: slice) -> Arrays:
            of_queries, query_index = np.unique(of_query[part], return_inverse=True)
            of_titles, title_index = np.unique(of_title[part], return_inverse=True)
            texts = [queries[k] for k in of_queries], [titles[k] for k in of_titles]
            passes = PairPasses(matcher, *texts, query_index, title_index, workers)
            scores = np.zeros_like(V)
            scores[part] = passes.forward().scores
            return {"scores": scores, **passes.gradient(V[part])}

        yield in_parts(of, n_texts)

    def _shown(self, blocks: Arrays) -> dict[str, Arrays]:
        hidden = {"c"} if self._loss.name == HINGE else set()
        return {"pair": {name: array for name, array in blocks.items() if name not in hidden}}


def _loss(model: str, objective: str | None) -> PairObjective:
    """The loss of a check; a `SentembError` for an objective that pair models do not have."""
    if objective not in (None, *PAIR_OBJECTIVE.choices):
        raise SentembError(
            f"the pair model {model} has no objective {objective}; choose {HINGE} or {LOGISTIC}"
        )
    return PairObjective(objective or HINGE, PAIR_MARGIN.default)


def _made_up_lists(
    lengths: tuple[int, ...], n_negatives: int, rng: np.random.Generator
) -> tuple[list[str], list[str], NDArray[np.int64], NDArray[np.int64]]:
    """Queries, titles, and lists of ``n_negatives`` + 1 pairs of them, the right one first."""
    letters = list("abcde")
    words = ["".join(rng.choice(letters, rng.integers(1, 6))) for _ in range(3 * len(lengths) + 6)]
    # Words that hold a trigram more than once, so that counts matter.
    words += ["aaaaa", "babababa"] * len(lengths)

    def text(length: int) -> str:
        chosen = list(rng.choice(words, length))
        if length > 2:
            chosen[-1] = chosen[0]
        return " ".join(chosen)

    n = len(lengths)
    queries = [text(length) for length in lengths]
    titles = [text(length) for length in (*lengths[1:], lengths[0])]
    titles += [text(int(rng.choice(lengths))) for _ in range(n * n_negatives)]
    negative_index = n + np.arange(n * n_negatives).reshape(n, n_negatives)
    title_index = np.column_stack([np.arange(n), negative_index])
    # One query in two lists, one title right in one of them and a negative in the other.
    again = np.concatenate([title_index[0, 1:2], title_index[0, :1], title_index[-1, 2:]])
    title_index = np.vstack([title_index, again])
    query_index = np.repeat([*range(n), 0], n_negatives + 1)
    return queries, titles, query_index, title_index.ravel()


def _made_up_matcher(model: PairModel, texts: list[str], rng: np.random.Generator) -> Matcher:
    """The model with random weights, none of them zero.

    Matrices are twice `SCALE` times as large as at the start of training, so that scores stay
    near 1; the input weights are those at the start of training.
    """
    tokens = tokenize(texts)
    whole_words = model.reads_whole_words
    vocabulary = Vocabulary([], tokens.words) if whole_words else Vocabulary.collect(tokens)
    shapes = model.shapes(len(vocabulary))
    if sum(int(np.prod(shape)) for shape in shapes.values()) > _MOST_WEIGHTS:
        raise SentembError(
            f"the model {model.name} has too many weights for a check; lower "
            f"{' or '.join(size for size in _SIZES if size in model.settings())}"
        )
    weights = model.initialise(len(vocabulary), rng, np.float64)
    for name, array in weights.items():
        if array.ndim == 1:
            array[...] = SCALE * rng.standard_normal(array.shape)
        elif name != "table":
            array *= 2 * SCALE
    return Matcher(model, vocabulary, weights)
