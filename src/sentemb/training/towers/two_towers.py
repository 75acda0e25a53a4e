"""Both towers and their optimisers: one update with a mini-batch."""

import math
from collections.abc import Callable, Generator
from typing import Any, TypeAlias

import numpy as np

from sentemb.models.towers.layout import Layout
from sentemb.models.towers.towers import distinct_sides, join_gradients, split_embeddings
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays, KernelTask
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import MiniBatch
from sentemb.training.contracts import Optimiser, StoredState
from sentemb.training.optimisers.adam import Adam
from sentemb.training.optimisers.nesterov import MomentumSchedule, Nesterov
from sentemb.training.optimisers.renormalisation import SPARSE
from sentemb.training.stopping import Diverged
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.tower_rows import TowerRows

Layouts: TypeAlias = dict[str, Layout]

# A recurrent weight or bias this large saturates every gate: the training has diverged.
_WILD_WEIGHT = 1e4


class TwoTowers:
    """The towers while they are trained, each with the rows of the features that its texts have.

    Parameters
    ----------
    corpus : Corpus
        Its vocabulary, and the features that each tower reads.
    settings : Settings
    updates : int
        Updates of the whole training, for the schedules of momentum and learning rate.
    start : Start, optional
        The model to start from; by default all weights start at random.

    Attributes
    ----------
    encoder : Encoder
    sides : tuple of str
        "query" and "document"; for shared towers only "query".
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        updates: int,
        start: Start | None = None,
    ) -> None:
        self.settings = settings
        self.encoder = settings.encoder()
        self.sides = distinct_sides(settings.shared_towers)
        self._truncation = settings.truncation_settings()
        self._objective = settings.loss()
        self._updates = updates
        self._towers: dict[str, Optimiser] = {}
        self._rows: dict[str, TowerRows] = {}
        for number, side in enumerate(self.sides):
            rows = TowerRows(corpus.seen(side), len(corpus.vocabulary))
            if start is None:
                rng = np.random.default_rng([settings.seed, number])
                weights = self.encoder.initialise(rows.seen.size, rng)
            else:
                # The same numbers for both towers: equal word vectors make equal towers, in
                # which a query is near to a title of the same words before the first update.
                rng = np.random.default_rng([settings.seed, 0])
                weights = start.weights(side, self.encoder, rng, vocabulary=corpus.vocabulary)
                weights[SPARSE] = rows.take(weights[SPARSE])
            self._towers[side], self._rows[side] = self._optimiser(weights), rows
        self._workspaces = {side: Workspace() for side in (*self.sides, "loss")}

    def _optimiser(self, weights: Arrays) -> Optimiser:
        settings = self.settings
        if settings.optimiser == "adam":
            return Adam(weights, settings.max_norm)
        schedule = MomentumSchedule.paper(self._updates, settings.momentum)
        return Nesterov(weights, schedule, settings.max_norm)

    def _rate(self, number: int) -> float:
        rate: float = self.settings.learning_rate
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

        Parameters
        ----------
        batch : MiniBatch
            Pairs, texts and candidates.
        layouts : dict of Layout
            From `lay_out`.
        number : int
            The number of this update, from 0.
        workers : Workers
            Threads to compute with.

        Returns
        -------
        float
            The mean loss of the mini-batch, before the step.

        Raises
        ------
        Diverged
            If the loss is not a number or a weight has become huge.
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
        for tower in self._towers.values():
            for name, array in tower.weights.items():
                if name != SPARSE and not np.abs(array).max(initial=0) < _WILD_WEIGHT:
                    raise Diverged("the weights have become huge")
        return loss

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
