"""Files of titles, read into `Texts`, however many there are."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from sentemb.data.judged_set import repeated_id, text_lines
from sentemb.errors import SentembError
from sentemb.search.places import Places
from sentemb.search.texts import Texts, TextsBuilder
from sentemb.system.paths import AnyPath

# Lines in memory as str.
_PORTION = 8192


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
    lines, n_lines = _until_fault(path, faults), 0
    while some := list(islice(lines, _PORTION)):
        ids.append([id for id, _ in some])
        titles.append([title for _, title in some])
        n_lines += len(some)
        if on_progress is not None:
            on_progress(n_lines)
    found = ids.texts()
    repeated = Places(found).repeated()
    if repeated is not None:
        before, place = repeated
        raise repeated_id(path, found[place], before + 1, place + 1)
    if faults:  # a repeated id is in an earlier line
        raise faults[0]
    return found, titles.texts()


def _until_fault(path: AnyPath, faults: list[SentembError]) -> Iterator[tuple[str, str]]:
    """Ids and titles up to the first line that is wrong; its error is appended to ``faults``."""
    try:
        for _, id, title in text_lines(path):
            yield id, title
    except SentembError as error:
        faults.append(error)
