"""The weights of the parts of an index, and the parameters of BM25, chosen on held-out clicks."""

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.evaluation.held_out import Evaluation, HeldOutClicks, checked_metrics
from sentemb.evaluation.significance import Difference, compare_all
from sentemb.protocols import Retriever
from sentemb.ranking import tuning as of_rankers
from sentemb.search.confidence import Confidence
from sentemb.search.hybrid import Weights
from sentemb.search.index import Index
from sentemb.search.memory import Memory
from sentemb.system.html_tables import MARKED, Rows, facts_table, html_table

# The weights that the ranker of a model may have.
WEIGHTS, MEMORY_WEIGHTS = of_rankers.BM25_WEIGHTS, of_rankers.MEMORY_WEIGHTS
# k1 and b of BM25.
PARAMETERS = tuple((k1, b) for k1 in (0.5, 0.9, 1.5) for b in (0.0, 0.4, 0.75, 0.9))
# For an index with the clicks of a log.
CLICK_WEIGHTS = of_rankers.GRID["click_weight"]
METRICS = ("hit@1", "mrr@10", "recall@10")


class Band(NamedTuple):
    """Queries whose first titles have similar scores.

    Attributes
    ----------
    low, high : float
        The lowest and the highest score.
    n_queries : int
    confidence, hit : float
        Mean confidence, and the share of first titles that were clicked.
    """

    low: float
    high: float
    n_queries: int
    confidence: float
    hit: float


@dataclass(frozen=True, eq=False)
class Tuning:
    """What was tried, and what was best.

    Attributes
    ----------
    metrics : tuple of str
        The columns of the means.
    metric : str
        The one that decides.
    weights : tuple of float
        The weights of BM25 that were tried, rising.
    means : (n_weights, n_metrics) float64
        Means over the held-out queries, for each weight, with the best weight of the memory.
    lexical : (n_metrics,) float64
        Means of BM25 alone.
    weight, k1, b : float
        The best for BM25.
    gain : Difference
        ``metric`` with the best of all minus that of the cosine alone, with its 95 % interval.
    n_queries, n_outside : int
        Held-out queries, and their titles that are not in the index, which count as missed.
    cosine_weight : float
        1, or 0 if BM25 alone is best in an index with clicks.
    click_weight : float or None
        The best weight of clicked queries in BM25; None if the index cannot change it.
    memory_weights : tuple of float
        The weights of the memory that were tried, rising; none without clicks.
    memory_means : (n_memory_weights, n_metrics) float64 or None
        Means for each of them, with the weight of BM25 that is best without a memory.
    memory_weight : float
        The best weight of the memory.
    """

    metrics: tuple[str, ...]
    metric: str
    weights: tuple[float, ...]
    means: NDArray[np.float64]
    lexical: NDArray[np.float64]
    weight: float
    k1: float
    b: float
    gain: Difference
    n_queries: int
    n_outside: int
    cosine_weight: float = 1.0
    click_weight: float | None = None
    memory_weights: tuple[float, ...] = ()
    memory_means: NDArray[np.float64] | None = None
    memory_weight: float = 0.0

    def _repr_html_(self) -> str:
        rows = [
            (f"weight {weight:g}", *means)
            for weight, means in zip(self.weights, self.means.tolist(), strict=True)
        ]
        best = [MARKED if self.cosine_weight and w == self.weight else "" for w in self.weights]
        facts = {
            "k1 of BM25": self.k1,
            "b of BM25": self.b,
            "weight of clicked queries in BM25": self.click_weight,
            "weight of the memory": self.memory_weight if self.memory_weights else None,
            f"{self.metric} minus that of the cosine alone": f"{self.gain.mean:+.4f}",
            "95 % interval": f"{self.gain.low:+.4f} to {self.gain.high:+.4f}",
            "queries": self.n_queries,
            "clicked titles not in the index": self.n_outside,
        }
        alone = ("BM25 alone", *self.lexical.tolist())
        best.append("" if self.cosine_weight else MARKED)
        table = html_table([*rows, alone], ["BM25", *self.metrics], best, texts=(0,))
        return table + facts_table(facts)


