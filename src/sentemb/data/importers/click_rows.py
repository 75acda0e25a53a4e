"""Clicks in the rows of tables: which query, which title, how many.

A title is named by its text, or by the id that a catalogue has. What cannot be used is counted.
"""

from __future__ import annotations

import math
import shlex
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, cycle
from typing import TypeAlias

from sentemb.data.column_names import CLICKS, EVENT, ID, QUERY, TITLE, Meaning, says_clicked
from sentemb.data.importers.catalogues import CatalogueTitles, joined_id
from sentemb.data.importers.clean_texts import (
    has_entity,
    imported_id,
    imported_text,
    may_be_thousands,
    searched_text,
)
from sentemb.data.importers.click_counts import ClickCells
from sentemb.data.importers.columns import BadRows, Reading, Row, Wanted, listed, same_names
from sentemb.data.importers.damaged_ids import DamagedIds
from sentemb.data.importers.guessing import columns_of_clicks, fitting_columns
from sentemb.data.importers.lists import listed_in, parts_of
from sentemb.data.importers.losses import (
    NO_CLICKS,
    NO_ID,
    NO_QUERY,
    NO_TITLE,
    TOTALS,
    UNKNOWN_ID,
    Imported,
)
from sentemb.data.importers.missing import (
    is_missing,
    is_no_row,
    is_total,
    missing_cells,
    says_total,
)
from sentemb.data.importers.table_rows import Rows
from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.files import is_file
from sentemb.system.paths import AnyPath


@dataclass(frozen=True)
class Columns:
    """Which column holds what: names, or numbers from 1.

    Attributes
    ----------
    query : str, optional
        By default the column whose name is usual for a query, such as ``search_term``.
    title : str, optional
        Column of the log, or of the catalogue if there is one; by default by its name too.
    id : str or sequence of str, optional
        Id of the product, in the log; with a catalogue by default by its name. Several columns,
        such as id and locale, are one id.
    clicks : str or sequence of str, optional
        A count, or a flag such as true and false. By default each row is one click. Several
        columns, such as a count and the kind of the event, are multiplied.
    search : str, optional
        Id of the search that showed the row.
    position : str, optional
        Place of the row among the results of its search; lower is higher up.
    catalogue_id : str or sequence of str, optional
        Id of the product, in the catalogue; by default ``id``.
    keep : mapping of str to str
        Columns of the catalogue that stay with the products: the name that each gets, and its own.
    """

    query: str | None = None
    title: str | None = None
    id: str | Sequence[str] | None = None
    clicks: str | Sequence[str] | None = None
    search: str | None = None
    position: str | None = None
    catalogue_id: str | Sequence[str] | None = None
    keep: Mapping[str, str] = field(default_factory=dict)

    @property
    def ids(self) -> list[str]:
        """The columns of the id in the log."""
        return _several(self.id)

    @property
    def counts(self) -> list[str]:
        """The columns of the clicks."""
        return _several(self.clicks)

    @property
    def catalogue_ids(self) -> list[str]:
        """The columns of the id in the catalogue."""
        return _several(self.catalogue_id) or self.ids


def _several(columns: str | Sequence[str] | None) -> list[str]:
    return [columns] if isinstance(columns, str) else list(columns or ())


# Query, title, clicks, number of the row, and the values of the other columns; last the id, if any.
Click: TypeAlias = tuple[str, str, int, int, Sequence[str]]
# A title as a row names it, and the title; empty if there is none.
_Named: TypeAlias = tuple[str, str]


# What the cell of a list begins with.
_LIST_STARTS = ("[", " ")


