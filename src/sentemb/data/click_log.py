"""Click logs: which titles were clicked for which queries, and how often."""

import json
from array import array
from dataclasses import dataclass

import numpy as np

from sentemb.bounds import brief
from sentemb.data.lines import write_lines
from sentemb.errors import SentembError
from sentemb.system.files import place_name, raw_lines

MAX_WORDS = 10_000
MAX_CLICKS = 2**63 - 1


@dataclass(frozen=True, eq=False)
class ClickLog:
    """Distinct (query, title) pairs in order of first appearance, their clicks added up.

    Attributes
    ----------
    queries : list of str
        Distinct queries, in order of first appearance.
    titles : list of str
        Distinct titles, clicked or skipped, in the order in which they appear when the pairs are
        gone through one by one: the clicked title, then those skipped beside it.
    query_index, title_index : ndarray, (n_pairs,) int32
        The query and the clicked title of each pair.
    clicks : ndarray, (n_pairs,) int64
        How often the title was clicked for the query, at least 1.
    skipped_offsets : ndarray, (n_pairs + 1,) int64
        Pair ``p`` has ``skipped_index[skipped_offsets[p]:skipped_offsets[p + 1]]``.
    skipped_index : ndarray, int32
        Titles that were shown beside the clicked one and never clicked for that query; empty for a
        log in TSV.
    bad_lines : int
        How many lines were left out when the log was read.
    """

    queries: list[str]
    titles: list[str]
    query_index: np.ndarray
    title_index: np.ndarray
    clicks: np.ndarray
    skipped_offsets: np.ndarray
    skipped_index: np.ndarray
    bad_lines: int


class ClickLogBuilder:
    """Collects clicks one by one into a `ClickLog`.

    Memory grows with the distinct texts and pairs, not with the number of clicks; only skipped
    titles are kept as often as they were shown (8 bytes each) until `build`.
    """

    def __init__(self):
        self._queries, self._titles = [], []
        # Also from texts as they were written (with spaces around them, say), so that a text is
        # checked once and from then on costs one look-up.
        self._query_of, self._title_of = {}, {}
        self._pair_of = {}
        self._query_index, self._title_index = array("i"), array("i")
        self._clicks = array("q")
        self._skipped_pair, self._skipped_title = array("i"), array("i")

    def add(self, query, title, clicks=1, skipped=()):
        """Add ``clicks`` clicks on ``title`` for ``query``, with the titles shown but not clicked.

        White space around texts is dropped, tabs and line ends inside become spaces. A text
        that no model could use raises a `SentembError` without a place, and nothing is added.
        """
        query_index = self._query_of.get(query)
        title_index = self._title_of.get(title)
        if query_index is None or title_index is None or skipped:
            # All texts are checked before the first one is entered.
            clean_query, clean_title = clean_text(query, "query"), clean_text(title, "title")
            clean_skipped = [clean_text(text, "skipped title") for text in skipped]
            query_index = _number(query, clean_query, self._query_of, self._queries)
            title_index = _number(title, clean_title, self._title_of, self._titles)
            skipped = [_number(text, text, self._title_of, self._titles) for text in clean_skipped]

        key = query_index << 32 | title_index
        pair = self._pair_of.get(key)
        if pair is None:
            pair = self._pair_of[key] = len(self._clicks)
            self._query_index.append(query_index)
            self._title_index.append(title_index)
            self._clicks.append(clicks)
        else:
            try:
                self._clicks[pair] += clicks
            except OverflowError:
                raise SentembError(
                    f"the clicks of this pair add up to more than {MAX_CLICKS}; scale them down"
                ) from None
        if skipped:
            self._skipped_pair.extend([pair] * len(skipped))
            self._skipped_title.extend(skipped)

    def build(self, bad_lines=0):
        """The `ClickLog` of all that was added."""
        query_index = np.array(self._query_index, dtype=np.int32)
        title_index = np.array(self._title_index, dtype=np.int32)
        offsets, skipped = self._skipped_lists(query_index, title_index)

        # Skipped titles were numbered as they came; number all titles again pair by pair, so that
        # a log that is written and read again is the same.
        appearing = np.insert(skipped, offsets[:-1], title_index)
        kept, first = np.unique(appearing, return_index=True)
        kept = kept[np.argsort(first)]
        renumbered = np.empty(len(self._titles), dtype=np.int32)
        renumbered[kept] = np.arange(len(kept), dtype=np.int32)
        return ClickLog(
            queries=list(self._queries),
            titles=[self._titles[index] for index in kept.tolist()],
            query_index=query_index,
            title_index=renumbered[title_index],
            clicks=np.array(self._clicks, dtype=np.int64),
            skipped_offsets=offsets,
            skipped_index=renumbered[skipped],
            bad_lines=bad_lines,
        )

    def _skipped_lists(self, query_index, title_index):
        """The CSR lists of distinct skipped titles, without any clicked for the same query."""
        pair = np.array(self._skipped_pair, dtype=np.int64)
        title = np.array(self._skipped_title, dtype=np.int64)
        _, first = np.unique(pair << 32 | title, return_index=True)
        first.sort()
        first = first[np.argsort(pair[first], kind="stable")]
        pair, title = pair[first], title[first]

        clicked = query_index.astype(np.int64) << 32 | title_index
        skipped_only = ~np.isin(query_index[pair].astype(np.int64) << 32 | title, clicked)
        pair, title = pair[skipped_only], title[skipped_only]

        offsets = np.zeros(len(query_index) + 1, dtype=np.int64)
        np.cumsum(np.bincount(pair, minlength=len(query_index)), out=offsets[1:])
        return offsets, title.astype(np.int32)


