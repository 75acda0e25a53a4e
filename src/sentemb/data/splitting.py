"""Splitting a click log into clicks to train on and held-out clicks to measure on.

A keyed hash of the words of the query, or of the title, decides on which side a line is. So the
side depends on nothing else in the log: a log that grows keeps its sides, and a file is split while
it is read. All spellings of a query are on one side: a model may read ``"x"``, ``x?`` and ``x`` as
one text, and clicks on one of them would be measured after training on the others.

The hash is a number u from 0 to 1. A line is on the test side if u < test, and on the dev side if
u >= 1 - dev. So one of the shares can change without changing the other side.

By click, the clicks of a line are drawn one from the other independently, line after line: a log
that grows at its end keeps its sides, and the share of dev does not change test. By both, queries
are held out as a whole, and single clicks of those that stay.
"""

import contextlib
import json
import math
import os
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from io import BufferedIOBase
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sentemb.data.click_log import (
    PAIRS,
    ClickLog,
    ClickLogBuilder,
    add_lines,
    clean_text,
    tsv_line,
)
from sentemb.data.distinct_texts import DistinctTexts
from sentemb.data.judged_set import read_products
from sentemb.data.split_description import (
    BOTH,
    BY_CLICK,
    DEV,
    QUERY,
    TEST,
    TIME,
    TITLE,
    TITLES,
    WAYS,
    write_split_description,
)
from sentemb.data.spreadsheets import is_quoted
from sentemb.errors import SentembError
from sentemb.system.bounds import MAX_SEED, brief, is_number, plain, whole
from sentemb.system.files import is_file, place_name, writing
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, filling_listed
from sentemb.text.words import query_key

PAIRS_AND_SKIPPED = "pairs.jsonl"
_SIDES = ("training", "dev", "test")
_TRAIN, _DEV, _TEST = range(3)
_SHARE = re.compile(r"([0-9]+\.?[0-9]*|\.[0-9]+)(\s*%)?")
_USUAL_SHARE, _LARGEST_SHARE = 0.05, 0.2
# With fewer, some part of a log has no query in one of some thousand cases.
_HELD_OUT_QUERIES = 10
_HASH_BYTES = 8
_WHOLE = 1 << 8 * _HASH_BYTES


class Pair(NamedTuple):
    """One line of a log: a query, a clicked title, its clicks, the titles skipped, and its id."""

    query: str
    title: str
    clicks: int
    skipped: tuple[str, ...]
    id: str = ""


def is_share(value: object) -> bool:
    """Whether ``value`` is a number, or a text such as ``5%`` or ``0.05``."""
    return is_number(value) or (isinstance(value, str) and bool(_SHARE.fullmatch(value.strip())))


def share_of(name: str, value: object) -> float:
    """A share from 0 to below 1, of a number or of a text such as ``5%`` or ``0.05``.

    Raises `SentembError` if it is not one; the message calls it ``name``.
    """
    share = math.nan
    if isinstance(value, str) and (match := _SHARE.fullmatch(value.strip())):
        share = float(match[1]) / (100 if match[2] else 1)
    elif is_number(value):
        share = float(value)
    if not 0 <= share < 1:
        raise SentembError(f"{name} is {brief(value)}; give a share such as 5% or 0.05")
    return share


