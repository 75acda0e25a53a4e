"""How well a model ranks the titles of a judged set."""

import warnings

import numpy as np

from sentemb.retrieval.metrics import ndcg


def judged_run(model, judged):
    """The model's score of every judged title for its query, as a run.

    Parameters
    ----------
    model : SentenceEncoder
    judged : JudgedSet

    Returns
    -------
    dict
        {query id: {title id: cosine}}; texts without words score 0.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # for texts without words 0 is meant
        queries = model.encode_query(judged.queries, normalize_embeddings=True)
        docs = model.encode_document(judged.docs, normalize_embeddings=True)
    query_of_each = np.repeat(np.arange(len(judged.queries)), np.diff(judged.offsets))
    scores = np.einsum("kd,kd->k", queries[query_of_each], docs[judged.doc_index]).tolist()
    run = {}
    for q, query_id in enumerate(judged.query_ids):
        span = range(judged.offsets[q], judged.offsets[q + 1])
        run[query_id] = {judged.doc_ids[judged.doc_index[k]]: scores[k] for k in span}
    return run


def evaluate_model(model, judged, cutoffs=(1, 3, 10), gain="exponential"):
    """`NDCG` of ``model`` on ``judged``, the judged titles of each query being ranked."""
    return ndcg(judged, judged_run(model, judged), cutoffs, gain)
