"""A shop's own clicks, in CSV, TSV, JSON lines or Parquet, as a click log.

Rows are read and written one by one. Only the titles of a catalogue are kept in memory.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import chain, groupby, islice, tee
from operator import itemgetter

from sentemb.data.click_log import MAX_CLICKS, tsv_lines
from sentemb.data.column_names import ID
from sentemb.data.importers.catalogues import catalogue_lines
from sentemb.data.importers.click_rows import Click, ClickReader, Columns, position_of
from sentemb.data.importers.columns import BadRows, Reading
from sentemb.data.importers.known_exports import check_folder
from sentemb.data.importers.losses import (
    BAD,
    FEW_CLICKS,
    NO_CLICKS,
    ONLY_SHOWN,
    TOTALS,
    UNKNOWN_ID,
    Imported,
    check_losses,
)
from sentemb.data.importers.pair_sums import PairSums
from sentemb.data.importers.table_rows import Rows, format_of_name
from sentemb.data.lines import write_lines
from sentemb.data.record_file import is_record
from sentemb.data.record_merge import one_record
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, number, whole
from sentemb.system.files import place_name, writing
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath

# A search whose rows do not follow one another is noticed if this many others are between them.
_REMEMBERED_SEARCHES = 100_000
_MOST_SHOWN = 10_000


AS_FOUND = Reading()

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
    since: datetime | None = None,
    skip_bad_lines: bool = False,
    max_lost: float = 0.05,
    force: bool = False,
) -> Imported:
    """Write a click log from tables of clicks.

    In all texts each run of white space becomes one blank. Rows with an empty query, an empty
    title, no clicks or an id without a title are left out and counted. Cells such as NULL and
    (not set) are empty; lines before the header and rows of totals are passed over; a list of ids
    or titles is one click on each.

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
    since : datetime, optional
        Leave out earlier searches; all files must be records of `sentemb serve`. A search that is
        in several records counts once.
    skip_bad_lines : bool
        Count bad rows instead of stopping at the first.
    max_lost : float
        Write nothing if a larger share of the rows or of the clicks would be dropped, because they
        are bad or have an id that has no title.
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
    number("max_lost", max_lost, 0, 1)
    _check(columns, catalogue, write_catalogue, min_clicks)
    written = [out] if write_catalogue is None else [out, write_catalogue]
    outputs = [Output(path, can_stream=path is out) for path in written]
    inputs = files if catalogue is None else [*files, catalogue]
    for path in inputs:
        check_folder(path)
    _check_once(files, catalogue)
    check_outputs(outputs, inputs, force)
    _check_written(written)
    how = how if since is None else _since(how, files, since)
    bad = BadRows(skip_bad_lines)
    reader = ClickReader(columns, how, bad, Imported(), lower)
    with contextlib.ExitStack() as stack:
        job = _Import(files, stack.enter_context(_tables(files)), columns, reader, bad)
        if catalogue is not None:
            job.read_catalogue(catalogue, max_lost)
        collects = reader.collects = write_catalogue is not None and catalogue is None
        as_json = columns.search is not None or str(out).endswith((".jsonl", ".jsonl.gz"))
        # Opened first and closed last: an error in the log leaves both files as they were.
        titles_file = None
        if write_catalogue is not None:
            titles_file = stack.enter_context(writing(write_catalogue))
        if columns.search is not None:
            lines = job.searches()
        else:
            pairs: Iterable[Click] = job.clicks()
            if collects and columns.ids:  # sums have no ids
                pairs = map(job.collected, pairs)
            if min_clicks > 1:
                pairs = job.summed(stack.enter_context(PairSums()), pairs, min_clicks)
            if collects and not columns.ids:
                pairs = map(job.collected, pairs)
            has_ids = bool(columns.ids or catalogue is not None) and min_clicks == 1
            lines = _json_lines(pairs) if as_json else _tsv_lines(pairs, has_ids)
        write_lines(out, job.counted(lines, max_lost))
        if titles_file is not None:
            titles_file.writelines(f"{line}\n".encode() for line in job.catalogue_lines())
    reader.done.notes += reader.notes()
    return reader.done


