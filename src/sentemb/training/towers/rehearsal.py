"""The work of a training of two towers around its forward and backward passes, on a few texts.

A second process does it to compile the kernels; see `sentemb.kernels.compiling.ahead`. The first
process compiles those of the passes meanwhile.
"""

import numpy as np

from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.training.batches.corpus import Corpus
from sentemb.training.dev import DevPlan
from sentemb.training.negative_options import HARD_AMONG, HARD_FROM_EPOCH
from sentemb.training.optimisers.renormalisation import SPARSE
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
    """Do the work in the order in which a training needs it, and return a model of ``settings``.

    It projects words, updates weights, orders an epoch by hard negatives, measures the model on
    ``dev`` and looks up its hard negatives.
    """
    with Workers(1) as workers:
        corpus = Corpus(LOG, settings)
        held_out = DevPlan.of(dev).given(LOG.queries, LOG.titles, _ignore)
        task = TwoTowerTask(corpus, settings, workers, _ignore, dev=held_out)
        _project_and_update(task, workers)
        task.epochs.order(0, np.zeros((_QUERIES, HARD_AMONG), np.int32)).part(0, _QUERIES)
        task.measure()
        task.before_epoch(HARD_FROM_EPOCH - 1, lambda: False)
        return SentenceEncoder.of(task.model(), workers.threads)


def _project_and_update(task: TwoTowerTask, workers: Workers) -> None:
    towers = task.towers
    weights = towers.weights()[towers.sides[0]]
    texts = task.corpus.texts("query", np.arange(_QUERIES, dtype=np.int32))
    towers.encoder.project(weights, texts, workers)
    optimiser = towers.optimiser(weights)
    point = optimiser.point(texts.input_rows, 0)
    # So long that it is shortened.
    gradient = {name: np.ones_like(array) for name, array in weights.items() if name != SPARSE}
    gradient["words"] = np.ones((1, weights[SPARSE].shape[1]), weights[SPARSE].dtype)
    rows = texts.input_rows.size
    words = np.arange(rows + 1), np.zeros(rows, np.int32), np.ones(rows, np.float32)
    rate = task.settings.learning_rate
    workers.together(optimiser.step_tasks(point, gradient, words, 0, rate))
    towers.check_weights()


def _ignore(message: str) -> None:
    pass
