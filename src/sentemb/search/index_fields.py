"""The fields of all titles of an index, whatever segments these are in; titles by number."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.search.filters import BOOLEAN, REAL, TEXT
from sentemb.search.product_fields import ProductFields, Value, kind_of
from sentemb.search.segment import Segment
from sentemb.system.bounds import brief, plain

# A column to filter by has at most this many values.
_MOST_FACETS = 200
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_TRUTH = re.compile("true|false", re.IGNORECASE)


class IndexFields:
    """Price, brand and so on of the titles of an index.

    segments : at least one; all have the same columns
    types : the type of each column, one of `sentemb.search.product_fields.TYPES`
    """

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self.types = segments[0].fields.types
        self._starts = np.cumsum([0, *map(len, segments)])

    def __len__(self) -> int:
        return int(self._starts[-1])

    # -- columns ------------------------------------------------------------------------------

    @cached_property
    def empty(self) -> frozenset[str]:
        """The columns without a value: their type says nothing."""
        return frozenset(
            name
            for name in self.types
            if not any(each.fields.has_value(name, each.left) for each in self._segments)
        )

    @property
    def text_columns(self) -> frozenset[str]:
        """The columns of texts that have a value, in small letters."""
        texts = {name for name, kind in self.types.items() if kind == TEXT}
        return frozenset(map(str.lower, texts - self.empty))

    @cached_property
    def facets(self) -> list[str]:
        """Columns to filter by: texts with few distinct values, which are not addresses; truths."""
        names = [name for name, kind in self.types.items() if kind in (TEXT, BOOLEAN)]
        return [name for name in names if self._are_few(name)]

    def _are_few(self, name: str) -> bool:
        most = min(_MOST_FACETS, len(self) // 2)
        values: set[Value] = set()
        for segment in self._segments:
            of_segment = segment.fields.few_values(name, most, segment.left)
            if of_segment is None:
                return False
            values |= of_segment
        return 0 < len(values) <= most

    # -- reading ------------------------------------------------------------------------------

    def mask(self, condition: str) -> NDArray[np.bool_]:
        """The titles that meet a condition, (n,) bool; see `ProductFields.mask`."""
        masks = []
        for segment in self._segments:
            mask, left = segment.fields.mask(condition, self.empty), segment.left
            masks.append(mask[left.is_left] if left.removed.size else mask)
        return masks[0] if len(masks) == 1 else np.concatenate(masks)

    def values(self, numbers: Sequence[int]) -> list[dict[str, Value]]:
        """The fields of some titles, by column; None for one that is empty."""
        values: dict[int, dict[str, Value]] = {}
        for of_segment, fields, rows in self._located(numbers):
            values |= zip(of_segment, fields.values(rows), strict=True)
        return [values[number] for number in numbers]

    def facet(self, column: str, numbers: Sequence[int]) -> dict[Value, int]:
        """How many of some titles have each value of a column; see `ProductFields.facet`."""
        fields, rows = self._fields_of(numbers)
        return fields.facet(column, rows)

    def ordered(self, order: str, numbers: Sequence[int]) -> list[int]:
        """The positions of ``numbers`` by a column; see `ProductFields.ordered`."""
        fields, rows = self._fields_of(numbers)
        return fields.ordered(order, rows)

    def _fields_of(self, numbers: Sequence[int]) -> tuple[ProductFields, Sequence[int]]:
        """Fields that have those of some titles, and the rows of the titles there."""
        if len(self._segments) == 1:
            segment = self._segments[0]
            return segment.fields, segment.left.rows(np.array(numbers, np.int64)).tolist()
        rows = ([values[name] for name in self.types] for values in self.values(numbers))
        return ProductFields.of(self.types, len(numbers), rows), range(len(numbers))

    def _located(
        self, numbers: Sequence[int]
    ) -> Iterator[tuple[list[int], ProductFields, list[int]]]:
        """Those of some titles that each segment has, its fields, and their rows there."""
        for segment, (start, end) in zip(
            self._segments, pairwise(self._starts.tolist()), strict=True
        ):
            if of_segment := [number for number in numbers if start <= number < end]:
                rows = segment.left.rows(np.array(of_segment, np.int64) - start)
                yield of_segment, segment.fields, rows.tolist()

    def rows(self) -> Iterator[tuple[Value, ...]]:
        """The fields of all titles, in their order."""
        return chain.from_iterable(each.fields.rows(each.left) for each in self._segments)

    def as_one(self) -> ProductFields:
        """The fields of all titles as those of one segment."""
        first = self._segments[0]
        if len(self._segments) == 1 and not first.left.removed.size:
            return first.fields
        return ProductFields.of(self.types, len(self), self.rows())

    # -- other titles -------------------------------------------------------------------------

    def joined_types(self, following: ProductFields, ids: Sequence[str]) -> dict[str, str]:
        """The types of the columns that hold these and ``following``.

        A column that only one has is empty in the other. ``ids`` are those of the products of
        ``following``. Raises `SentembError` for a value of another kind in a column of numbers or
        of truths.
        """
        types = dict(self.types)
        for name, kind in self.types_of(following, ids).items():
            same = _same(name, types) or name
            has_values = same in types and same not in self.empty
            types[same] = _joined_type(types[same], kind) if has_values else kind
        return types

    def types_of(self, following: ProductFields, ids: Sequence[str]) -> dict[str, str]:
        """The types of ``following``, whose columns must be of the kind that they are of here.

        One without a value has the type that it has here. The parameters and errors are those of
        `joined_types`.
        """
        types = dict(following.types)
        for k, (name, kind) in enumerate(following.types.items()):
            same = _same(name, self.types)
            if same is None or kind == self.types[same]:
                continue
            if not following.has_value(name):
                types[name] = self.types[same]
            elif _is_unlike(kind, self.types[same]) and same not in self.empty:
                values = [row[k] for row in following.rows()]
                raise _of_another_kind(same, self.types[same], values, ids)
        return types


def _joined_type(first: str, second: str) -> str:
    if first == second:
        return first
    return TEXT if TEXT in (first, second) else REAL


def _is_unlike(kind: str, before: str) -> bool:
    """Whether a column of a type has values that one of the type ``before`` cannot take."""
    return before != TEXT and kind_of(kind) != kind_of(before)


def _same(name: str, columns: Iterable[str]) -> str | None:
    """The column with this name, in any case."""
    return next((column for column in columns if column.lower() == name.lower()), None)


def _of_another_kind(
    name: str, kind: str, values: Sequence[Value], ids: Sequence[str]
) -> SentembError:
    """The error for values in a column of another kind: the first that cannot be of it, if any."""
    form, what, remedy = _NUMBER, "a number", "1299 or 12.50"
    if kind == BOOLEAN:
        form, what, remedy = _TRUTH, "true or false", "true or false"
    there = [row for row, value in enumerate(values) if value is not None]
    wrong = (row for row in there if not form.fullmatch(str(values[row])))
    row = next(wrong, there[0])
    return SentembError(
        f"{name} of {plain(ids[row])} is {brief(values[row])}, but {name} is {what} in the index;"
        f" write it as {remedy}, or leave it empty"
    )
