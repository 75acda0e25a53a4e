"""How well titles are found: held-out clicks, and rankings of a whole catalogue.

For each distinct query of the held-out clicks the whole catalogue is ranked. The titles clicked for
the query are relevant, all others are not. Relevance is binary: one click counts as much as a
hundred, because the number of clicks depends on how often a query is asked and where a title was
shown. With r relevant titles at the ranks R, counted from 1:

    hit@k     1 if some rank in R is at most k, else 0
    MRR@k     1 / min(R) if that rank is at most k, else 0
    recall@k  the number of ranks in R that are at most k, divided by r
    NDCG@k    Σ_{rank in R, rank <= k} 1 / log2(rank + 1), divided by Σ_{rank = 1..min(r, k)} of it

Every query counts the same in the mean, however often it was asked.

- Titles of equal text count as one, in the catalogue and in the rankings.
- Equal scores are ordered by a hash of the title's text. The order of the catalogue must not
  decide: a file that lists the clicked or the popular titles first would flatter a ranker with many
  equal scores.
- A clicked title that is not in the catalogue cannot be found. It stays relevant and counts as
  missed: leaving it out, or adding it, would let a poor catalogue raise the figures.
- A query without words stays in the mean, with whatever is found for it.
- A title that would be as good an answer, but was not clicked, counts as wrong. The figures are
  therefore lower bounds; they compare systems.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import DistinctTitles
from sentemb.evaluation.measures import METRICS
from sentemb.evaluation.significance import Difference, compare_all
from sentemb.kernels.top_k import top_k
from sentemb.models.contracts import Ranker, Retriever
from sentemb.system.bounds import brief
from sentemb.system.html_tables import facts_table

if TYPE_CHECKING:
    from sentemb.evaluation.kinds import Kind, WrittenQueries

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]

_METRIC = re.compile(r"(hit|mrr|recall|ndcg)@([1-9]\d{0,8})")
# Pairs that are scored at a time where there is no other way.
_PAIRS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """Metrics of a ranking on held-out clicks; the module defines them.

    Attributes
    ----------
    metrics : tuple of str
        Such as "mrr@10".
    queries : list of str
        The distinct queries of the held-out clicks.
    values : ndarray, (n_queries, n_metrics) float64
        From 0 to 1.
    mean : ndarray, (n_metrics,) float64
        Mean over the queries.
    n_titles : int
        Distinct titles of the catalogue.
    n_clicked : int
        Distinct titles of the held-out clicks.
    n_outside : int
        Those of them that are not in the catalogue; they count as missed.
    ranks : ndarray, (n_pairs,) int64
        The rank of each clicked title, by query and in the order of the clicks; 0 where it is not
        among the best that the metrics need.
    catalogue : str or None
        The file or folder that the catalogue is from, if it is from one.
    rivals : dict of str to Evaluation
        The same queries ranked by others: the parts of a ranker alone, and what it was compared
        with.
    kinds : list of Kind
        The clicks by kind of query, if the clicks that the ranking knows are known.
    written : WrittenQueries or None
        How names of titles and random letters fare.
    """

    metrics: tuple[str, ...]
    queries: list[str]
    values: _Floats
    mean: _Floats
    n_titles: int
    n_clicked: int
    n_outside: int
    ranks: _Integers = field(default_factory=lambda: np.empty(0, np.int64))
    catalogue: str | None = None
    rivals: Mapping[str, Evaluation] = field(default_factory=dict)
    kinds: Sequence[Kind] = ()
    written: WrittenQueries | None = None

    @property
    def differences(self) -> dict[str, list[Difference]]:
        """This ranking minus each of the rivals, for each metric, with 95 % intervals."""
        if not self.rivals:
            return {}
        n_metrics = len(self.metrics)
        columns = np.concatenate([(self.values - rival.values).T for rival in self.rivals.values()])
        each = compare_all(columns, np.zeros(columns.shape[1]))
        return {
            name: each[k * n_metrics : (k + 1) * n_metrics] for k, name in enumerate(self.rivals)
        }

    def __repr__(self) -> str:
        means = (f"{name} {mean:.3f}" for name, mean in zip(self.metrics, self.mean, strict=True))
        return f"Evaluation({', '.join(means)}, {len(self.queries):,} queries)"

    def _repr_html_(self) -> str:
        return facts_table(
            {
                **dict(zip(self.metrics, self.mean.tolist(), strict=True)),
                "queries": len(self.queries),
                "titles in the catalogue": self.n_titles,
                "clicked titles": self.n_clicked,
                "of them not in the catalogue": self.n_outside,
                "catalogue": self.catalogue,
            }
        )


def checked_metrics(names: Iterable[str]) -> tuple[str, ...]:
    """The names of metrics in lower case.

    Raises `SentembError` for a name that is not a metric, or none at all.
    """
    given = () if isinstance(names, str) else tuple(names)
    if not given or not all(
        isinstance(name, str) and _METRIC.fullmatch(name.lower()) for name in given
    ):
        raise SentembError(
            f"the metrics are {brief(names)}; give hit@k, mrr@k, recall@k or ndcg@k with numbers k "
            "from 1"
        )
    return tuple(dict.fromkeys(name.lower() for name in given))


class HeldOutClicks:
    """Held-out clicks and the catalogue that is ranked for them, prepared for several rankings.

    ``titles`` are the catalogue, in the order of the retrievers' positions; ``metrics`` are hit@k,
    mrr@k, recall@k or ndcg@k. Raises `SentembError` for an unknown metric or an empty catalogue.
    """

    def __init__(
        self, clicks: ClickLog, titles: Sequence[str], metrics: Iterable[str] = METRICS
    ) -> None:
        self.clicks, self.metrics = clicks, checked_metrics(metrics)
        self._catalogue = DistinctTitles(titles)
        self._kinds = [(kind, int(k)) for kind, k in (name.split("@") for name in self.metrics)]
        self._depth = min(max(k for _, k in self._kinds), len(self._catalogue))
        offsets, clicked = clicks.titles_of_queries()
        number_of = self._catalogue.number_of
        known = np.array([number_of.get(title, -1) for title in clicks.titles], np.int64)
        self._relevant = np.split(known[clicked], offsets[1:-1])
        held_out = np.unique(clicks.title_index)
        self.n_clicked = held_out.size
        self.n_outside = int(np.count_nonzero(known[held_out] < 0))

    def evaluate(self, retriever: Retriever) -> Evaluation:
        """The metrics of a retriever that was built for the catalogue."""
        hits = np.zeros((len(self.clicks.queries), self._depth), bool)
        rankings = self._catalogue.rankings(retriever, self.clicks.queries, self._depth)
        ranks = [np.zeros(titles.size, np.int64) for titles in self._relevant]
        for number, top, _ in rankings:
            rank, pair = np.nonzero(top[:, None] == self._relevant[number])
            hits[number, rank] = True
            ranks[number][pair] = rank + 1
        n_relevant = np.array([titles.size for titles in self._relevant])
        values = np.stack(
            [_value(kind, hits[:, :k], n_relevant, k) for kind, k in self._kinds], axis=1
        )
        counts = len(self._catalogue), self.n_clicked, self.n_outside
        mean: _Floats = values.mean(axis=0)
        of_pairs = np.concatenate(ranks)
        return Evaluation(self.metrics, self.clicks.queries, values, mean, *counts, of_pairs)


def evaluate_clicks(
    retriever: Retriever,
    clicks: ClickLog,
    titles: Sequence[str],
    metrics: Iterable[str] = METRICS,
) -> Evaluation:
    """Rank the whole catalogue for each query of held-out clicks; the module defines the metrics.

    ``retriever`` was built for ``titles``: `TitleVectors`, `TitleWords`, `AllPairs`. ``metrics``
    are hit@k, mrr@k, recall@k or ndcg@k, with any k from 1. Raises `SentembError` for an unknown
    metric, an empty catalogue, or a score that is NaN.
    """
    return HeldOutClicks(clicks, titles, metrics).evaluate(retriever)


class AllPairs:
    """A catalogue in which a ranker scores every title for every query: a `Retriever`.

    For pair models and others that have no faster way.
    """

    def __init__(self, ranker: Ranker, titles: Sequence[str]) -> None:
        self._ranker, self._titles = ranker, titles

    def find(self, queries: Sequence[str], k: int) -> tuple[_Integers, _Floats]:
        """The titles with the highest scores; see `sentemb.models.contracts.Retriever`."""
        n_titles = len(self._titles)
        positions = np.empty((len(queries), k), np.int64)
        best_scores = np.empty((len(queries), k))
        portion = max(1, _PAIRS // n_titles)
        for first in range(0, len(queries), portion):
            rows = slice(first, first + portion)
            asked = queries[rows]
            query_index = np.repeat(np.arange(len(asked)), n_titles)
            title_index = np.tile(np.arange(n_titles), len(asked))
            scores = self._ranker.score_pairs(asked, self._titles, query_index, title_index)
            scores = scores.reshape(len(asked), n_titles)
            top_k(positions[rows], scores, 0, len(asked))
            best_scores[rows] = np.take_along_axis(scores, positions[rows], axis=1)
        return positions, best_scores


def _value(kind: str, hits: NDArray[np.bool_], n_relevant: _Integers, k: int) -> _Floats:
    """The metric of every query, (n_queries,), from which of its best k titles are relevant."""
    is_hit = np.asarray(hits.any(axis=1), np.float64)
    if kind == "hit":
        return is_hit
    if kind == "mrr":
        return np.asarray(is_hit / (np.argmax(hits, axis=1) + 1), np.float64)
    if kind == "recall":
        return np.asarray(hits.sum(axis=1) / n_relevant, np.float64)
    depth = hits.shape[1]
    discount = 1 / np.log2(np.arange(max(int(n_relevant.max()), depth)) + 2)
    best = np.cumsum(discount)[np.minimum(n_relevant, k) - 1]
    return np.asarray(hits @ discount[:depth] / best, np.float64)
