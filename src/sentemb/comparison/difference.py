"""Rankings of the same queries by two rankers, and where they differ most."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import in_tie_order
from sentemb.evaluation.rank_overlap import Overlap, agreements, overlap
from sentemb.evaluation.significance import Difference, compare_all
from sentemb.models.contracts import Retriever
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.index import Index
from sentemb.search.index_files import is_index
from sentemb.search.ranking.opening import known_by_ids, load_best
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.system.bounds import whole
from sentemb.system.html_tables import excerpt, facts_table
from sentemb.system.paths import AnyPath
from sentemb.system.tables import visible
from sentemb.text.arguments import as_texts

NAMES = ("A", "B")
_MOST = 1000
_NOT_FOUND = 0
# Characters of a title next to another one.
_COLUMN = 56


@dataclass(frozen=True, eq=False, repr=False)
class ClickedDifference:
    """Where both rankers put the clicked titles.

    Attributes
    ----------
    clicked : (n_queries,) list of list of int
        Indices into the catalogue, of the titles that were clicked for each query.
    ranks : (2, n_queries) int64
        Rank of the best clicked title, from 1; 0 if it is not among the first k, or nothing was
        clicked.
    n_queries : int
        Queries with clicks. The means are over these.
    n_missing : int
        Clicked pairs whose title is not in the catalogue; they count as not found.
    mrr : (float, float)
        The mean of 1 / rank, 0 where it is not found: MRR@k. Equal scores are ranked as the rankers
        return them.
    better : (float, float, float)
        Shares of the queries for which A is better, B is better, and both are equal.
    difference : Difference
        The reciprocal rank of B minus that of A, with a paired bootstrap interval.
    """

    clicked: list[list[int]]
    ranks: NDArray[np.int64]
    n_queries: int
    n_missing: int
    mrr: tuple[float, float]
    better: tuple[float, float, float]
    difference: Difference

    def __repr__(self) -> str:
        a, b = self.mrr
        return f"ClickedDifference(MRR A {a:.3f}, B {b:.3f}, {self.n_queries:,} queries)"

    def _repr_html_(self) -> str:
        a, b, equal = self.better
        change = self.difference
        return facts_table(
            {
                "MRR of A": self.mrr[0],
                "MRR of B": self.mrr[1],
                "B minus A": f"{change.mean:+.3f} ({change.low:+.3f} to {change.high:+.3f})",
                "A better": f"{a:.0%}",
                "B better": f"{b:.0%}",
                "equal": f"{equal:.0%}",
                "queries with clicks": self.n_queries,
                "clicked pairs not in the catalogue": self.n_missing,
            }
        )


@dataclass(frozen=True, eq=False, repr=False)
class RankingDifference:
    """The rankings of two rankers A and B for the same queries in the same catalogue.

    Attributes
    ----------
    queries, titles : list of str
        The queries, and the catalogue: distinct titles.
    title_index, scores : (2, n_queries, k) int64, (2, n_queries, k) float64
        Indices into ``titles`` and scores, best first; -1 and -inf where fewer are found.
    overlap : Overlap
    by_clicks : ClickedDifference or None
        None without clicks.
    order : (n_queries,) int64
        The queries that differ most first: by the difference of the reciprocal ranks of a clicked
        title, then by the average overlap of both rankings, then as given.
    """

    queries: list[str]
    titles: list[str]
    title_index: NDArray[np.int64]
    scores: NDArray[np.float64]
    overlap: Overlap
    by_clicks: ClickedDifference | None
    order: NDArray[np.int64]

    @property
    def k(self) -> int:
        """Titles per query."""
        return int(self.title_index.shape[2])

    def __repr__(self) -> str:
        return f"RankingDifference({self.summary()[0]})"

    def _repr_html_(self) -> str:
        facts = facts_table(
            {
                "queries": len(self.queries),
                "same top title": f"{self.overlap.same_first:.0%}",
                f"top-{self.k} overlap": f"{self.overlap.shared:.0%}",
            }
        )
        clicks = "" if self.by_clicks is None else self.by_clicks._repr_html_()
        rows = (
            (
                self.queries[q],
                *(self._marked(title, q) for title in self.title_index[:, q, 0].tolist()),
            )
            for q in self.order.tolist()
        )
        heads = ["differ most", "first title of A", "first title of B"]
        return facts + clicks + excerpt(rows, len(self.queries), heads, texts=(0, 1, 2))

    def summary(self) -> list[str]:
        """All figures, in lines to read."""
        lines = [
            f"queries {len(self.queries):,}   same top title {self.overlap.same_first:.0%}   "
            f"top-{self.k} overlap {self.overlap.shared:.0%}"
        ]
        clicks = self.by_clicks
        if clicks is not None:
            a, b, equal = clicks.better
            change = clicks.difference
            lines += [
                f"MRR@{self.k}  A {clicks.mrr[0]:.3f}  B {clicks.mrr[1]:.3f}   "
                f"A better {a:.0%}, B better {b:.0%}, equal {equal:.0%}   "
                f"({clicks.n_queries:,} queries with clicks)",
                f"B - A {change.mean:+.3f}, 95% interval {change.low:+.3f} to {change.high:+.3f} "
                "(paired bootstrap over queries)",
            ]
        return lines

    def rank(self, side: int, query: int) -> str:
        """The rank of the best clicked title as text."""
        assert self.by_clicks is not None
        rank = self.by_clicks.ranks[side, query]
        return f"below {self.k}" if rank == _NOT_FOUND else str(rank)

    def clicked(self, query: int) -> list[int]:
        """Indices of the titles that were clicked for a query."""
        return [] if self.by_clicks is None else self.by_clicks.clicked[query]

    def lines(self, query: int) -> list[str]:
        """One query side by side, in lines to read; ``*`` marks a clicked title."""
        clicked = self.clicked(query)
        lines = [visible(self.queries[query])]
        if clicked:
            ending = f" and {len(clicked) - 1:,} more" if len(clicked) > 1 else ""
            ranks = f"rank A {self.rank(0, query)}, B {self.rank(1, query)}"
            lines.append(f"clicked: {_cut(self.titles[clicked[0]])}{ending}   {ranks}")
        for rank, row in enumerate(self.title_index[:, query].T.tolist(), 1):
            a, b = (self._marked(title, query) for title in row)
            lines.append(f"{rank:3}  {_cut(a):<{_COLUMN}} | {_cut(b)}".rstrip())
        return lines

    def _marked(self, title: int, query: int) -> str:
        """A title, with a ``*`` if it was clicked for the query; "" where none was found."""
        if title < 0:
            return ""
        return f"{'*' if title in self.clicked(query) else ' '} {self.titles[title]}"

    def as_dict(self, limit: int) -> dict[str, Any]:
        """The figures and the first ``limit`` queries, as a JSON-serialisable dict."""
        record: dict[str, Any] = {
            "queries": len(self.queries),
            "titles": len(self.titles),
            "k": self.k,
            "same_first": self.overlap.same_first,
            "overlap": self.overlap.shared,
        }
        clicks = self.by_clicks
        if clicks is not None:
            a, b, equal = clicks.better
            record["clicks"] = {
                "queries": clicks.n_queries,
                "not_in_catalogue": clicks.n_missing,
                "mrr": dict(zip(NAMES, clicks.mrr, strict=True)),
                "A_better": a,
                "B_better": b,
                "equal": equal,
                "difference": vars(clicks.difference),
            }
        record["differ_most"] = [self._query_as_dict(q) for q in self.order[:limit].tolist()]
        return record

    def _query_as_dict(self, query: int) -> dict[str, Any]:
        described: dict[str, Any] = {"query": self.queries[query]}
        clicked = self.clicked(query)
        if self.by_clicks is not None:
            ranks = self.by_clicks.ranks[:, query].tolist()
            described["clicked"] = [self.titles[title] for title in clicked]
            described["rank"] = {
                name: rank or None for name, rank in zip(NAMES, ranks, strict=True)
            }
        for side, name in enumerate(NAMES):
            described[name] = [
                {"title": self.titles[title], "score": score}
                for title, score in zip(
                    self.title_index[side, query].tolist(),
                    self.scores[side, query].tolist(),
                    strict=True,
                )
                if title >= 0
            ]
        return described


def _cut(text: str) -> str:
    text = visible(text)
    return text if len(text) <= _COLUMN else text[:_COLUMN]


class Numbered:
    """An index whose titles have the numbers of a common list: a `Retriever`.

    Equal titles of ``index`` count once, the first. ``titles`` are all titles of the index,
    stripped, and perhaps others, each once.
    """

    def __init__(self, index: Index, titles: Sequence[str]) -> None:
        self.model, self._index = index.model, index
        number_of = {title: number for number, title in enumerate(titles)}
        self._number_of = np.array([number_of[title.strip()] for title in index.titles], np.int64)
        _, first = np.unique(self._number_of, return_index=True)
        self._is_first = np.zeros(len(self._number_of), np.bool_)
        self._is_first[first] = True

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The best titles of the index; see `sentemb.models.contracts.Retriever`."""
        title_index, scores = self._index.find(queries, k, self._is_first)
        return np.where(title_index >= 0, self._number_of[title_index], -1), scores


