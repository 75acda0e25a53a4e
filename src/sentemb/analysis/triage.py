"""Where a model ranks badly: the worst queries with their titles, and which kinds of queries fail.

A judged set is measured by NDCG@10 of the judged titles, as `evaluate_model` measures it.
Held-out clicks are measured by the reciprocal rank of the first clicked title in the whole
catalogue, 0 below rank 10, as `evaluate_clicks` measures it. A judged set with a catalogue is
measured by NDCG@10 too; titles that are not judged count as grade 0 and keep their rank.

The *best title* of a query is the one with its highest grade; of several, the one that is ranked
highest. Queries without a title of grade 1 or higher have no figure and are left out. The worst
queries come first: those with the lowest figure; of these, those whose first title has the
highest score. There the model is surest of a wrong title, while a query with low scores often
says little.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import whole
from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.errors import SentembError
from sentemb.evaluation.catalogue import Catalogue, in_tie_order
from sentemb.evaluation.evaluate import judged_run
from sentemb.evaluation.held_out import AllPairs
from sentemb.evaluation.metrics import ndcg, tie_ranks
from sentemb.models.nearest import TitleVectors
from sentemb.pair_scorer import PairScorer
from sentemb.protocols import Retriever
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.html_tables import excerpt, facts_table
from sentemb.text.checks import as_texts
from sentemb.text.vocabulary import Vocabulary

# The rank from which on a title counts as not found.
CUTOFF = 10
# How far down a whole catalogue the best titles are looked for.
DEPTH = 100
MOST_WORST, MOST_TOP = 10_000, DEPTH
# Queries of the log that are named as evidence for a title.
_EXAMPLES = 3
_LENGTHS = ((1, 1), (2, 2), (3, 3), (4, 5), (6, 8), (9, 12), (13, None))
_COSINES = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
_QUINTILES = (0.2, 0.4, 0.6, 0.8)

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]
_Booleans: TypeAlias = NDArray[np.bool_]


class _Sums(Protocol):
    """What an `Index` finds, and the cosine in each score; see `sentemb.search.hybrid.Found`."""

    @property
    def places(self) -> _Integers: ...
    @property
    def cosines(self) -> _Floats: ...


class SearchedIndex(Retriever, Protocol):
    """What is needed of a `sentemb.Index`."""

    model: SentenceEncoder

    @property
    def titles(self) -> Sequence[str]:
        """The catalogue."""
        ...

    def find_sums(self, queries: Sequence[str], k: int) -> _Sums:
        """The best titles, with the cosines in their scores."""
        ...


class RankedTitle(NamedTuple):
    """A title of a query.

    Attributes
    ----------
    title : str
    grade : int or None
        None if the title is not judged for the query. A clicked title has grade 1.
    rank : int or None
        From 1; None if the title is not in the catalogue or below rank `DEPTH` of it.
    score : float or None
        None where there is no rank.
    cosine : float or None
        The cosine in the score of an index with BM25; None for all other rankings.
    """

    title: str
    grade: int | None
    rank: int | None
    score: float | None
    cosine: float | None = None


@dataclass(frozen=True)
class TriagedQuery:
    """One of the worst queries.

    Attributes
    ----------
    number : int
        Its place in `Triage.queries`.
    titles : list of RankedTitle
        The first ones, best first.
    best : RankedTitle
        The best title, wherever it is.
    n_titles : int
        How many titles were ranked for the query.
    """

    number: int
    titles: list[RankedTitle]
    best: RankedTitle
    n_titles: int


@dataclass(frozen=True, eq=False)
class Slice:
    """The queries of one kind.

    Attributes
    ----------
    label : str
    count : int
    mean : float
        Their mean figure.
    lost : float
        Their share of all that is lost: of the sum of 1 minus the figure over all queries.
    queries : (count,) int64
        Their places in `Triage.queries`.
    """

    label: str
    count: int
    mean: float
    lost: float
    queries: NDArray[np.int64]


class Evidence(NamedTuple):
    """What the click log says of a title.

    Attributes
    ----------
    clicks : int
    queries : int
        How many distinct queries it was clicked for.
    examples : list of str
        Up to three of these, most clicks first.
    """

    clicks: int
    queries: int
    examples: list[str]


@dataclass(frozen=True, eq=False, repr=False)
class Triage:
    """What `triage` found. Arrays have one entry per query.

    Attributes
    ----------
    metric : {"ndcg@10", "mrr@10"}
    kind : {"judged", "clicked"}
        What the grades are.
    queries : list of str
    values : (n,) float64
        The figure of each query, from 0 to 1; NaN without a relevant title.
    mean : float
        Over the queries that have one.
    n_titles : int or None
        Distinct titles of the catalogue; None if only the judged titles are ranked.
    n_outside : int
        Distinct relevant titles that are not in the catalogue; they cannot be found.
    best, first : (n,) list of RankedTitle or None
        The best title, wherever it is, and the title that is ranked first.
    n_words, n_unknown : (n,) int64
        Words of the query, and those of which the model knows no feature.
    n_rare : (n,) int64 or None
        Words that have no feature of their own, so that the model knows only their letter
        trigrams; None for models that do not have both kinds of features.
    clicks : (n,) int64 or None
        Held-out clicks of the query; None for a judged set.
    seen : (n,) bool or None
        Whether the best title was clicked in the training log; None without a log.
    order : (n_evaluated,) int64
        The queries that have a figure, worst first.
    slices : dict of str to list of Slice
        Kinds of queries by what they are told apart by.
    worst : list of TriagedQuery
    evidence : dict of str to Evidence
        What the log says of the titles of the worst queries; empty without a log.
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


