"""The task of training two towers in parts of a log that meet now and then.

The number of parts and of meetings decides the bits, as they are settings; where a part is trained
does not. A step of this task is a round: every part trains on its next mini-batches, beginning with
the same weights, and then all take the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.contracts import Embedder
from sentemb.system.cluster import Executor
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.epochs import Epochs
from sentemb.training.dev import Dev
from sentemb.training.negatives import hard_negatives
from sentemb.training.towers import rounds
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.start import Start
from sentemb.training.towers.two_tower_task import TowersTask

# The key of the random numbers that put queries into parts: the same parts for every seed.
_KEY = 0x70617274
# Updates of a part, in all epochs: with fewer, every set that was measured ranked worse in parts.
_FEW = 300


class PartsTask(TowersTask):
    """Two towers, trained in parts; a `sentemb.training.contracts.Task`.

    The ``executor`` trains the parts. For the other parameters and the attributes see `TowersTask`.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: Settings,
        workers: Workers,
        note: Callable[[str], None],
        start: Start | None = None,
        dev: Dev[Embedder] | None = None,
        scratch: AnyPath | None = None,
        *,
        executor: Executor,
    ) -> None:
        super().__init__(corpus, settings, workers, note, start, dev, scratch)
        self._executor = executor
        self._updates = self.steps  # of each part, in an epoch
        self.steps = min(settings.meetings, self._updates)
        self._queries = queries_of_parts(corpus.query_index, corpus.n_queries, settings.parts)
        parts = [self._part(queries) for queries in self._queries]
        self._compared = [(part.corpus.n_queries, part.corpus.n_titles) for part in parts]
        self._pairs = np.sum([part.starts for part in parts], axis=0)
        self._features = [rounds.features_of(part) for part in parts]
        self._parts = [executor.keep(part) for part in parts]
        note(_cost(settings.parts, settings.epochs * self._updates))
        # The lists of all queries, and those of each part where it is trained.
        self._lists: tuple[rounds.HardTitles, list[Any]] = None, [None] * len(parts)

    def _part(self, queries: NDArray[np.int32]) -> Epochs:
        """The mini-batches of some queries: as many as those of the other parts."""
        few = SentembError(
            f"the log has too few queries for {self.settings.parts} parts; give fewer parts"
        )
        try:
            corpus = self.corpus.part(queries)
        except SentembError as error:
            raise few from error
        starts = corpus.n_pairs * np.arange(self._updates + 1) // self._updates
        if np.diff(starts).min() < 2:
            raise few
        return Epochs(corpus, self.settings, starts)

    def _first_batch(self, step: int) -> int:
        """The first mini-batch of a round, in each part."""
        return self._updates * step // self.steps

    def _updates_at(self, update: int) -> int:
        epoch, step = divmod(update, self.steps)
        return epoch * self._updates + self._first_batch(step)

    def pairs_before(self, step: int) -> int:
        return int(self._pairs[self._first_batch(step)])

    def _look_up(self, epoch: int, stopped: Callable[[], bool]) -> NDArray[np.int32]:
        """The hard negatives of all queries, by the numbers that titles have in their part."""
        self._lists = None, [None] * len(self._parts)

        def portions() -> Iterator[tuple[Any, ...]]:
            for part, features in zip(self._parts, self._features, strict=True):
                if stopped():
                    return
                weights = self.towers.some_rows(features, weights_only=True)
                yield part, epoch, weights, self._executor.threads

        lists = hard_negatives.no_lists(self.corpus.n_queries, self._scratch)
        of_parts = self._executor.in_order(rounds.look_up, portions())
        for queries, of_part in zip(self._queries, of_parts, strict=False):
            lists[queries] = of_part
        return lists

    def _lists_of_parts(self) -> list[Any]:
        lists = self.hard_titles
        if lists is not None and lists is not self._lists[0]:
            self._lists = lists, [self._executor.keep(lists[queries]) for queries in self._queries]
        return self._lists[1]

    def plan(self, epoch: int, step: int) -> tuple[int, tuple[int, int]]:
        """The epoch, the first mini-batch of a round and the first of the next.

        Each part plans its mini-batches itself.
        """
        return epoch, (self._first_batch(step), self._first_batch(step + 1))

    def update(self, batch: tuple[int, tuple[int, int]], update: int) -> float:
        """Train every part for a round; return the mean loss."""
        of_parts = [
            (part, lists, *batch)
            for part, lists in zip(self._parts, self._lists_of_parts(), strict=True)
        ]
        features = list(self._executor.in_order(rounds.features_of_round, of_parts))
        losses = []

        def portions() -> Iterator[tuple[Any, ...]]:
            for of_part, trained in zip(of_parts, features, strict=True):
                yield *of_part, trained, self.towers.some_rows(trained), self._executor.threads

        def states() -> Iterator[Arrays]:
            for state, loss in self._executor.in_order(rounds.train_round, portions()):
                losses.append(loss)
                yield state

        self.towers.meet(features, states())
        return float(np.mean(losses))


def _cost(parts: int, updates: int) -> str:
    """The note on the cost of parts; its figures are those of docs/results/scale.md."""
    few = ""
    if updates < _FEW:
        few = f"; with fewer than {_FEW} updates a part all lost, 0.017 to 0.042: give fewer parts"
    return (
        f"each of {parts} parts has {updates:,} updates; parts rank worse than one: in our "
        f"measurements by up to 0.018 of NDCG@1 with 2 or 4 parts and 0.042 with 8{few}"
    )


def queries_of_parts(
    query_index: NDArray[np.int32], n_queries: int, parts: int
) -> list[NDArray[np.int32]]:
    """The queries of each part, at random, so that each has about as many pairs; ascending int32.

    ``query_index`` is the query of each pair, (n_pairs,); ``n_queries`` are the queries of the log.
    """
    shuffled = np.random.default_rng(_KEY).permutation(n_queries).astype(np.int32)
    pairs = np.cumsum(np.bincount(query_index, minlength=n_queries)[shuffled])
    cuts = np.searchsorted(pairs, query_index.size * np.arange(1, parts) / parts)
    return [np.sort(queries) for queries in np.split(shuffled, cuts)]