def diff(
    first: Index | HybridRanker | SentenceEncoder | AnyPath,
    second: Index | HybridRanker | SentenceEncoder | AnyPath,
    queries: Sequence[str] | None = None,
    titles: Sequence[str] | None = None,
    clicks: ClickLog | None = None,
    k: int = 10,
) -> RankingDifference:
    """Compare what two models, or two indexes, find for the same queries.

    Parameters
    ----------
    first, second : Index, HybridRanker, SentenceEncoder, or path
        A and B: two indexes, or two models. A path is the folder of one; a model whose folder has a
        ranker ranks with it.
    queries : sequence of str, optional
        By default those of the clicks.
    titles : sequence of str, optional
        The titles that models rank. Indexes have titles of their own.
    clicks : ClickLog, optional
        Clicks, which say which ranking is better.
    k : int
        Titles per query.

    Returns
    -------
    RankingDifference

    Raises
    ------
    SentembError
        For a model and an index, models without titles, or neither queries nor clicks.
    """
    if queries is None and clicks is None:
        raise SentembError("nothing to look up; give queries, clicks or both")
    (a, b), catalogue = sides_of(first, second, titles)
    texts = clicks.queries if queries is None and clicks is not None else queries or []
    return difference(a, b, texts, catalogue, clicks, k)


