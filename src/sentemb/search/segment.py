"""A segment: titles that came to an index together, with all that finds and scores them.

A segment never changes, but titles may be removed from it: their rows stay, and a search passes
them over. A change of an index makes a small segment of what is new; `settled` joins small ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate, chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import TextArray, TextsBuilder
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.rows_of_texts import TextRows
from sentemb.search.left import Left
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.part import Part
from sentemb.search.ranking.parts import Cosine
from sentemb.search.ranking.ranker import Catalogue
from sentemb.search.ranking.recipe import COSINE
from sentemb.system.kept_files import KeptFiles
from sentemb.system.paths import AnyPath

# There only if titles have fields.
PRODUCTS = "products.sqlite"
# A segment has at least this many times the titles behind it, and those that were removed from it:
# a search looks at few segments, and a title is rarely written again. One with fewer titles than
# the second number is as soon written as looked at.
_TIMES, _FEW = 10, 5000

Vectors = np.ndarray | Int8Rows


@dataclass(frozen=True, eq=False)
class Segment:
    """Titles, each in a row; those that are left are numbered.

    ids : the ids of all rows
    catalogue : the titles and the parts of their scores
    fields : price, brand and so on
    left : the rows that were not removed
    files : those that hold all this but for what was removed, if there are some
    listed : what a description says of each file, by its name
    """

    ids: TextArray
    catalogue: Catalogue
    fields: ProductFields
    left: Left
    files: KeptFiles | None = None
    listed: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, ids: TextArray, catalogue: Catalogue, fields: ProductFields) -> Segment:
        """A segment of which all titles are left."""
        return cls(ids, catalogue, fields, Left(len(ids)))

    def __len__(self) -> int:
        return len(self.left)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without what is made on first use: hashes differ from process to process.
        return Segment, (self.ids, self.catalogue, self.fields, self.left)

    @property
    def titles(self) -> TextArray:
        """The titles of all rows."""
        titles = self.catalogue.titles
        assert isinstance(titles, TextArray)
        return titles

    @property
    def vectors(self) -> Vectors:
        """Unit vectors of the titles of all rows, (n_rows, dim)."""
        cosine = self.catalogue.parts[COSINE]
        assert isinstance(cosine, Cosine)
        return cosine.rows

    @property
    def n_empty(self) -> int:
        """The titles with no known words."""
        return int(np.count_nonzero(self.catalogue.is_empty & self.left.is_left))

    @cached_property
    def row_of(self) -> TextRows:
        """The row of every id. It is made on first use: one pass over the ids."""
        return TextRows(self.ids)

    def numbers_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The numbers of the titles with some ids, (k,); -1 for an id that no title here has."""
        rows = self.row_of.of(ids)
        if not self.left.removed.size:
            return rows
        there = np.flatnonzero(rows >= 0)
        there = there[self.left.is_left[rows[there]]]
        numbers = np.full(rows.size, -1)
        numbers[there] = self.left.numbers(rows[there])
        return numbers

    def of_cosine(self) -> Segment:
        """This for a ranking by the cosine alone."""
        cosine = {COSINE: self.catalogue.parts[COSINE]}
        shortlist = self.catalogue.shortlist
        if shortlist is not None and shortlist.recipe.parts != (COSINE,):
            shortlist = None
        return self.with_catalogue(replace(self.catalogue, parts=cosine, shortlist=shortlist))

    def part(self, name: str) -> Part | None:
        """A part of the score over the titles that are left."""
        part = self.catalogue.parts.get(name)
        if part is None or not self.left.removed.size:
            return part
        return part.without(self.left.is_left)

    def with_catalogue(self, catalogue: Catalogue) -> Segment:
        """This with other parts of the scores of all rows."""
        return replace(self, catalogue=catalogue, files=None)

    def without(self, rows: NDArray[np.int64]) -> Segment:
        """This without some titles."""
        return replace(self, left=self.left.without(rows)) if rows.size else self

    def with_fields(self, fields: ProductFields) -> Segment:
        """This with other fields of all rows."""
        if fields is self.fields:
            return self
        return replace(self, fields=fields, files=self.files and self.files.without(PRODUCTS))


def joined(segments: Sequence[Segment], scratch: AnyPath | None = None) -> Segment:
    """One segment of the titles that are left in some.

    Large arrays are copied to the folder ``scratch``; see `sentemb.system.growing.joined_rows`.
    """
    if len(segments) == 1 and not segments[0].left.removed.size:
        return segments[0]
    ids = texts_left(segments, [segment.ids for segment in segments], scratch)
    titles = texts_left(segments, [segment.titles for segment in segments], scratch)
    first, *behind = (
        segment.catalogue.without(segment.left.is_left, titles, scratch)
        if segment.left.removed.size
        else segment.catalogue
        for segment in segments
    )
    catalogue = replace(first, titles=titles)
    for of_segment in behind:
        catalogue = catalogue.joined(of_segment, titles, scratch)
    rows = chain.from_iterable(segment.fields.rows(segment.left) for segment in segments)
    fields = ProductFields.of(segments[0].fields.types, len(ids), rows)
    return Segment.of(ids, catalogue, fields)


def texts_left(
    segments: Sequence[Segment], texts: Sequence[TextArray], scratch: AnyPath | None = None
) -> TextArray:
    """The texts of the titles that are left, of those of all rows of each segment."""
    if len(segments) == 1 and not segments[0].left.removed.size:
        return texts[0]
    builder = TextsBuilder(scratch)
    for segment, of_segment in zip(segments, texts, strict=True):
        builder.extend(of_segment, segment.left.is_left)
    return builder.texts()


def settled(segments: Sequence[Segment], scratch: AnyPath | None = None) -> tuple[Segment, ...]:
    """As few segments with the same titles as pay: the small ones at the end are joined.

    The first stays in any case: it knows all queries of the log.
    """
    first, *behind = segments
    filled = [first, *(segment for segment in behind if len(segment))]
    n_behind = [*accumulate(map(len, reversed(filled)))][-2::-1]
    small = next((k for k, n in enumerate(n_behind) if _are_many(n, len(filled[k]))), len(filled))
    large = [
        joined([segment], scratch)
        if _are_many(segment.left.removed.size, segment.left.count)
        else segment
        for segment in filled[:small]
    ]
    return (*large, joined(filled[small:], scratch)) if small < len(filled) else tuple(large)


def _are_many(count: int, n: int) -> bool:
    """Whether ``count`` titles, behind or removed, are too many for a segment of ``n``."""
    return bool(count) and (n < _FEW or count * _TIMES > n)