class _Weighted:
    """An index with other weights, as a `sentemb.protocols.Retriever`."""

    def __init__(self, index: Index, weights: Weights) -> None:
        self._index, self._weights = index, weights

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found = self._index.find_weighted(queries, k, self._weights)
        return found.places, found.scores


def tune(
    index: Index,
    clicks: ClickLog,
    metric: str = "mrr@10",
    on_progress: Callable[[int, int], None] | None = None,
) -> Tuning:
    """Choose k1 and b with which BM25 alone is best, then the weight of BM25.

    The index then has these. Of equal figures the smaller weight is chosen, and the current k1 and
    b. If the index has the clicks of a log, the weight of clicked queries in BM25 is chosen with k1
    and b, and then the weight of the memory; if BM25 alone is better than every sum, the weight of
    the cosine is 0.

    Parameters
    ----------
    index : Index
        With BM25; see `Index.build`.
    clicks : ClickLog
        Held-out clicks: neither the model nor BM25 has learned from them.
    metric : str
        hit@k, mrr@k, recall@k or ndcg@k, which the weight is chosen by.
    on_progress : function, optional
        Called with the numbers of rankings that are done and of all.

    Returns
    -------
    Tuning

    Raises
    ------
    SentembError
        If the index has no BM25, or the metric does not exist.
    """
    whole, before = index, index.snapshot
    # What is tried is set in a copy, so that other threads search with the weights from before.
    index = copy(whole)
    lists = before.half().lists
    (metric,) = checked_metrics([metric])
    metrics = tuple(dict.fromkeys([*METRICS, metric]))
    column = metrics.index(metric)
    held_out = HeldOutClicks(clicks, index.titles, metrics)
    points = tuple(dict.fromkeys([(lists.k1, lists.b), *PARAMETERS]))
    memory = _with_vectors(index)
    total = len(points) + len(WEIGHTS)
    total += len(CLICK_WEIGHTS) + len(PARAMETERS) if lists.has_clicks else 0
    total += len(MEMORY_WEIGHTS) + len(WEIGHTS) if memory is not None else 0
    done = 0

    def evaluated(retriever: Retriever) -> Evaluation:
        nonlocal done
        found = held_out.evaluate(retriever)
        done += 1
        if on_progress is not None:
            on_progress(done, total)
        return found

    lists, alone = _best_lists(lists, points, evaluated, column)

    # The weights of BM25 with one of the memory, then weights of the memory with the best of BM25.
    def weighed(some: Sequence[Weights]) -> tuple[list[Evaluation], int]:
        found = [evaluated(_Weighted(index, weights)) for weights in some]
        return found, max(range(len(some)), key=lambda place: found[place].mean[column])

    index.set_bm25(lists.k1, lists.b, index.half().weight, _click_weight(lists))
    found, chosen = weighed([Weights(weight) for weight in WEIGHTS])
    by_cosine, memory_weight, memory_means = found[0], 0.0, None
    if memory is not None:
        of_memory, best = weighed([Weights(WEIGHTS[chosen], 1.0, w) for w in MEMORY_WEIGHTS])
        memory_weight = MEMORY_WEIGHTS[best]
        memory_means = np.array([one.mean for one in of_memory])
        if memory_weight:
            found, chosen = weighed([Weights(weight, 1.0, memory_weight) for weight in WEIGHTS])
    weight, of_best, cosine_weight = WEIGHTS[chosen], found[chosen], 1.0
    if lists.has_clicks and alone.mean[column] > of_best.mean[column]:
        weight, of_best, cosine_weight, memory_weight = 1.0, alone, 0.0, 0.0
    index.set_bm25(lists.k1, lists.b, weight)
    index.set_weights(cosine_weight, memory_weight)
    whole.adopt(index.snapshot, before)
    (gain,) = compare_all([of_best.values[:, column]], by_cosine.values[:, column])
    return Tuning(
        metrics,
        metric,
        WEIGHTS,
        np.array([one.mean for one in found]),
        alone.mean,
        weight,
        lists.k1,
        lists.b,
        gain,
        len(clicks.queries),
        held_out.n_outside,
        cosine_weight,
        _click_weight(lists),
        () if memory is None else MEMORY_WEIGHTS,
        memory_means,
        memory_weight,
    )