def sides_of(
    first: Any,
    second: Any,
    titles: Sequence[str] | None,
    cosine: bool = False,
    ids: Sequence[str] | None = None,
) -> tuple[list[Any], list[str]]:
    """The ranker of each side, and the titles that both number alike; see `diff`.

    ``ids`` are those of the products that have the titles.
    """
    opened: list[Any] = []
    for named in (first, second):
        side = named
        if isinstance(side, str | os.PathLike):
            side = Index.open(side) if is_index(side) else load_best(side, cosine=cosine)
        elif isinstance(side, SentenceEncoder):
            side = HybridRanker(side, MODEL_ALONE)
        if not isinstance(side, Index | HybridRanker):
            where = f"{named}: " if isinstance(named, str | os.PathLike) else ""
            raise SentembError(f"{where}a pair model ranks no catalogue; give two towers")
        opened.append(side)
    are_indexes = {isinstance(side, Index) for side in opened}
    if len(are_indexes) > 1:
        raise SentembError("a model and an index; give two models or two indexes")
    if are_indexes == {True}:
        if titles is not None:
            raise SentembError("indexes have titles of their own; leave titles out")
        indexes = [index.model_alone() if cosine else index for index in opened]
        catalogue = in_tie_order({text.strip() for index in indexes for text in index.titles})
        return [Numbered(index, catalogue) for index in indexes], catalogue
    if titles is None:
        raise SentembError("models have no titles; give some")
    catalogue = in_tie_order({text.strip() for text in titles})
    if ids is not None:
        opened = [known_by_ids(ranker, titles, ids) for ranker in opened]
    return [ranker.over(catalogue) for ranker in opened], catalogue


