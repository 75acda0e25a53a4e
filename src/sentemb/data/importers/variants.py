"""Variants of a product in the rows below it, of which the first alone has the title.

Shops export a product with its sizes and colours so: all of them share a column, such as Handle,
which tells one product from the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from sentemb.data.column_names import FIELDS
from sentemb.data.importers.columns import BadRows, index_of
from sentemb.data.importers.missing import is_missing
from sentemb.data.importers.table_rows import Rows
from sentemb.errors import SentembError
from sentemb.system.files import is_file

Cells = Sequence[str]


def inherited(rows: Rows, n_ids: int, names: Sequence[str]) -> Iterator[tuple[Cells, Cells]]:
    """The rows without a title that are variants, each with the row of its product above.

    A column tells products apart if the rows with each of its values follow one another, the first
    has a title, and no value has two titles. Of several columns the one with most variants counts.
    Both rows have the columns of ``rows``; the title comes after ``n_ids`` columns of the id.
    ``names`` are all columns of the file. Nothing is found in a stream, which is read once.
    """
    if str(rows.path) == "-" or not is_file(rows.path):
        return
    try:
        used = {names[index_of(c, list(names), rows.name)] for c in rows.columns[: n_ids + 1]}
    except SentembError:  # a column that the first object of JSON lacks
        return
    grouping = [
        name
        for name in names
        if name not in used and names.count(name) == 1 and not any(f.has(name) for f in FIELDS)
    ]
    groups = [_Groups(n_ids) for _ in grouping]
    width = len(rows.columns)
    for _, cells in rows.again([*rows.columns, *grouping], BadRows(skip=True)):
        for group, value in zip(groups, cells[width:], strict=True):
            group.add(value.strip(), cells[:width])
    best = max(groups, key=lambda group: len(group.variants), default=None)
    yield from () if best is None else best.variants


class _Groups:
    """The products that one column tells apart, if it does.

    variants : rows without a title, each with the first row of its product
    """

    def __init__(self, n_ids: int) -> None:
        self.variants: list[tuple[Cells, Cells]] = []
        self._title = n_ids
        self._value: str | None = None
        self._first: Cells = ()
        self._seen: set[str] = set()
        self._tells = True

    def add(self, value: str, cells: Cells) -> None:
        """Add the next row, which has ``value`` in the column."""
        if not self._tells:
            return
        title = cells[self._title].strip()
        has_title = bool(title) and not is_missing(title)
        if value and value == self._value:
            if not has_title:
                if self._first:
                    self.variants.append((cells, self._first))
            elif title != (self._first[self._title].strip() if self._first else ""):
                self._stop()
            return
        if value in self._seen or (has_title and not value):
            self._stop()
            return
        self._seen.update([value] if value else [])
        self._value, self._first = value, cells if has_title else ()

    def _stop(self) -> None:
        self._tells = False
        self.variants.clear()
        self._seen.clear()