class ClickReader:
    """Reads the clicks of tables, and counts in ``done`` what is left out.

    done : receives the counts and the notes
    collects : whether the ids of a log without a catalogue are wanted too
    titles : id -> title, of the catalogue if there is one
    unknown_id : the first id without a title
    """

    def __init__(
        self, columns: Columns, how: Reading, bad: BadRows, done: Imported, lower: bool
    ) -> None:
        self.done, self.collects, self.titles = done, False, dict[str, str]()
        self.unknown_id = ""
        self._columns, self._how, self._bad, self._lower = columns, how, bad, lower
        self._query_column: Wanted = columns.query or QUERY
        self._title_column: Wanted = columns.title or TITLE
        self._joins = self._of_clicked = False
        self._ids = dict[str, str]()  # of cells, as the catalogue has them
        self._damaged = DamagedIds(())
        self._first_without_title = self._guessed = ""
        self._unknown_kinds = set[str]()
        self._clicks_columns: list[str] = []
        self._may_count: tuple[AnyPath, list[str], set[str]] | None = None
        self._escaped = self._missing = self._opened = self._without_id = 0

    def read_catalogue(self, path: AnyPath) -> CatalogueTitles:
        """The catalogue that has the titles of the ids."""
        ids: Sequence[Wanted] = self._columns.catalogue_ids or [ID]
        columns = (*ids, self._title_column, *self._columns.keep.values())
        how = Reading(encoding=self._how.encoding)
        rows = Rows(path, columns, how, self._bad, on_note=self.done.notes.append)
        catalogue = CatalogueTitles.read(rows, len(ids))
        self.titles, self._joins = catalogue.titles, True
        self._escaped += catalogue.escaped
        self._damaged = DamagedIds(catalogue.titles)
        return catalogue

    def rows(self, path: AnyPath) -> Rows:
        """The columns of a file that are needed: query, title or id, then optional ones."""
        columns = self._columns
        needed: list[Wanted | None] = [self._query_column]
        needed += (columns.ids or [ID]) if self._joins else [self._title_column]
        needed += [*columns.counts, columns.search, columns.position]
        needed += columns.ids if self.collects else []
        meant = [column for column in needed if isinstance(column, Meaning)]
        by_cells = fitting_columns(meant, path, self._how)
        chosen = [by_cells.get(column, column) for column in needed if column is not None]

        def on_names(names: list[str]) -> None:
            self._on_names(names, path)

        return Rows(path, chosen, self._how, self._bad, on_names, on_note=self.done.notes.append)

    def clicks(self, rows: Rows) -> Iterator[Click]:
        """The usable rows of one file; those without clicks only if they belong to a search."""
        n_keys = len(self._columns.ids) if self._joins and self._columns.ids else 1
        n_ids = len(self._columns.ids) if self.collects else 0
        has_extras = n_ids or self._columns.position is not None
        has_totals = bool(self._columns.counts) and not self._joins
        done, ahead, counts = (
            self.done,
            _RowsAhead(rows),
            [ClickCells() for _ in self._columns.counts],
        )
        for number, cells in ahead:
            done.rows += 1
            keys, extras = cells[1 : 1 + n_keys], list(cells[1 + n_keys :])
            try:
                query = self._query(cells[0])
                named = self._named(keys)
                clicks = self._clicks(extras, ahead, counts, len(named))
                del extras[1 : len(counts)]
                if has_extras:
                    self._check_extras(extras, named)
            except SentembError as error:
                if is_no_row(cells):  # such as one that says "Totals" where the clicks are
                    done.left_out[TOTALS] += 1
                    continue
                done.rows -= 1  # all bad rows are added in the end
                self._bad(rows.where(number), error)
                continue
            raw, title = named[0]
            is_pair = query and title
            if (
                has_totals and says_total(query) and says_total(title)
                if is_pair
                else self._is_total([cells[0], *keys])
            ):
                done.left_out[TOTALS] += 1
                continue
            if self._of_clicked and query and not raw.strip() and not (counts and any(clicks)):
                done.left_out[NO_CLICKS] += 1
                continue
            if is_pair and clicks[0] and len(named) == 1:  # most rows
                done.clicks += clicks[0]
                usable = [(raw, title, clicks[0])]
            else:
                if not (cells[0].strip() and all(map(str.strip, keys))):
                    done.blank += 1
                    done.blank_clicks += sum(clicks)
                usable = self._usable(query, named, clicks, rows.where(number))
            for raw, title, n in usable:
                self._escaped += "&" in cells[0] + raw and has_entity(cells[0] + raw)
                has_id = self._joins or n_ids
                yield query, title, n, number, [*extras, self._ids[raw]] if has_id else extras
        self._guessed = next((cells.guessed for cells in counts if cells.guessed), self._guessed)
        self._unknown_kinds.update(*(cells.unknown_kinds for cells in counts))

    def _query(self, raw: str) -> str:
        """The text of a query."""
        if is_missing(raw):
            self._missing += 1
            return ""
        values = listed_in(raw) if raw[:1] == "[" else None
        if values is not None and len(values) > 1:
            raise SentembError(f"the query {brief(raw)} is a list of texts; give one query a row")
        text = searched_text("".join(values) if values else raw)
        query = imported_text(text, "query", self._how.encoding)
        return query.lower() if self._lower else query

    def _named(self, keys: Sequence[str]) -> list[_Named]:
        """The titles that a row names by their ids or texts."""
        raw = keys[0] if len(keys) == 1 else joined_id(keys)
        values = listed_in(raw) if raw[:1] in _LIST_STARTS else None
        if values is not None:
            self._opened += len(values) > 1
            return [(value, self._title(value)) for value in values] or [("", "")]
        title = self._title(raw)
        if self._joins and not title and len(keys) == 1:
            for parts in parts_of(raw):
                named = [(part, self.titles.get(imported_id(part), "")) for part in parts]
                if any(title for _, title in named):
                    self._opened += len(parts) > 1
                    self._ids |= {part: imported_id(part) for part, _ in named}
                    return named
        if not title and is_missing(raw):
            self._missing += 1
            raw = ""
        return [(raw, title)]

    def _title(self, raw: str) -> str:
        """The title of an id or, in a log without ids, the text itself; empty if there is none."""
        encoding = self._how.encoding
        if not self._joins:
            return "" if is_missing(raw) else imported_text(raw, "title", encoding)
        id = imported_id(raw, encoding)
        if id not in self.titles:
            id = self._damaged.repair(id)
        if title := self.titles.get(id, ""):
            self._ids[raw] = id
        return title

    def _clicks(
        self, extras: Sequence[str], ahead: _RowsAhead, counts: Sequence[ClickCells], n_titles: int
    ) -> list[int]:
        """The clicks on each title of a row, from one number or as many as there are titles."""
        clicks = [1] * n_titles
        for k, (cells, cell) in enumerate(zip(counts, extras, strict=False)):
            if not (cell.isdigit() and ahead.is_file):
                ahead.look(cells, k - len(extras), cell)
            values = _values_in(cell)
            if len(values) not in (0, 1, n_titles):
                raise SentembError(
                    f"the clicks {brief(cell)} are a list of {len(values)} for {n_titles} titles; "
                    "give one for each"
                )
            read = [cells.read(value) for value in values] or [0]
            clicks = [n * of_title for n, of_title in zip(clicks, cycle(read), strict=False)]
        return clicks

    def _check_extras(self, extras: list[str], named: Sequence[_Named]) -> None:
        """Refuse a position that is none; take the ids that a log has for its titles."""
        if self._columns.position is not None:
            position_of(extras)
        if n_ids := len(self._columns.ids) if self.collects else 0:
            cell = joined_id(extras[-n_ids:])
            del extras[-n_ids:]
            values = listed_in(cell) if cell[:1] in _LIST_STARTS else None
            ids = [cell] if values is None else values
            if len(ids) != len(named):  # nothing says which id is whose
                ids = [""] * len(named)
            self._ids = {
                raw: imported_id(id, self._how.encoding) if title and not is_missing(id) else ""
                for (raw, title), id in zip(named, ids, strict=True)
            }
            self._without_id += any(title and not self._ids[raw] for raw, title in named)

    def _usable(
        self, query: str, named: Sequence[_Named], clicks: Sequence[int], where: str
    ) -> list[tuple[str, str, int]]:
        """The titles of a row that were clicked or, in a search, shown; others are counted."""
        self.done.clicks += sum(clicks)
        if not query:
            self.done.lose(NO_QUERY, sum(clicks))
            return []
        usable = []
        for (raw, title), n in zip(named, clicks, strict=True):
            if title and (n or self._columns.search is not None):
                usable.append((raw, title, n))
            elif title:
                self.done.left_out[NO_CLICKS] += 1
            elif not self._joins:
                self.done.lose(NO_TITLE, n)
                self._first_without_title = self._first_without_title or where
            elif not raw.strip():
                self.done.lose(NO_ID, n)
            else:
                self.done.lose(UNKNOWN_ID, n)
                self.unknown_id = self.unknown_id or "_".join(raw.split())
        return usable

    def _is_total(self, names: Sequence[str]) -> bool:
        """Whether a row with these texts, one of them unusable, sums up others."""
        has_counts, in_searches = self._columns.counts, self._columns.search
        if is_total(names):
            return True
        return bool(has_counts and not in_searches) and not any(name.strip() for name in names)

    def _on_names(self, names: list[str], path: AnyPath) -> None:
        """Notice what the names of columns tell.

        Whether titles or ids are those that were clicked, a column of clicks that nobody asked for,
        and which others may be one.
        """
        asked = self._columns
        keys: Sequence[Wanted] = (asked.ids or [ID]) if self._joins else [self._title_column]
        of_keys = [name for key in keys for name in _meant(key, names)]
        self._of_clicked = any(map(says_clicked, of_keys))
        if asked.counts or asked.search is not None or self._clicks_columns:
            return
        texts_and_ids = (self._query_column, self._title_column, *asked.ids)
        used = {name for column in texts_and_ids for name in _meant(column, names)}
        rest = [name for name in names if name not in used]
        named = (CLICKS.column(rest), EVENT.column(rest))
        self._clicks_columns = [name for name in named if name is not None]
        if not self._may_count and str(path) != "-" and is_file(path):
            self._may_count = path, names, used

    @property
    def unknown_example(self) -> str:
        """The first id without a title, and what a spreadsheet did to ids; empty without one."""
        return "; ".join([brief(self.unknown_id), *self._damaged.notes()]) * bool(self.unknown_id)

    def _not_counted(self) -> Iterator[str]:
        """Notes on the columns that have, or may have, clicks and were not asked for."""
        names, may_be = self._clicks_columns, list[str]()
        if self._may_count is not None:
            path, all_names, used = self._may_count
            names, may_be = columns_of_clicks(path, self._how, all_names, used)
        if names:
            options = (f"--clicks-column {shlex.quote(name)}" for name in names)
            yield (
                f"each row was counted as one click; for the clicks in {listed(names)} give "
                f"{' '.join(options)}"
            )
        elif may_be:
            has = "has the number of clicks, give --clicks-column"
            parts = "; if each has a part of them, write a row for each" * (len(may_be) > 1)
            yield (
                f"each row was counted as one click; if {' or '.join(may_be[:9])} {has} "
                f"{shlex.quote(may_be[0])}{parts}"
            )

    def notes(self) -> Iterator[str]:
        """Notes for a user on the rows that were read."""
        yield from self._not_counted()
        if self._unknown_kinds:
            kinds = listed(sorted(self._unknown_kinds))
            yield (
                f"kinds of events that were read as no clicks: {kinds}; if one of them is a click, "
                "call it click"
            )
        if self._guessed:
            read = ClickCells().read(self._guessed)
            yield (
                f"clicks such as {self._guessed} were read as {read:,}; nothing in the column says "
                "what the sign is, so check that"
            )
        if self._missing:
            yield missing_cells(self._missing)
        if self._opened:
            yield (
                f"rows that name several titles: {self._opened:,}; each title has the clicks of "
                "the row, or its own where these are a list"
            )
        if self._without_id:
            yield (
                f"rows with a title and without an id of its own: {self._without_id:,}; they add "
                "no title to the catalogue that is written"
            )
        if self.unknown_id:
            yield f"the first id without a title: {brief(self.unknown_id)}"
        if self._first_without_title:
            yield f"the first row without a title: {self._first_without_title}"
        yield from self._damaged.notes()
        if self._escaped:
            yield f"{self._escaped:,} rows had entities of HTML, such as &quot;; they were replaced"
        if self._bad.first is not None:
            yield f"the first bad row: {self._bad.first}"