def _with_vectors(index: Index) -> Memory | None:
    """The memory of an index, which then has the vectors that other weights need."""
    memory = index.memory
    if memory is not None and memory.lists.vectors is None:
        memory = replace(memory, lists=memory.lists.embedded(index.model))
        index.adopt(index.snapshot.changed(memory=memory), index.snapshot)
    return memory


def _click_weight(lists: InvertedIndex) -> float | None:
    return lists.click_weight if lists.has_clicks else None


def _best_lists(
    lists: InvertedIndex,
    points: Sequence[tuple[float, float]],
    evaluated: Callable[[InvertedIndex], Evaluation],
    column: int,
) -> tuple[InvertedIndex, Evaluation]:
    """BM25 with the best k1 and b of ``points``, and the best weight of its clicked queries."""

    def best_of(some: Sequence[tuple[float, float, float | None]]) -> Evaluation:
        nonlocal lists
        found = [evaluated(lists.with_parameters(*point)) for point in some]
        best = max(range(len(some)), key=lambda place: found[place].mean[column])
        lists = lists.with_parameters(*some[best])
        return found[best]

    own = _click_weight(lists)
    found = best_of([(k1, b, own) for k1, b in points])
    if lists.has_clicks:
        others = tuple(dict.fromkeys([lists.click_weight, *CLICK_WEIGHTS]))
        found = best_of([(lists.k1, lists.b, click_weight) for click_weight in others])
        if lists.click_weight != own:
            again = dict.fromkeys([(lists.k1, lists.b), *PARAMETERS])
            found = best_of([(k1, b, lists.click_weight) for k1, b in again])
    return lists, found


def calibrate(index: Index, clicks: ClickLog) -> Confidence:
    """Fit the confidence of first titles; the index then has it.

    Parameters
    ----------
    index : Index
        With its final weight of BM25.
    clicks : ClickLog
        Held-out clicks. A query for which nothing is found is left out.

    Returns
    -------
    Confidence

    Raises
    ------
    SentembError
        If there are too few queries, or their first titles are all right or all wrong.
    """
    own = copy(index)
    confidence = Confidence.fit(*first_titles(own, clicks))
    index.adopt(own.snapshot.changed(confidence=confidence), own.snapshot)
    return confidence


def score_bands(index: Index, clicks: ClickLog, count: int = 6) -> list[Band]:
    """Confidence against outcome, for groups of queries of equal size by score.

    Parameters
    ----------
    index : Index
        Calibrated.
    clicks : ClickLog
        Held-out clicks.
    count : int
        Groups; those without queries are left out.
    """
    if index.confidence is None:
        raise SentembError("the index is not calibrated; run `sentemb calibrate INDEX DEV`")
    scores, is_right = first_titles(index, clicks)
    sure = index.confidence(scores)
    return Rows(
        Band(
            float(scores[some].min()),
            float(scores[some].max()),
            len(some),
            float(sure[some].mean()),
            float(is_right[some].mean()),
        )
        for some in np.array_split(np.argsort(scores, kind="stable"), count)
        if len(some)
    )


def first_titles(index: Index, clicks: ClickLog) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """The score of each query's first title, and whether it was clicked.

    Returns
    -------
    scores, is_right : (n,) float64, (n,) bool
        Without the queries for which nothing is found.
    """
    if not len(index):
        raise SentembError("the index has no titles; add some")
    index = copy(index)  # of which no other thread removes titles
    found = index.find_sums(clicks.queries, 1)
    offsets, clicked = clicks.titles_of_queries()
    is_right = [
        place >= 0
        and index.titles[place].strip() in {clicks.titles[t] for t in clicked[first:end].tolist()}
        for place, first, end in zip(
            found.places[:, 0].tolist(), offsets[:-1], offsets[1:], strict=True
        )
    ]
    is_found = found.places[:, 0] >= 0
    return found.scores[is_found, 0], np.array(is_right)[is_found]
