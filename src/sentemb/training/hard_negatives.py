"""Hard negatives: unclicked titles that the model in training itself ranks high for a query.

Most titles of a mini-batch are told apart from the clicked one soon. From the third epoch on, every
three epochs, the best unclicked titles of all queries of the log are looked up; every mini-batch
then holds some of those of its pairs beside the clicked titles, as candidates like any other.
"""

import numpy as np

from sentemb.kernels.cosine_softmax import normalise_rows
from sentemb.kernels.hard_negatives import highest_titles
from sentemb.training.settings import HARD_AMONG, HARD_FROM_EPOCH

EPOCHS_BETWEEN = 3
# Queries that are looked up between two looks at ``stop``; some seconds even with many titles.
_PORTION = 8_192


def are_due(epoch):
    """Whether to look hard negatives up before ``epoch``, counted from 0."""
    since = epoch + 1 - HARD_FROM_EPOCH
    return since >= 0 and since % EPOCHS_BETWEEN == 0


def are_in_use(epoch, step):
    """Whether mini-batch ``step`` of ``epoch``, both from 0, draws from an earlier look-up."""
    return epoch + 1 >= HARD_FROM_EPOCH and not (step == 0 and are_due(epoch))


def look_up(corpus, towers, workers, stop):
    """The best unclicked titles of every query.

    The time goes with the number of queries times that of titles.

    Parameters
    ----------
    corpus : Corpus
    towers : TwoTowers
        Flushed.
    workers : Workers
    stop : threading.Event
        When it is set the look-up ends early, and what is not looked up yet is -1.

    Returns
    -------
    (n_queries, HARD_AMONG) int32
        -1 in places for which there is no title.
    """
    Uq = _unit_embeddings("query", corpus, towers, workers)
    UdT = np.ascontiguousarray(_unit_embeddings("document", corpus, towers, workers).T)
    highest = np.full((len(Uq), HARD_AMONG), -1, np.int32)
    for first in range(0, len(Uq), _PORTION):
        if stop.is_set():
            break
        some = slice(first, first + _PORTION)
        offsets = corpus.query_offsets[first : first + _PORTION + 1]
        arguments = highest[some], Uq[some], UdT, offsets, corpus.query_titles
        workers.over(len(Uq[some]), highest_titles, *arguments)
    return highest


def _unit_embeddings(side, corpus, towers, workers):
    portions = [towers.embed(side, texts, workers) for texts in corpus.portions(side)]
    for Y in portions:
        normalise_rows(Y, np.empty(len(Y), Y.dtype), Y)
    return np.concatenate(portions)
