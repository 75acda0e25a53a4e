"""Hard negatives: unclicked titles that the current model itself ranks high for a query.

Training soon tells most titles of a mini-batch from the clicked one. From epoch 3 on, every three
epochs, the highest unclicked titles of all queries of the log are looked up. Some of those of its
pairs then join the clicked titles of every mini-batch, as candidates like any other.
"""

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.kernels.hard_negatives import highest_titles
from sentemb.system.parallel import Workers
from sentemb.text.batch import TextBatch
from sentemb.training.corpus import Corpus
from sentemb.training.settings import HARD_AMONG, HARD_FROM_EPOCH

EPOCHS_BETWEEN = 3
# Queries between two calls of ``stopped``: a few seconds even with many titles.
_PORTION = 8_192


class _Towers(Protocol):
    """What a look-up needs of `TwoTowers`."""

    def embed(self, side: str, texts: TextBatch, workers: Workers) -> np.ndarray: ...


def are_due(epoch: int) -> bool:
    """Whether hard negatives are looked up before ``epoch`` (from 0)."""
    since = epoch + 1 - HARD_FROM_EPOCH
    return since >= 0 and since % EPOCHS_BETWEEN == 0


def are_in_use(epoch: int, step: int) -> bool:
    """Whether mini-batch ``step`` of ``epoch`` (both from 0) draws from an earlier look-up."""
    return epoch + 1 >= HARD_FROM_EPOCH and not (step == 0 and are_due(epoch))


def look_up(
    corpus: Corpus, towers: _Towers, workers: Workers, stopped: Callable[[], bool]
) -> NDArray[np.int32]:
    """The highest unclicked titles of every query.

    The time is proportional to the number of queries times the number of titles.

    Parameters
    ----------
    corpus : Corpus
        The log.
    towers : TwoTowers
        Flushed.
    workers : Workers
        Threads to compute with.
    stopped : function
        Asked before every portion of the queries. After a yes the look-up ends, and the other
        queries have no titles.

    Returns
    -------
    (n_queries, HARD_AMONG) int32
        -1 where a query has fewer titles.
    """
    Uq = _unit_embeddings("query", corpus, towers, workers)
    UdT = np.ascontiguousarray(_unit_embeddings("document", corpus, towers, workers).T)
    highest = np.full((len(Uq), HARD_AMONG), -1, np.int32)
    for first in range(0, len(Uq), _PORTION):
        if stopped():
            break
        some = slice(first, first + _PORTION)
        offsets = corpus.query_offsets[first : first + _PORTION + 1]
        arguments = highest[some], Uq[some], UdT, offsets, corpus.query_titles
        workers.over(len(Uq[some]), highest_titles, *arguments)
    return highest


def _unit_embeddings(side: str, corpus: Corpus, towers: _Towers, workers: Workers) -> np.ndarray:
    portions = [towers.embed(side, texts, workers) for texts in corpus.portions(side)]
    for Y in portions:
        normalise_rows(Y, np.empty(len(Y), Y.dtype), Y)
    return np.concatenate(portions)
