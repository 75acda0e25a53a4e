"""Click logs: which titles were clicked for which queries, and how often."""

import json
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice, pairwise, repeat
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.data.frames import checked_pair, checked_pairs, rows_of
from sentemb.data.lines import is_id, without_blank_end, write_lines
from sentemb.data.parquet_files import parquet_batches
from sentemb.data.spreadsheets import REMEDY, ids_alone, is_header, is_quoted
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer
from sentemb.system.files import (
    is_file,
    is_folder,
    names_in,
    numbered,
    path_of,
    place_name,
    raw_portions,
    status,
)
from sentemb.system.html_tables import excerpt, facts_table
from sentemb.system.paths import AnyPath

PAIRS = "pairs.tsv"  # in the folder of a data set
PREPARED = "prepared.json"  # in the folder of a prepared log
# How the names of logs end that are read as those of a folder.
_ENDINGS = (".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet")
# What a data set has next to its log.
_OF_DATA_SETS = ("dev", "test", "dev.tsv", "test.tsv", "dev.jsonl", "test.jsonl", "titles.tsv")
MAX_TEXT_WORDS = 10_000
# What a ranker can store.
MAX_CLICKS = 10**12


@dataclass(frozen=True, eq=False, repr=False)
class ClickLog:
    """Distinct (query, title) pairs in order of first appearance, with their clicks summed.

    Attributes
    ----------
    queries : list of str
        Distinct queries, in order of first appearance.
    titles : list of str
        Distinct titles, clicked or skipped, in order of first appearance when the pairs are
        listed one by one: the clicked title, then the titles skipped with it.
    query_index, title_index : ndarray, (n_pairs,) int32
        The query and the clicked title of each pair.
    clicks : ndarray, (n_pairs,) int64
        Number of clicks on the title for the query, at least 1.
    skipped_offsets : ndarray, (n_pairs + 1,) int64
        Pair ``p`` has ``skipped_index[skipped_offsets[p]:skipped_offsets[p + 1]]``.
    skipped_index : ndarray, int32
        Titles that were shown with the clicked one and never clicked for that query; empty for a
        log in TSV.
    bad_lines : int
        Number of lines that were left out when the log was read.
    """

    queries: list[str]
    titles: list[str]
    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]
    clicks: NDArray[np.int64]
    skipped_offsets: NDArray[np.int64]
    skipped_index: NDArray[np.int32]
    bad_lines: int

    def __repr__(self) -> str:
        return counts_of(self)

    def _repr_html_(self) -> str:
        return html_of(self)

    @classmethod
    def from_pairs(cls, pairs: Iterable[Sequence[Any]]) -> "ClickLog":
        """A log of pairs ``(query, title)`` or ``(query, title, clicks)``; equal pairs are summed.

        Parameters
        ----------
        pairs : iterable of sequences
            Two str each, and an optional number of clicks of at least 1.

        Raises
        ------
        SentembError
            With the number of the pair, counted from 0: for anything else, a missing value, a text
            that no model could use. An empty input is an error too.

        Examples
        --------
        >>> log = ClickLog.from_pairs([("tap", "Fix a Tap"), ("tap", "Fix a Tap", 2)])
        >>> log.queries, log.clicks.tolist()
        (['tap'], [3])
        """
        return _log_of(checked_pairs(pairs), "pair")

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        query: str | None = None,
        title: str | None = None,
        clicks: str | None = None,
    ) -> "ClickLog":
        """The log in a table of pandas, Polars or pyarrow, or in a dict of columns.

        Parameters
        ----------
        frame : table
            Has columns of str for the query and the title.
        query, title : str, optional
            Names of these columns; by default those with a usual name, such as ``search_term`` and
            ``product_title``.
        clicks : str, optional
            Name of a column of integers; by default each row is one click. Rows whose clicks are 0
            or missing are left out.

        Raises
        ------
        SentembError
            For a column that is missing; with the number of the row, counted from 0: for a missing
            value, another type, a text that no model could use. An empty table is an error too.
        """
        return _log_of(rows_of(frame, query, title, clicks), "row")

    def titles_of_queries(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The clicked titles of every query, in the order of the pairs.

        Returns
        -------
        offsets, titles : (n_queries + 1,) int64, (n_pairs,) int32
            Query q has ``titles[offsets[q]:offsets[q + 1]]``.
        """
        return titles_by_query(len(self.queries), self.query_index, self.title_index)

    def part(self, is_kept: NDArray[np.bool_]) -> "ClickLog":
        """The clicks of some queries, (n_queries,) bool, without skipped titles."""
        return self.of_pairs(is_kept[self.query_index])

    def of_pairs(self, is_kept: NDArray[np.bool_]) -> "ClickLog":
        """Some pairs, (n_pairs,) bool, without skipped titles."""
        pairs = np.flatnonzero(is_kept)
        counted = self.query_index[pairs], self.title_index[pairs], self.clicks[pairs]
        return ClickLog.from_pairs(
            (self.queries[q], self.titles[t], int(n)) for q, t, n in zip(*counted, strict=True)
        )

    def with_clicks(self, clicks: NDArray[np.int64]) -> "ClickLog":
        """The log with other clicks for its pairs, (n_pairs,), without those that have none."""
        has_some = clicks > 0
        lengths = np.diff(self.skipped_offsets)
        skipped_pair, is_shown = np.repeat([np.cumsum(has_some) - 1, has_some], lengths, axis=1)
        skipped = self.skipped_index[is_shown > 0]
        queries, first, numbers = np.unique(
            self.query_index[has_some], return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        query_index = np.argsort(order)[numbers].astype(np.int32)
        titles, title_index, offsets, skipped = arranged(
            query_index, self.title_index[has_some], skipped_pair[is_shown > 0], skipped
        )
        return ClickLog(
            queries=[self.queries[index] for index in queries[order].tolist()],
            titles=[self.titles[index] for index in titles.tolist()],
            query_index=query_index,
            title_index=title_index,
            clicks=clicks[has_some],
            skipped_offsets=offsets,
            skipped_index=skipped,
            bad_lines=self.bad_lines,
        )


def titles_by_query(
    n_queries: int, query_index: NDArray[np.int32], title_index: NDArray[np.int32]
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """See `ClickLog.titles_of_queries`."""
    by_query = np.argsort(query_index, kind="stable")
    offsets = np.zeros(n_queries + 1, np.int64)
    np.cumsum(np.bincount(query_index, minlength=n_queries), out=offsets[1:])
    return offsets, title_index[by_query]


class Counted(Protocol):
    """A click log of any kind, to be shown; the attributes are those of a `ClickLog`."""

    @property
    def queries(self) -> Sequence[str]: ...
    @property
    def titles(self) -> Sequence[str]: ...
    @property
    def query_index(self) -> NDArray[np.int32]: ...
    @property
    def title_index(self) -> NDArray[np.int32]: ...
    @property
    def clicks(self) -> NDArray[np.int64]: ...
    @property
    def skipped_index(self) -> NDArray[np.int32]: ...
    @property
    def bad_lines(self) -> int: ...


def counts_of(log: Counted) -> str:
    """The kind and the counts of a log, on one line."""
    return (
        f"{type(log).__name__}({len(log.clicks):,} pairs, {len(log.queries):,} queries, "
        f"{len(log.titles):,} titles)"
    )


def html_of(log: Counted) -> str:
    """Counts and the first pairs of a log, for a notebook."""
    facts = {
        "pairs": len(log.clicks),
        "queries": len(log.queries),
        "titles": len(log.titles),
        "clicks": int(log.clicks.sum()),
        "titles shown and not clicked": log.skipped_index.size or None,
        "lines left out": log.bad_lines or None,
    }
    pairs = zip(log.query_index, log.title_index, map(int, log.clicks), strict=True)
    rows = ((log.queries[q], log.titles[t], clicks) for q, t, clicks in pairs)
    heads = ["query", "title", "clicks"]
    return facts_table(facts) + excerpt(rows, len(log.clicks), heads, texts=(0, 1))


# What a log can be given as: its file, the log itself, a table, or pairs of texts.
Clicks: TypeAlias = AnyPath | ClickLog | Iterable[Any]


class ClickLogBuilder:
    """Collects clicks one by one into a `ClickLog`.

    Memory grows with the number of distinct texts and pairs, not with the number of clicks.
    Skipped titles are the exception: each time one is shown takes 8 bytes until `build`. ``names``
    are the titles that ids have now, for logs with ids.

    Examples
    --------
    >>> builder = ClickLogBuilder()
    >>> builder.add("fix leaking tap", "How to Repair a Dripping Faucet", clicks=2)
    >>> builder.add("fix leaking tap", "How to Repair a Dripping Faucet")
    >>> log = builder.build()
    >>> log.queries, log.clicks.tolist()
    (['fix leaking tap'], [3])
    """

    def __init__(self, names: Mapping[str, str] | None = None) -> None:
        self._names = names or {}
        self._queries: list[str] = []
        self._titles: list[str] = []
        # The keys include texts as they were written (with spaces around them, for example): a text
        # is checked once, and each later appearance costs one look-up.
        self._query_of: dict[str, int] = {}
        self._title_of: dict[str, int] = {}
        self._pair_of: dict[int, int] = {}
        self._query_index, self._title_index = array("i"), array("i")
        self._clicks = array("q")
        self._skipped_pair, self._skipped_title = array("i"), array("i")

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        """Add ``clicks`` clicks on ``title`` for ``query``, with the titles shown but not clicked.

        If the ``names`` of the builder have the ``id`` of the title, that is the title. White space
        around texts is dropped; tabs and line ends inside become spaces. A text that no model could
        use, or a wrong number of clicks, raises a `SentembError` without a place, and nothing is
        added.
        """
        if not (is_integer(clicks) and _is_count(clicks)):
            raise SentembError(
                f"the clicks are {brief(clicks)}; give an integer from 1 to {MAX_CLICKS:,}"
            )
        title = self._names.get(id, title) if id else title
        query_index = self._query_of.get(query)
        title_index = self._title_of.get(title)
        skipped_index: list[int] = []
        if query_index is None or title_index is None or skipped:
            # All texts are checked before the first one is added.
            clean_query, clean_title = clean_text(query, "query"), clean_text(title, "title")
            clean_skipped = [clean_text(text, "skipped title") for text in skipped]
            query_index = _number(query, clean_query, self._query_of, self._queries)
            title_index = _number(title, clean_title, self._title_of, self._titles)
            skipped_index = [
                _number(text, text, self._title_of, self._titles) for text in clean_skipped
            ]

        key = query_index << 32 | title_index
        pair = self._pair_of.get(key)
        if pair is None:
            pair = self._pair_of[key] = len(self._clicks)
            self._query_index.append(query_index)
            self._title_index.append(title_index)
            self._clicks.append(clicks)
        else:
            if self._clicks[pair] + clicks > MAX_CLICKS:
                raise too_many_clicks()
            self._clicks[pair] += clicks
        if skipped_index:
            self._skipped_pair.extend([pair] * len(skipped_index))
            self._skipped_title.extend(skipped_index)

    def __len__(self) -> int:
        """The number of distinct pairs."""
        return len(self._clicks)

    def numbered(self) -> "NumberedClicks":
        """Everything that was added, numbered in order of first appearance."""
        return NumberedClicks(
            queries=self._queries,
            titles=self._titles,
            query_index=np.array(self._query_index, np.int32),
            title_index=np.array(self._title_index, np.int32),
            clicks=np.array(self._clicks, np.int64),
            skipped_pair=np.array(self._skipped_pair, np.int32),
            skipped_title=np.array(self._skipped_title, np.int32),
        )

    def build(self, bad_lines: int = 0) -> ClickLog:
        """The `ClickLog` of everything that was added."""
        numbered = self.numbered()
        order, title_index, offsets, skipped = arranged(
            numbered.query_index,
            numbered.title_index,
            numbered.skipped_pair,
            numbered.skipped_title,
        )
        return ClickLog(
            queries=list(numbered.queries),
            titles=[numbered.titles[index] for index in order.tolist()],
            query_index=numbered.query_index,
            title_index=title_index,
            clicks=numbered.clicks,
            skipped_offsets=offsets,
            skipped_index=skipped,
            bad_lines=bad_lines,
        )


def too_many_clicks() -> SentembError:
    """The error for a pair whose clicks add up to more than `MAX_CLICKS`."""
    return SentembError(
        f"the clicks of this pair add up to more than {MAX_CLICKS:,}; scale them down"
    )


class NumberedClicks(NamedTuple):
    """Distinct texts and pairs in order of first appearance, with every skipped title.

    queries, titles : distinct texts; skipped titles are among ``titles``
    query_index, title_index, clicks : (n_pairs,)
    skipped_pair, skipped_title : (n_shown,), a title that was skipped, and the pair that it was
        shown with
    """

    queries: list[str]
    titles: list[str]
    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]
    clicks: NDArray[np.int64]
    skipped_pair: NDArray[np.int32]
    skipped_title: NDArray[np.int32]


class Arranged(NamedTuple):
    """Pairs whose titles are numbered as in a `ClickLog`.

    title_order : (n_titles,), the former number of every title. Titles that belong to no pair are
        left out.
    title_index : (n_pairs,)
    skipped_offsets, skipped_index : (n_pairs + 1,), (n,), as in a `ClickLog`
    """

    title_order: NDArray[np.int32]
    title_index: NDArray[np.int32]
    skipped_offsets: NDArray[np.int64]
    skipped_index: NDArray[np.int32]


def arranged(
    query_index: NDArray[np.int32],
    title_index: NDArray[np.int32],
    skipped_pair: NDArray[np.int32],
    skipped_title: NDArray[np.int32],
) -> Arranged:
    """Number titles pair by pair, so that a log that is written and read again does not change.

    The parameters are those of `NumberedClicks`.
    """
    offsets, skipped = _skipped_lists(query_index, title_index, skipped_pair, skipped_title)
    if not skipped.size and _are_in_order(title_index):
        n_titles = int(title_index.max(initial=-1)) + 1
        return Arranged(np.arange(n_titles, dtype=np.int32), title_index, offsets, skipped)
    appearing = np.insert(skipped, offsets[:-1], title_index)
    order, first = np.unique(appearing, return_index=True)
    order = order[np.argsort(first)]
    renumbered = np.empty(int(order.max()) + 1, np.int32)
    renumbered[order] = np.arange(len(order), dtype=np.int32)
    return Arranged(order, renumbered[title_index], offsets, renumbered[skipped])


def _are_in_order(numbers: NDArray[np.int32]) -> bool:
    """Whether every number that appears first is the next one, from 0."""
    highest = np.maximum.accumulate(numbers)
    return not numbers.size or (highest[0] == 0 and bool((np.diff(highest) <= 1).all()))


def _skipped_lists(
    query_index: NDArray[np.int32],
    title_index: NDArray[np.int32],
    skipped_pair: NDArray[np.int32],
    skipped_title: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Offsets and titles of the distinct skipped titles not clicked for the same query."""
    offsets = np.zeros(len(query_index) + 1, np.int64)
    if not skipped_pair.size:
        return offsets, np.zeros(0, np.int32)
    pair, title = skipped_pair.astype(np.int64), skipped_title.astype(np.int64)
    _, first = np.unique(pair << 32 | title, return_index=True)
    first.sort()
    first = first[np.argsort(pair[first], kind="stable")]
    pair, title = pair[first], title[first]

    clicked = query_index.astype(np.int64) << 32 | title_index
    skipped_only = ~np.isin(query_index[pair].astype(np.int64) << 32 | title, clicked)
    pair, title = pair[skipped_only], title[skipped_only]
    np.cumsum(np.bincount(pair, minlength=len(query_index)), out=offsets[1:])
    return offsets, title.astype(np.int32)


def _log_of(clicks: Iterable[tuple[str, str, int]], what: str) -> ClickLog:
    """The log of queries, titles and clicks; ``what`` names one of them in messages."""
    builder = ClickLogBuilder()
    number = -1
    for number, (query, title, count) in enumerate(clicks):
        try:
            builder.add(query, title, count)
        except SentembError as error:
            raise SentembError(f"{what} {number}: {error}") from None
    if number < 0:
        raise SentembError(f"the log has no {what}s; give at least one")
    return builder.build()


def clean_text(text: str, what: str) -> str:
    """``text`` without white space around it; a `SentembError` without a place if it is unusable.

    ``what`` names it in the message. A text is unusable if it has no words, a NUL character, bytes
    that were not UTF-8, or more than `MAX_TEXT_WORDS` words.
    """
    clean = text.replace("\ufeff", "").replace("\t", " ").replace("\n", " ").strip()
    if not clean:
        raise SentembError(f"the {what} is empty; give it at least one word")
    if "\0" in clean:
        raise SentembError(f"the {what} has a NUL character; save the file as UTF-8 text")
    try:
        clean.encode()
    except UnicodeEncodeError:
        raise SentembError(f"the {what} is not valid UTF-8; save the file as UTF-8") from None
    # More than MAX_TEXT_WORDS words have at least one character each and a space between them.
    if len(clean) > 2 * MAX_TEXT_WORDS and (n_words := len(clean.split())) > MAX_TEXT_WORDS:
        raise SentembError(
            f"the {what} has {n_words} words, more than {MAX_TEXT_WORDS}; "
            "a query or title is shorter: is a line end missing?"
        )
    return clean


def read_click_log(
    path: AnyPath, *, skip_bad_lines: bool = False, names: Mapping[str, str] | None = None
) -> ClickLog:
    r"""Read a click log.

    Parameters
    ----------
    path : str or path-like
        A file, compressed if its name ends in ``.gz``, or ``-`` for standard input. Parquet, if
        the name ends in ``.parquet``, with columns ``query``, ``title`` and, optionally,
        ``clicks``; others are ignored. Otherwise either TSV,
        ``query<TAB>clicked title[<TAB>clicks[<TAB>id of the title]]``, or JSON lines
        ``{"query": …, "clicked": […], "clicks": […], "skipped": […]}``, where ``clicks`` (a count
        for each clicked title, by default 1) and ``skipped`` are optional and other keys are
        ignored. It is read as JSON lines if its name ends in ``.jsonl`` or ``.jsonl.gz``, or if
        its first line that is not blank starts with ``{`` and has no tab. The encoding is UTF-8, a
        byte-order mark is dropped, and lines end at ``\n`` or ``\r\n`` only.
    skip_bad_lines : bool
        Leave out bad lines and count them, instead of stopping at the first.
    names : mapping of str to str, optional
        The titles that ids have now: a line with such an id is a click on that title, also if the
        product had another name when it was clicked.

    Returns
    -------
    ClickLog

    Raises
    ------
    SentembError
        For a bad line, with its place and a remedy: not two to four columns, a text without words
        or with more than `MAX_TEXT_WORDS`, a NUL character, invalid UTF-8, a click count that is
        not a positive integer of at most 63 bits, JSON that does not parse or has other types; a
        first line of column names, and lines with the quotes of CSV. Also if no pair is left.
    """
    builder = ClickLogBuilder(names)
    log = builder.build(add_lines(builder, [path], skip_bad_lines=skip_bad_lines))
    texts = chain(log.queries, log.titles)
    if len(log.queries) > 1 < len(log.titles) and all(map(str.isdigit, texts)):
        raise SentembError(f"{place_name(path)}: {ids_alone(['1'] * 3)}")
    return log


class LogReceiver(Protocol):
    """A receiver of the lines of a log, such as a `ClickLogBuilder`."""

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        """Add one pair; a `SentembError` without a place, if a text or a count is unusable."""


# A line or a row: its number, its size in bytes, and how it is added, by a function of the
# collector and the content.
_Line: TypeAlias = tuple[int, int, Callable[[LogReceiver, Any], None], Any]


def add_lines(
    collected: LogReceiver,
    paths: Sequence[AnyPath],
    *,
    skip_bad_lines: bool = False,
    on_line: Callable[[int], None] | None = None,
) -> int:
    """Add the pairs of a log in the order of its lines; return the number of bad lines.

    `read_click_log` describes parameters and errors; several files are read one after the other.
    Few lines are in memory at a time. ``on_line`` is called with the number of bytes of each, 0 for
    a row of Parquet.
    """
    n_lines = bad_lines = 0
    first_fault = None
    for path in paths:
        name = place_name(path)
        if name == str(path) and is_folder(path):
            raise SentembError(f"{name}: is a folder{_meant(path)}")
        lines = _parquet_lines(path) if _is_parquet_name(path) else _text_lines(path)
        for number, n_bytes, add, content in lines:
            n_lines += 1
            if on_line is not None:
                on_line(n_bytes)
            try:
                add(collected, content)
            except SentembError as error:
                is_text = isinstance(content, str)
                at = f":{number}{_column(content, error)}" if is_text else f": row {number}"
                fault = SentembError(f"{name}{at}: {error}")
                if not skip_bad_lines:
                    raise fault from None
                bad_lines += 1
                first_fault = first_fault or fault
    if n_lines == bad_lines:
        name = place_name(paths[0]) if len(paths) == 1 else f"{len(paths)} files"
        raise _no_pairs(name, n_lines, first_fault)
    return bad_lines


def _text_lines(path: AnyPath) -> Iterator[_Line]:
    """The lines of TSV or JSON lines."""
    add_line: Callable[[LogReceiver, str], None] | None
    add_line = _add_json_line if is_json_name(path) else None
    for number, raw in numbered(without_blank_end(raw_portions(path))):
        # Bytes that are not UTF-8 become lone surrogates, which `clean_text` finds: each distinct
        # text is checked once, not each line.
        line = raw.decode("utf-8", "surrogateescape")
        if number == 1:
            line = line.removeprefix("\ufeff")
        if add_line is None and not line.isspace():
            is_json = line.lstrip().startswith("{") and "\t" not in line
            add_line = _add_json_line if is_json else _add_tsv_line
        is_first = number == 1 and add_line is _add_tsv_line
        yield number, len(raw), _add_first_line if is_first else add_line or _add_tsv_line, line


def _parquet_lines(path: AnyPath) -> Iterator[_Line]:
    """The rows of Parquet, counted from 1."""

    def choose(names: Iterable[str]) -> list[str]:
        for column in ("query", "title"):
            if column not in names:
                listed = ", ".join(islice(names, 20))
                raise SentembError(
                    f"{place_name(path)}: has no column {column}; its columns are {listed}: rename "
                    "one, or use `sentemb import`"
                )
        return ["query", "title", *(["clicks"] if "clicks" in names else [])]

    rows = (row for lists in parquet_batches(path, choose) for row in zip(*lists, strict=True))
    for number, row in enumerate(rows, 1):
        yield number, 0, _add_row, row


def _no_pairs(name: str, n_lines: int, first_fault: SentembError | None) -> SentembError:
    if first_fault:
        return SentembError(f"{name}: all {n_lines} lines are bad; the first: {first_fault}")
    return SentembError(f"{name}: no pairs, the input is empty; give query<TAB>title lines")


def log_files(paths: Sequence[AnyPath]) -> list[AnyPath]:
    """The files of a log: those of ``paths`` and, of a folder, its logs in the order of names.

    Raises
    ------
    SentembError
        For a folder without logs, that of a data set or that of a prepared log.
    """
    files: list[AnyPath] = []
    for path in paths:
        if str(path) == "-" or not is_folder(path):
            files.append(path)
            continue
        if meant := _meant(path, otherwise=""):
            raise SentembError(f"{path}: is a folder{meant}")
        # A dot and an underline are how other programs hide files.
        names = [
            name
            for name in names_in(path)
            if name.endswith(_ENDINGS) and not name.startswith((".", "_"))
        ]
        if not names:
            raise SentembError(
                f"{path}: has no logs; let their names end in {', '.join(_ENDINGS)}, or name files"
            )
        files += [path_of(path) / name for name in names]
    return files


def _meant(folder: AnyPath, otherwise: str = "; name a file of query<TAB>title lines") -> str:
    """The log that someone who named ``folder`` may have meant."""
    if is_file(path_of(folder) / PREPARED):
        return (
            " of `sentemb prepare`, which only the training of two towers reads; give the log that "
            "it was made from"
        )
    # In a folder of logs alone, one may have such a name.
    is_data_set = any(status(path_of(folder) / name) is not None for name in _OF_DATA_SETS)
    for log in (PAIRS, f"{PAIRS}.gz", "pairs.jsonl", "log.jsonl"):
        if (is_data_set or otherwise) and is_file(path_of(folder) / log):
            return f"; did you mean {path_of(folder) / log}?"
    return otherwise


def write_click_log(log: ClickLog, path: AnyPath) -> None:
    """Write a `ClickLog` so that `read_click_log` gives it back.

    The file is TSV, or JSON lines with one pair each if there are skipped titles or the name ends
    in ``.jsonl`` or ``.jsonl.gz``; it is compressed if the name ends in ``.gz``; ``-`` is standard
    output. If a text could not be read back, or the name is one of Parquet, a `SentembError` is
    raised and nothing is written.
    """
    if _is_parquet_name(path):
        raise SentembError(f"{path}: a log is not written as Parquet; name a .tsv or .jsonl file")
    for what, texts in (("query", log.queries), ("title", log.titles)):
        for text in texts:
            if clean_text(text, what) != text:
                raise SentembError(
                    f"the {what} {brief(text)} cannot be written; drop white space around it, "
                    "tabs, line ends and byte-order marks"
                )
    if len(log.skipped_index) or is_json_name(path):
        write_lines(path, _json_lines(log))
    else:
        write_lines(path, _tsv_lines(log))


def is_json_name(path: AnyPath) -> bool:
    """Whether the name says that a log is in JSON lines."""
    return str(path).endswith((".jsonl", ".jsonl.gz"))


def _is_parquet_name(path: AnyPath) -> bool:
    return str(path).endswith(".parquet")


def _number(raw: str, text: str, index_of: dict[str, int], texts: list[str]) -> int:
    """The index of ``text`` in ``texts``, appended if new; ``raw`` gets the same index."""
    index = index_of.get(text)
    if index is None:
        index = index_of[text] = len(texts)
        texts.append(text)
    index_of[raw] = index
    return index


def _check_first_line(line: str) -> None:
    """Refuse the names of columns, and fields in quotes."""
    fields = line.rstrip("\r\n").split("\t")
    if (len(fields) not in (2, 3) or is_header(fields)) and (ids := ids_alone(fields)):
        raise SentembError(ids)
    if is_header(fields):
        raise SentembError(
            f"looks like a header; drop the line or {REMEDY}; if it is a pair, give it a click "
            "count: query<TAB>clicked title<TAB>1"
        )
    _check_quotes(fields, first=True)
    if len(fields) == 3 and fields[2].strip().isalpha():
        raise SentembError(
            f"the click count {brief(fields[2])} is not a number; if the line is a header, drop it "
            f"or {REMEDY}"
        )


def _check_quotes(fields: list[str], first: bool = False) -> None:
    if is_quoted(fields, first):
        raise SentembError(
            f"quoted as CSV, and the quotes would be part of the texts; {REMEDY}, or write JSON "
            "lines if they are"
        )


def _add_first_line(builder: LogReceiver, line: str) -> None:
    _check_first_line(line)
    _add_tsv_line(builder, line)


def _add_row(builder: LogReceiver, row: Sequence[Any]) -> None:
    builder.add(*checked_pair(*row))


def _add_tsv_line(builder: LogReceiver, line: str) -> None:
    fields = line.rstrip("\r\n").split("\t")
    if '""' in line:
        _check_quotes(fields)
    if len(fields) == 2:
        builder.add(fields[0], fields[1])
    elif len(fields) == 3:
        builder.add(fields[0], fields[1], _count(fields[2]))
    elif len(fields) == 4 and is_id(id := fields[3].strip()):
        builder.add(fields[0], fields[1], _count(fields[2]), (), id)
    elif len(fields) == 1:
        csv = f"; for CSV {REMEDY}" if "," in line or ";" in line else ""
        raise SentembError(f"no tab; write query<TAB>clicked title{csv}")
    else:
        raise SentembError(
            f"{len(fields)} columns; write query<TAB>clicked title[<TAB>clicks[<TAB>id]], no other "
            "tabs, and no white space in an id"
        )


def _count(text: str) -> int:
    digits = text.strip()
    # int() alone would also accept signs, underscores and digits of other scripts, and would refuse
    # very long numbers with a message of its own.
    if digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= len(str(MAX_CLICKS)):
        count = int(digits)
        if _is_count(count):
            return count
    raise SentembError(
        f"the click count {brief(text)} is not an integer from 1 to {MAX_CLICKS:,}; "
        "correct it or leave the column out"
    )


def _is_count(value: int) -> bool:
    return 1 <= value <= MAX_CLICKS


def _add_json_line(builder: LogReceiver, line: str) -> None:
    query, clicked, clicks, skipped = _parse_json(line)
    # Checked here as well, so that a line is added as a whole or not at all.
    for title in clicked:
        clean_text(title, "title")
    for title, count in zip(clicked, clicks, strict=True):
        builder.add(query, title, count, skipped)


def _parse_json(line: str) -> tuple[str, list[str], list[int], list[str]]:
    """Query, clicked titles, a count for each of them, and skipped titles of one line."""
    record = _json_value(line)
    if not isinstance(record, dict) or not isinstance(record.get("query"), str):
        raise SentembError('"query" is not a text; write {"query": "…", "clicked": ["…"]}')
    clicked, skipped = record.get("clicked"), record.get("skipped", [])
    clicks = record.get("clicks")
    if not _are(clicked, str) or not clicked:
        raise SentembError('"clicked" is not a list of at least one title; write ["title", …]')
    if not _are(skipped, str):
        raise SentembError('"skipped" is not a list of titles; write ["title", …] or leave it out')
    if clicks is None:
        clicks = [1] * len(clicked)
    elif not (_are(clicks, int) and len(clicks) == len(clicked) and all(map(_is_count, clicks))):
        raise SentembError(
            f'"clicks" is not a list with an integer from 1 to {MAX_CLICKS:,} for each clicked '
            "title; correct it or leave it out"
        )
    return record["query"], clicked, clicks, skipped


def _json_value(line: str) -> Any:
    try:
        return json.loads(line.rstrip("\r\n"))
    except json.JSONDecodeError as error:
        raise _BadJson(error.msg, error.pos + 1) from None
    except RecursionError:
        raise _BadJson("nested too deeply", None) from None
    except ValueError:
        raise _BadJson("a number of thousands of digits", None) from None


class _BadJson(SentembError):
    def __init__(self, reason: str, column: int | None) -> None:
        super().__init__(f"not JSON ({reason}); write one object on each line")
        self.column = column


def _are(values: object, kind: type) -> bool:
    # type() and not isinstance(): true and false are not counts.
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _column(line: str, error: SentembError) -> str:
    """``:column`` if a single character is wrong in the line, otherwise nothing."""
    column = getattr(error, "column", None)
    if column is None:
        suspects = (i for i, letter in enumerate(line, 1) if letter == "\0" or _is_lone(letter))
        column = next(suspects, None)
    return "" if column is None else f":{column}"


def _is_lone(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff"


def _tsv_lines(log: ClickLog) -> Iterator[str]:
    return tsv_lines(_pairs(log))


def tsv_lines(pairs: Iterable[tuple[str, str, int]], ids: Iterable[str] = ()) -> Iterator[str]:
    """Query, title and clicks as the lines of a log, with the ids of the titles as far as given.

    A pair that would be read as quoted CSV raises a `SentembError`.
    """
    first = True
    for (query, title, clicks), id in zip(pairs, chain(ids, repeat("")), strict=False):
        yield tsv_line(query, title, clicks, first, id)
        first = False


def tsv_line(query: str, title: str, clicks: int, first: bool, id: str = "") -> str:
    """One pair as a line of a log; ``first`` if it is line 1, which could look like a header.

    A pair that would be read as quoted CSV raises a `SentembError`.
    """
    if ('"' in title or '"' in query) and is_quoted([query, title], first):
        raise SentembError(
            f"the pair {brief(query)}, {brief(title)} would be read as quoted CSV; leave out the "
            "quotes, or write JSON lines: let the name end in .jsonl"
        )
    if id:
        return f"{query}\t{title}\t{clicks}\t{id}"
    # With a count, a pair such as query<TAB>title cannot be a header.
    bare = clicks == 1 and not (first and is_header([query, title]))
    return f"{query}\t{title}" if bare else f"{query}\t{title}\t{clicks}"


def _json_lines(log: ClickLog) -> Iterator[str]:
    skipped, spans = log.skipped_index.tolist(), pairwise(log.skipped_offsets.tolist())
    for (query, title, clicks), (start, stop) in zip(_pairs(log), spans, strict=True):
        record: dict[str, Any] = {"query": query, "clicked": [title]}
        if clicks != 1:
            record["clicks"] = [clicks]
        if start < stop:
            record["skipped"] = [log.titles[index] for index in skipped[start:stop]]
        yield json.dumps(record, ensure_ascii=False)


def _pairs(log: ClickLog) -> Iterator[tuple[str, str, int]]:
    """(query, title, clicks) of each pair, as str, str, int."""
    for query, title, clicks in zip(
        log.query_index.tolist(), log.title_index.tolist(), log.clicks.tolist(), strict=True
    ):
        yield log.queries[query], log.titles[title], clicks
