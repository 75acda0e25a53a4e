"""NDCG: how close a ranking is to the best order of the judged titles.

The definition, after Järvelin and Kekäläinen, "Cumulated gain-based evaluation of IR techniques",
ACM TOIS 20 (2002), with the discount of today's trec_eval (``m_ndcg_cut.c``) and the gain of Burges
et al., "Learning to rank using gradient descent", ICML 2005:

    DCG@k  = Σ_{rank = 1..k} gain(grade at rank) / log2(rank + 1)
    NDCG@k = DCG@k / DCG@k of the best order of all judged titles of the query

with gain 2^grade − 1 ("exponential") or the grade itself ("linear", as trec_eval). Grades below 0
gain nothing, as in trec_eval. Titles that are not judged count as grade 0 and keep their rank.
Ties are broken as in trec_eval: by score descending, then by title id descending, so a ranker that
gives equal scores does not profit from the order of the input. Scores are compared in double
precision.

Queries without a relevant title (grade above 0) have no NDCG and are left out of the mean; queries
that are missing from the run count as 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer
from sentemb.system.html_tables import facts_table

# Query id -> title id -> score.
Run: TypeAlias = Mapping[str, Mapping[str, float]]

_Floats: TypeAlias = NDArray[np.float64]
_Integers: TypeAlias = NDArray[np.integer[Any]]

# Up to here 2^grade is a finite float64, and so is the sum over very many titles.
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
        In the order of the judged set; NaN for queries without a relevant title.
    mean : ndarray, (n_cutoffs,) float64
        Mean over the queries that have a relevant title.
    n_evaluated : int
        Number of queries in that mean.
    n_without_relevant : int
        Queries left out because no title is relevant.
    n_missing : int
        Evaluated queries that are missing from the run; they count as 0.
    n_unknown : int
        Queries of the run that are not in the judged set; they are ignored.
    n_equal : int
        Evaluated queries whose judged titles all have one grade: every order of them is perfect.
    parts : dict of str to NDCG
        The parts of a ranker alone, if they were measured.
    """

    cutoffs: tuple[int, ...]
    gain: str
    values: _Floats
    mean: _Floats
    n_evaluated: int
    n_without_relevant: int
    n_missing: int
    n_unknown: int
    n_equal: int
    parts: Mapping[str, NDCG] = field(default_factory=dict)

    def _repr_html_(self) -> str:
        means = zip(self.cutoffs, self.mean.tolist(), strict=True)
        return facts_table(
            {
                **{f"NDCG@{cutoff}": mean for cutoff, mean in means},
                "gain": self.gain,
                "queries": self.n_evaluated,
                "queries without a relevant title, left out": self.n_without_relevant,
                "queries with one grade only, for which every order is perfect": self.n_equal,
                "queries missing from the run, counted as 0": self.n_missing,
                "queries of the run without judgments, ignored": self.n_unknown,
            }
        )


def ndcg(
    judged: JudgedSet,
    run: Run,
    cutoffs: Iterable[int] = (1, 3, 10),
    gain: str = "exponential",
) -> NDCG:
    """NDCG of a run, as the module defines it.

    ``run`` is query id -> title id -> score, as `sentemb.evaluation.trec.read_run` gives it. Titles
    that are not in the judged set are not relevant. ``cutoffs`` are the ranks k at which NDCG@k is
    measured. The gain "exponential" is 2^grade − 1, "linear" the grade itself. Raises
    `SentembError` for a score that is NaN, cut-offs below 1, an unknown gain, or if no query of the
    judged set has a relevant title.
    """
    cutoffs = _checked(cutoffs)
    if not (judged.grade > 0).any():
        raise SentembError(
            "no query of the judged set has a relevant title; NDCG needs grades above 0"
        )
    index_of = {id: index for index, id in enumerate(judged.title_ids)}
    scored = [run.get(query_id, {}) for query_id in judged.query_ids]
    title = np.array(
        [index_of.setdefault(id, len(index_of)) for of_query in scored for id in of_query], np.int64
    )
    scores = np.array([score for of_query in scored for score in of_query.values()], np.float64)
    lengths = np.array([len(of_query) for of_query in scored], np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths)])

    # One number for query and title finds the judgment of a pair.
    judged_key = _query_of_each(judged.offsets) * len(index_of) + judged.title_index
    by_key = np.argsort(judged_key)
    key = _query_of_each(offsets) * len(index_of) + title
    slot = np.searchsorted(judged_key, key, sorter=by_key)
    candidate = by_key[np.minimum(slot, len(by_key) - 1)]
    grades = np.where(judged_key[candidate] == key, judged.grade[candidate], 0)

    order = _ranking(offsets, scores, tie_ranks(list(index_of))[title])
    reached = _cumulated_gain(offsets, _gains(grades[order], gain), cutoffs)
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
        n_equal=int((evaluated & _have_one_grade(judged)).sum()),
    )