@dataclass(frozen=True, eq=False)
class _Rankings:
    """What both ways of ranking give.

    ``titles`` are texts. Query q has the judgments ``offsets[q]`` to ``offsets[q + 1]``, each with
    a title, a grade, a rank (0 where it was not found) and a score. ``top`` and ``top_scores``,
    (n, top), are the first titles, -1 where there are fewer.
    """

    titles: Sequence[str]
    offsets: _Integers
    title: _Integers
    grade: _Integers
    rank: _Integers
    score: _Floats
    top: _Integers
    top_scores: _Floats
    values: _Floats
    n_titles: int | None
    n_outside: int


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
    model : SentenceEncoder, PairScorer or Index
        An index ranks its own titles, for a judged set too.
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
    index = None if isinstance(model, SentenceEncoder | PairScorer) else model
    face = model if isinstance(model, SentenceEncoder | PairScorer) else model.model
    if index is not None and titles is not None:
        raise SentembError("an index has titles of its own; leave the catalogue out")
    queries = held_out.queries
    if isinstance(held_out, JudgedSet) and index is None and titles is None:
        rankings = _of_judged_titles(face, held_out, top)
    else:
        rankings = _of_catalogue(index or face, held_out, titles, top)
    values = rankings.values
    best = _best_titles(rankings)
    first = [
        next(_first_titles(rankings, q, number[:1]), None) for q, number in enumerate(rankings.top)
    ]
    first_scores = np.array([-np.inf if one is None else one.score for one in first])
    evaluated = np.flatnonzero(~np.isnan(values))
    order = evaluated[np.lexsort((-first_scores[evaluated], values[evaluated].round(9)))]
    n_words, n_unknown, n_rare = _words(face.vocabulary, queries)
    seen = None
    if log is not None:
        known = set(log.titles)
        seen = np.array([one is not None and one.title.strip() in known for one in best], np.bool_)
    detailed = [_triaged(rankings, q, best[q]) for q in order[:worst].tolist()]
    if index is not None and detailed:
        detailed = list(_with_cosines(index, queries, detailed, top))
    named = {title.title for one in detailed for title in (*one.titles[:1], one.best)}
    clicks = None
    if isinstance(held_out, ClickLog):
        clicks = np.bincount(held_out.query_index, held_out.clicks, len(queries)).astype(np.int64)
    is_cosine = isinstance(face, SentenceEncoder) and not _has_bm25(model)
    slices = {
        "Words in the query": _by_length(n_words),
        "Words that the model knows nothing of": _by_share(n_unknown, n_words),
        "Words known by their letters only": _by_share(n_rare, n_words),
        "Score of the first title": _by_score(first_scores, evaluated, is_cosine),
        "Best title in the training log": _by_flag(seen, "clicked there", "not clicked there"),
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
            name: found
            for name, parts in slices.items()
            if len(found := list(_slices(values, evaluated, parts))) > 1
        },
        worst=detailed,
        evidence={} if log is None else _evidence(log, named),
    )