def clean_text(text, what):
    """``text`` without white space around it; a `SentembError` without a place if it is unusable.

    ``what`` names it in the message. Unusable is a text without words, with a NUL character, with
    bytes that were not UTF-8, or with more than `MAX_WORDS` words.
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
    # So many words need at least as many letters and the spaces between them.
    if len(clean) > 2 * MAX_WORDS and (n_words := len(clean.split())) > MAX_WORDS:
        raise SentembError(
            f"the {what} has {n_words} words, more than {MAX_WORDS}; "
            "it is no query or title: is a line end missing?"
        )
    return clean


def read_click_log(path, *, skip_bad_lines=False):
    r"""Read a click log.

    Parameters
    ----------
    path : str or path-like
        A file, packed if its name ends in ``.gz``, or ``-`` for standard input. Either TSV,
        ``query<TAB>clicked title[<TAB>clicks]``, or JSON lines
        ``{"query": …, "clicked": […], "clicks": […], "skipped": […]}`` with ``clicks`` (a count
        for each clicked title, 1 if absent) and ``skipped`` optional and other keys ignored. It is
        read as JSON lines if its name ends in ``.jsonl`` or ``.jsonl.gz``, or if its first line
        that is not blank starts with ``{`` and has no tab. UTF-8, a byte-order mark is dropped,
        lines end at ``\n`` or ``\r\n`` only.
    skip_bad_lines : bool
        Leave out bad lines and count them, instead of stopping at the first.

    Returns
    -------
    ClickLog

    Raises
    ------
    SentembError
        For a bad line, with its place and a remedy: not two or three columns, a text without words
        or with more than `MAX_WORDS`, a NUL character, invalid UTF-8, a click count that is
        not a positive whole number of at most 63 bits, JSON that does not parse or has other
        types. Also if no pair is left.
    """
    name = place_name(path)
    builder = ClickLogBuilder()
    add_line = _add_json_line if str(path).endswith((".jsonl", ".jsonl.gz")) else None
    number = bad_lines = 0
    first_fault = None
    for number, raw in raw_lines(path):
        # Bytes that are not UTF-8 become lone surrogates, which `clean_text` finds; so each
        # distinct text is checked once, not each line.
        line = raw.decode("utf-8", "surrogateescape")
        if number == 1:
            line = line.removeprefix("\ufeff")
        if add_line is None and not line.isspace():
            is_json = line.lstrip().startswith("{") and "\t" not in line
            add_line = _add_json_line if is_json else _add_tsv_line
        try:
            (add_line or _add_tsv_line)(builder, line)
        except SentembError as error:
            fault = SentembError(f"{name}:{number}{_column(line, error)}: {error}")
            if not skip_bad_lines:
                raise fault from None
            bad_lines += 1
            first_fault = first_fault or fault
    if number == bad_lines:
        if first_fault:
            raise SentembError(f"{name}: none of {number} lines is good; the first: {first_fault}")
        raise SentembError(f"{name}: no pairs, the input is empty; give query<TAB>title lines")
    return builder.build(bad_lines)


def write_click_log(log, path):
    """Write a `ClickLog` so that `read_click_log` gives it back.

    TSV, or JSON lines with one pair each if there are skipped titles or the name ends in
    ``.jsonl`` or ``.jsonl.gz``; packed if it ends in ``.gz``; ``-`` is standard output. A text that
    could not be read back raises a `SentembError`, and nothing is written.
    """
    for what, texts in (("query", log.queries), ("title", log.titles)):
        for text in texts:
            if clean_text(text, what) != text:
                raise SentembError(
                    f"the {what} {brief(text)} cannot be written; drop white space around it, "
                    "tabs, line ends and byte-order marks"
                )
    if len(log.skipped_index) or str(path).endswith((".jsonl", ".jsonl.gz")):
        write_lines(path, _json_lines(log))
    else:
        write_lines(path, _tsv_lines(log))


def _number(raw, text, index_of, texts):
    """The index of ``text`` in ``texts``, appended if new; ``raw`` will be found at once."""
    index = index_of.get(text)
    if index is None:
        index = index_of[text] = len(texts)
        texts.append(text)
    index_of[raw] = index
    return index


def _add_tsv_line(builder, line):
    fields = line.rstrip("\r\n").split("\t")
    if len(fields) == 2:
        builder.add(fields[0], fields[1])
    elif len(fields) == 3:
        builder.add(fields[0], fields[1], _count(fields[2]))
    elif len(fields) == 1:
        raise SentembError("no tab; write query<TAB>clicked title")
    else:
        raise SentembError(
            f"{len(fields)} columns; write query<TAB>clicked title[<TAB>clicks], no other tabs"
        )


def _count(text):
    digits = text.strip()
    # int() alone would also take signs, underscores and digits of other scripts, and would refuse
    # very long numbers with a message of its own.
    if digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= len(str(MAX_CLICKS)):
        count = int(digits)
        if 1 <= count <= MAX_CLICKS:
            return count
    raise SentembError(
        f"the click count {brief(text)} is not a whole number from 1 to {MAX_CLICKS}; "
        "mend it or leave the column out"
    )


def _add_json_line(builder, line):
    try:
        record = json.loads(line.rstrip("\r\n"))
    except json.JSONDecodeError as error:
        raise _BadJson(error.msg, error.pos + 1) from None
    except RecursionError:
        raise _BadJson("nested too deep", None) from None
    except ValueError:
        raise _BadJson("a number of thousands of digits", None) from None
    if not isinstance(record, dict) or not isinstance(record.get("query"), str):
        raise SentembError('no "query" that is a text; write {"query": "…", "clicked": ["…"]}')
    query, clicked = record["query"], record.get("clicked")
    clicks, skipped = record.get("clicks"), record.get("skipped", [])
    if not _are(clicked, str) or not clicked:
        raise SentembError('"clicked" is not a list of at least one title; write ["title", …]')
    if not _are(skipped, str):
        raise SentembError('"skipped" is not a list of titles; write ["title", …] or leave it out')
    if clicks is None:
        clicks = [1] * len(clicked)
    elif not (
        _are(clicks, int)
        and len(clicks) == len(clicked)
        and all(1 <= count <= MAX_CLICKS for count in clicks)
    ):
        raise SentembError(
            f'"clicks" is not a list of one whole number from 1 to {MAX_CLICKS} for each clicked '
            "title; mend it or leave it out"
        )
    # Checked here as well, so that a line is added as a whole or not at all.
    for title in clicked:
        clean_text(title, "title")
    for title, count in zip(clicked, clicks, strict=True):
        builder.add(query, title, count, skipped)


class _BadJson(SentembError):
    def __init__(self, reason, column):
        super().__init__(f"not JSON ({reason}); write one object on each line")
        self.column = column


def _are(values, kind):
    # type() and not isinstance(): true and false are no counts.
    return isinstance(values, list) and all(type(value) is kind for value in values)


def _column(line, error):
    """``:column`` of what is wrong in the line where one character is, otherwise nothing."""
    column = getattr(error, "column", None)
    if column is None:
        suspects = (i for i, letter in enumerate(line, 1) if letter == "\0" or _is_lone(letter))
        column = next(suspects, None)
    return "" if column is None else f":{column}"


def _is_lone(letter):
    return "\ud800" <= letter <= "\udfff"


def _tsv_lines(log):
    for query, title, clicks in _pairs(log):
        yield f"{query}\t{title}" if clicks == 1 else f"{query}\t{title}\t{clicks}"


def _json_lines(log):
    skipped, offsets = log.skipped_index.tolist(), log.skipped_offsets.tolist()
    for (query, title, clicks), start, stop in zip(_pairs(log), offsets, offsets[1:]):
        record = {"query": query, "clicked": [title]}
        if clicks != 1:
            record["clicks"] = [clicks]
        if start < stop:
            record["skipped"] = [log.titles[index] for index in skipped[start:stop]]
        yield json.dumps(record, ensure_ascii=False)


def _pairs(log):
    """(query, title, clicks) of each pair, as str, str, int."""
    for query, title, clicks in zip(
        log.query_index.tolist(), log.title_index.tolist(), log.clicks.tolist()
    ):
        yield log.queries[query], log.titles[title], clicks