@dataclass(frozen=True)
class Split:
    """How a log is split.

    dev, test : the shares of the two held-out sides, from 0 to below 1
    by : a hash of the "query", a hash of the "title", a draw for each "click", "both" a hash of the
        query and draws for the others, or "time", the position in the log
    seed : key of the hash, or seed of the draws
    """

    dev: float
    test: float
    by: str = QUERY
    seed: int = 0

    @classmethod
    def of(cls, dev: object, test: object, by: object, seed: object) -> "Split":
        """The split with these shares; a `SentembError` if there is no such split."""
        shares = share_of("dev", dev), share_of("test", test)
        if not 0 < sum(shares) < 1:
            raise SentembError(
                f"dev and test together are {sum(shares):g} of the log; give shares above 0 that "
                "leave something to train on"
            )
        if by not in WAYS:
            raise SentembError(f"by is {brief(by)}; choose {', '.join(WAYS)}")
        checked = whole("seed", seed, 0, MAX_SEED)
        if by == TIME and checked:
            raise SentembError("a split by time draws nothing; leave seed out")
        return cls(*shares, str(by), checked)

    def side_function(self) -> Callable[[str], int]:
        """The function that gives the side of a text: 0 training, 1 dev, 2 test.

        Texts with the same `query_key` are on the same side.
        """
        below = (round(self.test * _WHOLE)).to_bytes(_HASH_BYTES + 1, "big")[1:]
        dev_from = _WHOLE - round(self.dev * _WHOLE)
        # No hash is as high as 9 bytes of 255.
        start = b"\xff" * (_HASH_BYTES + 1)
        if dev_from < _WHOLE:
            start = dev_from.to_bytes(_HASH_BYTES, "big")
        salt = self.seed.to_bytes(_HASH_BYTES, "little")

        def side(text: str) -> int:
            number = blake2b(query_key(text).encode(), digest_size=_HASH_BYTES, salt=salt).digest()
            if number < below:
                return _TEST
            return _DEV if number >= start else _TRAIN

        return side

    def required(self) -> list[int]:
        """The sides that must not be empty."""
        return [side for side, share in enumerate((1, self.dev, self.test)) if share]

    def cuts(self, n_lines: int) -> tuple[int, int]:
        """By time: how many of the lines are before dev and before test."""
        n_test, n_dev = round(n_lines * self.test), round(n_lines * self.dev)
        return n_lines - n_test - n_dev, n_lines - n_test


# -- in memory --------------------------------------------------------------------------------


def split_log(
    log: AnyPath | ClickLog,
    dev: float | str = 0.05,
    test: float | str = 0.05,
    by: str = QUERY,
    seed: int = 0,
    *,
    skip_bad_lines: bool = False,
) -> tuple[ClickLog | None, ClickLog | None, ClickLog | None]:
    """Split a click log into clicks to train on and held-out clicks: ``(train, dev, test)``.

    Parameters
    ----------
    log : path or ClickLog
        See `read_click_log`. A path gives the sides that ``sentemb split`` writes.
    dev, test : float or str
        The shares that are held out, such as 0.05 or "5%"; 0 for none.
    by : {"query", "title", "click", "both", "time"}
        "query": a hash of the query's words decides, so that no query is on two sides; spellings
        with the same words are one query, whatever their case, accents, punctuation and order.
        "title": a hash of the title decides: held-out titles
        are never clicked in training, and not among its skipped titles. "click": every single click
        is held out by a draw of its own, so a pair may be on several sides with a part of its
        clicks on each; in training no query has a skipped title that it has held-out clicks on.
        "both": a hash holds out queries, and draws hold out single clicks of the others.
        "time": the last lines of the file are test, those before them dev; of a `ClickLog`, the
        last pairs to appear.
    seed : int
        Another seed gives other sides.
    skip_bad_lines : bool
        As in `read_click_log`.

    Returns
    -------
    train, dev, test : ClickLog
        None for a share of 0. Without skipped titles in dev and test.

    Raises
    ------
    SentembError
        For shares that leave nothing to train on, a side on which there is nothing, or a log that
        cannot be read.

    Examples
    --------
    >>> builder = ClickLogBuilder()
    >>> for number in range(100):
    ...     builder.add(f"query {number}", f"title {number % 10}")
    >>> train, dev, test = split_log(builder.build(), dev="10%", test="10%")
    >>> sum(len(part.queries) for part in (train, dev, test))
    100
    """
    split = Split.of(dev, test, by, seed)
    if isinstance(log, ClickLog) and split.by == QUERY:
        parts = _by_query(log, split)
        _check_sides(split, [len(part.clicks) for part in parts], "the log")
        train, held_dev, held_test = (part if len(part.clicks) else None for part in parts)
        return train, held_dev, held_test
    builders = [ClickLogBuilder() for _ in _SIDES]
    counts = [0] * len(_SIDES)
    collected = _Sorting(split, lambda side, pair: _add(builders[side], counts, side, pair))
    if isinstance(log, ClickLog):
        bad_lines = 0
        for pair in _pairs_of(log):
            collected.add(*pair)
    elif not isinstance(log, str | os.PathLike):
        raise SentembError(
            f"the log must be a path or a ClickLog, not {type(log).__name__}; ClickLog.from_frame "
            "makes one of a table"
        )
    else:
        bad_lines = add_lines(collected, [log], skip_bad_lines=skip_bad_lines)
    collected.finish()
    _check_sides(split, counts, "the log" if isinstance(log, ClickLog) else place_name(log))
    bad = (bad_lines, 0, 0)
    train, held_dev, held_test = (
        builder.build(bad[side]) if counts[side] else None for side, builder in enumerate(builders)
    )
    return train, held_dev, held_test