# -- ranking ----------------------------------------------------------------------------------


def _of_judged_titles(
    model: SentenceEncoder | PairScorer, judged: JudgedSet, top: int
) -> _Rankings:
    """The judged titles of each query, ranked as `evaluate_model` ranks them."""
    run = judged_run(model, judged)
    values = ndcg(judged, run, (CUTOFF,)).values[:, 0]
    scores = np.array([score for id in judged.query_ids for score in run[id].values()])
    n = len(judged.queries)
    query = np.repeat(np.arange(n), np.diff(judged.offsets))
    order = np.lexsort((tie_ranks(judged.title_ids)[judged.title_index], -scores, query))
    place = np.arange(query.size) - judged.offsets[query]
    rank = np.empty(query.size, np.int64)
    rank[order] = place + 1
    firsts = np.full((n, top), -1), np.full((n, top), -np.inf)
    kept = place < top
    for into, values_of in zip(firsts, (judged.title_index, scores), strict=True):
        into[query[kept], place[kept]] = values_of[order[kept]]
    title, grade = judged.title_index.astype(np.int64), judged.grade.astype(np.int64)
    return _Rankings(
        judged.titles, judged.offsets, title, grade, rank, scores, *firsts, values, None, 0
    )


def _of_catalogue(
    model: SentenceEncoder | PairScorer | SearchedIndex,
    held_out: JudgedSet | ClickLog,
    titles: Sequence[str] | None,
    top: int,
) -> _Rankings:
    """All titles of a catalogue, ranked for each query."""
    retriever: Retriever
    if isinstance(model, SentenceEncoder | PairScorer):
        given = held_out.titles if titles is None else as_texts(titles)
        texts = in_tie_order({title.strip() for title in given})
        catalogue = Catalogue(texts)
        if isinstance(model, PairScorer):
            retriever = AllPairs(model, texts)
        else:
            retriever = TitleVectors(model, texts)
    else:
        catalogue, retriever = Catalogue(model.titles), model
    offsets, title, grade, every = _judgments(held_out, catalogue)
    n = len(held_out.queries)
    rank = np.zeros(title.size, np.int64)
    score = np.full(title.size, np.nan)
    tops, top_scores = np.full((n, top), -1), np.full((n, top), -np.inf)
    gained: dict[str, dict[str, float]] = {}
    for q, found, scores in catalogue.rankings(retriever, held_out.queries, DEPTH):
        own = slice(offsets[q], offsets[q + 1])
        by_number = np.argsort(found)
        at = np.searchsorted(found, title[own], sorter=by_number)
        candidate = by_number[np.minimum(at, found.size - 1)] if found.size else at
        hit = found[candidate] == title[own] if found.size else np.zeros(at.size, np.bool_)
        rank[own] = np.where(hit, candidate + 1, 0)
        score[own] = np.where(hit, scores[candidate] if found.size else np.nan, np.nan)
        k = min(top, found.size)
        tops[q, :k], top_scores[q, :k] = found[:k], scores[:k]
        gained[str(q)] = {str(t): -float(r) for r, t in enumerate(found[:CUTOFF].tolist())}
    if isinstance(held_out, ClickLog):
        # The offsets of clicks are never empty.
        first = np.minimum.reduceat(np.where(rank > 0, rank, DEPTH + CUTOFF), offsets[:-1])
        values = np.where(first <= CUTOFF, 1 / first, 0.0)
    else:
        distinct, place = np.unique(title, return_inverse=True)
        judged = JudgedSet(
            [str(q) for q in range(n)],
            held_out.queries,
            list(map(str, distinct.tolist())),
            [every[t] for t in distinct.tolist()],
            offsets,
            place.astype(np.int32),
            grade.astype(np.int32),
        )
        values = ndcg(judged, gained, (CUTOFF,)).values[:, 0]
    return _Rankings(
        every,
        offsets,
        title,
        grade,
        rank,
        score,
        tops,
        top_scores,
        values,
        len(catalogue),
        np.unique(title[(grade > 0) & (title >= len(catalogue))]).size,
    )


