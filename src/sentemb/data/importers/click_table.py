"""A shop's own clicks, in CSV, TSV, JSON lines or Parquet, as a click log.

Rows are read and written one by one. Only the titles of a catalogue are kept in memory.
"""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TypeAlias

from sentemb.data.click_log import MAX_CLICKS, tsv_lines
from sentemb.data.importers.catalogues import Catalogue, catalogue_lines
from sentemb.data.importers.clean_texts import (
    has_entity,
    imported_id,
    imported_text,
    may_be_thousands,
)
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.damaged_ids import DamagedIds
from sentemb.data.importers.pair_sums import PairSums
from sentemb.data.importers.table_rows import Rows
from sentemb.data.lines import write_lines
from sentemb.data.record_file import is_record
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, whole
from sentemb.system.files import place_name, writing
from sentemb.system.html_tables import facts_table
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath

# Why a row is left out.
NO_QUERY, NO_TITLE, NO_ID = "without a query", "without a title", "without an id"
UNKNOWN_ID, NO_CLICKS, BAD = "with an id that has no title", "without clicks", "bad"
FEW_CLICKS, ONLY_SHOWN = "pairs with too few clicks", "searches without a click"

# Names of columns that hold a number of clicks.
_COUNTS = ("clicks", "click_count", "clickcount", "n_clicks", "count")
_YES, _NO = ("true", "yes", "y", "t"), ("false", "no", "n", "f")
# A search whose rows do not follow one another is noticed if this many others are between them.
_REMEMBERED_SEARCHES = 100_000
_MOST_SHOWN = 10_000


@dataclass(frozen=True)
class Columns:
    """Which column holds what: names, or numbers from 1.

    Attributes
    ----------
    query : str
    title : str
        Column of the log, or of the catalogue if there is one.
    id : str, optional
        Id of the product, in the log.
    clicks : str, optional
        A count, or a flag such as true and false. By default each row is one click.
    search : str, optional
        Id of the search that showed the row.
    position : str, optional
        Place of the row among the results of its search; lower is higher up.
    catalogue_id : str, optional
        Id of the product, in the catalogue; by default ``id``.
    keep : mapping of str to str
        Columns of the catalogue that stay with the products: the name that each gets, and its own.
    """

    query: str = "query"
    title: str = "title"
    id: str | None = None
    clicks: str | None = None
    search: str | None = None
    position: str | None = None
    catalogue_id: str | None = None
    keep: Mapping[str, str] = field(default_factory=dict)


@dataclass
class Imported:
    """Counts of the rows that an import has read and of the lines that it has written.

    rows : rows that were read, bad ones included, headers not
    lines : lines written to the log
    left_out : rows that were left out, by reason. With ``min_clicks`` also the pairs with fewer
        clicks; with a search column also the searches without a click.
    catalogue : titles in the catalogue, if there is one
    notes : messages for the user
    """

    rows: int = 0
    lines: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    catalogue: int | None = None
    notes: list[str] = field(default_factory=list)

    def _repr_html_(self) -> str:
        left_out = {f"left out: {reason}": count for reason, count in self.left_out.items()}
        counts = {"rows read": self.rows, "lines written": self.lines}
        notes = {f"note {number}": note for number, note in enumerate(self.notes, 1)}
        return facts_table(
            {**counts, "titles in the catalogue": self.catalogue, **left_out, **notes}
        )


AS_FOUND = Reading()

# Query, title, clicks, number of the row, and the values of the other columns.
_Click: TypeAlias = tuple[str, str, int, int, Sequence[str]]
_PAIR = itemgetter(0, 1, 2)