def _by_query(log: ClickLog, split: Split) -> list[ClickLog]:
    """The sides of ``log``; each distinct query is hashed once."""
    side_of = split.side_function()
    sides = np.array(list(map(side_of, log.queries)), np.int64)[log.query_index]
    held_out = _without_skipped(log)
    return [
        source.with_clicks(np.where(sides == side, log.clicks, 0))
        for side, source in enumerate((replace(log, bad_lines=0), held_out, held_out))
    ]


def _without_skipped(log: ClickLog) -> ClickLog:
    no_skipped, none = np.zeros_like(log.skipped_offsets), log.skipped_index[:0]
    return replace(log, skipped_offsets=no_skipped, skipped_index=none, bad_lines=0)


def suited_split(log: ClickLog) -> tuple[str, float]:
    """How a log is held out best: ``by``, and the share of dev and of test.

    Single clicks are held out too where some pair has several, which is where queries are typed
    again and again; a small log needs larger shares.
    """
    share = min(max(_USUAL_SHARE, _HELD_OUT_QUERIES / len(log.queries)), _LARGEST_SHARE)
    return BOTH if log.clicks.max() > 1 else QUERY, share


def hold_out_clicks(log: ClickLog, share: float, seed: int, most: int) -> tuple[ClickLog, ClickLog]:
    """Hold out single clicks of queries that keep others: what stays, and what is held out.

    Every click is held out with probability ``share``. A query that would lose all its clicks
    keeps them; of the others at most ``most``, drawn by ``seed``, lose theirs. So each query that
    is held out is in what stays too, and a pair that stays has the skipped titles that it had. What
    is held out has no pairs if the log has too few clicks.

    Examples
    --------
    >>> log = ClickLog.from_pairs([("tap", "Fix a Tap", 30), ("hotel", "Hotels", 1)])
    >>> stays, held_out = hold_out_clicks(log, share=0.1, seed=0, most=100)
    >>> stays.queries, held_out.queries
    (['tap', 'hotel'], ['tap'])
    >>> int(stays.clicks.sum() + held_out.clicks.sum())
    31
    """
    generator = np.random.default_rng(seed)
    held = generator.binomial(log.clicks, share)
    loses, keeps = np.zeros((2, len(log.queries)), bool)
    loses[log.query_index[held > 0]] = True
    keeps[log.query_index[held < log.clicks]] = True
    drawn = generator.permutation(np.flatnonzero(loses & keeps))[:most]
    held[~np.isin(log.query_index, drawn)] = 0
    return log.with_clicks(log.clicks - held), _without_skipped(log).with_clicks(held)


def _add(builder: ClickLogBuilder, counts: list[int], side: int, pair: Pair) -> None:
    counts[side] += 1
    builder.add(pair.query, pair.title, pair.clicks, () if side else pair.skipped)


def _pairs_of(log: ClickLog) -> Iterator[Pair]:
    for p, (query, title) in enumerate(
        zip(log.query_index.tolist(), log.title_index.tolist(), strict=True)
    ):
        skipped = log.skipped_index[log.skipped_offsets[p] : log.skipped_offsets[p + 1]]
        texts = tuple(log.titles[index] for index in skipped.tolist())
        yield Pair(log.queries[query], log.titles[title], int(log.clicks[p]), texts)


class _Sorting:
    """Sends every pair that is added to its side; see `sentemb.data.click_log.LogReceiver`."""

    def __init__(self, split: Split, send: Callable[[int, Pair], None]) -> None:
        self._split, self._send = split, send
        self._placing = _Placing(split)
        # By time the sides are known at the end, and by click the skipped titles of training.
        self._waiting: list[Pair] = []
        self._held_out: set[tuple[str, str]] = set()

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        for side, pair in self._placing.parts(_clean(query, title, clicks, skipped, id)):
            if self._split.by in (QUERY, TITLE):
                self._send(side, pair)
            elif side == _TRAIN:
                self._waiting.append(pair)
            else:
                self._held_out.add((pair.query, pair.title))
                self._send(side, pair)

    def finish(self) -> None:
        cuts = self._split.cuts(len(self._waiting)) if self._split.by == TIME else ()
        for number, pair in enumerate(self._waiting):
            skipped = tuple(t for t in pair.skipped if (pair.query, t) not in self._held_out)
            self._send(sum(number >= cut for cut in cuts), pair._replace(skipped=skipped))