def _check_written(paths: Iterable[AnyPath]) -> None:
    """Refuse a name that says Parquet: what is written is text."""
    for path in paths:
        if format_of_name(path) == "parquet":
            raise SentembError(f"{path}: is not written as Parquet; let its name end in .tsv")


def _since(how: Reading, files: Sequence[AnyPath], since: datetime) -> Reading:
    """How files are read from a time on; a `SentembError` if one is something else."""
    for path in files:
        if not is_record(path):
            raise SentembError(
                f"{place_name(path)}: is not a record of `sentemb serve`, so its clicks have no "
                "times; leave --since out"
            )
    return replace(how, since=since.timestamp())


@contextlib.contextmanager
def _tables(files: Sequence[AnyPath]) -> Iterator[Sequence[AnyPath]]:
    """The tables in ``files``; several records are one, which counts each search once."""
    records = [path for path in files if is_record(path)]
    if not records:
        yield files
        return
    with one_record(records) as record:
        yield [record, *(path for path in files if path not in records)]


def _check(
    columns: Columns, catalogue: AnyPath | None, write_catalogue: AnyPath | None, min_clicks: int
) -> None:
    if catalogue is None and columns.catalogue_id:
        raise SentembError("--catalogue-id-column needs a catalogue; give --catalogue")
    if columns.keep and (catalogue is None or write_catalogue is None):
        raise SentembError(
            "--fields takes columns of --catalogue and writes them to --write-catalogue; give both"
        )
    if catalogue is None and columns.ids and write_catalogue is None:
        raise SentembError("--id-column needs --catalogue to join titles, or --write-catalogue")
    if len(columns.ids or [ID]) != len(columns.catalogue_ids or [ID]):
        raise SentembError(
            "--id-column and --catalogue-id-column name ids of different numbers of columns; give "
            "as many of both, in the same order"
        )
    if columns.search is not None and not columns.counts:
        raise SentembError(
            "--search-column needs --clicks-column, the column that says what was clicked"
        )
    if columns.position is not None and columns.search is None:
        raise SentembError("--position-column needs --search-column, the id of the search")
    if columns.search is not None and min_clicks > 1:
        raise SentembError("--min-clicks sums pairs and cannot be combined with --search-column")


def _check_once(files: Sequence[AnyPath], catalogue: AnyPath | None) -> None:
    """Refuse a table that is given twice: its clicks would count twice, and a stream ends once.

    Records may be given twice: a search that is in several counts once.
    """
    inputs = [path for path in files if not is_record(path)]
    inputs += ["-"] if str(catalogue) == "-" else []
    names = [str(path) if str(path) == "-" else os.path.realpath(path) for path in inputs]
    for k, path in enumerate(inputs):
        if names[k] in names[:k]:
            raise SentembError(f"{place_name(path)}: is given twice; give it once")


