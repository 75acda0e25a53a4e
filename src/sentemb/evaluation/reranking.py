"""Rankings by any model that scores pairs: of the candidates of a run, or of all titles.

A model with two towers or BM25 finds some candidates for each query among all titles; a slower
model, which scores pair by pair, puts these into a better order.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.evaluation.metrics import Run, tie_ranks
from sentemb.models.contracts import Ranker
from sentemb.system.bounds import whole

# Pairs whose scores are in memory at a time, unless one query has more titles.
_BLOCK = 1 << 22
# Pairs of the first portion, and at most. A model reads the texts of every portion again, so
# portions grow until one takes about a second.
_FIRST_PORTION, _LARGEST_PORTION = 1 << 12, 1 << 21
_SHORTEST, _LONGEST = 0.5, 4.0  # seconds
_MOST = 2**31 - 1


@dataclass(frozen=True, eq=False)
class RunTitles:
    """The titles of a run to score, and counts of its queries and titles without a text.

    offsets, titles : (n_queries + 1,), (n,); query q has ``titles[offsets[q]:offsets[q + 1]]``,
        best first
    n_without : queries that have no candidates
    n_unknown_queries, n_unknown_titles : queries of the run without a text, and titles without a
        text of the other queries
    """

    offsets: NDArray[np.int64]
    titles: NDArray[np.int32]
    n_without: int
    n_unknown_queries: int
    n_unknown_titles: int

    @classmethod
    def of(cls, run: Run, query_ids: Sequence[str], title_ids: Sequence[str], depth: int) -> Self:
        """The best titles of a run, query id -> title id -> score, for every query.

        Equal scores are ordered by title id, last first. ``query_ids`` and ``title_ids`` are those
        of the texts that can be scored. A query gets at most ``depth`` candidates, counted without
        the titles that have no text. Raises `SentembError` if ``depth`` is not an integer from 1,
        or nothing is left to score.
        """
        depth = whole("depth", depth, 1, _MOST)
        position_of = {id: position for position, id in enumerate(title_ids)}
        titles: list[int] = []
        offsets = [0]
        n_unknown_titles = 0
        for query_id in query_ids:
            scores = run.get(query_id, {})
            known = [(score, id) for id, score in scores.items() if id in position_of]
            n_unknown_titles += len(scores) - len(known)
            titles += [position_of[id] for _, id in sorted(known, reverse=True)[:depth]]
            offsets.append(len(titles))
        n_unknown_queries = len(run.keys() - set(query_ids))
        if not titles:
            what = "queries" if n_unknown_queries == len(run) else "titles"
            raise SentembError(
                f"none of the {what} of the run has a text; give the {what} that the run was made "
                "from"
            )
        counts = np.diff(offsets)
        return cls(
            offsets=np.array(offsets, np.int64),
            titles=np.array(titles, np.int32),
            n_without=int(np.count_nonzero(counts == 0)),
            n_unknown_queries=n_unknown_queries,
            n_unknown_titles=n_unknown_titles,
        )


@dataclass(frozen=True)
class ScoringProgress:
    """Progress of the scoring of pairs.

    Attributes
    ----------
    done, total : int
        Pairs.
    pairs_per_second : float
        The rate of the latest portion.
    """

    done: int
    total: int
    pairs_per_second: float

    @property
    def seconds_left(self) -> float:
        """At the rate of the latest portion."""
        return (self.total - self.done) / self.pairs_per_second


def rank_pairs(
    ranker: Ranker,
    queries: dict[str, str],
    titles: dict[str, str],
    candidates: RunTitles | None = None,
    top_k: int = 0,
    on_progress: Callable[[ScoringProgress], None] | None = None,
) -> dict[str, dict[str, float]]:
    """Score pairs and rank the titles of each query.

    Parameters
    ----------
    ranker : Ranker
        Anything with ``score_pairs``. It is asked for some pairs at a time.
    queries, titles : dict of str to str
        Id -> text.
    candidates : Candidates, optional
        The titles to score for each query, as numbers in ``titles``; by default all.
    top_k : int
        Titles per query in the result; 0 for all.
    on_progress : function of a `ScoringProgress`, optional
        Called after every portion of the pairs.

    Returns
    -------
    dict of str to dict of str to float
        A run: query id -> title id -> score, best first, equal scores by title id, last first.
        Queries without candidates are left out.

    Raises
    ------
    SentembError
        If ``top_k`` is not an integer from 0.
    """
    top_k = whole("top_k", top_k, 0, _MOST)
    title_ids, texts = list(titles), list(titles.values())
    query_ids, query_texts = list(queries), list(queries.values())
    tie_rank = tie_ranks(title_ids)
    if candidates is None:
        offsets = np.arange(len(queries) + 1, dtype=np.int64) * len(titles)
    else:
        offsets = candidates.offsets

    def title_of_pairs(first: int, end: int) -> NDArray[np.int32]:
        if candidates is None:
            return (np.arange(first, end) % len(texts)).astype(np.int32)
        return candidates.titles[first:end]

    def scores_of(first: int, end: int) -> NDArray[np.float64]:
        query_of_pair = np.searchsorted(offsets, np.arange(first, end), side="right") - 1
        low, high = query_of_pair[0], query_of_pair[-1] + 1
        title_of_pair = title_of_pairs(first, end)
        is_used = np.zeros(len(texts), bool)
        is_used[title_of_pair] = True
        position_of = np.cumsum(is_used) - 1
        return ranker.score_pairs(
            query_texts[low:high],
            [texts[title] for title in np.flatnonzero(is_used)],
            (query_of_pair - low).astype(np.int32),
            position_of[title_of_pair].astype(np.int32),
        )

    portions = _ScoredPortions(int(offsets[-1]), scores_of, on_progress)
    run: dict[str, dict[str, float]] = {}
    for low, high in _blocks(offsets):
        scores = portions.score(int(offsets[low]), int(offsets[high]))
        for q in range(low, high):
            title_numbers = title_of_pairs(int(offsets[q]), int(offsets[q + 1]))
            of_query = scores[offsets[q] - offsets[low] : offsets[q + 1] - offsets[low]]
            best = np.lexsort((tie_rank[title_numbers], -of_query))[: top_k or None]
            if best.size:
                run[query_ids[q]] = {
                    title_ids[title]: score
                    for title, score in zip(
                        title_numbers[best].tolist(), of_query[best].tolist(), strict=True
                    )
                }
    return run


def _blocks(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """Cut the queries into blocks of at most `_BLOCK` pairs, or of one query."""
    low = 0
    while low < offsets.size - 1:
        high = int(np.searchsorted(offsets, offsets[low] + _BLOCK, side="right")) - 1
        high = max(high, low + 1)
        yield low, high
        low = high


class _ScoredPortions:
    """Scores pairs in portions that take about a second each."""

    def __init__(
        self,
        total: int,
        scores_of: Callable[[int, int], NDArray[np.float64]],
        on_progress: Callable[[ScoringProgress], None] | None,
    ) -> None:
        self._total, self._scores_of, self._on_progress = total, scores_of, on_progress
        self._size = _FIRST_PORTION

    def score(self, first: int, end: int) -> NDArray[np.float64]:
        scores = np.empty(end - first)
        low = first
        while low < end:
            high = min(low + self._size, end)
            began = time.perf_counter()
            scores[low - first : high - first] = self._scores_of(low, high)
            seconds = time.perf_counter() - began
            if self._on_progress is not None:
                rate = (high - low) / max(seconds, 1e-9)
                self._on_progress(ScoringProgress(high, self._total, rate))
            # A portion that the end of a block has cut says little.
            if seconds < _SHORTEST and high - low == self._size:
                self._size = min(2 * self._size, _LARGEST_PORTION)
            elif seconds > _LONGEST:
                self._size = max(self._size // 2, 1)
            low = high
        return scores
