"""All that a search reads, as one object that never changes: the segments of one or more indexes.

A change of an index makes another snapshot and puts it in place in one assignment, so that an
exception leaves the index as it was, and a search in another thread reads either all of the old one
or all of the new one.

Titles are numbered: those of the first segment from 0, those of the next behind them. The score of
a query and a title does not depend on other titles, so the best titles of all are among the best
of each segment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.data.lines import is_id
from sentemb.data.text_array import TextArray
from sentemb.errors import SentembError
from sentemb.retrieval.bm25 import Lists
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.confidence import Confidence
from sentemb.search.frequent_queries import FrequentQueries
from sentemb.search.index_description import damaged, part_file
from sentemb.search.index_fields import IndexFields
from sentemb.search.left import Left
from sentemb.search.ranking import engine
from sentemb.search.ranking.direct_parts import Clicks
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.part import Asked, Part
from sentemb.search.ranking.parts import Bm25, Cosine, Embedded
from sentemb.search.ranking.ranker import HybridRanker, Share, shares
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKS,
    COSINE,
    EMBEDDING,
    MEMORY,
    MODEL_ALONE,
    Recipe,
)
from sentemb.search.ranking.shortlist import Shortlist
from sentemb.search.segment import Segment, Vectors, joined, texts_left
from sentemb.system.bounds import plain
from sentemb.system.parallel import Workers
from sentemb.system.time_limits import check_time

# Around an id that somebody types: what Python strips, and the mark that begins some files. The
# page strips the same, see engine.js.
_WHITE = "\ufeff" + "".join(filter(str.isspace, map(chr, range(0x3001))))
# Titles of a word that are looked at first: mostly one of them is left.
_FIRST = 64


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The contents of an index.

    ranker : model, weights and clicks
    segments : the titles, at least one segment; the first knows all queries of the log
    confidence : the confidence that was fitted to scores with these weights, or None
    source : the folder that holds all of this, and its identity; None without one
    search_fields : the weights of the fields in which words are searched
    """

    ranker: HybridRanker
    segments: tuple[Segment, ...]
    confidence: Confidence | None = None
    source: tuple[Path, str] | None = None
    search_fields: Mapping[str, float] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without what is made on first use: hashes differ from process to process.
        attributes = (self.ranker, self.segments, self.confidence, self.source)
        return Snapshot, (*attributes, self.search_fields)

    def changed(self, **changes: Any) -> Snapshot:
        """This with other fields; the confidence is dropped unless scores are made as before."""
        changed = replace(self, **changes, source=None)
        if changed.ranker is self.ranker:
            return changed
        confidence = changes.get("confidence")
        return replace(changed, confidence=confidence)

    def recipe(self, cosine: bool) -> Recipe:
        """The weights of a search: those of the index, or the model alone."""
        return MODEL_ALONE if cosine else self.ranker.recipe

    @cached_property
    def frequent(self) -> FrequentQueries:
        """The frequent queries of the log, made on first use: one pass over the queries."""
        return FrequentQueries.of(self.ranker.clicks)

    @cached_property
    def finds(self) -> dict[str, bool]:
        """For frequent queries that were looked at, whether they find something."""
        return {}

    # -- titles -------------------------------------------------------------------------------

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first number of each segment, and the number of all titles."""
        return np.cumsum([0, *map(len, self.segments)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    @cached_property
    def ids(self) -> TextArray:
        """The ids, in the order of their numbers."""
        return texts_left(self.segments, [segment.ids for segment in self.segments])

    @cached_property
    def titles(self) -> TextArray:
        """The titles, in the order of their numbers."""
        return texts_left(self.segments, [segment.titles for segment in self.segments])

    @property
    def clusters(self) -> Shortlist | None:
        """Looks titles up in clusters; None where a search compares all."""
        return self.segments[0].catalogue.shortlist

    @property
    def dtype(self) -> str:
        """How the vectors are stored: float32, float16 or int8."""
        vectors = self.segments[0].vectors
        return "int8" if isinstance(vectors, Int8Rows) else vectors.dtype.name

    @cached_property
    def fields(self) -> IndexFields:
        """Price, brand and so on of the titles."""
        return IndexFields(self.segments)

    def part(self, name: str) -> Part | None:
        """A part of the score over all titles; None if it has no weight."""
        parts = [segment.part(name) for segment in self.segments]
        there = [part for part in parts if part is not None]
        return reduce(lambda part, behind: part.joined(behind), there) if there else None

    @cached_property
    def vectors(self) -> Vectors:
        """Unit vectors of the titles, (n, dim)."""
        cosine = self.part(COSINE)
        assert isinstance(cosine, Cosine)
        return cosine.rows

    @cached_property
    def as_one(self) -> Segment:
        """All titles as one segment; made on first use, large arrays are copied."""
        return joined(self.segments)

    def remember_embedding(self, embedding: Embedding | None) -> None:
        """Let an embedding know the vectors of these titles, if they are its own."""
        if embedding is None or not embedding.is_like(self.ranker.embedding):
            return
        part = self.part(EMBEDDING)
        if isinstance(part, Embedded):
            embedding.know(self.titles, part.rows)

    def located(self, number: int) -> tuple[Segment, int]:
        """The segment that has a title, and its row there."""
        if len(self.segments) == 1 and not self.segments[0].left.removed.size:
            return self.segments[0], number
        k = int(np.searchsorted(self.starts, number, "right")) - 1
        return self.segments[k], self.segments[k].left.row(number - int(self.starts[k]))

    def id(self, number: int) -> str:
        """The id of a title."""
        segment, row = self.located(number)
        return segment.ids[row]

    def title(self, number: int) -> str:
        """The text of a title."""
        segment, row = self.located(number)
        return segment.titles[row]

    def numbers_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of the titles with some ids, (k,); -1 for an id that is unknown."""
        numbers = self.segments[0].numbers_of(ids)
        for start, segment in zip(self.starts[1:], self.segments[1:], strict=False):
            of_segment = segment.numbers_of(ids)
            numbers = np.where(of_segment >= 0, of_segment + start, numbers)
        return numbers

    def known_numbers(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of the titles with some ids; a `SentembError` for one that no title has."""
        numbers = self.numbers_of(ids)
        if (numbers < 0).any():
            unknown = ids[int(np.argmax(numbers < 0))]
            raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
        return numbers

    def number_named(self, text: str) -> int | None:
        """The title whose id is ``text``; if there is none, in capitals or small letters."""
        name = text.strip(_WHITE)
        ids = list(dict.fromkeys([name, name.upper(), name.lower()])) if is_id(name) else []
        return next((number for number in self.numbers_of(ids).tolist() if number >= 0), None)

    def without(self, numbers: NDArray[np.int64]) -> tuple[Segment, ...]:
        """The segments without some titles."""
        numbers, segments = np.sort(numbers), []
        ends = np.searchsorted(numbers, self.starts)
        for segment, start, (low, high) in zip(
            self.segments, self.starts, pairwise(ends), strict=False
        ):
            rows = segment.left.rows(numbers[low:high] - start)
            segments.append(segment.without(rows))
        return tuple(segments)

    def mask(self, only: list[str] | None, where: str | None) -> NDArray[np.bool_] | None:
        """The titles with one of the ids ``only`` that meet the condition ``where``, if given."""
        mask = None if where is None else self.fields.mask(where)
        if only is None:
            return mask
        numbers, by_id = self.numbers_of(only), np.zeros(len(self), np.bool_)
        by_id[numbers[numbers >= 0]] = True
        return by_id if mask is None else mask & by_id

    def _masks(
        self, mask: NDArray[np.bool_] | None
    ) -> Iterator[tuple[Segment, NDArray[np.bool_] | None]]:
        """Each segment with the rows there that may be found; None for all."""
        for segment, (start, end) in zip(
            self.segments, pairwise(self.starts.tolist()), strict=True
        ):
            yield segment, segment.left.mask(None if mask is None else mask[start:end])

    # -- scores -------------------------------------------------------------------------------

    def asked(self, queries: Sequence[str]) -> Asked:
        """Queries in the forms that the parts need, and which of them the log has clicks for."""
        asked = self.ranker.asked(queries)
        if CLICKS in self.ranker.recipe.terms:
            for segment in self.segments:
                clicks = segment.catalogue.parts.get(CLICKS)
                if isinstance(clicks, Clicks):
                    clicks.mark_typed(asked)
        return asked

    def best(
        self,
        asked: Asked,
        k: int,
        mask: NDArray[np.bool_] | None,
        cosine: bool,
        workers: Workers,
        exact: bool = False,
        matches: int = 0,
    ) -> Ranked:
        """The titles with the highest scores; see `sentemb.search.ranking.engine.best`."""
        recipe, of_segments = self.recipe(cosine), []
        for start, (segment, allowed) in zip(self.starts, self._masks(mask), strict=False):
            check_time()
            catalogue = segment.catalogue
            arguments = catalogue.parts, recipe, asked, k, catalogue.is_empty, workers, allowed
            ranked = engine.best(*arguments, None if exact else catalogue.shortlist, matches)
            self._check_lengths(ranked)
            if start or segment.left.removed.size:
                is_there = ranked.titles >= 0
                ranked.titles[is_there] = start + segment.left.numbers(ranked.titles[is_there])
            of_segments.append(ranked)
        return _merged(of_segments, min(max(k, matches), len(self)))

    def _check_lengths(self, ranked: Ranked) -> None:
        """Refuse what no unit vectors give: files of vectors are not read when they are opened."""
        for part in (COSINE, MEMORY, EMBEDDING):
            values = ranked.values.get(part)
            if values is not None and not (np.abs(values) <= LONGEST).all():
                folder = Path() if self.source is None else self.source[0]
                raise damaged(folder / part_file(part), "a vector is not of unit length")

    def are_below_floor(
        self, asked: Asked, ranked: Ranked, mask: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Which queries the titles cannot answer, (m,); ``ranked`` are their best titles."""
        is_below = self.ranker.is_below_floor(asked, ranked)
        return is_below & ~self.are_answered(asked, mask) if is_below.any() else is_below

    def are_clicked(self, asked: Asked) -> NDArray[np.bool_]:
        """Which queries the log has clicks for, if the recipe counts them; (m,)."""
        parts = (segment.catalogue.parts.get(CLICKS) for segment in self.segments)
        of_segments = [part.knows(asked) for part in parts if isinstance(part, Clicks)]
        return np.any(of_segments, axis=0) if of_segments else np.zeros(len(asked), np.bool_)

    def are_answered(self, asked: Asked, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which queries a rule says that titles answer; see `engine.are_answered`."""
        of_segments = [
            engine.are_answered(segment.catalogue.parts, asked, allowed)
            for segment, allowed in self._masks(mask)
        ]
        return np.asarray(np.any(of_segments, axis=0))

    def of_pair(
        self, query: str, number: int, cosine: bool, workers: Workers
    ) -> tuple[float, dict[str, float]]:
        """The score of a query and a title, and what each part of the recipe scores."""
        segment, row = self.located(number)
        scores, values = engine.of_pairs(
            segment.catalogue.parts,
            self.recipe(cosine),
            self.asked([query]),
            np.zeros(1, np.int64),
            np.array([row]),
            workers,
        )
        return float(scores[0]), {name: float(value[0]) for name, value in values.items()}

    def explain(
        self, query: str, numbers: Sequence[int], cosine: bool, workers: Workers
    ) -> list[list[Share]]:
        """The share of each part in the scores of some titles."""
        recipe, asked = self.recipe(cosine), self.asked([query])
        queries = self.ranker.clicks.queries if recipe.weight(MEMORY) else ()
        return [
            shares(segment.catalogue, recipe, asked, row, queries, workers)
            for segment, row in map(self.located, numbers)
        ]

    def have_unknown_words(self, asked: Asked) -> NDArray[np.bool_]:
        """Which queries have a word that no title and no clicked query has; none without BM25."""
        is_unknown: NDArray[np.bool_] | None = None
        for segment in self.segments:
            part = segment.catalogue.parts.get(BM25)
            if isinstance(part, Bm25):
                is_held = _are_held(part.lists, asked.word_numbers_in(part.lists), segment.left)
                is_unknown = ~is_held if is_unknown is None else is_unknown & ~is_held
        if is_unknown is None or not is_unknown.any():
            return np.zeros(len(asked), np.bool_)
        tokens = asked.tokens
        counts = np.concatenate([[0], np.cumsum(is_unknown[tokens.word_index])])
        return np.diff(counts[tokens.offsets]) > 0


def _are_held(lists: Lists, numbers: NDArray[np.int32], left: Left) -> NDArray[np.bool_]:
    """Which words, by their numbers, a title has that is left, (n,)."""
    is_held = numbers >= 0
    if left.removed.size:
        is_left = left.is_left
        for k in np.flatnonzero(is_held).tolist():
            titles = lists.titles[lists.offsets[numbers[k]] : lists.offsets[numbers[k] + 1]]
            is_held[k] = is_left[titles[:_FIRST]].any() or is_left[titles[_FIRST:]].any()
    return is_held


def _merged(of_segments: Sequence[Ranked], k: int) -> Ranked:
    """The best k titles of all segments, equal scores in the order of the titles."""
    if len(of_segments) == 1:
        (ranked,) = of_segments
        if ranked.titles.shape[1] <= k:
            return ranked
        values = {name: of_part[:, :k] for name, of_part in ranked.values.items()}
        return Ranked(ranked.titles[:, :k], ranked.scores[:, :k], values)
    titles, scores = (
        np.concatenate([getattr(ranked, name) for ranked in of_segments], axis=1)
        for name in ("titles", "scores")
    )
    order = np.lexsort((titles, -scores), axis=1)[:, :k]
    values = {
        name: np.concatenate([ranked.values[name] for ranked in of_segments], axis=1)
        for name in of_segments[0].values
    }
    return Ranked(
        np.take_along_axis(titles, order, axis=1),
        np.take_along_axis(scores, order, axis=1),
        {name: np.take_along_axis(value, order, axis=1) for name, value in values.items()},
    )
