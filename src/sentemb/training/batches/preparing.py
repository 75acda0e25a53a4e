"""From a click log of any length to a `PreparedLog`: one pass, without its texts in memory."""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from io import BufferedIOBase
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import (
    MAX_CLICKS,
    ClickLogBuilder,
    add_lines,
    arranged,
    log_files,
    titles_by_query,
    too_many_clicks,
)
from sentemb.data.prepared_log import (
    CLICKED_OFFSETS,
    CLICKED_TITLES,
    CLICKS,
    DESCRIPTION,
    FILES,
    QUERIES,
    QUERY_INDEX,
    SKIPPED_INDEX,
    SKIPPED_OFFSETS,
    TITLE_INDEX,
    TITLES,
    PreparedLog,
    SideFiles,
    Sources,
    check_replaceable,
    write_description,
)
from sentemb.data.text_array import TextArray
from sentemb.errors import SentembError
from sentemb.retrieval.tokenizing import tokenize_all
from sentemb.system.amounts import amount
from sentemb.system.files import is_file, place_name, status, writing
from sentemb.system.mapped_arrays import growing_array, mapped_array, write_array
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import replacing_folder
from sentemb.text.words import NEW, SPLITTINGS
from sentemb.training.batches.key_numbers import KeyNumbers

# What is in memory before it is numbered: pairs and skipped titles, and their letters.
_PAIRS, _LETTERS = 1 << 16, 1 << 25
# Texts that are split into words, or copied, at a time.
_TEXTS = 1 << 14
_HASH_BYTES = 16
# Lines between two reports.
_LINES = 1 << 12
# Titles as they come; skipped ones have other numbers in the end.
_UNSORTED, _UNSORTED_OFFSETS = ".titles", ".titles-offsets"


class Preparing(NamedTuple):
    """How far `prepare_log` is.

    stage : the work being done
    done : how many lines have been read, or texts have been split
    unit : "lines" or "texts"
    share : which share of the stage is done; None if that is unknown, as for standard input
    """

    stage: str
    done: int
    unit: str
    share: float | None


def prepare_log(
    pairs: AnyPath | Sequence[AnyPath],
    output: AnyPath,
    *,
    splitting: str = NEW,
    skip_bad_lines: bool = False,
    force: bool = False,
    on_note: Callable[[str], None] | None = None,
    on_progress: Callable[[Preparing], None] | None = None,
) -> PreparedLog:
    """Write a click log as a folder that `sentemb.train` maps into memory.

    Texts are not kept in memory: a distinct text takes 30 to 50 bytes there, and so does a distinct
    pair. A training from the folder gives the same model as one from the log.

    Parameters
    ----------
    pairs : path or sequence of paths
        A click log, see `read_click_log`. Several files are read as if they were one. Of a folder
        all logs are read, in the order of their names: files that end in ``.tsv``, ``.jsonl``, each
        with or without ``.gz``, or ``.parquet``.
    output : path
        The folder to write: all of it or, on an error, nothing.
    splitting : {"white-space", "words", "bare", "bare-letters"}
        How the training will split texts into words: that of its settings, or of the model that it
        starts from.
    skip_bad_lines : bool
        Leave malformed lines out and count them, instead of stopping at the first.
    force : bool
        Replace a prepared log that is in ``output``.
    on_note : function of a str, optional
        Called with each message about the log.
    on_progress : function of a `Preparing`, optional
        Called now and then.

    Returns
    -------
    PreparedLog

    Raises
    ------
    SentembError
        For a log that `read_click_log` refuses, an unknown splitting, an ``output`` that has other
        files, or a folder that cannot be written.

    Examples
    --------
    >>> import sentemb
    >>> log = sentemb.prepare_log("pairs.tsv", "prepared/")  # doctest: +SKIP
    >>> model = sentemb.train("prepared/", output="model/")  # doctest: +SKIP
    """
    if splitting not in tuple(SPLITTINGS):
        raise SentembError(f"splitting must be one of {', '.join(SPLITTINGS)}, not {splitting!r}")
    report = on_progress or _ignore
    files = log_files([pairs] if isinstance(pairs, str | os.PathLike) else list(pairs))
    if not files:
        raise SentembError("there is no log to prepare; name at least one file")
    check_outputs([Output(output, is_folder=True)], files, force)
    check_replaceable(output, force)
    with replacing_folder(output, (DESCRIPTION, *FILES)) as new:
        bad_lines = _write(new, files, splitting, skip_bad_lines, report)
        # Another process may have written there in the meantime.
        check_replaceable(output, force)
    if bad_lines and on_note is not None:
        on_note(f"skipped {amount(bad_lines, 'bad line')} of the log")
    return PreparedLog.open(output)