class _Import:
    """One import: what it reads, what it writes."""

    def __init__(
        self,
        files: Sequence[AnyPath],
        tables: Sequence[AnyPath],
        columns: Columns,
        reader: ClickReader,
        bad: BadRows,
    ) -> None:
        self.done, self._files, self._columns, self._bad = reader.done, files, columns, bad
        self._tables, self._reader = tables, reader
        self._fields: dict[str, list[str]] = {}
        # Titles of a log without ids.
        self._distinct: dict[str, None] = {}
        self._bad_before = 0

    def read_catalogue(self, path: AnyPath, max_lost: float) -> None:
        """Read the titles of the ids."""
        catalogue = self._reader.read_catalogue(path)
        self._fields, self.done.catalogue = catalogue.fields, len(catalogue.titles)
        self._bad_before, self._bad.totals = self._bad.count, 0
        read = Imported(rows=catalogue.rows + self._bad_before)
        read.left_out[BAD] = self._bad_before
        check_losses(place_name(path), read, max_lost, {BAD: str(self._bad.first)})
        self.done.notes += catalogue.notes(place_name(path), self._bad_before)

    def clicks(self) -> Iterator[Click]:
        """The clicks of all files."""
        for path in self._tables:
            yield from self._reader.clicks(self._reader.rows(path))

    def collected(self, click: Click) -> Click:
        """``click``; its title is remembered for the catalogue."""
        if not self._columns.ids:
            self._distinct[click[1]] = None
        elif id := click[4][-1]:
            self._reader.titles[id] = click[1]
        return click

    def summed(self, sums: PairSums, clicks: Iterable[Click], least: int) -> Iterator[Click]:
        """The pairs with at least ``least`` clicks, each once."""
        n_clicks = 0
        for query, title, count, *_ in clicks:
            sums.add(query, title, count)
            n_clicks += count
        n_pairs = 0
        for rank, (query, title, count) in enumerate(sums.pairs(least), 1):
            n_pairs = rank
            n_clicks -= count
            yield query, title, count, rank, ()
        few = len(sums) - n_pairs
        if few:
            self.done.left_out[FEW_CLICKS] += few
            self.done.lost[FEW_CLICKS] += n_clicks

    def searches(self) -> Iterator[str]:
        """A JSON line for each search that has a click."""
        for path in self._tables:
            yield from self._searches(self._reader.rows(path))

    def _searches(self, rows: Rows) -> Iterator[str]:
        recent: dict[tuple[str, str], None] = {}
        for search, group in groupby(self._reader.clicks(rows), key=_search):
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
            if self._reader.collects:
                written = {*titles, *skipped}
                for click in shown:
                    if click[1] in written:
                        self.collected(click)
            yield _json_line(search[1], titles, counts, skipped)

    def _skipped(self, shown: list[Click], clicked: list[Click]) -> list[str]:
        if self._columns.position is not None:
            lowest = max(position_of(click[4]) for click in clicked)
            shown = [click for click in shown if position_of(click[4]) < lowest]
        titles = {click[1] for click in clicked}
        return list(dict.fromkeys(click[1] for click in shown if click[1] not in titles))

    def counted(self, lines: Iterable[str], max_lost: float) -> Iterator[str]:
        """``lines``, counted; a `SentembError` if there are none, or if too much was dropped."""
        for line in lines:
            self.done.lines += 1
            yield line
        n_bad = self._bad.count - self._bad_before
        for reason, count in ((BAD, n_bad), (TOTALS, self._bad.totals)):
            if count:
                self.done.rows += count
                self.done.left_out[reason] += count
        name = place_name(self._files[0])
        if not self.done.lines:
            raise self._nothing(name)
        examples = {UNKNOWN_ID: self._reader.unknown_example, BAD: str(self._bad.first)}
        check_losses(name, self.done, max_lost, examples)

    def _nothing(self, name: str) -> SentembError:
        """The error for an import without a line."""
        left_out = self.done.left_out
        if all(map(is_record, self._files)) and left_out.keys() <= {ONLY_SHOWN, NO_CLICKS}:
            return SentembError(f"{name}: nobody has clicked a result yet; try later")
        why = ", ".join(f"{count:,} {reason}" for reason, count in left_out.most_common())
        unknown = self._reader.unknown_example
        example = f" (the first: {unknown})" if unknown else ""
        first = f"; the first bad row: {self._bad.first}" if self._bad.first else ""
        return SentembError(
            f"{name}: nothing to write: {why or 'no rows'}{example}{first}; check the columns"
        )

    def catalogue_lines(self) -> Iterator[str]:
        """The lines of the catalogue that was read or collected."""
        made_up = ((f"t{rank}", title) for rank, title in enumerate(self._distinct, 1))
        titles = chain(self._reader.titles.items(), made_up)
        return catalogue_lines(titles, list(self._columns.keep), self._fields)


def _search(click: Click) -> tuple[str, str]:
    """Id and query of a search, which all its rows share."""
    return click[4][1], click[0]


def _tsv_lines(clicks: Iterable[Click], has_ids: bool) -> Iterator[str]:
    """The lines of a log, with the ids of the titles if they are known."""
    if not has_ids:
        return tsv_lines(map(_PAIR, clicks))
    pairs, ids = tee(clicks)
    return tsv_lines(map(_PAIR, pairs), (click[4][-1] for click in ids))


def _json_lines(clicks: Iterable[Click]) -> Iterator[str]:
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
