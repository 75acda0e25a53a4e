"""The weight of BM25 in an index, and its parameters, chosen on held-out clicks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.evaluation.held_out import HeldOutClicks, checked_metrics
from sentemb.evaluation.significance import Difference, compare_all
from sentemb.search.confidence import Confidence
from sentemb.search.index import Index
from sentemb.system.html_tables import MARKED, Rows, facts_table, html_table

WEIGHTS = (0.0, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.7, 1.0, 1.5, 2.0)
# k1 and b of BM25.
PARAMETERS = tuple((k1, b) for k1 in (0.5, 0.9, 1.5) for b in (0.0, 0.4, 0.75, 0.9))
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
        The weights that were tried, rising.
    means : (n_weights, n_metrics) float64
        Means over the held-out queries, for each weight.
    lexical : (n_metrics,) float64
        Means of BM25 alone.
    weight, k1, b : float
        The best.
    gain : Difference
        ``metric`` with this weight minus that without BM25, with its 95 % interval.
    n_queries, n_outside : int
        Held-out queries, and their titles that are not in the index, which count as missed.
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

    def _repr_html_(self) -> str:
        rows = [
            (f"weight {weight:g}", *means)
            for weight, means in zip(self.weights, self.means.tolist(), strict=True)
        ]
        best = [MARKED if weight == self.weight else "" for weight in self.weights]
        facts = {
            "k1 of BM25": self.k1,
            "b of BM25": self.b,
            f"{self.metric} with BM25 minus without": f"{self.gain.mean:+.4f}",
            "95 % interval": f"{self.gain.low:+.4f} to {self.gain.high:+.4f}",
            "queries": self.n_queries,
            "clicked titles not in the index": self.n_outside,
        }
        alone = ("BM25 alone", *self.lexical.tolist())
        table = html_table([*rows, alone], ["BM25", *self.metrics], [*best, ""], texts=(0,))
        return table + facts_table(facts)


class _Weighted:
    """An index with another weight, as a `sentemb.protocols.Retriever`."""

    def __init__(self, index: Index, weight: float) -> None:
        self._index, self._weight = index, weight

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        found = self._index.find_sums(queries, k, bm25_weight=self._weight)
        return found.places, found.scores


def tune(
    index: Index,
    clicks: ClickLog,
    metric: str = "mrr@10",
    on_progress: Callable[[int, int], None] | None = None,
) -> Tuning:
    """Choose k1 and b with which BM25 alone is best, then the weight of BM25.

    The index then has these. Of equal figures the smaller weight is chosen, and the current k1 and
    b.

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
    lists = index.half().lists
    (metric,) = checked_metrics([metric])
    metrics = tuple(dict.fromkeys([*METRICS, metric]))
    column = metrics.index(metric)
    held_out = HeldOutClicks(clicks, index.titles, metrics)
    points = tuple(dict.fromkeys([(lists.k1, lists.b), *PARAMETERS]))
    total, done = len(points) + len(WEIGHTS), 0

    def progress() -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    alone = []
    for k1, b in points:
        alone.append(held_out.evaluate(lists.with_parameters(k1, b)).mean)
        progress()
    best = max(range(len(points)), key=lambda point: alone[point][column])
    k1, b = points[best]
    index.set_bm25(k1, b, index.half().weight)
    found = []
    for weight in WEIGHTS:
        found.append(held_out.evaluate(_Weighted(index, weight)))
        progress()
    chosen = max(range(len(WEIGHTS)), key=lambda place: found[place].mean[column])
    index.set_bm25(k1, b, WEIGHTS[chosen])
    (gain,) = compare_all([found[chosen].values[:, column]], found[0].values[:, column])
    return Tuning(
        metrics,
        metric,
        WEIGHTS,
        np.array([one.mean for one in found]),
        alone[best],
        WEIGHTS[chosen],
        k1,
        b,
        gain,
        len(clicks.queries),
        held_out.n_outside,
    )


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
    scores, is_right = first_titles(index, clicks)
    index.confidence = Confidence.fit(scores, is_right)
    return index.confidence


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
