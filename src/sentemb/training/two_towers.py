"""Both towers and their optimisers: what one mini-batch does to them."""

import math

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.encoder import Workspace
from sentemb.models.towers import distinct_sides, join_gradients, split_embeddings
from sentemb.objectives.softmax import embedding_loss
from sentemb.training.optimisers.adam import Adam
from sentemb.training.optimisers.nesterov import MomentumSchedule, Nesterov
from sentemb.training.optimisers.renormalisation import SPARSE

# A recurrent weight or bias this large saturates every gate: the training has run away.
_WILD_WEIGHT = 1e4


class Diverged(SentembError):
    """The loss is no number, or the weights are beyond all measure."""


class TwoTowers:
    """The model in training.

    Parameters
    ----------
    corpus : Corpus
    settings : Settings
    updates : int
        Mini-batches of the whole training, which the schedules of momentum and rate need to know.

    Attributes
    ----------
    encoder : RecurrentEncoder
    sides : tuple of str
        "query" and "document"; of shared towers only "query".
    """

    def __init__(self, corpus, settings, updates):
        self.settings = settings
        self.encoder = settings.encoder()
        self.sides = distinct_sides(settings.shared_towers)
        self._truncation = settings.truncation_settings()
        self._updates = updates
        self._towers = {}
        for number, side in enumerate(self.sides):
            weights = self.encoder.initialise(
                len(corpus.vocabulary),
                np.random.default_rng([settings.seed, number]),
                seen=corpus.seen(side),
            )
            self._towers[side] = self._optimiser(weights)
        self._workspaces = {side: Workspace() for side in (*self.sides, "loss")}

    def _optimiser(self, weights):
        settings = self.settings
        if settings.optimiser == "adam":
            return Adam(weights, settings.max_norm)
        schedule = MomentumSchedule.paper(self._updates, settings.edge_momentum, settings.momentum)
        return Nesterov(weights, schedule, settings.max_norm)

    def _rate(self, number):
        """The learning rate of update ``number``."""
        rate = self.settings.learning_rate
        if self.settings.decay == "linear":
            rate *= 1 - number / self._updates
        return rate

    def lay_out(self, batch):
        """The layouts of a `MiniBatch`'s texts by side: all of `update` that needs no weights."""
        texts = {"query": batch.queries, "document": batch.titles}
        return {side: self.encoder.lay_out(texts[side]) for side in self.sides}

    def update(self, batch, layouts, number, workers):
        """One mini-batch: forward, loss, backward, step.

        Parameters
        ----------
        batch : MiniBatch
        layouts : dict of Layout
            From `lay_out`.
        number : int
            Of this update, from 0.
        workers : Workers

        Returns
        -------
        float
            The mean loss of the batch, before the step.
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
        Yq, Yd = split_embeddings(embeddings, int(batch.candidates.queries.max()) + 1)
        losses, Vq, Vd = embedding_loss(
            Yq,
            Yd,
            batch.candidates,
            settings.gamma,
            batch.weights,
            workers,
            self._workspaces["loss"],
        )
        loss = float(losses.sum())
        if not math.isfinite(loss):
            raise Diverged("the loss is not a number")
        V = join_gradients(Vq, Vd, settings.shared_towers)

        def learn(side):
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
                if name != SPARSE and not np.abs(array).max() < _WILD_WEIGHT:
                    raise Diverged("the weights have grown beyond all measure")
        return loss

    def _together(self, workers, job):
        """What ``job(side)`` returns for each side, both sides running phase by phase."""
        return dict(zip(self.sides, workers.together(*map(job, self.sides))))

    def embed(self, side, texts, workers):
        """Embeddings of a `TextBatch` by the tower of ``side``, (n_texts, dim); `flush` before."""
        weights = self._towers[side if side in self.sides else "query"].weights
        P = self.encoder.project(weights, texts, workers)
        return self.encoder.embed(weights, P, texts.word_index, texts.offsets, workers)

    def flush(self, number, workers):
        """Bring all weights to where they stand before update ``number``."""
        for tower in self._towers.values():
            tower.flush(number, workers)

    def weights(self):
        """The stacked weights of each side, the live arrays; `flush` before using them."""
        return {side: tower.weights for side, tower in self._towers.items()}

    def state(self):
        """All that a checkpoint must keep, as named arrays."""
        return {
            f"{side}.{name}": array
            for side, tower in self._towers.items()
            for name, array in tower.state().items()
        }

    def may_be_state(self, arrays, updates):
        """Whether ``arrays``, named as in `state`, can be what `state` gave before ``updates``.

        Their shapes and types are known to be right, their values to be finite.
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