class JudgedScores:
    """NDCG of many rankings of the judged titles of one set: `ndcg` for lists of scores.

    At least one grade of the set is above 0.
    """

    def __init__(
        self, judged: JudgedSet, cutoffs: Iterable[int] = (1, 3, 10), gain: str = "exponential"
    ) -> None:
        self._offsets, self._cutoffs = judged.offsets, _checked(cutoffs)
        # The order of equal scores.
        ties = tie_ranks(judged.title_ids)[judged.title_index]
        self._tied = np.lexsort((ties, _query_of_each(judged.offsets)))
        self._gains = _gains(judged.grade[self._tied], gain)
        self._best = _best_gain(judged.offsets, judged.grade, self._cutoffs, gain)

    def mean(self, scores: _Floats) -> _Floats:
        """The means over the queries that `ndcg` gives, (n_cutoffs,).

        ``scores`` (n_judgments,) are in the order of the judgments of the set.
        """
        _check_numbers(self._offsets, scores)
        ranking = np.lexsort((-scores[self._tied], _query_of_each(self._offsets)))
        reached = _cumulated_gain(self._offsets, self._gains[ranking], self._cutoffs)
        values = _normalised(reached, self._best)
        mean: _Floats = values[~np.isnan(values).any(axis=1)].mean(axis=0)
        return mean


def tie_ranks(title_ids: Sequence[str]) -> NDArray[np.int64]:
    """The position of each id in descending order, (n_titles,) int64, 0 for the greatest.

    Ids are compared by code point, which for UTF-8 equals trec_eval's comparison of bytes.
    """
    descending = sorted(range(len(title_ids)), key=title_ids.__getitem__, reverse=True)
    ranks = np.empty(len(title_ids), dtype=np.int64)
    ranks[descending] = np.arange(len(title_ids))
    return ranks


def _have_one_grade(judged: JudgedSet) -> NDArray[np.bool_]:
    """Which queries have titles of one grade only, (n_queries,)."""
    query = _query_of_each(judged.offsets)
    # The first title of a query with titles is at its offset; all others are compared with it.
    differs = judged.grade != judged.grade[judged.offsets[query]]
    is_one: NDArray[np.bool_] = np.bincount(query[differs], minlength=len(judged.queries)) == 0
    return is_one


def _checked(cutoffs: Iterable[int]) -> tuple[int, ...]:
    try:
        chosen = tuple(cutoffs)
    except TypeError:
        chosen = ()
    if not chosen or not all(is_integer(k) and 1 <= k <= _MAX_CUTOFF for k in chosen):
        raise SentembError(
            f"the cut-offs are {brief(cutoffs)}; give integers from 1 to {_MAX_CUTOFF:,}"
        )
    return tuple(map(int, chosen))


def _query_of_each(offsets: _Integers) -> _Integers:
    return np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))


def _ranking(offsets: _Integers, scores: _Floats, tie_rank: _Integers) -> _Integers:
    """Indices that put the titles of each query in order and keep the order of the queries."""
    _check_numbers(offsets, scores)
    return np.lexsort((tie_rank, -scores, _query_of_each(offsets)))


def _check_numbers(offsets: _Integers, scores: _Floats) -> None:
    """Raise a `SentembError` if a score is NaN."""
    unusable = np.flatnonzero(np.isnan(scores))
    if len(unusable):
        query = np.searchsorted(offsets, unusable[0], side="right") - 1
        raise SentembError(
            f"{len(unusable)} scores are NaN, the first for the query with index {query}; "
            "a ranking needs a number for each title"
        )


def _best_gain(offsets: _Integers, grades: _Integers, cutoffs: Sequence[int], gain: str) -> _Floats:
    best = np.lexsort((-np.asarray(grades, dtype=np.int64), _query_of_each(offsets)))
    return _cumulated_gain(offsets, _gains(grades[best], gain), cutoffs)


def _cumulated_gain(offsets: _Integers, ranked_gains: _Floats, cutoffs: Sequence[int]) -> _Floats:
    """DCG, (n_queries, n_cutoffs), of gains in the order of the ranking."""
    query = _query_of_each(offsets)
    rank = np.arange(len(query)) - offsets[query]
    discounted = ranked_gains / np.log2(rank + 2)
    n_queries = len(offsets) - 1
    return np.stack(
        [np.bincount(query, discounted * (rank < cutoff), n_queries) for cutoff in cutoffs],
        axis=1,
    )


def _gains(grades: _Integers, gain: str) -> _Floats:
    positive: _Floats = np.maximum(grades, 0).astype(np.float64)
    if gain == "linear":
        return positive
    if gain != "exponential":
        raise SentembError(f'the gain is {brief(gain)}; choose "exponential" or "linear"')
    if positive.max(initial=0) > _MAX_EXPONENT:
        raise SentembError(
            f"the grade {positive.max():.0f} is too high for the gain 2^grade − 1; "
            'use gain="linear" or fewer grades'
        )
    gained: _Floats = np.exp2(positive) - 1
    return gained


def _normalised(reached: _Floats, best: _Floats) -> _Floats:
    values = np.full(best.shape, np.nan)
    np.divide(reached, best, out=values, where=best > 0)
    return values
