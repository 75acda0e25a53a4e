"""How well a model, or a baseline, ranks the titles of a judged set."""

import numpy as np

from sentemb.evaluation.metrics import ndcg


def judged_run(ranker, judged):
    """The score of every judged title for its query, as a run.

    Parameters
    ----------
    ranker : SentenceEncoder or Baseline
        Whatever has a `SentenceEncoder.score_pairs`.
    judged : JudgedSet

    Returns
    -------
    dict
        {query id: {title id: score}}.
    """
    query_of_each = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
    scores = ranker.score_pairs(
        judged.queries, judged.docs, query_of_each, judged.doc_index
    ).tolist()
    run = {}
    for q, query_id in enumerate(judged.query_ids):
        span = range(judged.offsets[q], judged.offsets[q + 1])
        run[query_id] = {judged.doc_ids[judged.doc_index[k]]: scores[k] for k in span}
    return run


def evaluate_model(ranker, judged, cutoffs=(1, 3, 10), gain="exponential"):
    """`NDCG` of ``ranker`` on ``judged``, the judged titles of each query being ranked."""
    return ndcg(judged, judged_run(ranker, judged), cutoffs, gain)