def _write(
    folder: Path,
    files: Sequence[AnyPath],
    splitting: str,
    skip_bad_lines: bool,
    report: Callable[[Preparing], None],
) -> int:
    """Write all files; the number of bad lines."""
    counts = _write_pairs(folder, files, skip_bad_lines, report)
    n_texts = counts[QUERIES] + counts[TITLES]
    sizes: dict[str, dict[str, int]] = {"tokens": {}, "words": {}}
    done = 0

    def split(added: int) -> None:
        nonlocal done
        done += added
        report(Preparing("splitting into words", done, "texts", done / n_texts))

    for names in (SideFiles.of(QUERIES), SideFiles.of(TITLES)):
        n_tokens, n_words = _write_tokens(folder, names, splitting, split)
        sizes["tokens"][names.tokens], sizes["words"][names.words] = n_tokens, n_words
    ends = (os.path.basename(place_name(path)) for path in (files[0], files[-1]))
    sources = Sources(len(files), *ends)
    facts = {**counts, "splitting": splitting, "sources": sources._asdict()}
    write_description(folder, facts, sizes)
    return counts["bad_lines"]


def _write_pairs(
    folder: Path,
    files: Sequence[AnyPath],
    skip_bad_lines: bool,
    report: Callable[[Preparing], None],
) -> dict[str, int]:
    """Write all files but those of words; how many there are of what."""
    lines = _Lines(files, report)
    clicks, n_queries, bad_lines = _read(folder, files, skip_bad_lines, lines)
    title_order, title_index, skipped_offsets, skipped = arranged(
        clicks.query_index, clicks.title_index, clicks.skipped_pair, clicks.skipped_title
    )
    clicked_offsets, clicked_titles = titles_by_query(n_queries, clicks.query_index, title_index)
    arrays: dict[str, np.ndarray] = {
        QUERY_INDEX: clicks.query_index,
        TITLE_INDEX: title_index,
        CLICKS: clicks.clicks,
        SKIPPED_OFFSETS: skipped_offsets,
        SKIPPED_INDEX: skipped,
        CLICKED_OFFSETS: clicked_offsets,
        CLICKED_TITLES: clicked_titles,
    }
    for name, array in arrays.items():
        write_array(folder / name, array)
    _sort_titles(folder, title_order)
    return {
        "pairs": title_index.size,
        QUERIES: n_queries,
        TITLES: title_order.size,
        "skipped": skipped.size,
        "lines": lines.count,
        "bad_lines": bad_lines,
    }


# -- one pass ---------------------------------------------------------------------------------


class _Clicks(NamedTuple):
    """The pairs of a log, as in `NumberedClicks`."""

    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]
    clicks: NDArray[np.int64]
    skipped_pair: NDArray[np.int32]
    skipped_title: NDArray[np.int32]


def _read(
    folder: Path, files: Sequence[AnyPath], skip_bad_lines: bool, lines: _Lines
) -> tuple[_Clicks, int, int]:
    """Write the texts; the pairs, and the numbers of queries and of bad lines."""
    names = SideFiles.of(QUERIES)
    with (
        _text_file(folder / names.texts, folder / names.text_offsets, QUERIES) as queries,
        _text_file(folder / _UNSORTED, folder / _UNSORTED_OFFSETS, TITLES) as titles,
    ):
        streamed = _Streamed(queries, titles)
        bad_lines = add_lines(streamed, files, skip_bad_lines=skip_bad_lines, on_line=lines.add)
        return streamed.clicks(), len(queries), bad_lines