class _Placing:
    """Finds the sides of pairs, one after the other; by time, all are in training."""

    def __init__(self, split: Split) -> None:
        self._split, self._side_of = split, split.side_function()
        # One generator for each side, so that the share of dev does not change test.
        seeds = np.random.SeedSequence(split.seed).spawn(2)
        self._dev_draws, self._test_draws = map(np.random.default_rng, seeds)

    def parts(self, pair: Pair) -> list[tuple[int, Pair]]:
        """The parts of a pair that are on a side, without skipped titles that it must not meet."""
        if self._split.by == QUERY:
            return [(self._side_of(pair.query), pair)]
        if self._split.by == TITLE:
            skipped = tuple(title for title in pair.skipped if self._side_of(title) == _TRAIN)
            return [(self._side_of(pair.title), pair._replace(skipped=skipped))]
        side = self._side_of(pair.query) if self._split.by == BOTH else _TRAIN
        if side != _TRAIN:
            return [(side, pair)]
        if self._split.by in BY_CLICK:
            counts = enumerate(self._thinned(pair.clicks))
            return [(side, pair._replace(clicks=count)) for side, count in counts if count]
        return [(_TRAIN, pair)]

    def _thinned(self, clicks: int) -> tuple[int, int, int]:
        """How many of the clicks are on each side."""
        dev_of_rest = min(self._split.dev / (1 - self._split.test), 1)
        test = int(self._test_draws.binomial(clicks, self._split.test))
        dev = int(self._dev_draws.binomial(clicks - test, dev_of_rest))
        return clicks - test - dev, dev, test


def _clean(query: str, title: str, clicks: int, skipped: Sequence[str], id: str) -> Pair:
    texts = tuple([clean_text(text, "skipped title") for text in skipped]) if skipped else ()
    return Pair(clean_text(query, "query"), clean_text(title, "title"), clicks, texts, id)


def _check_sides(split: Split, counts: Sequence[int], name: str) -> None:
    for side in split.required():
        if not counts[side]:
            raise SentembError(
                f"{name}: no line is on the {_SIDES[side]} side; give a larger share, or, if this "
                f"is {PAIRS} of an earlier split, use the {DEV} of that split"
            )


# -- from file to files -----------------------------------------------------------------------


@dataclass(frozen=True)
class SplitCounts:
    """Counts of the lines that `split_file` wrote.

    lines : lines in training, dev and test
    clicks : clicks in training, dev and test
    held_out : distinct queries of dev and of test; distinct titles if the log was split by title
    titles : titles in titles.tsv
    added : those of them that the given catalogue lacks
    bad_lines : lines of the log that were left out
    has_repeats : whether some pair has more than one click; None if the log was not split by click
    """

    lines: tuple[int, ...]
    clicks: tuple[int, ...]
    held_out: tuple[int, ...]
    titles: int
    added: int
    bad_lines: int
    has_repeats: bool | None


