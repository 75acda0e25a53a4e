"""How a model ranks the titles of a dev set: every judgment with its rank, and the first titles.

There are two ways: the judged titles of each query, or all titles of a catalogue. `triage` reads
both alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.data.judged_set import JudgedSet
from sentemb.evaluation.catalogue import DistinctTitles, in_tie_order
from sentemb.evaluation.evaluate import judged_run
from sentemb.evaluation.held_out import AllPairs
from sentemb.evaluation.metrics import ndcg, tie_ranks
from sentemb.models.contracts import Retriever
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import Recipe
from sentemb.text.arguments import as_texts

# The rank from which on a title counts as not found.
CUTOFF = 10
# How far down a whole catalogue the best titles are looked for.
DEPTH = 100

_Integers: TypeAlias = NDArray[np.int64]
_Floats: TypeAlias = NDArray[np.float64]


class SearchedIndex(Retriever, Protocol):
    """The members of `sentemb.Index` that a ranking of a dev set uses."""

    model: SentenceEncoder

    @property
    def recipe(self) -> Recipe:
        """The parts that the scores add up."""
        ...

    @property
    def titles(self) -> Sequence[str]:
        """The catalogue."""
        ...


@dataclass(frozen=True, eq=False)
class DevRankings:
    """Rankings for n queries with m judgments, of judged titles or of a catalogue.

    titles : all texts that are ranked or judged
    offsets : (n + 1,); query q has the judgments ``offsets[q]`` to ``offsets[q + 1]``
    title, grade : (m,), one for each judgment; titles as indices into ``titles``
    rank : (m,), from 1; 0 where the title was not found
    score : (m,), NaN where the title was not found
    top, top_scores : (n, top), the first titles and their scores; -1 and -inf where there are fewer
    values : (n,), the figure of each query, NaN without a relevant title
    n_titles : distinct titles of the catalogue; None if only the judged titles are ranked
    n_outside : distinct relevant titles that are not in the catalogue
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


def rank_judged_titles(
    model: HybridRanker | PairScorer, judged: JudgedSet, top: int
) -> DevRankings:
    """The judged titles of each query, ranked as `evaluate_model` ranks them."""
    run = judged_run(model, judged)
    values = ndcg(judged, run, (CUTOFF,)).values[:, 0]
    scores = np.array([score for id in judged.query_ids for score in run[id].values()])
    n = len(judged.queries)
    query = np.repeat(np.arange(n), np.diff(judged.offsets))
    order = np.lexsort((tie_ranks(judged.title_ids)[judged.title_index], -scores, query))
    position = np.arange(query.size) - judged.offsets[query]
    rank = np.empty(query.size, np.int64)
    rank[order] = position + 1
    firsts = np.full((n, top), -1), np.full((n, top), -np.inf)
    is_top = position < top
    for into, values_of in zip(firsts, (judged.title_index, scores), strict=True):
        into[query[is_top], position[is_top]] = values_of[order[is_top]]
    title, grade = judged.title_index.astype(np.int64), judged.grade.astype(np.int64)
    return DevRankings(
        judged.titles, judged.offsets, title, grade, rank, scores, *firsts, values, None, 0
    )


def rank_catalogue(
    model: HybridRanker | PairScorer | SearchedIndex,
    held_out: JudgedSet | ClickLog,
    titles: Sequence[str] | None,
    top: int,
) -> DevRankings:
    """All titles of a catalogue, ranked for each query."""
    retriever: Retriever
    if isinstance(model, HybridRanker | PairScorer):
        given = held_out.titles if titles is None else as_texts(titles)
        texts = in_tie_order({title.strip() for title in given})
        catalogue = DistinctTitles(texts)
        if isinstance(model, PairScorer):
            retriever = AllPairs(model, texts)
        else:
            retriever = model.over(texts)
    else:
        catalogue, retriever = DistinctTitles(model.titles), model
    offsets, title, grade, every = _judgments(held_out, catalogue)
    n = len(held_out.queries)
    rank = np.zeros(title.size, np.int64)
    score = np.full(title.size, np.nan)
    tops, top_scores = np.full((n, top), -1), np.full((n, top), -np.inf)
    gained: dict[str, dict[str, float]] = {}
    for q, ranked, scores in catalogue.rankings(retriever, held_out.queries, DEPTH):
        of_query = slice(offsets[q], offsets[q + 1])
        by_number = np.argsort(ranked)
        at = np.searchsorted(ranked, title[of_query], sorter=by_number)
        candidate = by_number[np.minimum(at, ranked.size - 1)] if ranked.size else at
        hit = ranked[candidate] == title[of_query] if ranked.size else np.zeros(at.size, np.bool_)
        rank[of_query] = np.where(hit, candidate + 1, 0)
        score[of_query] = np.where(hit, scores[candidate] if ranked.size else np.nan, np.nan)
        k = min(top, ranked.size)
        tops[q, :k], top_scores[q, :k] = ranked[:k], scores[:k]
        gained[str(q)] = {str(t): -float(r) for r, t in enumerate(ranked[:CUTOFF].tolist())}
    if isinstance(held_out, ClickLog):
        # The offsets of clicks are never empty.
        first = np.minimum.reduceat(np.where(rank > 0, rank, DEPTH + CUTOFF), offsets[:-1])
        values = np.where(first <= CUTOFF, 1 / first, 0.0)
    else:
        distinct, inverse = np.unique(title, return_inverse=True)
        judged = JudgedSet(
            [str(q) for q in range(n)],
            held_out.queries,
            list(map(str, distinct.tolist())),
            [every[t] for t in distinct.tolist()],
            offsets,
            inverse.astype(np.int32),
            grade.astype(np.int32),
        )
        values = ndcg(judged, gained, (CUTOFF,)).values[:, 0]
    return DevRankings(
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
    held_out: JudgedSet | ClickLog, catalogue: DistinctTitles
) -> tuple[_Integers, _Integers, _Integers, list[str]]:
    """Offsets, texts and grades by query, and all texts: the catalogue, then those it lacks.

    Judgments of equal texts for a query become one, with the highest grade.
    """
    known, outside = catalogue.number_of, dict[str, int]()
    number = np.array(
        [
            known[text] if text in known else outside.setdefault(text, len(known) + len(outside))
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
    return offsets, title, grade, [*known, *outside]
