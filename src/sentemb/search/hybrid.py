"""Titles ranked by the sum of two scores: the cosine of the model and BM25.

    score(q, t) = cosine(q, t) + weight · BM25(q, t) / max over all titles of BM25(q, ·)

BM25 has no upper bound and depends on the length of the query; divided by the query's highest
score it goes from 0 to 1, like a cosine of titles that fit.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.models.int8_rows import Int8Rows
from sentemb.models.nearest import nearest
from sentemb.system.parallel import Workers

# With fewer matches than this it takes less time to score all of them than to leave some out.
_MANY = 2048
# Rows that are gathered at a time: they stay in the cache.
_ROWS = 1024
# Two computations of a cosine differ by less than this.
_ROUNDING = 1e-6


class Found(NamedTuple):
    """The best titles of some queries, and what their scores consist of.

    Attributes
    ----------
    places : (m, k) int64
        Best first, equal scores in the order of the titles; -1 where fewer titles are found.
    scores, cosines, bm25 : (m, k) float64
        The sum, the cosine, and the score of BM25 as it is; -inf, 0 and 0 where no title is.
    """

    places: NDArray[np.int64]
    scores: NDArray[np.float64]
    cosines: NDArray[np.float64]
    bm25: NDArray[np.float64]


def best_sums(
    queries: Sequence[str],
    vectors: np.ndarray,
    titles: np.ndarray | Int8Rows,
    index: InvertedIndex,
    weight: float,
    k: int,
    mask: NDArray[np.bool_] | None = None,
    embedded: NDArray[np.bool_] | None = None,
    workers: Workers | None = None,
) -> Found:
    """The titles with the highest sums, exactly: as if every title had been scored.

    A title without a word of the query has the cosine as its score. So the best titles are among
    the k nearest and those that BM25 matches. No other match has a higher cosine than the last of
    the k nearest, so matches whose score would be too low even with that cosine are left out.

    Parameters
    ----------
    queries : list of str
        The queries.
    vectors : (m, dim) float
        Unit vectors of the queries. With a vector of zeros only matches of BM25 are found.
    titles : (n, dim) float or Int8Rows
        Vectors of the titles.
    index : InvertedIndex
        The same titles.
    weight : float
        Of BM25, at least 0.
    k : int
        Titles per query.
    mask : (n,) bool, optional
        The titles that may be found. It does not change any score.
    embedded : (n,) bool, optional
        The titles that have a vector. Others have the cosine 0 and are found by BM25 alone.
    workers : Workers, optional
        Threads to compute with; the result does not depend on them.

    Returns
    -------
    Found
    """
    allowed = embedded if mask is None else mask if embedded is None else mask & embedded
    near, _ = nearest(vectors, titles, k, allowed, workers)
    k = near.shape[1]
    near[~vectors.any(axis=1)] = -1
    found = Found(
        np.full((len(queries), k), -1),
        np.full((len(queries), k), -np.inf),
        np.zeros((len(queries), k)),
        np.zeros((len(queries), k)),
    )

    offsets, words = index.look_up(queries)

    def rank(first: int, end: int) -> None:
        for q in range(first, end):
            own = near[q][near[q] >= 0]
            matches = index.matches(words[offsets[q] : offsets[q + 1]])
            _rank(found, q, *matches, vectors[q], own, titles, weight, mask)

    if k == 0:
        return found
    if workers is None:
        rank(0, len(queries))
    else:
        workers.over(len(queries), rank)
    return found


def _rank(
    found: Found,
    q: int,
    matches: NDArray[np.int32],
    sums: NDArray[np.float32],
    vector: np.ndarray,
    near: NDArray[np.int64],
    titles: np.ndarray | Int8Rows,
    weight: float,
    mask: NDArray[np.bool_] | None,
) -> None:
    """Write row ``q`` of ``found``.

    ``matches`` and ``sums`` are from `InvertedIndex.matches`, ``near`` are the nearest titles.
    """
    k = found.places.shape[1]
    highest = float(sums.max(initial=0))
    if mask is not None:
        allowed = mask[matches]
        matches, sums = matches[allowed], sums[allowed]
    bonus = weight * (sums.astype(np.float64) / (highest or 1))
    if matches.size > max(_MANY, 4 * k):
        # No other title is nearer than the last of `near`. One without a vector has the cosine 0.
        of_near = _cosines(vector, titles, near)
        ceiling = max(0.0, float(of_near.min())) if near.size == k else 0.0
        # The k best of some titles are a floor for the k best of all.
        is_near = np.isin(matches, near)
        some = np.union1d(np.argpartition(-bonus, k - 1)[:k], np.flatnonzero(is_near))
        sums_of_some = bonus[some] + _cosines(vector, titles, matches[some])
        others = of_near[~np.isin(near, matches[is_near])]
        floor = np.sort(np.concatenate([sums_of_some, others]))[-k]
        kept = is_near | (bonus + (ceiling + _ROUNDING) >= floor)
        matches, sums, bonus = matches[kept], sums[kept], bonus[kept]
    unmatched = near[~np.isin(near, matches[np.isin(matches, near)])]
    places = np.concatenate([matches, unmatched])
    of_match = np.zeros((2, places.size))
    of_match[:, : matches.size] = bonus, sums
    cosines = _cosines(vector, titles, places)
    scores = cosines + of_match[0]
    best = np.lexsort((places, -scores))[:k]
    n = best.size
    found.places[q, :n], found.scores[q, :n] = places[best], scores[best]
    found.cosines[q, :n], found.bm25[q, :n] = cosines[best], of_match[1, best]


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