def import_clicks(
    files: Sequence[AnyPath],
    out: AnyPath,
    columns: Columns,
    *,
    catalogue: AnyPath | None = None,
    write_catalogue: AnyPath | None = None,
    min_clicks: int = 1,
    lower: bool = False,
    how: Reading = AS_FOUND,
    skip_bad_lines: bool = False,
    force: bool = False,
) -> Imported:
    """Write a click log from tables of clicks.

    In all texts each run of white space becomes one blank. Rows with an empty query, an empty
    title, no clicks or an id without a title are left out and counted.

    With ``columns.search`` the rows are shown results, clicked or not, and the log is JSON lines
    with one line for each search that has a click. The rows of a search follow one another and
    have the same search id and query. Skipped are the titles without a click; with
    ``columns.position`` only those above the lowest click, because a user may not have seen the
    others.

    Parameters
    ----------
    files : sequence of str or path-like
        Tables with the same columns; ``-`` is standard input.
    out : str or path-like
        The log to write; ``-`` is standard output. JSON lines if the name ends in ``.jsonl`` or
        ``.jsonl.gz``.
    columns : Columns
        Which column holds what.
    catalogue : str or path-like, optional
        A table with the titles of the ids, of any format. It is read with the same encoding.
    write_catalogue : str or path-like, optional
        Write the titles as ``id<TAB>title``: all of the catalogue, else the distinct titles of the
        log, with the ids of the log or the made-up ids t1, t2, … In ids each run of white space
        becomes ``_``. An id with several titles in the log has the last one.
    min_clicks : int
        Leave out pairs with fewer clicks in all files together. From 2 on, the pairs are summed in
        a temporary file, and each is written once.
    lower : bool
        Lower-case the queries.
    how : Reading
        Format, delimiter, encoding and header of the files.
    skip_bad_lines : bool
        Count bad rows instead of stopping at the first.
    force : bool
        Replace files that exist.

    Returns
    -------
    Imported

    Raises
    ------
    SentembError
        With file, line and remedy: for a column that is missing, a bad row, a file that cannot be
        read; for options that do not fit together; if no line is left to write.
    """
    whole("min_clicks", min_clicks, 1, MAX_CLICKS)
    _check(columns, catalogue, write_catalogue, min_clicks)
    written = [out] if write_catalogue is None else [out, write_catalogue]
    outputs = [Output(path, can_stream=path is out) for path in written]
    check_outputs(outputs, files if catalogue is None else [*files, catalogue], force)
    job = _Import(files, columns, lower, how, BadRows(skip_bad_lines))
    if catalogue is not None:
        job.read_catalogue(catalogue)
    job.collects = write_catalogue is not None and catalogue is None
    as_json = columns.search is not None or str(out).endswith((".jsonl", ".jsonl.gz"))
    with contextlib.ExitStack() as stack:
        # Opened first and closed last: an error in the log leaves both files as they were.
        titles_file = None
        if write_catalogue is not None:
            titles_file = stack.enter_context(writing(write_catalogue))
        if columns.search is not None:
            lines = job.searches()
        else:
            pairs: Iterable[_Click] = chain.from_iterable(map(job.clicks, job.tables()))
            if job.collects and columns.id is not None:  # sums have no ids
                pairs = map(job.collected, pairs)
            if min_clicks > 1:
                pairs = job.summed(stack.enter_context(PairSums()), pairs, min_clicks)
            if job.collects and columns.id is None:
                pairs = map(job.collected, pairs)
            lines = _json_lines(pairs) if as_json else tsv_lines(map(_PAIR, pairs))
        write_lines(out, job.counted(lines))
        if titles_file is not None:
            titles_file.writelines(f"{line}\n".encode() for line in job.catalogue_lines())
    job.finish()
    return job.done


