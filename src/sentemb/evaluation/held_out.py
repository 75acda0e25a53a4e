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

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import brief
from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.kernels.top_k import top_k
from sentemb.protocols import Ranker, Retriever
from sentemb.system.html_tables import facts_table

METRICS = ("hit@1", "mrr@10", "recall@10", "ndcg@10")

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]

_METRIC = re.compile(r"(hit|mrr|recall|ndcg)@([1-9]\d{0,8})")
# Places and scores of a retriever in memory at a time: 64 MB of them.
_FETCHED = 4_000_000
# Pairs that are scored at a time where there is no other way.
_PAIRS = 1_000_000


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation:
    """What held-out clicks say of a ranking; the module defines the metrics.

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
    """

    metrics: tuple[str, ...]
    queries: list[str]
    values: _Floats
    mean: _Floats
    n_titles: int
    n_clicked: int
    n_outside: int

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
            }
        )


def checked_metrics(names: Iterable[str]) -> tuple[str, ...]:
    """The names of metrics in lower case.

    Raises
    ------
    SentembError
        For a name that is not a metric, or none at all.
    """
    found = () if isinstance(names, str) else tuple(names)
    if not found or not all(
        isinstance(name, str) and _METRIC.fullmatch(name.lower()) for name in found
    ):
        raise SentembError(
            f"the metrics are {brief(names)}; give hit@k, mrr@k, recall@k or ndcg@k with numbers k "
            "from 1"
        )
    return tuple(dict.fromkeys(name.lower() for name in found))


