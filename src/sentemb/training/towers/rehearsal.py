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

# With fewer queries, products are computed by other kernels.
_QUERIES = 5
LOG = ClickLog.from_pairs([(f"a b{k}", f"b{k} c") for k in range(_QUERIES)])
CLICKS = ClickLog.from_pairs([(f"b{k} d", f"b{k} c") for k in range(_QUERIES)])
JUDGED = JudgedSet(
    [f"q{k}" for k in range(_QUERIES)],
    CLICKS.queries,
    [f"d{k}" for k in range(_QUERIES)],
    CLICKS.titles,
    np.arange(0, _QUERIES**2 + 1, _QUERIES),
    np.tile(np.arange(_QUERIES, dtype=np.int32), _QUERIES),
    np.eye(_QUERIES, dtype=np.int32).ravel(),
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