def split_file(
    log: AnyPath,
    folder: AnyPath,
    dev: float | str = 0.05,
    test: float | str = 0.05,
    by: str = QUERY,
    seed: int = 0,
    *,
    catalogue: AnyPath | None = None,
    skip_bad_lines: bool = False,
    force: bool = False,
) -> SplitCounts:
    """Split a click log in a file into files, all of them or, on an error, none.

    The memory does not depend on the size of the log. It does depend on that of ``catalogue`` and,
    by click and with skipped titles, on the held-out pairs: 8 bytes for each.
    Parameters that are not described here are as for `split_log`.

    ``folder`` gets ``pairs.tsv`` to train on (``pairs.jsonl`` for a log with skipped titles),
    ``dev.tsv``, ``test.tsv``, ``titles.tsv``: all titles of the log, skipped ones included, with
    ids, and ``split.json``: how the log was split. ``catalogue`` has lines ``id<TAB>title``, which
    may have fields; ``titles.tsv`` begins with them and then has the titles of the log that are not
    among them. ``force`` writes into a folder that has files.

    Raises `SentembError` as `split_log`; if ``folder`` has files and ``force`` is not set, has
    files of the same names that no split wrote, or cannot be written.
    """
    split = Split.of(dev, test, by, seed)
    inputs = [log] if catalogue is None else [log, catalogue]
    check_outputs([Output(folder, is_folder=True)], inputs, force)
    check_free(folder, force)
    products = ([], [], [], []) if catalogue is None else read_products(catalogue)
    ids = products[1]
    if catalogue is not None and not ids:
        raise SentembError(f"{place_name(catalogue)}: is empty; write lines id<TAB>title")
    with filling_listed(folder) as new, contextlib.ExitStack() as stack:
        distinct = [DistinctTexts(new / f".{name}") for name in ("titles", "dev", "test", "ones")]
        for text_set in distinct:
            stack.callback(text_set.close)
        unsorted = new / ".pairs"
        stack.callback(unsorted.unlink, missing_ok=True)
        with contextlib.ExitStack() as files:
            names = [DEV, TEST] if by != TIME else []
            paths = [unsorted, *(new / name for name in names)]
            outputs = [files.enter_context(writing(path)) for path in paths]
            streaming = _Streaming(split, outputs, distinct)
            bad_lines = add_lines(streaming, [log], skip_bad_lines=skip_bad_lines)
        lines, clicks = streaming.lines, streaming.clicks
        if by == TIME:
            lines, clicks = _cut_by_time(split, unsorted, new, distinct[1:3], clicks[_TRAIN])
        _check_sides(split, lines, place_name(log))
        for side, name in ((_DEV, DEV), (_TEST, TEST)):
            if not lines[side]:
                (new / name).unlink(missing_ok=True)
        if streaming.has_skipped:
            _write_pairs_and_skipped(unsorted, new, by)
        else:
            os.replace(unsorted, new / PAIRS)
        held_out = tuple(_size(text_set) for text_set in distinct[1:3])
        added = _write_titles(new / TITLES, products, distinct[0])
        counts = SplitCounts(
            tuple(lines),
            tuple(clicks),
            held_out,
            len(ids) + added,
            added,
            bad_lines,
            streaming.has_repeats(),
        )
        write_split_description(new, {**vars(split), **vars(counts)})
    return counts


def _size(texts: DistinctTexts) -> int:
    return sum(1 for _ in texts.texts())


class _Streaming:
    """Writes every pair that is added to the file of its side.

    A line of ``outputs[0]`` has the id and the skipped titles as further columns. By time all lines
    go there. ``distinct`` collects the titles, what is held out for dev and for test, and, by
    click, the pairs of lines with one click, until a line has more.
    """

    def __init__(
        self, split: Split, outputs: Sequence[BufferedIOBase], distinct: Sequence[DistinctTexts]
    ) -> None:
        self._by, self._placing, self._outputs = split.by, _Placing(split), outputs
        self._titles, self._held_out, self._ones = distinct[0], distinct[1:3], distinct[3]
        self.lines, self.clicks = [0] * len(_SIDES), [0] * len(_SIDES)
        self._n_ones = 0
        self._has_counts = self.has_skipped = False

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        pair = _clean(query, title, clicks, skipped, id)
        # Before any error, so that a bad line that is skipped has drawn like all others.
        parts = self._placing.parts(pair)
        titles = pair.title, *pair.skipped
        for text in titles:
            if '"' in text and is_quoted([text]):
                raise SentembError(
                    f"the title {brief(text)} would be read as quoted CSV in {TITLES}; leave out "
                    "the quotes"
                )
        lines = [(side, part, _line(part, first=not self.lines[side])) for side, part in parts]
        for text in titles:
            self._titles.add(text)
        if self._by in BY_CLICK and not self._has_counts:
            self._has_counts = clicks > 1
            self._ones.add(f"{pair.query}\t{pair.title}")
            self._n_ones += 1
        for side, part, line in lines:
            self._write(side, part, line)

    def has_repeats(self) -> bool | None:
        """Whether some pair has more than one click, in one line or in several; only by click."""
        if self._by not in BY_CLICK:
            return None
        return self._has_counts or _size(self._ones) < self._n_ones

    def _write(self, side: int, pair: Pair, line: str) -> None:
        self.lines[side] += 1
        self.clicks[side] += pair.clicks
        if side != _TRAIN:
            self._held_out[side - 1].add(pair.title if self._by == TITLE else pair.query)
        elif pair.skipped:
            self.has_skipped = True
            line = "\t".join((pair.query, pair.title, str(pair.clicks), pair.id, *pair.skipped))
        self._outputs[side].write(f"{line}\n".encode())