def _judgments(
    held_out: JudgedSet | ClickLog, catalogue: Catalogue
) -> tuple[_Integers, _Integers, _Integers, list[str]]:
    """Offsets, texts and grades by query, and all texts: the catalogue, then those it lacks.

    Judgments of equal texts for a query become one, with the highest grade.
    """
    known, others = catalogue.number_of, dict[str, int]()
    number = np.array(
        [
            known[text] if text in known else others.setdefault(text, len(known) + len(others))
            for text in map(str.strip, held_out.titles)
        ],
        np.int64,
    )
    n = len(held_out.queries)
    if isinstance(held_out, ClickLog):
        offsets, titles = held_out.titles_of_queries()
        title, grade = number[titles], np.ones(titles.size, np.int64)
    else:
        offsets, title = held_out.offsets, number[held_out.title_index]
        grade = held_out.grade.astype(np.int64)
    query = np.repeat(np.arange(n), np.diff(offsets))
    order = np.lexsort((-grade, title, query))
    query, title, grade = query[order], title[order], grade[order]
    new = np.ones(query.size, np.bool_)
    new[1:] = (query[1:] != query[:-1]) | (title[1:] != title[:-1])
    query, title, grade = query[new], title[new], grade[new]
    offsets = np.concatenate([[0], np.cumsum(np.bincount(query, minlength=n))])
    return offsets, title, grade, [*known, *others]


# -- the titles of a query ----------------------------------------------------------------------


def _best_titles(rankings: _Rankings) -> list[RankedTitle | None]:
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


def _judged_title(rankings: _Rankings, at: int) -> RankedTitle:
    is_found = rankings.rank[at] > 0
    return RankedTitle(
        rankings.titles[rankings.title[at]],
        int(rankings.grade[at]),
        int(rankings.rank[at]) if is_found else None,
        float(rankings.score[at]) if is_found else None,
    )


def _first_titles(rankings: _Rankings, q: int, numbers: _Integers) -> Iterator[RankedTitle]:
    """The titles ``numbers``, which are the first of query ``q``."""
    own = slice(rankings.offsets[q], rankings.offsets[q + 1])
    grades = dict(zip(rankings.title[own].tolist(), rankings.grade[own].tolist(), strict=True))
    scores = rankings.top_scores[q].tolist()
    for rank, (number, score) in enumerate(zip(numbers.tolist(), scores, strict=False), 1):
        if number >= 0:
            yield RankedTitle(rankings.titles[number], grades.get(number), rank, score)


def _triaged(rankings: _Rankings, q: int, best: RankedTitle | None) -> TriagedQuery:
    assert best is not None  # queries with a figure have one
    ranked = rankings.n_titles
    if ranked is None:
        ranked = int(rankings.offsets[q + 1] - rankings.offsets[q])
    return TriagedQuery(q, list(_first_titles(rankings, q, rankings.top[q])), best, ranked)


def _has_bm25(model: object) -> bool:
    """Whether the scores of an index are more than cosines."""
    return getattr(model, "bm25", None) is not None


def _with_cosines(
    index: SearchedIndex, queries: Sequence[str], worst: Sequence[TriagedQuery], top: int
) -> Iterator[TriagedQuery]:
    """The worst queries, with the cosine in the score of their titles if that has other parts."""
    if not _has_bm25(index):
        yield from worst
        return
    found = index.find_sums([queries[one.number] for one in worst], max(top, DEPTH))
    for one, places, cosines in zip(worst, found.places, found.cosines, strict=True):
        wanted = {title.title for title in (*one.titles, one.best)}
        of_text: dict[str, float] = {}
        for place, cosine in zip(places.tolist(), cosines.tolist(), strict=True):
            if place >= 0 and (text := index.titles[place].strip()) in wanted:
                of_text.setdefault(text, cosine)

        def told(title: RankedTitle, known: dict[str, float] = of_text) -> RankedTitle:
            return title._replace(cosine=known.get(title.title))

        yield TriagedQuery(one.number, [told(t) for t in one.titles], told(one.best), one.n_titles)


