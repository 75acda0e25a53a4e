"""Both towers and their optimisers: one update with a mini-batch."""

import math
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.lengths import are_below
from sentemb.models.towers.layout import Layout
from sentemb.models.towers.towers import distinct_sides, join_gradients, split_embeddings
from sentemb.models.words.workspace import Workspace
from sentemb.system.aligned import aligned_empty
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import MiniBatch
from sentemb.training.contracts import Optimiser, StoredState
from sentemb.training.meeting import average, has_rows
from sentemb.training.optimisers.adam import Adam
from sentemb.training.optimisers.nesterov import MomentumSchedule, Nesterov
from sentemb.training.optimisers.renormalisation import SPARSE
from sentemb.training.stopping import Diverged
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.tower_rows import TowerRows

Layouts: TypeAlias = dict[str, Layout]
# Features of the vocabulary, ascending, by side.
Features: TypeAlias = Mapping[str, NDArray[np.int32]]

# What the names of weights in `TwoTowers.state` have after the side.
_WEIGHTS = "weights"

# A recurrent weight or bias this large saturates every gate: the training has diverged.
_WILD_WEIGHT = 1e4


class TwoTowers:
    """The towers while they are trained, each with the rows of the features that its texts have.

    ``updates`` counts those of the whole training, for the schedules of momentum and learning rate.
    ``rows`` and ``weights`` are by side; the weights have these rows, and are changed. ``sides``
    are "query" and "document"; for shared towers only "query".
    """

    def __init__(
        self,
        settings: Settings,
        updates: int,
        rows: Mapping[str, TowerRows],
        weights: Mapping[str, Arrays],
    ) -> None:
        self.settings = settings
        self.encoder = settings.encoder()
        self.sides = distinct_sides(settings.shared_towers)
        self._truncation = settings.truncation_settings()
        self._objective = settings.loss()
        self._updates = updates
        self._rows = rows
        self._towers = {side: self.optimiser(weights[side]) for side in self.sides}
        self._workspaces = {side: Workspace() for side in (*self.sides, "loss")}

    @classmethod
    def of(
        cls, corpus: Corpus, settings: Settings, updates: int, start: Start | None = None
    ) -> Self:
        """The towers before their first update.

        The ``corpus`` has the vocabulary, and the features that each tower reads. All weights start
        at random unless there is a ``start``.
        """
        encoder, weights = settings.encoder(), {}
        rows = {
            side: TowerRows(corpus.seen(side), len(corpus.vocabulary))
            for side in distinct_sides(settings.shared_towers)
        }
        for number, (side, of_side) in enumerate(rows.items()):
            if start is None:
                rng = np.random.default_rng([settings.seed, number])
                weights[side] = encoder.initialise(of_side.seen.size, rng)
            else:
                # The same numbers for both towers: equal word vectors make equal towers, in
                # which a query is near to a title of the same words before the first update.
                rng = np.random.default_rng([settings.seed, 0])
                weights[side] = start.weights(side, encoder, rng, vocabulary=corpus.vocabulary)
                weights[side][SPARSE] = of_side.take(weights[side][SPARSE])
        return cls(settings, updates, rows, weights)

    @classmethod
    def of_some_rows(
        cls, settings: Settings, updates: int, features: Features, n_features: int, state: Arrays
    ) -> Self:
        """The towers with `some_rows` of others, which are copied.

        ``settings`` and ``updates`` are those of the others. ``features`` are (k,) int32 by side,
        ascending, of the ``n_features`` of the vocabulary. ``state`` is the result of `some_rows`;
        if it has the weights only, moments are zero.
        """
        rows = {side: TowerRows(seen, n_features) for side, seen in features.items()}
        weights: dict[str, Arrays] = {side: {} for side in features}
        for name, array in state.items():
            side, kind, *of_kind = name.split(".")
            if kind == _WEIGHTS:
                weights[side][of_kind[0]] = copy = aligned_empty(array.shape, array.dtype)
                copy[...] = array
        towers = cls(settings, updates, rows, weights)
        for name, array in towers.state().items():
            if name in state:
                array[...] = state[name]
        return towers

    def optimiser(self, weights: Arrays) -> Optimiser:
        """An optimiser of one tower's ``weights``, which it changes."""
        settings = self.settings
        if settings.optimiser == "adam":
            return Adam(weights, settings.max_norm)
        assert settings.optimiser == "nesterov"
        schedule = MomentumSchedule.paper(self._updates, settings.momentum)
        return Nesterov(weights, schedule, settings.max_norm)

    def _rate(self, number: int) -> float:
        # The mean of several parts moves less than each of them: their updates are larger.
        rate: float = self.settings.learning_rate * math.sqrt(self.settings.parts)
        if self.settings.decay == "linear":
            rate *= 1 - number / self._updates
        return rate

    def lay_out(self, batch: MiniBatch) -> Layouts:
        """The layouts of a mini-batch's texts by side: all of `update` that needs no weights."""
        texts = {"query": batch.queries, "document": batch.titles}
        return {
            side: self.encoder.lay_out(self._rows[side].texts(texts[side])) for side in self.sides
        }

    def update(self, batch: MiniBatch, layouts: Layouts, number: int, workers: Workers) -> float:
        """Train on one mini-batch: forward pass, loss, backward pass, step.

        ``layouts`` come from `lay_out`, and ``number`` counts updates from 0. The result is the
        mean loss of the mini-batch before the step. Raises `Diverged` if the loss is not a number
        or a weight has become huge.
        """
        settings = self.settings
        points = {
            side: self._towers[side].point(layouts[side].batch.input_rows, number)
            for side in self.sides
        }
        passes = self._together(
            workers,
            lambda side: self.encoder.forward_tasks(
                points[side], layouts[side], self._workspaces[side]
            ),
        )
        embeddings = {side: done.embeddings for side, done in passes.items()}
        n_queries = batch.queries.n_texts
        if settings.shared_towers:
            n_queries = int(batch.candidates.queries.max()) + 1
        Yq, Yd = split_embeddings(embeddings, n_queries)
        losses, Vq, Vd, _ = self._objective.at(
            Yq, Yd, batch.candidates, batch.weights, workers, self._workspaces["loss"]
        )
        loss = float(losses.sum())
        if not math.isfinite(loss):
            raise Diverged("the loss is not a number")
        V = join_gradients(Vq, Vd, settings.shared_towers)

        def learn(side: str) -> Generator[list[KernelTask], None, None]:
            point, words = points[side], layouts[side].words_of_features
            gradient = yield from self.encoder.backward_tasks(
                point.weights, passes[side], V[side], self._truncation, self._workspaces[side]
            )
            yield from self._towers[side].step_tasks(
                point, gradient, words, number, self._rate(number)
            )

        self._together(workers, learn)
        self.check_weights()
        return loss

    def check_weights(self) -> None:
        """Raise `Diverged` if a weight that every mini-batch changes has become huge."""
        for tower in self._towers.values():
            for name, array in tower.weights.items():
                if name != SPARSE and not are_below(array.reshape(-1), _WILD_WEIGHT):
                    raise Diverged("the weights have become huge")

    def _together(
        self, workers: Workers, job: Callable[[str], Generator[list[KernelTask], None, Any]]
    ) -> dict[str, Any]:
        """The results of ``job(side)`` by side; both sides run phase by phase."""
        return dict(zip(self.sides, workers.together(*map(job, self.sides)), strict=True))

    def embed(self, side: str, texts: TextBatch, workers: Workers) -> np.ndarray:
        """Embeddings by the tower of ``side``, (n_texts, dim). Call `flush` first."""
        side = side if side in self.sides else "query"
        weights = self._towers[side].weights
        P = self.encoder.project(weights, self._rows[side].texts(texts), workers)
        return self.encoder.embed(weights, P, texts.word_index, texts.offsets, workers)

    def flush(self, number: int, workers: Workers) -> None:
        """Bring all weights to their values before update ``number``."""
        for tower in self._towers.values():
            tower.flush(number, workers)

    def weights(self) -> dict[str, Arrays]:
        """A copy of each side's stacked weights for the whole vocabulary. Call `flush` before."""
        return {
            side: {
                name: self._rows[side].whole(array) if name == SPARSE else array.copy()
                for name, array in tower.weights.items()
            }
            for side, tower in self._towers.items()
        }

    def state(self) -> Arrays:
        """Everything that a checkpoint must keep, by name."""
        return {
            f"{side}.{name}": array
            for side, tower in self._towers.items()
            for name, array in tower.state().items()
        }

    def some_rows(self, features: Features, weights_only: bool = False) -> Arrays:
        """`state` with the rows of some features only; arrays without rows are not copied.

        ``features`` are (k,) int32 by side, each one that the tower has. ``weights_only`` leaves
        out moments.
        """
        return {
            name: array[self._positions(name, features)] if has_rows(name) else array
            for name, array in self.state().items()
            if not weights_only or name.split(".")[1] == _WEIGHTS
        }

    def meet(self, features: Sequence[Features], parts: Iterable[Arrays]) -> None:
        """Become the mean of several parts: see `average`.

        ``features`` are those that each part trained, (k,) int32 by side. ``parts`` are their
        states in the same order; one is in memory at a time.
        """
        rows = {
            name: [self._positions(name, of_part) for of_part in features]
            for name in self.state()
            if has_rows(name)
        }
        average(self.state(), rows, parts)

    def _positions(self, name: str, features: Features) -> NDArray[np.int32]:
        """The rows of some features in array ``name`` of `state`."""
        side = name.partition(".")[0]
        return self._rows[side].positions(features[side])

    def expect(self, stored: StoredState) -> None:
        """Raise ``stored.damaged`` unless it has the arrays of `state`."""
        for name, array in self.state().items():
            stored.expect(name, array.shape, array.dtype)

    def restore(self, stored: StoredState) -> None:
        """Continue from a state that `expect` has accepted."""
        for name, array in self.state().items():
            array[...] = stored[name]

    def may_be_state(self, arrays: StoredState, updates: int) -> bool:
        """Whether ``arrays``, named as in `state`, can be the state after ``updates``.

        The caller has checked names, shapes, types, and that all values are finite.
        """
        lowest = {"synced": 0, "second_moment": 0}
        highest = {"synced": updates}
        for name in self.state():
            kind = name.split(".")[1]
            if kind in lowest and arrays[name].min(initial=0) < lowest[kind]:
                return False
            if kind in highest and arrays[name].max(initial=0) > highest[kind]:
                return False
        return True