def _check(
    columns: Columns, catalogue: AnyPath | None, write_catalogue: AnyPath | None, min_clicks: int
) -> None:
    if catalogue is not None and columns.id is None:
        raise SentembError("a catalogue needs the column of the ids in the log; give --id-column")
    if catalogue is None and columns.catalogue_id is not None:
        raise SentembError("--catalogue-id-column needs a catalogue; give --catalogue")
    if columns.keep and (catalogue is None or write_catalogue is None):
        raise SentembError(
            "--fields takes columns of --catalogue and writes them to --write-catalogue; give both"
        )
    if catalogue is None and columns.id is not None and write_catalogue is None:
        raise SentembError("--id-column needs --catalogue to join titles, or --write-catalogue")
    if columns.search is not None and columns.clicks is None:
        raise SentembError(
            "--search-column needs --clicks-column, the column that says what was clicked"
        )
    if columns.position is not None and columns.search is None:
        raise SentembError("--position-column needs --search-column, the id of the search")
    if columns.search is not None and min_clicks > 1:
        raise SentembError("--min-clicks sums pairs and cannot be combined with --search-column")


class _Import:
    """One import: what it reads, what it counts."""

    def __init__(
        self, files: Sequence[AnyPath], columns: Columns, lower: bool, how: Reading, bad: BadRows
    ) -> None:
        self.done = Imported()
        self.collects = False
        self._files, self._columns, self._how, self._bad = files, columns, how, bad
        self._lower, self._joins = lower, False
        self._titles: dict[str, str] = {}
        self._fields: dict[str, list[str]] = {}
        # Titles of a log without ids.
        self._distinct: dict[str, None] = {}
        self._unknown_id = self._first_without_title = ""
        self._escaped = 0
        self._damaged = DamagedIds(())
        self._clicks_column = ""
        self._bad_before = 0

    def read_catalogue(self, path: AnyPath) -> None:
        roles = self._columns
        columns = (roles.catalogue_id or roles.id or "", roles.title, *roles.keep.values())
        how = Reading(encoding=self._how.encoding)
        catalogue = Catalogue.read(Rows(path, columns, how, self._bad))
        self._titles, self._fields, self._joins = catalogue.titles, catalogue.fields, True
        self.done.catalogue = len(catalogue.titles)
        self._bad_before = self._bad.count
        for count, what in (
            (self._bad_before, "that are bad"),
            (catalogue.without_title, "without a title"),
            (catalogue.without_id, "without an id"),
            (catalogue.repeated, "with an id that already has another title"),
        ):
            if count:
                note = f"{place_name(path)}: rows {what} were left out: {count:,}"
                self.done.notes.append(note)
        if catalogue.without_title:
            first = f"{place_name(path)}:{catalogue.first_without_title}"
            self.done.notes.append(f"the first product without a title: {first}")
        if catalogue.rounded:
            self.done.notes.append(
                f"{place_name(path)}: {len(catalogue.rounded):,} rows have an id that a "
                f"spreadsheet rounded, such as {brief(catalogue.rounded[0])}; export the column as "
                "text"
            )
        self._escaped += catalogue.escaped
        self._damaged = DamagedIds(catalogue.titles)

    def tables(self) -> Iterator[Rows]:
        """The columns of every file that are needed: query, title or id, then optional ones."""
        columns = self._columns
        needed = [columns.query, columns.id if self._joins else columns.title]
        needed += [columns.clicks, columns.search, columns.position]
        needed += [columns.id if self.collects else None]
        chosen = [column for column in needed if column is not None]
        for path in self._files:
            yield Rows(path, chosen, self._how, self._bad, self._on_names)

    def clicks(self, rows: Rows) -> Iterator[_Click]:
        """The usable rows of one file; those without clicks only if they belong to a search."""
        columns, encoding = self._columns, self._how.encoding
        has_counts, in_searches = columns.clicks is not None, columns.search is not None
        joins, titles, lower = self._joins, self._titles, self._lower
        collects_ids = self.collects and columns.id is not None
        has_positions, done, left_out = columns.position is not None, self.done, self.done.left_out
        for number, (raw_query, raw_title, *extras) in rows:
            done.rows += 1
            try:
                query = imported_text(raw_query, "query", encoding)
                if joins:
                    id = imported_id(raw_title, encoding)
                    title = titles.get(id) or titles.get(self._damaged.repair(id), "")
                else:
                    title = imported_text(raw_title, "title", encoding)
                clicks = _count(extras[0]) if has_counts else 1
                if has_positions:
                    _position(extras)
                if collects_ids and title:
                    extras[-1] = imported_id(extras[-1], encoding)
            except SentembError as error:
                done.rows -= 1  # all bad rows are added in the end
                self._bad(rows.where(number), error)
                continue
            if not query:
                left_out[NO_QUERY] += 1
            elif not title:
                self._count_without_title(raw_title, rows.where(number))
            elif not clicks and not in_searches:
                left_out[NO_CLICKS] += 1
            else:
                self._escaped += "&" in raw_query + raw_title and has_entity(raw_query + raw_title)
                yield query.lower() if lower else query, title, clicks, number, extras

    def collected(self, click: _Click) -> _Click:
        """``click``; its title is remembered for the catalogue."""
        if self._columns.id is None:
            self._distinct[click[1]] = None
        elif id := click[4][-1]:
            self._titles[id] = click[1]
        return click

    def _count_without_title(self, raw: str, where: str) -> None:
        if not self._joins:
            self.done.left_out[NO_TITLE] += 1
            self._first_without_title = self._first_without_title or where
        elif not raw.strip():
            self.done.left_out[NO_ID] += 1
        else:
            self.done.left_out[UNKNOWN_ID] += 1
            self._unknown_id = self._unknown_id or raw.strip()

    def _on_names(self, names: list[str]) -> None:
        """Notice a column of clicks that nobody asked for."""
        if self._columns.clicks is None and not self._clicks_column:
            self._clicks_column = next((name for name in names if name.lower() in _COUNTS), "")

    def summed(self, sums: PairSums, clicks: Iterable[_Click], least: int) -> Iterator[_Click]:
        """The pairs with at least ``least`` clicks, each once."""
        for query, title, count, *_ in clicks:
            sums.add(query, title, count)
        n_pairs = 0
        for number, (query, title, count) in enumerate(sums.pairs(least), 1):
            n_pairs = number
            yield query, title, count, number, ()
        few = len(sums) - n_pairs
        if few:
            self.done.left_out[FEW_CLICKS] += few

    def searches(self) -> Iterator[str]:
        """A JSON line for each search that has a click."""
        for rows in self.tables():
            yield from self._searches(rows)

    def _searches(self, rows: Rows) -> Iterator[str]:
        recent: dict[tuple[str, str], None] = {}
        for search, group in groupby(self.clicks(rows), key=_search):
            shown = list(islice(group, _MOST_SHOWN + 1))
            where = rows.where(shown[0][3])
            if len(shown) > _MOST_SHOWN:
                raise SentembError(
                    f"{where}: the search {brief(search[0])} has more than {_MOST_SHOWN:,} rows; "
                    "give the column of the search's id"
                )
            if search in recent:
                raise SentembError(
                    f"{where}: the search {brief(search[0])} appears again after others; sort the "
                    "rows by the search's id"
                )
            recent[search] = None
            if len(recent) > _REMEMBERED_SEARCHES:
                del recent[next(iter(recent))]
            clicked = [click for click in shown if click[2]]
            if not clicked:
                self.done.left_out[ONLY_SHOWN] += 1
                continue
            titles, counts = [click[1] for click in clicked], [click[2] for click in clicked]
            skipped = self._skipped(shown, clicked)
            if self.collects:
                written = {*titles, *skipped}
                for click in shown:
                    if click[1] in written:
                        self.collected(click)
            yield _json_line(search[1], titles, counts, skipped)

    def _skipped(self, shown: list[_Click], clicked: list[_Click]) -> list[str]:
        if self._columns.position is not None:
            lowest = max(_position(click[4]) for click in clicked)
            shown = [click for click in shown if _position(click[4]) < lowest]
        titles = {click[1] for click in clicked}
        return list(dict.fromkeys(click[1] for click in shown if click[1] not in titles))

    def counted(self, lines: Iterable[str]) -> Iterator[str]:
        """``lines``, counted; a `SentembError` if there are none."""
        for line in lines:
            self.done.lines += 1
            yield line
        n_bad = self._bad.count - self._bad_before
        if n_bad:
            self.done.rows += n_bad
            self.done.left_out[BAD] += n_bad
        if not self.done.lines:
            unclicked = {ONLY_SHOWN, NO_CLICKS}
            if all(map(is_record, self._files)) and self.done.left_out.keys() <= unclicked:
                raise SentembError(
                    f"{place_name(self._files[0])}: nobody has clicked a result yet; try later"
                )
            reasons = self.done.left_out.most_common()
            why = ", ".join(f"{count:,} {reason}" for reason, count in reasons) or "no rows"
            example = f" (the first: {brief(self._unknown_id)})" if self._unknown_id else ""
            first = f"; the first bad row: {self._bad.first}" if self._bad.first else ""
            raise SentembError(
                f"{place_name(self._files[0])}: nothing to write: {why}{example}{first}; check the "
                "columns"
            )

    def catalogue_lines(self) -> Iterator[str]:
        made_up = ((f"t{number}", title) for number, title in enumerate(self._distinct, 1))
        titles = chain(self._titles.items(), made_up)
        return catalogue_lines(titles, list(self._columns.keep), self._fields)

    def finish(self) -> None:
        if self._clicks_column and self._columns.search is None:
            self.done.notes.append(
                f"each row was counted as one click; for the column {self._clicks_column} give "
                f"--clicks-column {self._clicks_column}"
            )
        if self._unknown_id:
            self.done.notes.append(f"the first id without a title: {brief(self._unknown_id)}")
        if self._first_without_title:
            self.done.notes.append(f"the first row without a title: {self._first_without_title}")
        damaged = self._damaged
        if damaged.repaired or damaged.ambiguous:
            several = (
                f", {damaged.ambiguous:,} could be several products" if damaged.ambiguous else ""
            )
            self.done.notes.append(
                f"a spreadsheet changed ids into numbers: {damaged.repaired:,} rows were repaired"
                f"{several} ({damaged.example}); export the column as text"
            )
        if self._escaped:
            self.done.notes.append(
                f"{self._escaped:,} rows had entities of HTML, such as &quot;; they were replaced"
            )
        if self._bad.first is not None:
            self.done.notes.append(f"the first bad row: {self._bad.first}")


