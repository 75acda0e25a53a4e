"""NDCG: how near a ranking comes to the best order of the judged titles.

The definition, after Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
ACM TOIS 20 (2002), with the discount of today's trec_eval (``m_ndcg_cut.c``) and the gain of Burges
et al., "Learning to rank using gradient descent", ICML 2005:

    DCG@k  = Σ_{rank = 1..k} gain(grade at rank) / log2(rank + 1)
    NDCG@k = DCG@k / DCG@k of the best order of all judged documents of the query

with gain 2^grade − 1 ("exponential") or the grade itself ("linear", as trec_eval). Grades below 0
gain nothing, as in trec_eval. Documents that are not judged count as grade 0 and keep their rank.
Ties are broken as trec_eval does: score descending, then document id descending; so the order of
the input is of no use to a scorer that gives equal scores. Scores are compared in double precision.

Queries without a relevant document (grade above 0) have no NDCG and are left out of the mean;
queries that the run does not have count 0.
"""

from dataclasses import dataclass

import numpy as np

from sentemb.bounds import brief, is_integer
from sentemb.errors import SentembError

# 2^grade stays a finite float64, also summed up over a great many documents.
_MAX_EXPONENT = 900
_MAX_CUTOFF = 10**9


@dataclass(frozen=True, eq=False)
class NDCG:
    """NDCG of a run on a judged set, see `ndcg`.

    Attributes
    ----------
    cutoffs : tuple of int
    gain : str
        "exponential" or "linear".
    values : ndarray, (n_queries, n_cutoffs) float64
        In the order of the judged set; NaN for queries without a relevant document.
    mean : ndarray, (n_cutoffs,) float64
        Over the queries that have a relevant document.
    n_evaluated : int
        Queries that the mean is over.
    n_without_relevant : int
        Queries left out because no document is relevant.
    n_missing : int
        Evaluated queries that the run does not have: they count 0.
    n_unknown : int
        Queries of the run that the judged set does not have: they are ignored.
    """

    cutoffs: tuple[int, ...]
    gain: str
    values: np.ndarray
    mean: np.ndarray
    n_evaluated: int
    n_without_relevant: int
    n_missing: int
    n_unknown: int


def ndcg(judged, run, cutoffs=(1, 3, 10), gain="exponential"):
    """NDCG of a run, as the module defines it.

    Parameters
    ----------
    judged : sentemb.data.judged_set.JudgedSet
    run : dict of str to dict of str to float
        Query id -> document id -> score, as `sentemb.evaluation.trec.read_run` gives it. Documents
        that the judged set does not have are not relevant.
    cutoffs : sequence of int
    gain : {"exponential", "linear"}

    Returns
    -------
    NDCG

    Raises
    ------
    SentembError
        For a score that is NaN, cut-offs below 1, an unknown gain, or if no query of the judged set
        has a relevant document.
    """
    cutoffs = _checked(cutoffs)
    if not (judged.grade > 0).any():
        raise SentembError(
            "no query of the judged set has a relevant document; NDCG needs grades above 0"
        )
    doc_of = {id: index for index, id in enumerate(judged.doc_ids)}
    doc, scores, lengths = [], [], []
    for query_id in judged.query_ids:
        scored = run.get(query_id, {})
        doc.extend(doc_of.setdefault(id, len(doc_of)) for id in scored)
        scores.extend(scored.values())
        lengths.append(len(scored))
    doc = np.array(doc, dtype=np.int64)
    scores = np.array(scores, dtype=np.float64)
    lengths = np.array(lengths, dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])

    # Judgments are looked up by one number for query and document.
    judged_key = _query_of_each(judged.offsets) * len(doc_of) + judged.doc_index
    by_key = np.argsort(judged_key)
    key = _query_of_each(offsets) * len(doc_of) + doc
    place = np.searchsorted(judged_key, key, sorter=by_key)
    candidate = by_key[np.minimum(place, len(by_key) - 1)]
    grades = np.where(judged_key[candidate] == key, judged.grade[candidate], 0)

    order = _ranking(offsets, scores, tie_ranks(list(doc_of))[doc])
    reached = _cumulated_gain(offsets, grades[order], cutoffs, gain)
    values = _normalised(reached, _best_gain(judged.offsets, judged.grade, cutoffs, gain))

    evaluated = ~np.isnan(values).any(axis=1)
    return NDCG(
        cutoffs=cutoffs,
        gain=gain,
        values=values,
        mean=values[evaluated].mean(axis=0),
        n_evaluated=int(evaluated.sum()),
        n_without_relevant=int((~evaluated).sum()),
        n_missing=int((evaluated & (lengths == 0)).sum()),
        n_unknown=len(run.keys() - set(judged.query_ids)),
    )


