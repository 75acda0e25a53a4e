"""Work on one part of a log between two meetings, in this process or on another machine.

Each function here depends on its arguments alone and changes none of them, so it may run anywhere,
and again if a worker is lost.
"""

import numpy as np
from numpy.typing import NDArray

from sentemb.models.towers.towers import distinct_sides
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import Workers
from sentemb.training.batches.epochs import Epochs
from sentemb.training.batches.mini_batches import MiniBatch
from sentemb.training.negatives import hard_negatives
from sentemb.training.towers.two_towers import Features, Layouts, TwoTowers

# The hard negatives of a part's queries; None before the first look-up.
HardTitles = NDArray[np.int32] | None


def features_of_round(
    part: Epochs, hard_titles: HardTitles, epoch: int, steps: tuple[int, int]
) -> Features:
    """The features that the mini-batches from the first of ``steps`` to the second train."""
    sides = distinct_sides(part.settings.shared_towers)
    met = {side: np.zeros(len(part.corpus.vocabulary), np.bool_) for side in sides}
    for step in range(*steps):
        batch = part.batch(epoch, step, hard_titles)
        texts = {"query": batch.queries, "document": batch.titles}
        for side in sides:
            met[side][texts[side].input_rows] = True
    return {side: np.flatnonzero(of_side).astype(np.int32) for side, of_side in met.items()}


def train_round(
    part: Epochs,
    hard_titles: HardTitles,
    epoch: int,
    steps: tuple[int, int],
    features: Features,
    state: Arrays,
    threads: int,
) -> tuple[Arrays, float]:
    """Train on some mini-batches of a part.

    The first four arguments are those of `features_of_round`, ``features`` is its result, and
    ``state`` is `TwoTowers.some_rows` of these features. The result is the state after these
    mini-batches, in new arrays, and the mean of their losses; the number of ``threads`` does not
    change it.

    Raises `Diverged` as `TwoTowers.update` does.
    """
    n_steps = len(part.starts) - 1
    updates = part.settings.epochs * n_steps
    n_features = len(part.corpus.vocabulary)
    towers = TwoTowers.of_some_rows(part.settings, updates, features, n_features, state)
    planned: list[tuple[MiniBatch, Layouts]] = []

    def plan(step: int) -> None:
        if step < steps[1]:
            batch = part.batch(epoch, step, hard_titles)
            planned.append((batch, towers.lay_out(batch)))

    loss = 0.0
    with Workers(threads) as workers:
        plan(steps[0])
        for step in range(*steps):
            batch = planned.pop()
            workers.meanwhile(plan, step + 1)
            try:
                loss += towers.update(*batch, epoch * n_steps + step, workers)
            finally:
                workers.catch_up()
        towers.flush(epoch * n_steps + steps[1], workers)
    return towers.state(), loss / (steps[1] - steps[0])


def look_up(part: Epochs, epoch: int, weights: Arrays, threads: int) -> NDArray[np.int32]:
    """Hard negatives of a part's queries among its titles, see `hard_negatives.look_up`.

    ``weights`` are those of `TwoTowers.some_rows` for all features of the part.
    """
    corpus, settings = part.corpus, part.settings
    n_features = len(corpus.vocabulary)
    towers = TwoTowers.of_some_rows(settings, 1, features_of(part), n_features, weights)
    with Workers(threads) as workers:
        return hard_negatives.look_up(
            corpus, towers, workers, lambda: False, seed=settings.seed, epoch=epoch
        )


def features_of(part: Epochs) -> Features:
    """All features of a part."""
    sides = distinct_sides(part.settings.shared_towers)
    return {side: part.corpus.seen(side) for side in sides}
