"""The pairs that a page shows: of a file, of a judged set, of the worst queries of a `Triage`."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sentemb.analysis.labels import MAX_WORDS
from sentemb.analysis.triage import RankedTitle, Triage, TriagedQuery
from sentemb.data.judged_set import read_judged_set
from sentemb.data.lines import content_lines
from sentemb.errors import SentembError
from sentemb.models.contracts import ByProduct, Ranker
from sentemb.models.pair_scorer import PairScorer
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.files import is_folder, place_name
from sentemb.system.paths import AnyPath


@dataclass(frozen=True)
class ShownPair:
    """A query to show, optionally with a title and its place in a ranking.

    grade : the grade of the title for the query; None if it is not judged
    rank : the title's rank by the model's score among the ``titles``
    titles : how many titles were ranked for the query
    """

    query: str
    title: str | None = None
    grade: int | None = None
    rank: int | None = None
    titles: int | None = None


def read_pairs(
    model: SentenceEncoder | PairScorer,
    path: AnyPath,
    limit: int,
    ranker: Ranker | None = None,
) -> tuple[list[ShownPair], list[str]]:
    """Read the pairs to show, and all queries, from a file or a judged set.

    A folder is a judged set: for each query, in the order of the file, the title that is ranked
    first, by default by the model, then the best of the titles with a higher grade, if any. A file
    has lines ``query`` or ``query<TAB>title``; further columns, such as the clicks of a click log,
    are ignored. The model splits the texts into words. Returns at most ``limit`` pairs, and the
    distinct queries in the order of the file. Raises `SentembError` for an empty file, a line
    without a query, or a text to show with more than `MAX_WORDS` words.
    """
    if is_folder(path):
        pairs, queries = _of_judged_set(ranker or model, path, limit)
    else:
        pairs, queries = _of_file(model, path, limit)
    for pair in pairs:
        for text in filter(None, (pair.query, pair.title)):
            if len(model.vocabulary.split(text)) > MAX_WORDS:
                raise SentembError(
                    f"{place_name(path)}: the text {text[:40]!r} ... has more than {MAX_WORDS} "
                    "words, the limit of a page; leave it out"
                )
    return pairs, list(dict.fromkeys(queries))


def _of_file(
    model: SentenceEncoder | PairScorer, path: AnyPath, limit: int
) -> tuple[list[ShownPair], list[str]]:
    pairs: list[ShownPair] = []
    queries: list[str] = []
    for number, line in content_lines(path):
        query, tab, rest = line.partition("\t")
        title = rest.partition("\t")[0]
        if isinstance(model, PairScorer) and not tab:
            raise SentembError(
                f"{place_name(path)}:{number}: no title; a pair model needs lines query<TAB>title"
            )
        if not query.strip() or (tab and not title.strip()):
            raise SentembError(
                f"{place_name(path)}:{number}: a query or title without words; write query, or "
                "query<TAB>title"
            )
        queries.append(query)
        if len(pairs) < limit:
            pairs.append(ShownPair(query, title or None))
    if not pairs:
        raise SentembError(
            f"{place_name(path)}: the input is empty; write one query, or query<TAB>title, per line"
        )
    return pairs, queries


def _of_judged_set(ranker: Ranker, path: AnyPath, limit: int) -> tuple[list[ShownPair], list[str]]:
    judged = read_judged_set(path)
    if isinstance(ranker, ByProduct):
        ranker = ranker.with_ids(judged.titles, judged.title_ids)
    pairs: list[ShownPair] = []
    for query, start, stop in zip(judged.queries, judged.offsets, judged.offsets[1:], strict=False):
        if start == stop:
            continue
        titles = [judged.titles[d] for d in judged.title_index[start:stop]]
        grades = judged.grade[start:stop].tolist()
        every = np.arange(len(titles))
        scores = ranker.score_pairs([query], titles, np.zeros_like(every), every)
        order = np.argsort(-scores, kind="stable").tolist()
        best = max(order, key=grades.__getitem__)
        for k in [order[0]] + [best] * (grades[best] > grades[order[0]]):
            rank = order.index(k) + 1
            pairs.append(ShownPair(query, titles[k], grades[k], rank, len(titles)))
        if len(pairs) >= limit:
            break
    return pairs[:limit], judged.queries


def worst_pairs(
    model: SentenceEncoder | PairScorer, triage: Triage
) -> tuple[list[ShownPair], list[list[int]]]:
    """The pairs to explain of the worst queries, and which of them belong to each query.

    A query is shown with its first title and, if that is not one of the best titles, with the best
    one. Pairs that cannot be shown word by word are left out: those with a text without words, or
    with more than `MAX_WORDS`.
    """
    pairs: list[ShownPair] = []
    of_query: list[list[int]] = []
    for triaged in triage.worst:
        query = triage.queries[triaged.number]
        shown = [
            ShownPair(query, title.title, title.grade, title.rank, triaged.n_titles)
            for title in _first_and_best(triaged)
            if _can_be_shown(model, query, title.title)
        ]
        of_query.append(list(range(len(pairs), len(pairs) + len(shown))))
        pairs += shown
    return pairs, of_query


def _first_and_best(triaged: TriagedQuery) -> Iterator[RankedTitle]:
    first = triaged.titles[0] if triaged.titles else None
    if first is not None:
        yield first
    if first is None or (first.grade or 0) < (triaged.best.grade or 0):
        yield triaged.best


def _can_be_shown(model: SentenceEncoder | PairScorer, *texts: str) -> bool:
    return all(1 <= len(model.vocabulary.split(text)) <= MAX_WORDS for text in texts)