class _RowsAhead:
    """The rows of a table, whose clicks may be looked at before they are used.

    is_file : whether the table is in a regular file, which can be read twice
    """

    def __init__(self, rows: Rows) -> None:
        self._rows, self._left, self._read = rows, iter(rows), deque[Row]()
        self.is_file = str(rows.path) != "-" and is_file(rows.path)

    def __iter__(self) -> Iterator[Row]:
        yield from self._left
        while self._read:
            yield self._read.popleft()

    def look(self, counts: ClickCells, k: int, cell: str) -> None:
        """Have ``counts`` look at the column number ``k``, if its ``cell`` cannot be read else.

        A stream is read only once, so the rest of its rows stay in memory then.
        """
        values = _values_in(cell)
        if not self.is_file:
            counts.notice(values)
        if not any(map(counts.is_unclear, values)):
            return
        if not self.is_file:
            self._read.extend(self._left)
            column = (cells[k] for _, cells in self._read)
        else:
            columns = [self._rows.columns[k], self._rows.columns[0]]
            column = (cells[0] for _, cells in self._rows.again(columns, BadRows(skip=True)))
        counts.look_at(chain.from_iterable(map(_values_in, column)))


def _values_in(cell: str) -> list[str]:
    """The values of a cell: those of a list, or its own."""
    values = listed_in(cell) if cell[:1] == "[" else None
    return [cell] if values is None else values


def _meant(column: Wanted, names: list[str]) -> list[str]:
    """Those of ``names`` that a column that is asked for may be."""
    if isinstance(column, Meaning):
        return [name for name in [column.column(names)] if name is not None]
    return same_names(column, names)


def position_of(extras: Sequence[str]) -> float:
    """The place of a row among the results of its search."""
    if may_be_thousands(extras[2].strip()):
        raise SentembError(
            f"the position {brief(extras[2])} may be a decimal or thousands; write it without a "
            "separator"
        )
    try:
        position = float(extras[2].replace(",", "."))
    except ValueError:
        position = math.nan
    if math.isnan(position):
        raise SentembError(f"the position {brief(extras[2])} is not a number; correct it")
    return position
