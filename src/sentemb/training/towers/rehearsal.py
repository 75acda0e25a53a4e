"""The work of a training of two towers outside its updates, on a few texts.

A second process does it to compile the kernels; see `sentemb.kernels.ahead`.
"""

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.dev import DevPlan
from sentemb.training.negative_options import HARD_FROM_EPOCH
from sentemb.training.towers.settings import Settings
from sentemb.training.towers.two_tower_task import TwoTowerTask

LOG = ClickLog.from_pairs([("a b", "c d"), ("c e", "a b e"), ("b e", "c d f")])
CLICKS = ClickLog.from_pairs([("a e", "c d"), ("a c", "a b e"), ("b f", "c d f")])
JUDGED = JudgedSet(
    ["q1", "q2"],
    CLICKS.queries[:2],
    ["d1", "d2", "d3"],
    LOG.titles,
    np.array([0, 3, 6]),
    np.array([0, 1, 2, 0, 1, 2], np.int32),
    np.array([2, 0, 1, 0, 2, 1], np.int32),
)


def rehearse(settings: Settings, dev: JudgedSet | ClickLog | None) -> SentenceEncoder:
    """Measure a model of ``settings`` on ``dev``, look up its hard negatives, and return it."""
    with Workers(1) as workers:
        corpus = Corpus(LOG, settings)
        held_out = DevPlan.of(dev).given(LOG.queries, LOG.titles, _ignore)
        task = TwoTowerTask(corpus, settings, workers, _ignore, dev=held_out)
        task.measure()
        task.before_epoch(HARD_FROM_EPOCH - 1, lambda: False)
        return SentenceEncoder.of(task.model(), workers.threads)


def _ignore(message: str) -> None:
    pass