class _Lines:
    """Counts lines and reports how far the log has been read."""

    def __init__(self, files: Sequence[AnyPath], report: Callable[[Preparing], None]) -> None:
        sizes = [_size_of(path) for path in files]
        self._size = None if None in sizes else max(1, sum(size for size in sizes if size))
        self._report, self._bytes, self.count = report, 0, 0

    def add(self, n_bytes: int) -> None:
        """Add a line of some bytes."""
        self.count += 1
        self._bytes += n_bytes
        if self.count % _LINES == 0:
            share = None if self._size is None else min(1.0, self._bytes / self._size)
            self._report(Preparing("reading the log", self.count, "lines", share))


def _size_of(path: AnyPath) -> int | None:
    """The bytes that are read of a file; None if that is unknown before the end."""
    state = status(path) if str(path) != "-" and is_file(path) else None
    return None if state is None or str(path).endswith((".gz", ".parquet")) else state.st_size


class _TextFile:
    """Numbers distinct texts in order of first appearance and writes each once.

    Texts are told apart by a hash of 128 bits: two of a hundred million texts share one with a
    probability below 1e-22. ``file`` gets the texts, a line end behind each, and ``append`` the end
    of each; messages call the texts ``what``.
    """

    def __init__(
        self, file: BufferedIOBase, append: Callable[[NDArray[np.int64]], None], what: str
    ) -> None:
        self._file, self._append = file, append
        self._numbers = KeyNumbers(what, width=_HASH_BYTES // 8)
        self._salt = secrets.token_bytes(blake2b.SALT_SIZE)
        self._size = 0

    def __len__(self) -> int:
        return len(self._numbers)

    def number(self, texts: Sequence[str]) -> NDArray[np.int32]:
        """The numbers of some texts without line ends, no two of which are equal."""
        encoded = [text.encode() for text in texts]
        hashes = b"".join(
            blake2b(raw, digest_size=_HASH_BYTES, salt=self._salt).digest() for raw in encoded
        )
        known = len(self._numbers)
        keys = np.frombuffer(hashes, np.uint64).reshape(-1, _HASH_BYTES // 8)
        numbers = self._numbers.number(keys)
        new = [encoded[index] for index in np.flatnonzero(numbers >= known).tolist()]
        self._file.write(b"\n".join([*new, b""]))
        ends = self._size + np.cumsum([len(raw) + 1 for raw in new], dtype=np.int64)
        self._append(ends)
        self._size = int(ends[-1]) if new else self._size
        return numbers


@contextlib.contextmanager
def _text_file(path: Path, offsets: Path, what: str) -> Iterator[_TextFile]:
    """A `_TextFile` and its offsets, on the disk when the block ends."""
    with writing(path) as file, growing_array(offsets, "<i8") as append:
        append(np.zeros(1, np.int64))
        yield _TextFile(file, append, what)


class _Streamed:
    """Numbers what is added, block by block; a `sentemb.data.click_log.LogReceiver`.

    A block is a small log of its own, so that most repetitions cost no more than there.
    """

    def __init__(self, queries: _TextFile, titles: _TextFile) -> None:
        self._queries, self._titles = queries, titles
        self._pairs, self._skipped = KeyNumbers("pairs"), KeyNumbers("pairs with skipped titles")
        self._clicks = np.empty(0, np.int64)
        self._sum = 0  # of all clicks
        self._block, self._n_added, self._n_letters = ClickLogBuilder(), 0, 0

    def add(
        self, query: str, title: str, clicks: int = 1, skipped: Sequence[str] = (), id: str = ""
    ) -> None:
        # Only then can the clicks of a pair be too many; the line that makes them so is to blame.
        is_alone = self._sum + clicks > MAX_CLICKS
        if is_alone:
            self._number()
        self._block.add(query, title, clicks, skipped)
        self._n_added += 1 + len(skipped)
        self._n_letters += len(query) + len(title) + sum(map(len, skipped))
        if is_alone or self._n_added >= _PAIRS or self._n_letters >= _LETTERS:
            self._number()
        self._sum += clicks

    def clicks(self) -> _Clicks:
        """All pairs that were added."""
        self._number()
        query_index, title_index = _halves(self._pairs.keys)
        skipped_pair, skipped_title = _halves(self._skipped.keys)
        clicks = self._clicks[: len(self._pairs)]
        return _Clicks(query_index, title_index, clicks, skipped_pair, skipped_title)

    def _number(self) -> None:
        """Number the block and start the next one."""
        block = self._block.numbered()
        self._block, self._n_added, self._n_letters = ClickLogBuilder(), 0, 0
        queries, titles = self._queries.number(block.queries), self._titles.number(block.titles)
        pairs = self._pairs.number(_keys(queries[block.query_index], titles[block.title_index]))
        if len(self._pairs) > self._clicks.size:
            self._clicks.resize(int(1.25 * len(self._pairs)), refcheck=False)  # filled with zeros
        if (self._clicks[pairs] > MAX_CLICKS - block.clicks).any():
            raise too_many_clicks()
        self._clicks[pairs] += block.clicks
        self._skipped.number(_keys(pairs[block.skipped_pair], titles[block.skipped_title]))


def _keys(first: NDArray[np.int32], second: NDArray[np.int32]) -> NDArray[np.uint64]:
    """Two numbers as one key, (n, 1) uint64."""
    return (first.astype(np.uint64) << np.uint64(32) | second.astype(np.uint64))[:, None]


def _halves(keys: NDArray[np.uint64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    first = (keys[:, 0] >> np.uint64(32)).astype(np.int32)
    return first, (keys[:, 0] & np.uint64(2**32 - 1)).astype(np.int32)


# -- texts ------------------------------------------------------------------------------------


def _sort_titles(folder: Path, order: NDArray[np.int32]) -> None:
    """Write the titles in ``order``, which leaves out those that belong to no pair."""
    names = SideFiles.of(TITLES)
    unsorted, offsets = folder / _UNSORTED, folder / _UNSORTED_OFFSETS
    titles = _texts(unsorted, offsets)
    if len(titles) == order.size and bool((order == np.arange(order.size)).all()):
        del titles
        os.replace(unsorted, folder / names.texts)
        os.replace(offsets, folder / names.text_offsets)
        return
    with (
        writing(folder / names.texts) as file,
        growing_array(folder / names.text_offsets, "<i8") as append,
    ):
        size = 0
        append(np.zeros(1, np.int64))
        for first in range(0, order.size, _TEXTS):
            lines = [
                f"{titles[index]}\n".encode() for index in order[first : first + _TEXTS].tolist()
            ]
            file.writelines(lines)
            ends = size + np.cumsum([len(line) for line in lines], dtype=np.int64)
            append(ends)
            size = int(ends[-1])
    del titles
    unsorted.unlink()
    offsets.unlink()


def _write_tokens(
    folder: Path, names: SideFiles, splitting: str, done: Callable[[int], None]
) -> tuple[int, int]:
    """Write the words and tokens of one side; their numbers.

    ``done`` is called with how many more texts have been split.
    """
    texts = _texts(folder / names.texts, folder / names.text_offsets)
    n_tokens = 0
    with (
        _text_file(folder / names.words, folder / names.word_offsets, "words") as words,
        growing_array(folder / names.tokens, "<i4") as append,
        growing_array(folder / names.token_offsets, "<i8") as append_offsets,
    ):
        append_offsets(np.zeros(1, np.int64))
        for first in range(0, len(texts), _TEXTS):
            tokens = tokenize_all(texts[first : first + _TEXTS], SPLITTINGS[splitting])
            append(words.number(tokens.words)[tokens.word_index])
            append_offsets(tokens.offsets[1:] + n_tokens)
            n_tokens += int(tokens.offsets[-1])
            done(tokens.offsets.size - 1)
        return n_tokens, len(words)


def _texts(path: Path, offsets: Path) -> TextArray:
    """Texts that have been written, mapped."""
    mapped: Any = mapped_array(offsets, "<i8", (None,), read_only=True)
    return TextArray(np.asarray(np.memmap(path, np.uint8, "r")), mapped)


def _ignore(report: object) -> None:
    pass