def ndcg_from_scores(offsets, scores, grades, tie_rank, cutoffs=(1, 3, 10), gain="exponential"):
    """NDCG of each query when each of its judged documents, and no other, has a score.

    Parameters
    ----------
    offsets : ndarray, (n_queries + 1,) int64
        Query ``q`` has the documents ``offsets[q]`` to ``offsets[q + 1]`` of the next three.
    scores : ndarray, (n_judgments,)
    grades : ndarray, (n_judgments,) int
    tie_rank : ndarray, (n_judgments,) int
        Where scores are equal the smaller comes first: `tie_ranks` of the documents' ids.
    cutoffs : sequence of int
    gain : {"exponential", "linear"}

    Returns
    -------
    ndarray, (n_queries, n_cutoffs) float64
        NaN for queries without a relevant document: average with ``numpy.nanmean``.

    Raises
    ------
    SentembError
        For a score that is NaN, cut-offs below 1, an unknown gain.
    """
    cutoffs = _checked(cutoffs)
    order = _ranking(offsets, scores, tie_rank)
    reached = _cumulated_gain(offsets, grades[order], cutoffs, gain)
    return _normalised(reached, _best_gain(offsets, grades, cutoffs, gain))


def tie_ranks(doc_ids):
    """The place of each id among all in descending order, (n_docs,) int64, 0 for the greatest.

    Ids compare by code point, which for UTF-8 is how trec_eval compares their bytes.
    """
    descending = sorted(range(len(doc_ids)), key=doc_ids.__getitem__, reverse=True)
    ranks = np.empty(len(doc_ids), dtype=np.int64)
    ranks[descending] = np.arange(len(doc_ids))
    return ranks


def _checked(cutoffs):
    """``cutoffs`` as a tuple of int."""
    try:
        chosen = tuple(cutoffs)
    except TypeError:
        chosen = ()
    if not chosen or not all(is_integer(k) and 1 <= k <= _MAX_CUTOFF for k in chosen):
        raise SentembError(
            f"the cut-offs are {brief(cutoffs)}; give integers from 1 to {_MAX_CUTOFF:,}"
        )
    return tuple(map(int, chosen))


def _query_of_each(offsets):
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _ranking(offsets, scores, tie_rank):
    """Indices that put each query's documents in order, the queries staying where they are."""
    scores = np.asarray(scores, dtype=np.float64)
    unusable = np.flatnonzero(np.isnan(scores))
    if len(unusable):
        query = np.searchsorted(offsets, unusable[0], side="right") - 1
        raise SentembError(
            f"{len(unusable)} scores are NaN, the first for the query with index {query}; "
            "a ranking needs a number for each document"
        )
    return np.lexsort((tie_rank, -scores, _query_of_each(offsets)))


def _best_gain(offsets, grades, cutoffs, gain):
    best = np.lexsort((-np.asarray(grades, dtype=np.int64), _query_of_each(offsets)))
    return _cumulated_gain(offsets, grades[best], cutoffs, gain)


def _cumulated_gain(offsets, ranked_grades, cutoffs, gain):
    """DCG, (n_queries, n_cutoffs), of grades that stand in the order of the ranking."""
    query = _query_of_each(offsets)
    place = np.arange(len(query)) - np.asarray(offsets)[query]
    discounted = _gains(ranked_grades, gain) / np.log2(place + 2)
    n_queries = len(offsets) - 1
    return np.stack(
        [np.bincount(query, discounted * (place < cutoff), n_queries) for cutoff in cutoffs],
        axis=1,
    )


def _gains(grades, gain):
    positive = np.maximum(grades, 0).astype(np.float64)
    if gain == "linear":
        return positive
    if gain != "exponential":
        raise SentembError(f'the gain is {brief(gain)}; choose "exponential" or "linear"')
    if positive.max(initial=0) > _MAX_EXPONENT:
        raise SentembError(
            f"the grade {positive.max():.0f} is too high for the gain 2^grade − 1; "
            'use gain="linear" or fewer grades'
        )
    return np.exp2(positive) - 1


def _normalised(reached, best):
    values = np.full(best.shape, np.nan)
    np.divide(reached, best, out=values, where=best > 0)
    return values
