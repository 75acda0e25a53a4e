"""The titles that an index is to have, compared with those it has: new, changed and gone."""

from __future__ import annotations

from operator import ne
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import TextArray
from sentemb.retrieval.rows_of_texts import TextRows
from sentemb.search.product_fields import ProductFields, in_columns
from sentemb.search.searched_fields import texts_of
from sentemb.search.segment import Segment
from sentemb.search.snapshot import Snapshot

# Titles that are compared at a time.
_PORTION = 8192


class Changes(NamedTuple):
    """Numbers of titles that `Index.sync` added, changed (text or fields) and removed."""

    added: int
    changed: int
    removed: int


def compared(
    old: Snapshot, titles: TextArray, ids: TextArray, fields: ProductFields
) -> tuple[Changes, list[Segment], NDArray[np.bool_]]:
    """Compare the contents of an index with the titles that it is to have.

    Returns what changes, the segments of ``old`` without the titles that go or change, with the new
    fields of the others, and which of ``titles`` are new or changed, (n,).
    """
    row_of, is_new = TextRows(ids), np.ones(len(ids), np.bool_)
    searched = [of_field.texts for of_field in texts_of(old.search_fields, fields)]
    segments, n_removed, n_refreshed = [], 0, 0
    for segment in old.segments:
        left = np.flatnonzero(segment.left.is_left)
        rows = row_of.of(segment.ids)[left]
        n_removed += int((rows < 0).sum())
        stays = _are_same(segment, left, rows, titles)
        before = [of_field.texts for of_field in texts_of(old.search_fields, segment.fields)]
        for of_segment, of_all in zip(before, searched, strict=True):
            stays[stays] = [
                of_segment[row] == of_all[now]
                for row, now in zip(left[stays].tolist(), rows[stays].tolist(), strict=True)
            ]
        is_new[rows[stays]] = False
        remaining = segment.without(left[~stays])
        refreshed, n_of_segment = _refreshed(remaining, fields, rows[stays])
        segments.append(refreshed)
        n_refreshed += n_of_segment
    n_moved = len(old) - n_removed - sum(map(len, segments))
    changes = Changes(int(is_new.sum()) - n_moved, n_moved + n_refreshed, n_removed)
    return changes, segments, is_new


def _are_same(
    segment: Segment, left: NDArray[np.int64], rows: NDArray[np.int64], titles: TextArray
) -> NDArray[np.bool_]:
    """Which titles that are left have the same text at their new row."""
    are_same = rows >= 0
    there = np.flatnonzero(are_same)
    for first in range(0, there.size, _PORTION):
        portion = there[first : first + _PORTION]
        before, now = segment.titles.chosen(left[portion]), titles.chosen(rows[portion])
        are_same[portion] = list(map(str.__eq__, before, now))
    return are_same


def _refreshed(
    segment: Segment, fields: ProductFields, rows: NDArray[np.int64]
) -> tuple[Segment, int]:
    """A segment with the fields at ``rows`` for the titles that are left, and how many changed."""
    before, left = segment.fields, segment.left
    every = {**before.types, **fields.types}
    of_titles = in_columns(before.rows(left), before.types, every)
    now = in_columns(fields.rows_at(rows), fields.types, every)
    n_changed = sum(map(ne, of_titles, now))
    if not n_changed:
        return segment.with_fields(before.as_types(fields.types)), 0
    of_rows = np.zeros(left.count, np.int64)
    of_rows[left.is_left] = rows
    return segment.with_fields(fields.take(of_rows)), n_changed
