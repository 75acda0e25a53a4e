"""Shared by commands: reading queries, warnings as notes, a line that shows progress."""

import contextlib
import math
import os
import time
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from sentemb.cli.program import note
from sentemb.errors import SentembError
from sentemb.system.amounts import amount
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

    from sentemb.data.recorded_searches import RecordedSearch
    from sentemb.data.text_array import TextArray
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.search.title_files import FileTitles

# At most this many unknown words are named.
_NAMED_WORDS = 8


@contextlib.contextmanager
def warnings_to_stderr() -> Iterator[None]:
    """Print each warning of the body once, as one line, without the place in the program."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        note(f"warning: {message}")


@contextlib.contextmanager
def sums_of_warnings(n_texts: int) -> Iterator[None]:
    """Print what portions of ``n_texts`` texts warn of as if they were one call."""
    from sentemb.models.face import TextWarning, keeping_text_warnings

    with keeping_text_warnings() as warnings_kept:
        yield
    for what in dict.fromkeys(warning.what for warning in warnings_kept):
        count = sum(warning.count for warning in warnings_kept if warning.what == what)
        note(f"warning: {TextWarning(count, n_texts, what)}")


def searches_of(records: Sequence[str], since: "datetime | None") -> "list[RecordedSearch]":
    """The searches of ``--record`` from ``--since`` on."""
    from sentemb.data.recorded_searches import read_searches

    return read_searches(records, -math.inf if since is None else since.timestamp())


class UnknownWords:
    """Collects the words of texts of which a model knows no feature: it reads them as zero.

    Texts that differ in nothing else have the same embedding, such as "iphone 12" and "iphone 13"
    if no digit was in the log.
    """

    def __init__(self, model: "SentenceEncoder | PairScorer") -> None:
        self._vocabulary = model.vocabulary
        self._known: dict[str, bool] = {}

    def add(self, texts: Iterable[str]) -> None:
        """Look at the words of ``texts``."""
        split, known = self._vocabulary.split, self._known
        words = dict.fromkeys(word for text in texts for word in split(text))
        new = [word for word in words if word not in known]
        known |= dict(zip(new, self._vocabulary.knows(new).tolist(), strict=True))

    def note(self, of: str = "the model") -> None:
        """Name the unknown words on standard error, if there are any; ``of`` names the model."""
        unknown = [word for word, known in self._known.items() if not known]
        if unknown:
            named = ", ".join(map(repr, unknown[:_NAMED_WORDS]))
            rest = f" and {amount(len(unknown) - _NAMED_WORDS, 'more word')}"
            named += rest if len(unknown) > _NAMED_WORDS else ""
            note(f"note: {of} knows nothing of {named}; these words are read as zero")


def note_unknown_words(
    model: "SentenceEncoder | PairScorer", texts: Iterable[str], of: str = "the model"
) -> None:
    """Name the words of ``texts`` that a model reads as zero on standard error; see `UnknownWords`.

    The texts are those that a user asks for: queries, not a whole catalogue. The note calls the
    model ``of``.
    """
    unknown = UnknownWords(model)
    unknown.add(texts)
    unknown.note(of)


def read_texts(path: str) -> tuple[list[str], list[str]]:
    """Ids and texts of a file of lines id<TAB>text, of which there must be at least one."""
    from sentemb.data import judged_set
    from sentemb.system.files import place_name

    ids, texts = judged_set.read_texts(path)
    if not ids:
        raise SentembError(f"{place_name(path)}: the input is empty; write lines id<TAB>text")
    return ids, texts


def read_titles(
    path: str, scratch: "Path | None", text_columns: Collection[str] = ()
) -> "FileTitles":
    """As `read_texts`, for any number of titles: their text is kept in a folder; shows progress."""
    from sentemb.search import title_files
    from sentemb.system.files import place_name

    with _lines_read() as show, warnings_to_stderr():
        titles = title_files.read_titles(path, scratch, show, text_columns)
    if not titles.ids:
        raise SentembError(f"{place_name(path)}: the input is empty; write lines id<TAB>text")
    return titles


def read_lines(path: str, scratch: "Path | None") -> "TextArray":
    """The lines of a file, of which there must be at least one; kept as those of `read_titles`."""
    from sentemb.search import title_files
    from sentemb.system.files import place_name

    with _lines_read() as show:
        lines = title_files.read_lines(path, scratch, show)
    if not lines:
        raise SentembError(f"{place_name(path)}: the input is empty; give one text per line")
    return lines


@contextlib.contextmanager
def _lines_read() -> "Iterator[Callable[[int], None]]":
    """A function that shows how many lines were read."""
    line = ProgressLine()

    def show(done: int) -> None:
        if line.is_due:
            line.draw(f"{done:,} lines read")

    try:
        yield show
    finally:
        line.close()


class TimeLeft:
    """A line that shows how many of some texts are done, and how long the rest takes.

    ``what`` is the word for them, such as "titles".
    """

    def __init__(self, what: str) -> None:
        self._what, self._line, self._began = what, ProgressLine(), time.monotonic()
        self._done = 0

    def show(self, done: int, total: int) -> None:
        """Draw the line if it is due. Fewer that are done than before are another piece of work."""
        if done < self._done:
            self._began = time.monotonic()
        self._done = done
        if self._line.is_due:
            left = duration((time.monotonic() - self._began) * (total - done) / done)
            self._line.draw(f"{done:,} of {total:,} {self._what}, {left} left")

    def close(self) -> None:
        """Remove the line."""
        self._line.close()


def check_ending(path: str, endings: tuple[str, ...], what: str) -> None:
    """Raise an error unless the name of an output ends in one of ``endings``, in any case.

    Standard output, devices and pipes may have any name. ``what`` says what is written.
    """
    from sentemb.system.files import is_file, status

    is_stream = path == "-" or (status(path) is not None and not is_file(path))
    if not path.lower().endswith(endings) and (not is_stream or os.path.isdir(path)):
        raise SentembError(f"{path}: {what}; let the name end in {endings[0]}")


def read_ids(path: str) -> list[str]:
    """The ids of a file with one per line, or with lines id<TAB>text; empty lines are skipped."""
    from sentemb.data.lines import clean_lines, is_id
    from sentemb.system.files import place_name

    ids = []
    for number, line in clean_lines(path):
        id = line.partition("\t")[0].strip()
        if id and not is_id(id):
            raise SentembError(
                f"{place_name(path)}:{number}: {id!r} has white space; write one id per line"
            )
        if id:
            ids.append(id)
    return ids


def duration(seconds: float) -> str:
    """A number of seconds to read."""
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def note_queries(path: str, queries: int, titles: int = 0) -> None:
    """Say on standard error that ``path`` holds texts that users typed."""
    clicked = f" and {amount(titles, 'clicked title')}" if titles else ""
    note(
        f"{path}: holds {amount(queries, 'clicked query')}{clicked} of the log as plain text; "
        "train --no-ranker and index --cosine leave them out"
    )


def encoding_ahead(
    model: "SentenceEncoder | PairScorer", meanwhile: Callable[[], object] | None = None
) -> contextlib.AbstractContextManager[None]:
    """Where kernels are missing, have those that embed compiled while the body reads words.

    ``meanwhile`` is as for `compiling_ahead`.
    """
    import numpy as np

    from sentemb.kernels.compiling.ahead import compiling_ahead
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.models.towers.towers import SIDES
    from sentemb.retrieval.similarity import unit_rows
    from sentemb.system.parallel import Workers

    def embed_a_word() -> None:
        if isinstance(model, SentenceEncoder):
            P = np.zeros((1, model.encoder.width), model.dtype)
            embed = model.encoder.embedder(model.weights[SIDES[0]])
            unit_rows(embed(P, np.zeros(1, np.int32), np.array([0, 1]), Workers(1)))

    return compiling_ahead(embed_a_word, note, meanwhile)
