"""Titles ranked by a sum of scores: the cosine of the model, BM25, and the memory of the log.

    score(q, t) = w_cosine · cosine(q, t)
                + w_bm25 · BM25(q, t) / max over all titles of BM25(q, ·)
                + w_memory · memory(q, t)

BM25 has no upper bound and depends on the length of the query; divided by the query's highest
score it goes from 0 to 1, like a cosine of titles that fit. The memory is the larger of the cosine
and the highest cosine of the query and a query that the title was clicked for.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.models.int8_rows import Int8Rows
from sentemb.models.nearest import nearest
from sentemb.ranking.memory import QueryMemory
from sentemb.system.parallel import Workers

# With fewer matches than this it takes less time to score all of them than to leave some out.
_MANY = 2048
# Rows that are gathered at a time: they stay in the cache.
_ROWS = 1024
# Two computations of a cosine differ by less than this.
_ROUNDING = 1e-6
_NOTHING = np.empty(0, np.int32), np.empty(0, np.float32)


class Found(NamedTuple):
    """The best titles of some queries, and what their scores consist of.

    Attributes
    ----------
    places : (m, k) int64
        Best first, equal scores in the order of the titles; -1 where fewer titles are found.
    scores, cosines, bm25, memory : (m, k) float64
        The sum, the cosine, the score of BM25 as it is, and the memory, which is the cosine if it
        has no weight; -inf and three times 0 where no title is.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float64]
    cosines: NDArray[np.float64]
    bm25: NDArray[np.float64]
    memory: NDArray[np.float64]

    @classmethod
    def nothing(cls, m: int, k: int) -> "Found":
        """Nothing for ``m`` queries, with room for ``k`` titles each."""
        zeros = [np.zeros((m, k)) for _ in range(3)]
        return cls(np.full((m, k), -1), np.full((m, k), -np.inf), *zeros)


class Weights(NamedTuple):
    """Weights of the parts of a score, each at least 0."""

    bm25: float
    cosine: float = 1.0
    memory: float = 0.0


def best_sums(
    queries: Sequence[str],
    vectors: np.ndarray,
    titles: np.ndarray | Int8Rows,
    index: InvertedIndex | None,
    weights: Weights,
    k: int,
    mask: NDArray[np.bool_] | None = None,
    embedded: NDArray[np.bool_] | None = None,
    workers: Workers | None = None,
    memory: QueryMemory | None = None,
) -> Found:
    """The titles with the highest sums, exactly: as if every title had been scored.

    A title without a word of the query and without clicked queries has a multiple of the cosine as
    its score. So the best titles are among the k nearest, those that BM25 matches and those that
    were clicked for a query as near as the last of the k nearest. No other title has a higher
    cosine than that, so candidates whose score would be too low even with it are left out.

    Parameters
    ----------
    queries : list of str
        The queries.
    vectors : (m, dim) float
        Unit vectors of the queries. With a vector of zeros only matches of BM25 are found.
    titles : (n, dim) float or Int8Rows
        Vectors of the titles.
    index : InvertedIndex or None
        The same titles; None without a weight for BM25.
    weights : Weights
        If only BM25 has one, only its matches are found.
    k : int
        Titles per query.
    mask : (n,) bool, optional
        The titles that may be found. It does not change any score.
    embedded : (n,) bool, optional
        The titles that have a vector. Others have the cosine 0 and are found by BM25 and the memory
        alone.
    workers : Workers, optional
        Threads to compute with; the result does not depend on them.
    memory : QueryMemory, optional
        The same titles; needed if the memory has a weight.

    Returns
    -------
    Found
    """
    k = min(k, len(titles))
    if weights.cosine or weights.memory:
        allowed = embedded if mask is None else mask if embedded is None else mask & embedded
        near, _ = nearest(vectors, titles, k, allowed, workers)
        near[~vectors.any(axis=1)] = -1
    else:
        near = np.full((len(queries), k), -1)
    found = Found.nothing(len(queries), k)
    if k == 0:
        return found
    offsets, words = np.zeros(len(queries) + 1, np.int64), np.empty(0, np.int32)
    if index is not None:
        offsets, words = index.look_up(queries)
    remembers = memory is not None and weights.memory > 0

    def rank(first: int, end: int) -> None:
        for q in range(first, end):
            own = near[q][near[q] >= 0]
            some = words[offsets[q] : offsets[q + 1]]
            matches, sums = _NOTHING if index is None else index.matches(some)
            remembered = None
            if memory is not None and remembers and vectors[q].any():
                remembered = memory.scores(vectors[q : q + 1])[0]
                matches, sums = _with_remembered(
                    matches, sums, remembered, memory, vectors[q], own, titles, k
                )
            _rank(found, q, matches, sums, remembered, vectors[q], own, titles, weights, mask)

    if workers is None:
        rank(0, len(queries))
    else:
        workers.over(len(queries), rank)
    return found