def _search(click: _Click) -> tuple[str, str]:
    """Id and query of a search, which all its rows share."""
    return click[4][1], click[0]


def _position(extras: Sequence[str]) -> float:
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


def _count(text: str) -> int:
    """The number of clicks in a cell: an integer from 0, also as 3.0, or a flag."""
    # int() alone would also accept signs, underscores and digits of other scripts.
    if text.isdigit() and text.isascii() and len(text) < len(str(MAX_CLICKS)):
        return int(text)
    bare = text.strip().lower()
    if may_be_thousands(bare):
        raise SentembError(
            f"the clicks {brief(text)} may be decimals or thousands; write them without a separator"
        )
    digits = re.sub(r"[.,]0*$", "", bare)
    if re.fullmatch("[0-9]{1,19}", digits) and int(digits) <= MAX_CLICKS:
        return int(digits)
    if bare in _YES or bare in _NO:
        return int(bare in _YES)
    raise SentembError(
        f"the clicks {brief(text)} are not an integer from 0 or a flag such as true; correct the "
        "row or name another column"
    )


def _json_lines(clicks: Iterable[_Click]) -> Iterator[str]:
    return (_json_line(query, [title], [count]) for query, title, count, _, _ in clicks)


def _json_line(
    query: str, clicked: list[str], counts: list[int], skipped: Sequence[str] = ()
) -> str:
    record: dict[str, object] = {"query": query, "clicked": clicked}
    if any(count != 1 for count in counts):
        record["clicks"] = counts
    if skipped:
        record["skipped"] = skipped
    return json.dumps(record, ensure_ascii=False)
