"""The titles of an index: embedded, and changed as a whole when titles are added or removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import brief, plain
from sentemb.data.lines import is_id
from sentemb.data.texts import Texts
from sentemb.distributed.cluster import Cluster
from sentemb.distributed.encoding import encoded, portions_of
from sentemb.errors import SentembError
from sentemb.face import keeping_text_warnings
from sentemb.models.int8_rows import Int8Rows
from sentemb.models.similarity import unit_rows
from sentemb.search.index_files import DTYPES
from sentemb.search.places import Places
from sentemb.search.snapshot import Contents, Vectors
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.growing import Growing
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.checks import as_texts

# Ids and vectors that are checked or copied at a time.
_PORTION = 8192


def checked(
    titles: Sequence[str], ids: Sequence[str], scratch: AnyPath | None
) -> tuple[Texts, Texts]:
    """Titles and ids as they are stored.

    Parameters
    ----------
    titles, ids : list of str
        As for `sentemb.search.index.Index.build`.
    scratch : path or None
        See `sentemb.data.texts.TextsBuilder`.

    Raises
    ------
    SentembError
        For an id or a title that could not be stored, or another number of ids than of titles.
    """
    if isinstance(titles, Texts) and isinstance(ids, Texts) and len(titles) == len(ids):
        for first in range(0, len(ids), _PORTION):
            some = slice(first, first + _PORTION)
            _check_ids(ids[some], first)
            _check_lines(titles[some], ids[some], first)
        _check_each_once(ids)
        return titles, ids
    texts, named = as_texts(titles), as_texts(ids)
    if len(texts) != len(named):
        raise SentembError(f"{len(texts):,} titles and {len(named):,} ids; give one id per title")
    _check_ids(named)
    _check_each_once(named)
    _check_lines(texts, named)
    return Texts.of(texts, scratch), Texts.of(named, scratch)


def embedded(
    encoder: SentenceEncoder,
    titles: Texts,
    ids: Texts,
    dtype: str,
    on_progress: Callable[[int, int], None] | None,
    workers: Workers,
    scratch: AnyPath | None,
    cluster: Cluster | None = None,
) -> Contents:
    """Titles and ids with the vectors of the titles.

    Parameters
    ----------
    encoder : SentenceEncoder
        Embeds titles.
    titles, ids : Texts
        From `checked`.
    dtype : str
        One of `DTYPES`.
    on_progress : function, optional
        Called with the numbers of titles that are done and of all.
    workers : Workers
        The threads.
    scratch : path or None
        A folder on the disk that vectors are kept on if there are many; see
        `sentemb.system.growing.Growing`.
    cluster : Cluster, optional
        Embeds the titles in place of this process.
    """
    n, dim = len(titles), encoder.dim
    kept, scales = Growing(scratch), Growing(scratch)
    empty = [np.empty(0, np.int64)]
    end = 0
    with keeping_text_warnings():  # such titles are counted
        for rows in encoded(encoder, portions_of(titles), "document", cluster=cluster):
            is_empty, coded = np.empty(len(rows), np.bool_), _room(len(rows), dim, dtype)
            workers.over(len(rows), _store, coded, is_empty, rows)
            empty.append(end + np.flatnonzero(is_empty))
            if isinstance(coded, Int8Rows):
                kept.append(coded.codes)
                scales.append(coded.scales)
            else:
                kept.append(coded)
            end += len(rows)
            if on_progress is not None:
                on_progress(end, n)
    array = kept.array(DTYPES[dtype], n, dim)
    vectors = Int8Rows(array, scales.array(np.float32)) if dtype == "int8" else array
    return Contents(ids, titles, vectors, np.concatenate(empty))


def _room(n: int, dim: int, dtype: str) -> Vectors:
    if dtype == "int8":
        return Int8Rows(np.empty((n, dim), np.int8), np.empty(n, np.float32))
    return np.empty((n, dim), dtype)


def _store(
    vectors: Vectors, empty: NDArray[np.bool_], rows: np.ndarray, first: int, end: int
) -> None:
    """Store ``rows[first:end]`` at unit length, and mark those of zeros."""
    units = unit_rows(rows[first:end])
    empty[first:end] = ~units.any(axis=1)
    if isinstance(vectors, Int8Rows):
        coded = Int8Rows.of(units)
        vectors.codes[first:end], vectors.scales[first:end] = coded.codes, coded.scales
    else:
        vectors[first:end] = units


def _check_ids(ids: list[str], start: int = 0) -> None:
    """Raise a `SentembError` for an id that is not allowed; the first is number ``start``."""
    # All at once takes a tenth of the time of one by one, which then finds the place.
    if "\n".join(ids).split() == ids and is_id("".join(ids) or "none"):
        return
    for place, id in enumerate(ids, start):
        if not is_id(id):
            raise SentembError(
                f"id {place} is {brief(id)}; give ids that are not empty and have no white space"
            )


def _check_each_once(ids: Sequence[str]) -> None:
    found = Places(ids).repeated()
    if found is not None:
        raise SentembError(
            f"titles {found[0]:,} and {found[1]:,} have the same id, {plain(ids[found[0]])}; give "
            "each its own"
        )


def _are_lines(texts: list[str]) -> bool:
    """Whether no text has a line end or a NUL character, and all are valid Unicode."""
    joined = "\n".join([*texts, ""])
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return joined.count("\n") == len(texts) and "\0" not in joined


def _check_lines(titles: list[str], ids: list[str], start: int = 0) -> None:
    """Raise a `SentembError` for a text that is not one line; the first is number ``start``."""
    if _are_lines(titles) and _are_lines(ids):
        return
    for place, (id, title) in enumerate(zip(ids, titles, strict=True), start):
        if "\n" in title or "\0" in title:
            raise SentembError(
                f"title {place:,} has a line end or a NUL character: {brief(title)}; replace it by "
                "a space"
            )
        try:
            (id + title).encode()
        except UnicodeEncodeError:
            raise SentembError(
                f"title {place:,} or its id is not valid Unicode: {brief(title)}; correct it"
            ) from None


def extended(old: Contents, more: Contents, scratch: AnyPath | None) -> Contents:
    """The titles of ``old``, then those of ``more``; ``scratch`` as for `embedded`."""
    vectors: Vectors
    if isinstance(old.vectors, Int8Rows) and isinstance(more.vectors, Int8Rows):
        vectors = Int8Rows(
            _taken([old.vectors.codes, more.vectors.codes], scratch),
            _taken([old.vectors.scales, more.vectors.scales], scratch),
        )
    else:
        assert not isinstance(old.vectors, Int8Rows) and not isinstance(more.vectors, Int8Rows)
        vectors = _taken([old.vectors, more.vectors], scratch)
    return Contents(
        old.ids.joined(more.ids, scratch),
        old.titles.joined(more.titles, scratch),
        vectors,
        np.concatenate([old.empty, more.empty + len(old.ids)]),
    )


def of_kept(old: Contents, kept: NDArray[np.bool_], scratch: AnyPath | None) -> Contents:
    """The titles where ``kept``, (n,), is true; those behind the others move up.

    ``scratch`` is as for `embedded`.
    """
    places = np.flatnonzero(kept)
    vectors: Vectors
    if isinstance(old.vectors, Int8Rows):
        vectors = Int8Rows(
            _taken([old.vectors.codes], scratch, kept), _taken([old.vectors.scales], scratch, kept)
        )
    else:
        vectors = _taken([old.vectors], scratch, kept)
    empty = np.searchsorted(places, old.empty[kept[old.empty]])
    ids, titles = old.ids.take(kept, scratch), old.titles.take(kept, scratch)
    return Contents(ids, titles, vectors, empty)


def _taken(
    arrays: Sequence[np.ndarray], scratch: AnyPath | None, kept: NDArray[np.bool_] | None = None
) -> np.ndarray:
    """The rows of some arrays, one array after the other; of one alone those that are kept."""
    found, n = Growing(scratch), 0
    for array in arrays:
        for first in range(0, len(array), _PORTION):
            rows = array[first : first + _PORTION]
            if kept is not None:
                rows = rows[kept[first : first + _PORTION]]
            found.append(rows)
            n += len(rows)
    return found.array(arrays[0].dtype, n, *arrays[0].shape[1:])