def _cut_by_time(
    split: Split, unsorted: Path, new: Path, held_out: Sequence[DistinctTexts], n_clicks: int
) -> tuple[list[int], list[int]]:
    """Move the last lines to dev and test; the lines and the clicks of each side."""
    with open(unsorted, "rb") as lines:
        n_lines = sum(1 for _ in lines)
    before_dev, before_test = split.cuts(n_lines)
    counts = [before_dev, before_test - before_dev, n_lines - before_test]
    clicks = [n_clicks, 0, 0]
    with open(unsorted, "rb") as lines:
        size = sum(map(len, islice(lines, before_dev)))
        for side, name in ((_DEV, DEV), (_TEST, TEST)):
            with writing(new / name) as file:
                for number, line in enumerate(islice(lines, counts[side])):
                    pair = _columns(line)
                    held_out[side - 1].add(pair.query)
                    clicks[side] += pair.clicks
                    file.write(f"{_line(pair, first=number == 0)}\n".encode())
            clicks[_TRAIN] -= clicks[side]
    os.truncate(unsorted, size)
    return counts, clicks


def _columns(line: bytes) -> Pair:
    """The pair in a line that `_Streaming` wrote."""
    query, title, *rest = line.decode().rstrip("\n").split("\t")
    return Pair(query, title, int(rest[0]) if rest else 1, tuple(rest[2:]), "".join(rest[1:2]))


def _line(pair: Pair, first: bool) -> str:
    """A pair as a line of a log, without its skipped titles."""
    return tsv_line(pair.query, pair.title, pair.clicks, first, pair.id)


class _HeldOutPairs:
    """The pairs in files of held-out clicks, as sorted hashes."""

    def __init__(self, files: Sequence[Path]) -> None:
        hashes = array("Q")
        for path in filter(is_file, files):
            with open(path, "rb") as lines:
                hashes.extend(_pair_hash(*_columns(line)[:2]) for line in lines)
        self._hashes = np.unique(np.array(hashes, np.uint64))

    def has(self, query: str, title: str) -> bool:
        """Whether a pair is one of them, as far as hashes of 8 bytes tell pairs apart."""
        pair = np.uint64(_pair_hash(query, title))
        first = np.searchsorted(self._hashes, pair)
        return bool((self._hashes[first : first + 1] == pair).any())


def _pair_hash(query: str, title: str) -> int:
    digest = blake2b(f"{query}\t{title}".encode(), digest_size=_HASH_BYTES).digest()
    return int.from_bytes(digest, "big")


def _write_pairs_and_skipped(unsorted: Path, new: Path, by: str) -> None:
    """Write the clicks to train on; by click, without skipped titles that have held-out clicks."""
    held_out = _HeldOutPairs([new / DEV, new / TEST] if by in BY_CLICK else [])
    with open(unsorted, "rb") as lines, writing(new / PAIRS_AND_SKIPPED) as file:
        for line in lines:
            query, title, clicks, skipped, _ = _columns(line)
            record: dict[str, object] = {"query": query, "clicked": [title]}
            if clicks != 1:
                record["clicks"] = [clicks]
            if never_clicked := [text for text in skipped if not held_out.has(query, text)]:
                record["skipped"] = never_clicked
            file.write(f"{json.dumps(record, ensure_ascii=False)}\n".encode())


def _write_titles(path: Path, products: Sequence[list[str]], of_log: DistinctTexts) -> int:
    """Write the products and the titles of the log that are not among them; how many these are."""
    columns, ids, texts, fields = products
    added, known = 0, set(map(str.strip, texts))
    with writing(path) as file:
        if columns:
            file.write(("\t".join(["id", "title", *columns]) + "\n").encode())
        for id, text, of_text in zip(ids, texts, fields, strict=True):
            file.write(f"{id}\t{text}{of_text}\n".encode())
        prefix = _free_prefix(ids)
        for text in of_log.texts():
            if text not in known:
                added += 1
                empty = "\t" * len(columns)
                file.write(f"{prefix}{added}\t{text}{empty}\n".encode())
    return added


def _free_prefix(ids: Sequence[str]) -> str:
    """A prefix for the ids of further titles, with which none of ``ids`` begins."""
    prefix = "t" if not ids else "log-"
    while any(id.startswith(prefix) for id in ids):
        prefix = f"{plain(prefix)}-"
    return prefix