# -- kinds of queries ---------------------------------------------------------------------------


def _words(
    vocabulary: Vocabulary, queries: Sequence[str]
) -> tuple[_Integers, _Integers, _Integers | None]:
    """Words, unknown words and words without a feature of their own, of each query."""
    split = [vocabulary.split(query) for query in queries]
    words = list(dict.fromkeys(word for some in split for word in some))
    places, _ = vocabulary.features_of_all(words)
    unknown = set(words) - {words[place] for place in set(places.tolist())}
    n_words = np.array([len(some) for some in split], np.int64)
    n_unknown = np.array([sum(word in unknown for word in some) for some in split], np.int64)
    if not (vocabulary.trigrams and vocabulary.words):
        return n_words, n_unknown, None
    own = set(vocabulary.words)
    n_rare = np.array([sum(word not in own for word in some) for some in split], np.int64)
    return n_words, n_unknown, n_rare


_Parts: TypeAlias = Iterator[tuple[str, _Booleans]]


def _slices(values: _Floats, evaluated: _Integers, parts: _Parts) -> Iterator[Slice]:
    """The kinds that have queries with a figure."""
    lost = 1 - values[evaluated]
    total = float(lost.sum()) or 1.0
    for label, is_part in parts:
        own = is_part[evaluated]
        if own.any():
            mean = float(values[evaluated][own].mean())
            share = float(lost[own].sum()) / total
            yield Slice(label, int(own.sum()), mean, share, evaluated[own])


def _by_length(n_words: _Integers) -> _Parts:
    yield "0", n_words == 0
    for low, high in _LENGTHS:
        if high is None:
            yield f"{low} or more", n_words >= low
        else:
            yield (
                str(low) if low == high else f"{low} to {high}",
                (low <= n_words) & (n_words <= high),
            )


def _by_share(count: _Integers | None, n_words: _Integers) -> _Parts:
    """By whether no, some or all words are counted in ``count``."""
    if count is None:
        return
    yield "none", (count == 0) & (n_words > 0)
    yield "some", (count > 0) & (count < n_words)
    yield "all", (count > 0) & (count == n_words)


def _by_score(scores: _Floats, evaluated: _Integers, is_cosine: bool) -> _Parts:
    """Bands of the first score: fixed ones of cosines, otherwise fifths of the queries."""
    found = scores[evaluated][np.isfinite(scores[evaluated])]
    edges = list(_COSINES) if is_cosine else sorted(set(np.quantile(found, _QUINTILES).round(2)))
    yield "nothing found", ~np.isfinite(scores)
    lows, highs = [-np.inf, *edges], [*edges, np.inf]
    for low, high in zip(lows, highs, strict=True):
        label = f"{low:.2f} to {high:.2f}"
        if low == -np.inf:
            label = f"below {high:.2f}"
        elif high == np.inf:
            label = f"{low:.2f} or more"
        yield label, np.isfinite(scores) & (low <= scores) & (scores < high)


def _by_flag(flags: _Booleans | None, yes: str, no: str) -> _Parts:
    if flags is not None:
        yield yes, flags
        yield no, ~flags


def _evidence(log: ClickLog, titles: set[str]) -> dict[str, Evidence]:
    """What the log says of ``titles``; also of those that it does not have."""
    number_of = {title: number for number, title in enumerate(log.titles) if title in titles}
    chosen = np.flatnonzero(np.isin(log.title_index, list(number_of.values())))
    pairs: dict[int, list[int]] = defaultdict(list)
    for pair in chosen[np.argsort(-log.clicks[chosen], kind="stable")].tolist():
        pairs[int(log.title_index[pair])].append(pair)
    found = {}
    for title in titles:
        own = pairs.get(number_of.get(title.strip(), -1), [])
        examples = [log.queries[log.query_index[pair]] for pair in own[:_EXAMPLES]]
        found[title] = Evidence(int(log.clicks[own].sum()), len(own), examples)
    return found
