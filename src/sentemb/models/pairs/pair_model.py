"""The base of all pair models: two stages, one for each text and one for each pair.

A pair model describes shapes and holds no weights, as an encoder does. Everything that belongs to
one text is computed once, whatever number of pairs the text is in, and ranking keeps it
(`FirstStage`). Both sides read words through one ``table``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.models.pairs.head import Head, Pass
from sentemb.models.pairs.registry import PAIR_MODELS
from sentemb.models.words.word_reader import WordReader
from sentemb.models.words.workspace import Job
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch

# The number of features of a word: its vector is the sum of as many rows.
_FEATURES = 8


class Texts(NamedTuple):
    """The texts of one side, cut to the longest length that the model reads.

    word_index : (n_tokens,) int32, rows of the projected words
    offsets : (n_texts + 1,) int64
    """

    word_index: NDArray[np.int32]
    offsets: NDArray[np.int64]

    @property
    def n_texts(self) -> int:
        """The number of texts."""
        return self.offsets.size - 1

    @property
    def mean_words(self) -> float:
        """The mean number of words of a text; 0 without texts."""
        return self.word_index.size / max(1, self.n_texts)

    def cut(self, most: int) -> Texts:
        """The same texts without the words after the first ``most``."""
        lengths = np.diff(self.offsets)
        if lengths.max(initial=0) <= most:
            return self
        return self._slices(self.offsets[:-1], np.minimum(lengths, most))

    def take(self, numbers: NDArray[np.integer]) -> Texts:
        """Some of the texts, in this order."""
        return self._slices(self.offsets[numbers], np.diff(self.offsets)[numbers])

    def _slices(self, starts: NDArray[np.int64], lengths: NDArray[np.int64]) -> Texts:
        """The texts that begin at ``starts`` and have these lengths."""
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return Texts(self.word_index[tokens], offsets)


class Phase(NamedTuple):
    """A part of the training, from ``epoch`` on, counted from 0.

    arrays : the arrays that are trained; all others are fixed. Empty for all. No array is in two
        phases.
    reconstructs : whether the loss is that of `PairModel.reconstruction_tasks`, instead of that of
        the scores. Words are then fixed.
    """

    epoch: int
    arrays: tuple[str, ...] = ()
    reconstructs: bool = False


@dataclass
class FirstStage:
    """The first stage for the texts of one side, whatever pairs they are in.

    ``arrays`` is what the model's kernels wrote.
    """

    texts: Texts
    arrays: Arrays = field(default_factory=dict)


class Pairs(NamedTuple):
    """Pairs of texts, by number.

    Pair k is text ``query_index[k]`` of ``queries`` with text ``title_index[k]`` of ``titles``;
    both indices are (n_pairs,) int32.
    """

    queries: FirstStage
    titles: FirstStage
    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]


@dataclass
class Scoring:
    """The scores of `Pairs`, (n_pairs,) float, and the state for the backward pass.

    ``arrays`` is what the model's kernels wrote.
    """

    scores: np.ndarray
    queries: FirstStage
    titles: FirstStage
    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]
    arrays: Arrays = field(default_factory=dict)


class PairModel(WordReader):
    """Base of all pair models.

    A pair model defines ``name``, `inputs`, `own_shapes`, `own_blocks`, `own_spreads` and the jobs
    `read_tasks`, `score_tasks` and `backward_tasks`. Its stacked arrays have one or two axes.

    ``settings`` are the hyper-parameters that `sentemb.models.pairs.registry` declares for this
    model. They become attributes; one that is left out, or None where that is allowed, has its
    default.
    """

    name: str
    # Standard deviation of the numbers of word vectors at the start: about 1, so that ReLU layers
    # with He's weights neither shrink nor blow up what they pass on.
    word_spread: ClassVar[float] = 1.0
    # Values of hyper-parameters whose default depends on the model.
    defaults: ClassVar[dict[str, Any]] = {"max_words": 32, "mlp_layers": 1}

    # Whether a score is piecewise linear in each parameter alone.
    piecewise_linear: ClassVar[bool] = True

    if TYPE_CHECKING:  # the hyper-parameters, which come from the declarations

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, **settings: Any) -> None:
        for parameter in PAIR_MODELS.entry(self.name).parameters:
            value = parameter.checked(settings.get(parameter.name, parameter.default))
            if value is None:
                value = self.defaults.get(parameter.name, parameter.default)
            setattr(self, parameter.name, value)
        self.check()
        self.head = Head(self.inputs, self.mlp, self.mlp_layers)

    def check(self) -> None:
        """Raise a `SentembError` for settings that do not go together."""

    def settings(self) -> dict[str, Any]:
        """The constructor's arguments, as a model's configuration file has them."""
        values = {
            parameter.name: getattr(self, parameter.name)
            for parameter in PAIR_MODELS.entry(self.name).parameters
        }
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
        }

    @property
    def least_words(self) -> int:
        """The smallest ``max_words`` for which every layer has a cell."""
        return 1

    @property
    def width(self) -> int:
        """Length of a projected word."""
        return self.embedding

    @property
    def inputs(self) -> int:
        """Length of the features of a pair, which the MLP reads."""
        raise NotImplementedError

    @property
    def numbers_per_pair(self) -> int:
        """The most numbers that `score_tasks` keeps for one pair."""
        return int(self.inputs + self.mlp * self.mlp_layers)

    # -- weights ------------------------------------------------------------------------------

    def own_shapes(self) -> dict[str, tuple[int, ...]]:
        """Shapes of the arrays between the words and the MLP by name."""
        return {}

    def own_spreads(self) -> dict[str, float]:
        """Standard deviations of the initial matrices among them."""
        return {}

    def own_blocks(self, weights: Arrays) -> Arrays:
        """Views of them under the paper's names."""
        return {}

    def shapes(self, n_features: int) -> dict[str, tuple[int, ...]]:
        """Shapes of the stacked arrays by name."""
        return {"table": (n_features, self.width), **self.own_shapes(), **self.head.shapes()}

    def spreads(self) -> dict[str, float]:
        """Standard deviations of the initial dense matrices by name; the others start at zero."""
        return {**self.own_spreads(), **self.head.spreads()}

    def table_spread(self) -> float:
        """Standard deviation of the initial input weights."""
        return self.word_spread / math.sqrt(_FEATURES)

    def blocks(self, weights: Arrays) -> Arrays:
        """Views of the stacked arrays under the paper's names; ``W`` is the transposed table."""
        return {
            "W": weights["table"].T, **self.own_blocks(weights), **self.head.blocks(weights)
        }  # fmt: skip

    def is_reached(self, block: str) -> bool:
        """Whether scores depend on a block of `blocks`."""
        return True

    # -- training -----------------------------------------------------------------------------

    def phases(self) -> tuple[Phase, ...]:
        """The phases of the training, the first at epoch 0; by default one."""
        return (Phase(0),)

    @property
    def reads_whole_words(self) -> bool:
        """Whether the vocabulary must consist of words, without letter trigrams."""
        return False

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
        """Fit the initial weights to the pairs, in place; by default nothing is changed.

        Called once before the first update. A training that is resumed calls it too, before its
        weights are replaced by those of the checkpoint.

        weights : in the shapes of `shapes`
        queries, titles : the texts of the training; their ``input_rows`` are rows of ``table``
        pairs : (n_pairs,) int, (n_pairs,) int, the query and the title of each pair that goes
            together
        seed : for everything random; the result does not depend on the number of ``workers``
        note : called before what takes long
        """

    @property
    def trains_words(self) -> bool:
        """Whether ``table`` may be trained."""
        return True

    def reconstruction_tasks(
        self, given: Pass, texts: Texts, words: bool = False
    ) -> Job[tuple[np.ndarray, Arrays, np.ndarray | None]]:
        """Losses of texts that need no pairs, for models with a `Phase` that reconstructs."""
        raise NotImplementedError

    # -- passes -------------------------------------------------------------------------------

    def decisions(self, weights: Arrays, done: Scoring) -> list[np.ndarray]:
        """Every ReLU and every maximum of a pass; the score has a kink where one of them changes.

        They are read from the arrays that the pass keeps: integers and truth values are places of
        maxima, and an array of numbers without a negative one is what a ReLU let through. A model
        whose passes do not keep one of them adds it.
        """
        decided = []
        for arrays in (done.queries.arrays, done.titles.arrays, done.arrays):
            for array in arrays.values():
                if array.dtype.kind != "f":
                    decided.append(array)
                elif array.min(initial=0) >= 0:
                    decided.append(array > 0)
        return decided

    def read_tasks(self, given: Pass, side: str, texts: Texts) -> Job[FirstStage]:
        """The first stage, for each text by itself, as a job for `Workers.together`.

        The space of ``given`` holds what the pass returns until the same side is read again.
        """
        raise NotImplementedError

    def score_tasks(self, given: Pass, pairs: Pairs) -> Job[Scoring]:
        """Scores of pairs, as a job for `Workers.together`. The projected words are not read."""
        raise NotImplementedError

    def backward_tasks(
        self, given: Pass, done: Scoring, V: np.ndarray, words: bool = True
    ) -> Job[tuple[Arrays, Arrays]]:
        """The backward pass, as a job for `Workers.together`, from ``V`` (n_pairs,) float, dL/ds.

        ``words`` says whether the gradient at the words is wanted. Returns the gradient in the
        shapes of `shapes`, without ``table``, and by side the gradient at the projection of every
        token, (n_tokens, width); empty if ``words`` is not set.
        """
        raise NotImplementedError