def difference(
    first: Retriever,
    second: Retriever,
    queries: Sequence[str],
    titles: Sequence[str],
    clicks: ClickLog | None = None,
    k: int = 10,
) -> RankingDifference:
    """Compare the rankings of two rankers.

    ``first`` and ``second`` are A and B, such as `sentemb.retrieval.nearest.TitleVectors` of two
    models; both find indices into ``titles``, the catalogue: distinct titles. White space around
    texts does not count. Equal queries count once each. ``clicks`` are for some of the queries at
    least; ``k`` titles are ranked per query. Raises `SentembError` without queries or titles, for
    titles that are not distinct, or if the clicks are for none of the queries.
    """
    whole("k", k, 1, _MOST)
    texts, catalogue = as_texts(queries), as_texts(titles)
    if not texts or not catalogue:
        raise SentembError("nothing to compare; give at least one query and one title")
    index_of = {title.strip(): index for index, title in enumerate(catalogue)}
    if len(index_of) < len(catalogue):
        raise SentembError("some titles are equal; give each once")
    results = [retriever.find(texts, k) for retriever in (first, second)]
    width = max(numbers.shape[1] for numbers, _ in results)
    title_index = np.stack([_padded(numbers, width, -1) for numbers, _ in results])
    scores = np.stack([_padded(values, width, -np.inf) for _, values in results])
    by_clicks = None if clicks is None else _by_clicks(title_index, texts, index_of, clicks)
    change = np.zeros(len(texts))
    if by_clicks is not None:
        a, b = _reciprocal(by_clicks.ranks)
        change = np.abs(b - a)
    # Rounded, so that the order of equal values does not depend on how they were added up.
    agreement = agreements(*title_index).round(9)
    order = np.lexsort((agreement, -change))
    return RankingDifference(
        texts,
        catalogue,
        title_index,
        scores,
        overlap(*title_index),
        by_clicks,
        order.astype(np.int64),
    )


def _padded(ranks: NDArray[Any], width: int, nothing: float) -> NDArray[Any]:
    """Columns of ``nothing`` where a ranker has fewer titles than the other."""
    missing = (0, 0), (0, width - ranks.shape[1])
    return np.pad(ranks, missing, constant_values=nothing)


def _by_clicks(
    title_index: NDArray[np.int64], queries: list[str], index_of: dict[str, int], clicks: ClickLog
) -> ClickedDifference:
    """Where the clicked titles are in two rankings, (2, n_queries, k) indices."""
    offsets, clicked_titles = clicks.titles_of_queries()
    span_of = dict(zip(clicks.queries, pairwise(offsets.tolist()), strict=True))
    clicked: list[list[int]] = []
    ranks = np.full(title_index.shape[:2], _NOT_FOUND, np.int64)
    has_clicks = np.zeros(len(queries), bool)
    n_missing = 0
    for q, query in enumerate(queries):
        titles = clicked_titles[slice(*span_of.get(query.strip(), (0, 0)))].tolist()
        indices = [index_of[t] for t in (clicks.titles[t] for t in titles) if t in index_of]
        clicked.append(indices)
        has_clicks[q] = bool(titles)
        n_missing += len(titles) - len(indices)
        if indices:
            hits = np.isin(title_index[:, q], indices)
            ranks[:, q] = np.where(hits.any(axis=1), hits.argmax(axis=1) + 1, _NOT_FOUND)
    if not has_clicks.any():
        raise SentembError(
            "the clicks are for none of the queries; give clicks of these queries, or no queries"
        )
    a, b = _reciprocal(ranks)[:, has_clicks]
    (change,) = compare_all([b], a)
    better = float(np.mean(a > b)), float(np.mean(b > a)), float(np.mean(a == b))
    mrr = float(a.mean()), float(b.mean())
    return ClickedDifference(clicked, ranks, int(has_clicks.sum()), n_missing, mrr, better, change)


def _reciprocal(ranks: NDArray[np.int64]) -> NDArray[np.float64]:
    """1 / rank, 0 where nothing was found."""
    return np.divide(1.0, ranks, out=np.zeros(ranks.shape), where=ranks != _NOT_FOUND)
