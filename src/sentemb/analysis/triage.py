"""Where a model ranks badly: the worst queries with their titles, and which kinds of queries fail.

A judged set is measured by NDCG@10 of the judged titles, as `evaluate_model` measures it.
Held-out clicks are measured by the reciprocal rank of the first clicked title in the whole
catalogue, 0 below rank 10, as `evaluate_clicks` measures it. A judged set with a catalogue is
measured by NDCG@10 too; titles that are not judged count as grade 0 and keep their rank.

The *best title* of a query is the one with its highest grade; of several, the one that is ranked
highest. Queries without a title of grade 1 or higher have no figure and are left out. The worst
queries come first: of a judged set those with the lowest figure, of held-out clicks those that lose
most clicks: clicks times 1 minus the figure. A single click on a title below rank `DEPTH` may have
been a slip, about which nothing can be done: such queries come after all others that lose
something. Of equally bad queries, those whose first title has the highest score come first. There
the model is surest of a wrong title, while a query with low scores often says little.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.analysis.dev_rankings import (
    CUTOFF,
    DEPTH,
    DevRankings,
    SearchedIndex,
    rank_catalogue,
    rank_judged_titles,
)
from sentemb.analysis.report_slices import (
    Slice,
    by_flag,
    by_length,
    by_score,
    by_share,
    count_words,
    slices,
)
from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE
from sentemb.system.bounds import whole
from sentemb.system.html_tables import excerpt, facts_table

MOST_WORST, MOST_TOP = 10_000, DEPTH
# Queries of the log that are named as evidence for a title.
_EXAMPLES = 3

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]
_Booleans: TypeAlias = NDArray[np.bool_]


class RankedTitle(NamedTuple):
    """A title of a query.

    grade : None if the title is not judged for the query. A clicked title has grade 1.
    rank : from 1; None if the title is not in the catalogue or below rank `DEPTH` of it
    score : None if `rank` is None
    cosine : the cosine of the model, if the score has other parts
    """

    title: str
    grade: int | None
    rank: int | None
    score: float | None
    cosine: float | None = None


@dataclass(frozen=True)
class TriagedQuery:
    """One of the worst queries.

    number : its index into `Triage.queries`
    titles : the first ones, best first
    best : the best title, wherever it is
    n_titles : how many titles were ranked for the query
    """

    number: int
    titles: list[RankedTitle]
    best: RankedTitle
    n_titles: int


class Evidence(NamedTuple):
    """Clicks on a title in the click log.

    queries : how many distinct queries it was clicked for
    examples : up to three of these, most clicks first
    """

    clicks: int
    queries: int
    examples: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class Triage:
    """Result of `triage`. Arrays have one entry per query.

    metric : "ndcg@10" or "mrr@10"
    kind : the grades are "judged" or "clicked"
    values : (n,), the figure of each query, from 0 to 1; NaN without a relevant title
    mean : over the queries that have one
    n_titles : distinct titles of the catalogue; None if only the judged titles are ranked
    n_outside : distinct relevant titles that are not in the catalogue; they cannot be found
    best, first : (n,), the best title, wherever it is, and the title that is ranked first
    n_words, n_unknown : (n,), words of the query, and those of which the model knows no feature
    n_rare : (n,), words that have no feature of their own, so that the model knows only their
        letter trigrams; None for models that do not have both kinds of features
    clicks : (n,), held-out clicks of the query; None for a judged set
    seen : (n,), whether the best title was clicked in the training log; None without a log
    order : (n_evaluated,), the queries that have a figure, worst first
    slices : kinds of queries by the property that tells them apart
    evidence : the clicks that the log has on the titles of the worst queries; empty without a log
    """

    metric: str
    kind: str
    queries: list[str]
    values: _Floats
    mean: float
    n_titles: int | None
    n_outside: int
    best: list[RankedTitle | None]
    first: list[RankedTitle | None]
    n_words: _Integers
    n_unknown: _Integers
    n_rare: _Integers | None
    clicks: _Integers | None
    seen: _Booleans | None
    order: _Integers
    slices: dict[str, list[Slice]]
    worst: list[TriagedQuery]
    evidence: dict[str, Evidence]

    def __repr__(self) -> str:
        return f"Triage({self.metric} {self.mean:.3f}, {len(self.order):,} queries)"

    def _repr_html_(self) -> str:
        facts = {
            self.metric: self.mean,
            "queries": len(self.order),
            "titles of the catalogue": self.n_titles,
            "relevant titles not in the catalogue": self.n_outside or None,
        }
        heads = ["worst query", self.metric, "best title", "rank", "first title"]
        rows = (self._row(q) for q in self.order.tolist())
        return facts_table(facts) + excerpt(rows, len(self.order), heads, texts=(0, 2, 4))

    def _row(self, query: int) -> tuple[str | float | None, ...]:
        best, first = self.best[query], self.first[query]
        return (
            self.queries[query],
            float(self.values[query]),
            best and best.title,
            best and best.rank,
            first and first.title,
        )


def triage(
    model: SentenceEncoder | PairScorer | SearchedIndex,
    held_out: JudgedSet | ClickLog,
    titles: Sequence[str] | None = None,
    *,
    worst: int = 50,
    top: int = 10,
    log: ClickLog | None = None,
) -> Triage:
    """Rank the titles of a dev set, and find the queries for which this goes wrong.

    Parameters
    ----------
    model : HybridRanker, SentenceEncoder, PairScorer or Index
        The ranker. An index ranks its own titles, for a judged set too.
    held_out : JudgedSet or ClickLog
        The judged set, or the held-out clicks.
    titles : sequence of str, optional
        The catalogue to rank. By default the judged titles of each query, or all titles of the
        held-out clicks. Titles of equal text count as one.
    worst : int
        How many queries to give with their titles.
    top : int
        Titles per query.
    log : ClickLog, optional
        The click log of the training: which of the best titles it has, and for what they were
        clicked.

    Returns
    -------
    Triage

    Raises
    ------
    SentembError
        If no query has a relevant title, for an index together with ``titles``, an empty catalogue,
        or numbers out of range.

    Examples
    --------
    >>> from sentemb import load
    >>> from sentemb.data.judged_set import read_judged_set
    >>> found = triage(load("model"), read_judged_set("dev"))  # doctest: +SKIP
    >>> found.queries[found.order[0]]  # doctest: +SKIP
    """
    whole("worst", worst, 0, MOST_WORST)
    whole("top", top, 1, MOST_TOP)
    if isinstance(model, SentenceEncoder):
        model = HybridRanker(model, MODEL_ALONE)
    index = None if isinstance(model, HybridRanker | PairScorer) else model
    face = model if isinstance(model, PairScorer) else model.model
    is_cosine = not isinstance(model, PairScorer) and model.recipe == MODEL_ALONE
    if index is not None and titles is not None:
        raise SentembError("an index has titles of its own; leave the catalogue out")
    queries = held_out.queries
    if isinstance(held_out, JudgedSet) and index is None and titles is None:
        assert isinstance(model, HybridRanker | PairScorer)
        rankings = rank_judged_titles(model, held_out, top)
    else:
        rankings = rank_catalogue(model, held_out, titles, top)
    values = rankings.values
    best = _best_titles(rankings)
    first = [
        next(_first_titles(rankings, q, number[:1]), None) for q, number in enumerate(rankings.top)
    ]
    first_scores = np.array([-np.inf if title is None else title.score for title in first])
    evaluated = np.flatnonzero(~np.isnan(values))
    clicks = None
    lost = 1 - values
    if isinstance(held_out, ClickLog):
        clicks = np.bincount(held_out.query_index, held_out.clicks, len(queries)).astype(np.int64)
        is_found = np.array([title is not None and title.rank is not None for title in best])
        lost *= np.where(is_found | (clicks > 1), clicks, 0)
    keys = (-first_scores, values.round(9), -lost.round(9))
    order = evaluated[np.lexsort([key[evaluated] for key in keys])]
    n_words, n_unknown, n_rare = count_words(face.vocabulary, queries)
    seen = None
    if log is not None:
        known = set(log.titles)
        seen = np.array(
            [title is not None and title.title.strip() in known for title in best], np.bool_
        )
    detailed = [_triaged(rankings, q, best[q]) for q in order[:worst].tolist()]
    if isinstance(face, SentenceEncoder) and not is_cosine:
        detailed = [_with_cosines(face, queries, triaged) for triaged in detailed]
    named = {title.title for triaged in detailed for title in (*triaged.titles[:1], triaged.best)}
    kinds = {
        "Words in the query": by_length(n_words),
        "Words that the model knows nothing of": by_share(n_unknown, n_words),
        "Words known by their letters only": by_share(n_rare, n_words),
        "Score of the first title": by_score(first_scores, evaluated, is_cosine),
        "Best title in the training log": by_flag(seen, "clicked there", "not clicked there"),
    }
    return Triage(
        metric=f"mrr@{CUTOFF}" if clicks is not None else f"ndcg@{CUTOFF}",
        kind="clicked" if clicks is not None else "judged",
        queries=list(queries),
        values=values,
        mean=float(values[evaluated].mean()),
        n_titles=rankings.n_titles,
        n_outside=rankings.n_outside,
        best=best,
        first=first,
        n_words=n_words,
        n_unknown=n_unknown,
        n_rare=n_rare,
        clicks=clicks,
        seen=seen,
        order=order,
        slices={
            name: rows
            for name, parts in kinds.items()
            if len(rows := list(slices(values, evaluated, parts))) > 1
        },
        worst=detailed,
        evidence={} if log is None else _evidence(log, named),
    )


# -- the titles of a query ----------------------------------------------------------------------


def _best_titles(rankings: DevRankings) -> list[RankedTitle | None]:
    """Of each query the title with the highest grade, None if that is below 1."""
    n = len(rankings.offsets) - 1
    query = np.repeat(np.arange(n), np.diff(rankings.offsets))
    rank = np.where(rankings.rank > 0, rankings.rank, np.iinfo(np.int64).max)
    order = np.lexsort((rank, -rankings.grade, query))
    best: list[RankedTitle | None] = [None] * n
    queries, first = np.unique(query[order], return_index=True)
    for q, at in zip(queries.tolist(), order[first].tolist(), strict=True):
        if rankings.grade[at] > 0:
            best[q] = _judged_title(rankings, at)
    return best


def _judged_title(rankings: DevRankings, at: int) -> RankedTitle:
    is_found = rankings.rank[at] > 0
    return RankedTitle(
        rankings.titles[rankings.title[at]],
        int(rankings.grade[at]),
        int(rankings.rank[at]) if is_found else None,
        float(rankings.score[at]) if is_found else None,
    )


def _first_titles(rankings: DevRankings, q: int, numbers: _Integers) -> Iterator[RankedTitle]:
    """The titles ``numbers``, which are the first of query ``q``."""
    of_query = slice(rankings.offsets[q], rankings.offsets[q + 1])
    grades = dict(
        zip(rankings.title[of_query].tolist(), rankings.grade[of_query].tolist(), strict=True)
    )
    scores = rankings.top_scores[q].tolist()
    for rank, (number, score) in enumerate(zip(numbers.tolist(), scores, strict=False), 1):
        if number >= 0:
            yield RankedTitle(rankings.titles[number], grades.get(number), rank, score)


def _triaged(rankings: DevRankings, q: int, best: RankedTitle | None) -> TriagedQuery:
    assert best is not None  # queries with a figure have one
    ranked = rankings.n_titles
    if ranked is None:
        ranked = int(rankings.offsets[q + 1] - rankings.offsets[q])
    return TriagedQuery(q, list(_first_titles(rankings, q, rankings.top[q])), best, ranked)


def _with_cosines(
    encoder: SentenceEncoder, queries: Sequence[str], triaged: TriagedQuery
) -> TriagedQuery:
    titles = [*triaged.titles, triaged.best]
    pairs = np.zeros(len(titles), np.int64), np.arange(len(titles))
    texts = [title.title for title in titles]
    cosines = encoder.score_pairs([queries[triaged.number]], texts, *pairs).tolist()
    *ranked, best = [
        title._replace(cosine=cosine) for title, cosine in zip(titles, cosines, strict=True)
    ]
    return TriagedQuery(triaged.number, ranked, best, triaged.n_titles)


def _evidence(log: ClickLog, titles: set[str]) -> dict[str, Evidence]:
    """Clicks on each of ``titles`` in the log; none on those that it lacks."""
    number_of = {title: number for number, title in enumerate(log.titles) if title in titles}
    chosen = np.flatnonzero(np.isin(log.title_index, list(number_of.values())))
    pairs: dict[int, list[int]] = defaultdict(list)
    for pair in chosen[np.argsort(-log.clicks[chosen], kind="stable")].tolist():
        pairs[int(log.title_index[pair])].append(pair)
    evidence = {}
    for title in titles:
        clicked = pairs.get(number_of.get(title.strip(), -1), [])
        examples = [log.queries[log.query_index[pair]] for pair in clicked[:_EXAMPLES]]
        evidence[title] = Evidence(int(log.clicks[clicked].sum()), len(clicked), examples)
    return evidence