class HeldOutClicks:
    """Held-out clicks and the catalogue that is ranked for them, prepared for several rankings.

    Parameters
    ----------
    clicks : ClickLog
        The held-out clicks.
    titles : sequence of str
        The catalogue, in the order of the retrievers' places.
    metrics : sequence of str
        hit@k, mrr@k, recall@k or ndcg@k.

    Raises
    ------
    SentembError
        For an unknown metric or an empty catalogue.
    """

    def __init__(
        self, clicks: ClickLog, titles: Sequence[str], metrics: Iterable[str] = METRICS
    ) -> None:
        self.clicks, self.metrics = clicks, checked_metrics(metrics)
        if not titles:
            raise SentembError("the catalogue is empty; give the titles to rank")
        number_of: dict[str, int] = {}
        numbers = [number_of.setdefault(title.strip(), len(number_of)) for title in titles]
        self._text_of = np.array(numbers, np.int64)  # place -> distinct text
        self.n_titles = len(number_of)
        self._tie_rank = _tie_ranks(list(number_of))
        self._kinds = [(kind, int(k)) for kind, k in (name.split("@") for name in self.metrics)]
        self._depth = min(max(k for _, k in self._kinds), self.n_titles)
        offsets, clicked = clicks.titles_of_queries()
        known = np.array([number_of.get(title, -1) for title in clicks.titles], np.int64)
        self._relevant = np.split(known[clicked], offsets[1:-1])
        held_out = np.unique(clicks.title_index)
        self.n_clicked = held_out.size
        self.n_outside = int(np.count_nonzero(known[held_out] < 0))

    def evaluate(self, retriever: Retriever) -> Evaluation:
        """The metrics of a retriever that was built for the catalogue."""
        hits = np.zeros((len(self.clicks.queries), self._depth), bool)
        for number, top in self._rankings(retriever):
            hits[number, : top.size] = np.isin(top, self._relevant[number])
        n_relevant = np.array([found.size for found in self._relevant])
        values = np.stack(
            [_value(kind, hits[:, :k], n_relevant, k) for kind, k in self._kinds], axis=1
        )
        counts = self.n_titles, self.n_clicked, self.n_outside
        mean: _Floats = values.mean(axis=0)
        return Evaluation(self.metrics, self.clicks.queries, values, mean, *counts)

    def _rankings(self, retriever: Retriever) -> Iterable[tuple[int, _Integers]]:
        """Every query's number and its best distinct titles, best first."""
        fetched = min(self._depth + 1, self._text_of.size)
        waiting = list(range(len(self.clicks.queries)))
        while waiting:
            later = []
            portion = max(1, _FETCHED // fetched)
            for first in range(0, len(waiting), portion):
                some = waiting[first : first + portion]
                places, scores = retriever.find([self.clicks.queries[q] for q in some], fetched)
                for number, row, of_row in zip(some, places, scores, strict=True):
                    top = self._top(row, of_row)
                    if top is None:
                        later.append(number)
                    else:
                        yield number, top
            # Some titles have the same text, or the same score as the last one.
            waiting, fetched = later, min(2 * fetched, self._text_of.size)

    def _top(self, places: _Integers, scores: _Floats) -> _Integers | None:
        """The best distinct titles, at most `_depth`; None if more must be fetched to know them."""
        found = places >= 0
        texts, values = self._text_of[places[found]], scores[found]
        if np.isnan(values).any():
            raise SentembError("a score is NaN; a ranking needs a number for each title")
        order = np.lexsort((self._tie_rank[texts], -values))
        _, first = np.unique(texts[order], return_index=True)
        kept = order[np.sort(first)][: self._depth]
        is_all = texts.size < places.size or places.size == self._text_of.size
        if is_all or (kept.size == self._depth and values.min() < values[kept[-1]]):
            return texts[kept]
        return None


def evaluate_clicks(
    retriever: Retriever,
    clicks: ClickLog,
    titles: Sequence[str],
    metrics: Iterable[str] = METRICS,
) -> Evaluation:
    """Rank the whole catalogue for each query of held-out clicks; the module defines the metrics.

    Parameters
    ----------
    retriever : Retriever
        Built for ``titles``: `TitleVectors`, `InvertedIndex`, `AllPairs`.
    clicks : ClickLog
        The held-out clicks.
    titles : sequence of str
        The catalogue.
    metrics : sequence of str
        hit@k, mrr@k, recall@k or ndcg@k, with any k from 1.

    Returns
    -------
    Evaluation

    Raises
    ------
    SentembError
        For an unknown metric, an empty catalogue, or a score that is NaN.
    """
    return HeldOutClicks(clicks, titles, metrics).evaluate(retriever)


class AllPairs:
    """A catalogue in which a ranker scores every title for every query: a `Retriever`.

    For pair models and others that have no faster way.

    Parameters
    ----------
    ranker : Ranker
        Scores the pairs.
    titles : sequence of str
        The catalogue.
    """

    def __init__(self, ranker: Ranker, titles: Sequence[str]) -> None:
        self._ranker, self._titles = ranker, titles

    def find(self, queries: Sequence[str], k: int) -> tuple[_Integers, _Floats]:
        """The titles with the highest scores; see `sentemb.protocols.Retriever`."""
        n_titles = len(self._titles)
        places = np.empty((len(queries), k), np.int64)
        found = np.empty((len(queries), k))
        portion = max(1, _PAIRS // n_titles)
        for first in range(0, len(queries), portion):
            some = slice(first, first + portion)
            asked = queries[some]
            query_index = np.repeat(np.arange(len(asked)), n_titles)
            title_index = np.tile(np.arange(n_titles), len(asked))
            scores = self._ranker.score_pairs(asked, self._titles, query_index, title_index)
            scores = scores.reshape(len(asked), n_titles)
            top_k(places[some], scores, 0, len(asked))
            found[some] = np.take_along_axis(scores, places[some], axis=1)
        return places, found


def in_tie_order(texts: Iterable[str]) -> list[str]:
    """Distinct texts in the order that equal scores have here: that of their hashes.

    A retriever that leaves equal scores in the order of the catalogue agrees with `HeldOutClicks`
    if its catalogue has this order.
    """
    return sorted(texts, key=_tie_key)


def _tie_key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()


def _tie_ranks(texts: Sequence[str]) -> _Integers:
    """The place of each text in the order of their hashes."""
    keys = list(map(_tie_key, texts))
    ranks = np.empty(len(texts), np.int64)
    ranks[sorted(range(len(texts)), key=keys.__getitem__)] = np.arange(len(texts))
    return ranks


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
