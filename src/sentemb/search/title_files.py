"""Files of titles and of other texts, read into `Texts`, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import TypeVar

from sentemb.data.judged_set import repeated_id, text_lines
from sentemb.data.lines import clean_lines
from sentemb.data.text_array import Texts, TextsBuilder
from sentemb.errors import SentembError
from sentemb.search.id_slots import Places
from sentemb.system.paths import AnyPath

# Lines in memory as str.
_PORTION = 8192

_T = TypeVar("_T")


def read_titles(
    path: AnyPath,
    scratch: AnyPath | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> tuple[Texts, Texts]:
    """Ids and titles of a file, as `sentemb.data.judged_set.read_texts` reads it, in less memory.

    The file is read once, so it may be standard input, and what happens to it later changes
    nothing. Memory is 12 bytes a line, and the text itself if ``scratch`` is not given.

    Parameters
    ----------
    path : path
        Lines ``id<TAB>title``.
    scratch : path, optional
        A folder on the disk that the text is kept on; see `sentemb.system.growing.Growing`.
    on_progress : function, optional
        Called with the number of lines that were read.

    Raises
    ------
    SentembError
        As `read_texts`, and if the disk is full.
    """
    ids, titles = TextsBuilder(scratch), TextsBuilder(scratch)
    faults: list[SentembError] = []
    for some in _portions(_until_fault(path, faults), on_progress):
        ids.append([id for id, _ in some])
        titles.append([title for _, title in some])
    found = ids.texts()
    repeated = Places(found).repeated()
    if repeated is not None:
        before, place = repeated
        raise repeated_id(path, found[place], before + 1, place + 1)
    if faults:  # a repeated id is in an earlier line
        raise faults[0]
    return found, titles.texts()


def read_lines(
    path: AnyPath,
    scratch: AnyPath | None = None,
    on_progress: Callable[[int], None] | None = None,
) -> Texts:
    """The lines of a text file, as `sentemb.data.lines.clean_lines` reads it, in less memory.

    The parameters are those of `read_titles`.
    """
    lines = TextsBuilder(scratch)
    for some in _portions((line for _, line in clean_lines(path)), on_progress):
        lines.append(some)
    return lines.texts()


def _portions(lines: Iterator[_T], on_progress: Callable[[int], None] | None) -> Iterator[list[_T]]:
    n_lines = 0
    while some := list(islice(lines, _PORTION)):
        yield some
        n_lines += len(some)
        if on_progress is not None:
            on_progress(n_lines)


def _until_fault(path: AnyPath, faults: list[SentembError]) -> Iterator[tuple[str, str]]:
    """Ids and titles up to the first line that is wrong; its error is appended to ``faults``."""
    try:
        for _, id, title in text_lines(path):
            yield id, title
    except SentembError as error:
        faults.append(error)