def _with_remembered(
    matches: NDArray[np.int32],
    sums: NDArray[np.float32],
    remembered: NDArray[np.float32],
    memory: QueryMemory,
    vector: np.ndarray,
    near: NDArray[np.int64],
    titles: np.ndarray | Int8Rows,
    k: int,
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """``matches`` and ``sums``, and with the sum 0 those that the memory could lift.

    A title that is in neither scores no more than the last of the k nearest.
    """
    least = float(_cosines(vector, titles, near).min()) if near.size == k else 0.0
    # A title without a vector has the cosine 0, which may be more than that of the nearest.
    could = remembered >= least - _ROUNDING if least > 0 else memory.has_clicks
    is_new = could.copy()
    is_new[matches] = False
    more = np.flatnonzero(is_new).astype(np.int32)
    return np.concatenate([matches, more]), np.concatenate([sums, np.zeros(more.size, np.float32)])


def _rank(
    found: Found,
    q: int,
    matches: NDArray[np.int32],
    sums: NDArray[np.float32],
    remembered: NDArray[np.float32] | None,
    vector: np.ndarray,
    near: NDArray[np.int64],
    titles: np.ndarray | Int8Rows,
    weights: Weights,
    mask: NDArray[np.bool_] | None,
) -> None:
    """Write row ``q`` of ``found``.

    ``matches`` and ``sums`` are the candidates that are not only near and their scores of BM25,
    ``near`` are the nearest titles, ``remembered`` the scores of `QueryMemory` for all titles.
    """
    k = found.places.shape[1]
    highest = float(sums.max(initial=0))
    if mask is not None:
        allowed = mask[matches]
        matches, sums = matches[allowed], sums[allowed]
    bonus = weights.bm25 * (sums.astype(np.float64) / (highest or 1))

    def memory(places: NDArray[np.integer], cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        return cosines if remembered is None else np.maximum(cosines, remembered[places])

    def total(places: NDArray[np.integer], cosines: NDArray[np.float64]) -> NDArray[np.float64]:
        own = weights.cosine * cosines
        return own + weights.memory * memory(places, cosines) if weights.memory else own

    if matches.size > max(_MANY, 4 * k):
        # No other title is nearer than the last of `near`. One without a vector has the cosine 0.
        of_near = _cosines(vector, titles, near)
        ceiling = max(0.0, float(of_near.min())) if near.size == k else 0.0
        highest_sums = bonus + total(matches, np.full(matches.size, ceiling + _ROUNDING))
        # The k best of some titles are a floor for the k best of all.
        is_near = np.isin(matches, near)
        some = np.union1d(np.argpartition(-highest_sums, k - 1)[:k], np.flatnonzero(is_near))
        sums_of_some = bonus[some] + total(matches[some], _cosines(vector, titles, matches[some]))
        is_other = ~np.isin(near, matches[is_near])
        others = total(near, of_near)[is_other]
        floor = np.sort(np.concatenate([sums_of_some, others]))[-k]
        kept = is_near | (highest_sums >= floor)
        matches, sums, bonus = matches[kept], sums[kept], bonus[kept]
    unmatched = near[~np.isin(near, matches[np.isin(matches, near)])]
    places = np.concatenate([matches, unmatched])
    of_match = np.zeros((2, places.size))
    of_match[:, : matches.size] = bonus, sums
    cosines = _cosines(vector, titles, places)
    scores = total(places, cosines) + of_match[0]
    best = np.lexsort((places, -scores))[:k]
    n = best.size
    found.places[q, :n], found.scores[q, :n] = places[best], scores[best]
    found.cosines[q, :n], found.bm25[q, :n] = cosines[best], of_match[1, best]
    found.memory[q, :n] = memory(places, cosines)[best]


def _cosines(
    vector: np.ndarray, titles: np.ndarray | Int8Rows, places: NDArray[np.integer]
) -> NDArray[np.float64]:
    """The dot products of ``vector`` with some titles; a title has the same one in every call."""
    dots = np.empty(places.size)
    query = vector.astype(np.float64)
    for first in range(0, places.size, _ROWS):
        some = places[first : first + _ROWS].astype(np.int64)
        rows = titles.rows(some).vectors() if isinstance(titles, Int8Rows) else titles[some]
        np.einsum("kd,d->k", rows.astype(np.float64), query, out=dots[first : first + _ROWS])
    return dots
