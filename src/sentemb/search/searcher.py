"""The search in titles, whether they are in one index or in several."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, repeat
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError, naming
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.marked_words import MarkedWords
from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.confidence import Confidence
from sentemb.search.frequent_queries import FrequentQueries
from sentemb.search.product_fields import Value
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.part import Asked
from sentemb.search.ranking.ranker import Share
from sentemb.search.ranking.recipe import Recipe
from sentemb.search.ranking.shortlist import least_of_matches
from sentemb.search.snapshot import Snapshot
from sentemb.system.bounds import brief, number, share, whole
from sentemb.system.html_tables import ShownRows
from sentemb.system.meant_names import answering_names
from sentemb.system.parallel import Workers
from sentemb.text.arguments import as_text, as_texts

# Why a search finds nothing.
NOTHING_KNOWN = "the model and the titles know none of its words"
BELOW_FLOOR = "it does not look like a query that these titles answer"
NO_TITLES = "no titles to choose from"
NO_PRODUCT = "no product meets the condition"
NO_MORE = "all titles were shown before"
# Sorting and facets are over the titles with the highest scores, at most this many; see
# `sentemb.search.ranking.shortlist.LEAST_SHARE`.
MOST_MATCHES = 1000
MOST_SUGGESTIONS = 8
_MOST_TITLES = 2**31 - 1


class Hit(dict[str, Any]):
    """A title that was found: a dict that JSON can write, whose values are attributes too.

    Attributes
    ----------
    id, title : str
    marks : list of list of int
        The begin and the end of each place in the title that has a word of the query, counted in
        code points: the words that BM25 finds, and those that differ in case and accents alone.
    score : float
        The weighted sum of the parts; see `Index.recipe`.
    parts : dict of str to dict
        For each part its ``value``, see `sentemb.search.ranking.parts`, and what it ``added`` to
        the score.
    confidence : float or None
        How often such a score belongs to a clicked title; see `sentemb.search.confidence`. Only the
        first title of a query has one, and only if the index is calibrated for such queries and
        the confidence says more than a constant.
    by_id : bool
        Whether it is first because its id is the query, whatever its score.
    fields : dict
        Price, brand and so on; None where one is empty. Not among the keys if the index has none.

    Examples
    --------
    >>> hit = Hit(id="b2", title="Bath Tub", marks=[[5, 8]], score=0.5, by_id=False)
    >>> hit["title"], hit.title, hit.fields
    ('Bath Tub', 'Bath Tub', {})
    """

    id: str
    title: str
    marks: list[list[int]]
    score: float
    parts: dict[str, dict[str, float]]
    confidence: float | None
    by_id: bool

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"a hit has no {name!r}; it has {', '.join(self)}") from None

    @property
    def fields(self) -> dict[str, Value]:
        """Price, brand and so on; empty if the index has none."""
        fields: dict[str, Value] = self.get("fields", {})
        return fields

    def __repr__(self) -> str:
        return f"Hit({', '.join(f'{name}={value!r}' for name, value in self.items())})"


class Searcher:
    """Finds titles for queries; it is a `sentemb.models.contracts.Retriever`.

    Parameters
    ----------
    model : SentenceEncoder
        Embeds queries.
    threads : int, optional
        By default all processors.
    """

    def __init__(self, model: SentenceEncoder, threads: int | None = None) -> None:
        self.model = model
        self._workers = Workers(threads)

    @property
    def snapshot(self) -> Snapshot:
        """All that searches read now: an object that never changes."""
        raise NotImplementedError

    def __len__(self) -> int:
        return len(self.snapshot)

    def __iter__(self) -> Iterator[str]:
        """The ids, in the order in which they were added."""
        snapshot = self.snapshot
        return map(snapshot.id, range(len(snapshot)))

    def __contains__(self, id: object) -> bool:
        return isinstance(id, str) and self.snapshot.numbers_of([id])[0] >= 0

    def __getitem__(self, id: str) -> dict[str, Any]:
        """The title with an id, as a dict of ``id``, ``title`` and, if there are any, ``fields``.

        Raises `KeyError` if the id is not in the index.
        """
        product: dict[str, Any] | None = self.get(id)
        if product is None:
            raise KeyError(id)
        return product

    def get(self, id: str, default: Any = None) -> Any:
        """As ``index[id]``, or ``default`` for an id that is not in the index."""
        snapshot = self.snapshot
        row = int(snapshot.numbers_of([id])[0]) if isinstance(id, str) else -1
        if row < 0:
            return default
        product = {"id": snapshot.id(row), "title": snapshot.title(row)}
        (fields,) = snapshot.fields.values([row])
        return {**product, "fields": fields} if fields else product

    # A str is a Sequence[str] as well; the first signature that fits counts.
    @overload
    def search(  # type: ignore[overload-overlap]
        self,
        queries: str,
        k: int = 10,
        *,
        offset: int = 0,
        only: Iterable[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        min_score: float | None = None,
        min_confidence: float | None = None,
        cosine: bool = False,
        everything: bool = False,
        exact: bool = False,
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        offset: int = 0,
        only: Iterable[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        min_score: float | None = None,
        min_confidence: float | None = None,
        cosine: bool = False,
        everything: bool = False,
        exact: bool = False,
    ) -> list[list[Hit]]: ...
    @answering_names
    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        *,
        offset: int = 0,
        only: Iterable[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        min_score: float | None = None,
        min_confidence: float | None = None,
        cosine: bool = False,
        everything: bool = False,
        exact: bool = False,
    ) -> list[Hit] | list[list[Hit]]:
        """The titles with the highest scores.

        Parameters
        ----------
        queries : str or list of str
            One query, or a list of them.
        k : int
            Titles per query.
        offset : int
            Leave out this many of the best titles: with ``k=10`` and ``offset=10`` a query has the
            titles from the 11th to the 20th.
        only : list of str, optional
            The ids that may be found. Ids that are not in the index are ignored.
        where : str, optional
            A condition on the fields, such as ``stock > 0 and brand in ('Acme', 'Bolt')``; see
            `sentemb.search.filters.checked_condition`. The titles are ranked as if the index had
            only those that meet it.
        sort : str, optional
            A field that the matches are ordered by, rising, or falling with ``-price`` or ``price
            desc``; titles without a value come last. Matches are the 1,000 titles with the highest
            scores, as far as they have half the highest.
        facets : list of str, optional
            Fields whose values are counted among the matches: the attribute ``facets`` has the 20
            most frequent of each.
        min_score : float, optional
            Leave out titles with a lower score.
        min_confidence : float, optional
            Find nothing for a query whose first title has a lower confidence, 0 to 1. Queries of a
            kind that was not calibrated pass.
        cosine : bool
            Score by the cosine of the model alone, whatever the weights of the index are.
        everything : bool
            Find the best titles also for a query that they cannot answer; see
            `sentemb.search.ranking.floor`.
        exact : bool
            Compare a query with every title. Without it, an index with `clusters` may miss a few of
            the best; scores are the same.

        Returns
        -------
        list of Hit, or a list of them for each query
            Best first, equal scores in the order of the titles. Empty where there is no good match;
            the attribute ``reason`` then says why: neither the model nor BM25 knows a word of the
            query, it is below the floor, or another limit leaves every title out. Below the floor
            the attribute ``nearest`` has the hits that there would be without one. A title whose id
            is the query, or the query in capitals or small letters, comes first. For a query
            without a good match, or with a word that no title has, the attribute ``did_you_mean``
            is the nearest frequent query of the log that finds something, or None.

        Raises
        ------
        SentembError
            If ``queries`` is not a text or a list of texts, or k is not an integer of at least 0;
            for a condition or a field that is wrong; for ``min_confidence`` without a calibration
            for these weights.
        """
        if min_score is not None:
            number("min_score", min_score, -np.inf)
        texts = [as_text(queries)] if isinstance(queries, str) else as_texts(queries)
        snapshot = self.snapshot
        where = None if where is None else _text("where", where)
        mask = snapshot.mask(None if only is None else as_ids(only), where)
        limits = _Limits(
            None if sort is None else _text("sort", sort),
            _names(facets),
            min_score,
            min_confidence,
            cosine,
            everything,
            where,
            offset,
            exact,
        )
        hits = self._search(snapshot, texts, k, mask, limits)
        return hits[0] if isinstance(queries, str) else hits

    @answering_names
    def similar(
        self,
        id: str,
        k: int = 10,
        *,
        offset: int = 0,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        cosine: bool = False,
        exact: bool = False,
    ) -> list[Hit]:
        """The titles that are found with another title as query, without itself.

        Parameters
        ----------
        id : str
            An id of the index.
        k, offset, where, sort, facets, cosine, exact
            As for `search`.

        Raises
        ------
        SentembError
            As `search`, and if the id is not in the index.
        """
        snapshot = self.snapshot
        (row,) = snapshot.known_numbers([as_text(id)]).tolist()
        mask = np.ones(len(snapshot), np.bool_)
        where = None if where is None else _text("where", where)
        meets = snapshot.mask(None, where)
        if meets is not None:
            mask &= meets
        mask[row] = False
        limits = _Limits(
            None if sort is None else _text("sort", sort),
            _names(facets),
            cosine=cosine,
            everything=True,
            where=where,
            offset=offset,
            exact=exact,
        )
        return self._search(snapshot, [snapshot.title(row)], k, mask, limits)[0]

    def _search(
        self,
        snapshot: Snapshot,
        texts: list[str],
        k: int,
        mask: NDArray[np.bool_] | None,
        limits: _Limits,
    ) -> ShownRows[list[Hit]]:
        whole("k", k, 0, _MOST_TITLES)
        offset = whole("offset", limits.offset, 0, _MOST_TITLES - k)
        confidence = limits.confidence(snapshot)
        n_matches = MOST_MATCHES if limits.sort or limits.facets else 0
        # What is sorted are the matches, whatever part of them is shown.
        n_best = offset + k if k and not limits.sort else 0
        of_search = n_best, mask, limits.cosine, self._workers, limits.exact, n_matches
        asked = snapshot.asked(texts)  # once: each of the following reads what it has found
        ranked = snapshot.best(asked, *of_search)
        is_below = np.zeros(len(texts), np.bool_)
        if not (limits.everything or limits.cosine):
            is_below = snapshot.are_below_floor(asked, ranked, mask)
        confidences, is_sure = np.full(len(texts), np.nan), np.zeros(len(texts), np.bool_)
        if confidence is not None and ranked.titles.size:
            # A query for which nothing is found has the score -inf; its confidence is not used.
            is_there = ranked.titles[:, 0] >= 0
            first_scores = np.where(is_there, ranked.scores[:, 0], 0)
            confidences, is_sure = confidence.of(first_scores, snapshot.are_clicked(asked))
        has_titles = bool(len(snapshot) if mask is None else mask.any())
        # Another query is offered for unknown words. The cosine offers none, so needs no stemmer.
        is_unknown = None if limits.cosine else snapshot.have_unknown_words(asked)
        hits: ShownRows[list[Hit]] = ShownRows()
        for q, (text, of_first) in enumerate(zip(texts, confidences.tolist(), strict=True)):
            matches = _matches(ranked, q)
            first = matches[0][0] if matches else None
            reason: str | None = NOTHING_KNOWN if has_titles and k else limits.none_left
            if matches:
                reason = limits.reason(is_below[q], of_first)
            nearest = limits.of(matches)[offset : offset + k] if reason == BELOW_FLOOR else []
            matches = [] if reason else limits.of(matches)
            if not matches and reason is None:
                reason = f"every score is below {limits.min_score:g}"
            facets = limits.counted(snapshot, matches) if limits.facets else None
            matches = limits.ordered(snapshot, matches)
            named = self._named(snapshot, text, mask, limits.cosine) if k else None
            if named is not None:
                reason, nearest = None, []
                matches = [named, *(match for match in matches if match[0] != named[0])]
            meant = None
            if named is None and is_unknown is not None and (reason or is_unknown[q]):
                meant = self._meant(snapshot, text)
            if matches and k and not matches[offset:]:
                reason = NO_MORE
            is_shown = not offset and bool(matches) and matches[0][0] == first and is_sure[q]
            recipe = snapshot.recipe(limits.cosine)
            matches = matches[offset : offset + k]
            marked = MarkedWords(text, words_of(recipe.stem, recipe.letters))
            shown = _hits(snapshot, recipe, marked, matches, of_first if is_shown else None)
            if named is not None and not offset:
                shown[0]["by_id"] = True
            near = _hits(snapshot, recipe, marked, nearest, None) if nearest else []
            hits.append(ShownRows(shown, text, reason, facets, meant, near))
        return hits

    def _meant(self, snapshot: Snapshot, text: str) -> str | None:
        """The nearest frequent query that finds something, if there is one."""
        # A search needs no clicks: it answers even if they were replaced or damaged since.
        with contextlib.suppress(SentembError):
            return next(self._finding(snapshot, snapshot.frequent.near(text)), None)
        return None

    def suggest(self, begun: str, k: int = MOST_SUGGESTIONS) -> list[str]:
        """Frequent queries of the log that begin with a text and find something.

        Case, accents and punctuation do not count. An index that ranks by the cosine alone has no
        queries.

        Parameters
        ----------
        begun : str
            The beginning of a query.
        k : int
            The largest number of queries.

        Returns
        -------
        list of str
            The most clicked first.
        """
        whole("k", k, 0, _MOST_TITLES)
        snapshot = self.snapshot
        queries = snapshot.frequent.beginning_with(as_text(begun))
        return list(islice(self._finding(snapshot, queries), k))

    def frequent_queries(self, least: int) -> list[str]:
        """The queries of the log with at least ``least`` clicks that find something.

        Of several spellings the most clicked; the most clicked query is first.
        """
        snapshot = self.snapshot
        frequent = FrequentQueries.of(snapshot.ranker.clicks, least)
        return list(self._finding(snapshot, frequent.by_key.values()))

    def _finding(self, snapshot: Snapshot, queries: Iterable[str]) -> Iterator[str]:
        """Those of ``queries`` that find something."""
        for query in queries:
            if query not in snapshot.finds:
                snapshot.finds[query] = self._finds(snapshot, snapshot.asked([query]))
            if snapshot.finds[query]:
                yield query

    def _finds(self, snapshot: Snapshot, asked: Asked) -> bool:
        """Whether a search finds something, which needs none where a rule answers."""
        if snapshot.are_answered(asked, None)[0]:
            return True
        ranked = self._ranked(snapshot, asked, 1, None, cosine=False)
        (is_below,) = snapshot.are_below_floor(asked, ranked, None)
        return not is_below and bool((ranked.titles >= 0).any())

    def _named(
        self, snapshot: Snapshot, text: str, mask: NDArray[np.bool_] | None, cosine: bool
    ) -> _Match | None:
        """The title whose id is the query."""
        row = snapshot.number_named(text)
        if row is None or not (mask is None or mask[row]):
            return None
        score, values = snapshot.of_pair(text, row, cosine, self._workers)
        return row, score, 0, {name: np.array([value]) for name, value in values.items()}

    @overload
    def explain(  # type: ignore[overload-overlap]
        self, query: str, ids: str, cosine: bool = False
    ) -> list[Share]: ...
    @overload
    def explain(
        self, query: str, ids: Sequence[str], cosine: bool = False
    ) -> list[list[Share]]: ...
    def explain(
        self, query: str, ids: str | Sequence[str], cosine: bool = False
    ) -> list[Share] | list[list[Share]]:
        """The share of each part in the scores of given titles.

        Parameters
        ----------
        query : str
            One query.
        ids : str or list of str
            One id of the index, or a list of them.
        cosine : bool
            As for `search`.

        Returns
        -------
        list of Share, or a list of them for each id
            One for each part with a weight. What they add is the score.

        Raises
        ------
        SentembError
            If an id is not in the index.
        """
        snapshot = self.snapshot
        rows = snapshot.known_numbers([ids] if isinstance(ids, str) else as_texts(ids)).tolist()
        explained = snapshot.explain(as_text(query), rows, cosine, self._workers)
        return explained[0] if isinstance(ids, str) else explained

    def find(
        self,
        queries: Sequence[str],
        k: int,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The places and scores of the best titles; see `sentemb.models.contracts.Retriever`.

        Parameters
        ----------
        queries : list of str
            The queries.
        k : int
            Titles per query.
        mask : (n,) bool, optional
            The titles that may be found.
        """
        ranked = self.ranked(queries, k, mask)
        return ranked.titles, ranked.scores

    def ranked(
        self,
        queries: Sequence[str],
        k: int,
        mask: NDArray[np.bool_] | None = None,
        cosine: bool = False,
        exact: bool = False,
    ) -> Ranked:
        """As `find`, with what each part scores; see `search` for the last arguments."""
        snapshot = self.snapshot
        asked = snapshot.asked(as_texts(queries))
        return self._ranked(snapshot, asked, k, mask, cosine, exact)

    def _ranked(
        self,
        snapshot: Snapshot,
        asked: Asked,
        k: int,
        mask: NDArray[np.bool_] | None,
        cosine: bool,
        exact: bool = False,
    ) -> Ranked:
        whole("k", k, 0, _MOST_TITLES)
        if mask is not None and mask.shape != (len(snapshot),):
            raise SentembError(
                f"a mask of shape {mask.shape} is not of the {len(snapshot):,} titles of the "
                "index; make it again"
            )
        return snapshot.best(asked, k, mask, cosine, self._workers, exact)

    def are_below_floor(self, queries: Sequence[str], ranked: Ranked) -> NDArray[np.bool_]:
        """Which queries a search refuses, (m,); ``ranked`` are their best titles."""
        snapshot = self.snapshot
        return snapshot.are_below_floor(snapshot.asked(as_texts(queries)), ranked, None)

    def mask_of(self, ids: Iterable[str]) -> NDArray[np.bool_]:
        """Which titles have one of ``ids``: (n,) bool. Unknown ids are ignored."""
        mask = self.snapshot.mask(as_ids(ids), None)
        assert mask is not None
        return mask

    def has_id(self, text: str) -> bool:
        """Whether a query is the id of a title, in any case."""
        return self.id_named(text) is not None

    def id_named(self, text: str) -> str | None:
        """The id that ``text`` is, in any case, if it is one."""
        snapshot = self.snapshot
        row = snapshot.number_named(text)
        return None if row is None else snapshot.id(row)

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The places of the titles with these ids, (k,); -1 for an id that is unknown."""
        return self.snapshot.numbers_of(ids)


# A title for a query: its row, its score, its rank in the scores of each part, and these scores. A
# search may sort and count a thousand, of which it shows ten.
_Match: TypeAlias = tuple[int, float, int, Mapping[str, NDArray[np.float64]]]


class _Limits(NamedTuple):
    """How `Index.search` chooses and orders titles; see there."""

    sort: str | None = None
    facets: tuple[str, ...] = ()
    min_score: float | None = None
    min_confidence: float | None = None
    cosine: bool = False
    everything: bool = False
    where: str | None = None
    offset: int = 0
    exact: bool = False

    @property
    def none_left(self) -> str:
        """Why there are no titles to choose from."""
        return NO_TITLES if self.where is None else NO_PRODUCT

    def confidence(self, snapshot: Snapshot) -> Confidence | None:
        """The calibration of the scores; an error if one is needed and there is none."""
        confidence = snapshot.confidence
        if self.cosine and snapshot.recipe(True) != snapshot.recipe(False):
            confidence = None
        if self.min_confidence is not None:
            share("min_confidence", self.min_confidence)
            if confidence is None:
                raise SentembError(
                    "the index is not calibrated for these weights; run `sentemb calibrate INDEX "
                    "DEV`"
                )
        return confidence

    def reason(self, is_below: bool, confidence: float) -> str | None:
        """Why no title is shown although there are matches."""
        if is_below:
            return BELOW_FLOOR
        if self.min_confidence is not None and confidence < self.min_confidence:
            return f"the confidence of the first title is below {self.min_confidence:g}"
        return None

    def of(self, matches: list[_Match]) -> list[_Match]:
        """Those with high enough scores."""
        least = self.min_score
        return matches if least is None else [match for match in matches if match[1] >= least]

    def counted(self, snapshot: Snapshot, matches: list[_Match]) -> dict[str, dict[Value, int]]:
        """The values of each facet among the best matches."""
        rows = [row for row, *_ in _best(matches)]
        return {column: snapshot.fields.facet(column, rows) for column in self.facets}

    def ordered(self, snapshot: Snapshot, matches: list[_Match]) -> list[_Match]:
        """The matches in the order of a field, or as they are."""
        if self.sort is None:
            return matches
        matches = _best(matches)
        order = snapshot.fields.ordered(self.sort, [row for row, *_ in matches])
        return [matches[k] for k in order]


def _best(matches: list[_Match]) -> list[_Match]:
    """The matches that are sorted and counted."""
    least = least_of_matches(matches[0][1] if matches else 0.0)
    return [match for match in matches[:MOST_MATCHES] if match[1] >= least]


def _matches(ranked: Ranked, q: int) -> list[_Match]:
    """The titles of query ``q``, best first."""
    values = {name: of_part[q] for name, of_part in ranked.values.items()}
    n = np.count_nonzero(ranked.titles[q] >= 0)  # the last ones are not
    of_rows = ranked.titles[q, :n].tolist(), ranked.scores[q].tolist(), range(n)
    return list(zip(*of_rows, repeat(values)))


def _hits(
    snapshot: Snapshot,
    recipe: Recipe,
    marked: MarkedWords,
    matches: list[_Match],
    confidence: float | None,
) -> list[Hit]:
    """Hits; the first has the confidence."""
    fields = snapshot.fields
    of_titles = fields.values([row for row, *_ in matches]) if fields.types else None
    hits = []
    for position, (row, score, rank, values) in enumerate(matches):
        parts = {}
        for part, weight in recipe.terms.items():
            value = values[part].item(rank)
            parts[part] = {"value": value, "added": weight * value}
        segment, of_segment = snapshot.located(row)
        title = segment.catalogue.titles[of_segment]
        hit = Hit(
            id=segment.ids[of_segment],
            title=title,
            marks=marked.of(title),
            score=score,
            parts=parts,
            confidence=None if position else confidence,
            by_id=False,
        )
        if of_titles is not None:
            hit["fields"] = of_titles[position]
        hits.append(hit)
    return hits


def _text(name: str, text: str) -> str:
    """``text`` if it is a str."""
    if not isinstance(text, str):
        raise SentembError(f"{name} is {brief(text)}; give a text")
    return text


def _names(facets: Iterable[str]) -> tuple[str, ...]:
    """The names of fields in ``facets``."""
    if type(facets) is tuple and not facets:
        return facets
    with naming("facets"):
        return tuple(as_ids(facets))


def as_ids(ids: Iterable[str]) -> list[str]:
    """Ids whose order does not matter."""
    return as_texts(sorted(ids) if isinstance(ids, set | frozenset) else ids)
