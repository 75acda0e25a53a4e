"""The titles of an index: embedded, and changed as a whole when titles are added or removed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import brief, plain
from sentemb.data.lines import is_id
from sentemb.distributed.cluster import Cluster
from sentemb.distributed.encoding import encoded, portions_of
from sentemb.errors import SentembError
from sentemb.models.int8_rows import Int8Rows
from sentemb.models.similarity import unit_rows
from sentemb.search.index_files import Contents, Vectors
from sentemb.search.texts import Texts
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Workers
from sentemb.text.checks import as_texts


def embedded(
    encoder: SentenceEncoder,
    titles: Sequence[str],
    ids: Sequence[str],
    dtype: str,
    on_progress: Callable[[int, int], None] | None,
    workers: Workers,
    cluster: Cluster | None = None,
) -> Contents:
    """Titles and ids, checked, with the vectors of the titles.

    Parameters
    ----------
    encoder : SentenceEncoder
        Embeds titles.
    titles, ids : list of str
        As for `sentemb.search.index.Index.build`.
    dtype : str
        One of `DTYPES`.
    on_progress : function, optional
        Called with the numbers of titles that are done and of all.
    workers : Workers
        The threads.
    cluster : Cluster, optional
        Embeds the titles in place of this process.

    Raises
    ------
    SentembError
        For an id or a title that could not be stored, or another number of ids than of titles.
    """
    texts, named = as_texts(titles), as_texts(ids)
    if len(texts) != len(named):
        raise SentembError(f"{len(texts):,} titles and {len(named):,} ids; give one id per title")
    _check(texts, named)
    kept = Texts.of(named), Texts.of(texts)
    n, dim = len(texts), encoder.dim
    vectors: Vectors
    if dtype == "int8":
        vectors = Int8Rows(np.empty((n, dim), np.int8), np.empty(n, np.float32))
    else:
        vectors = np.empty((n, dim), dtype)
    empty = np.empty(n, np.bool_)
    end = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # such titles are counted
        for rows in encoded(encoder, portions_of(texts), "document", cluster=cluster):
            workers.over(len(rows), _store, vectors, empty, rows, end)
            end += len(rows)
            if on_progress is not None:
                on_progress(end, n)
    return Contents(*kept, vectors, np.flatnonzero(empty))


def _store(
    vectors: Vectors,
    empty: NDArray[np.bool_],
    rows: np.ndarray,
    start: int,
    first: int,
    end: int,
) -> None:
    """Store ``rows[first:end]`` at unit length from ``start + first`` on; mark those of zeros."""
    units = unit_rows(rows[first:end])
    some = slice(start + first, start + end)
    empty[some] = ~units.any(axis=1)
    if isinstance(vectors, Int8Rows):
        coded = Int8Rows.of(units)
        vectors.codes[some], vectors.scales[some] = coded.codes, coded.scales
    else:
        vectors[some] = units


def _check(titles: list[str], ids: list[str]) -> None:
    """Raise a `SentembError` for an id or a title that could not be stored."""
    # All at once takes a tenth of the time of one by one, which then finds the place.
    if "\n".join(ids).split() != ids or not is_id("".join(ids) or "none"):
        _check_ids(ids)
    if len(set(ids)) < len(ids):
        place_of: dict[str, int] = {}
        for place, id in enumerate(ids):
            if place_of.setdefault(id, place) != place:
                raise SentembError(
                    f"titles {place_of[id]:,} and {place:,} have the same id, {plain(id)}; give "
                    "each its own"
                )
    if not _are_lines(titles) or not _are_lines(ids):
        _check_lines(titles, ids)


def _are_lines(texts: list[str]) -> bool:
    """Whether no text has a line end or a NUL character, and all are valid Unicode."""
    joined = "\n".join([*texts, ""])
    try:
        joined.encode()
    except UnicodeEncodeError:
        return False
    return joined.count("\n") == len(texts) and "\0" not in joined


def _check_ids(ids: list[str]) -> None:
    for place, id in enumerate(ids):
        if not is_id(id):
            raise SentembError(
                f"id {place} is {brief(id)}; give ids that are not empty and have no white space"
            )


def _check_lines(titles: list[str], ids: list[str]) -> None:
    for place, (id, title) in enumerate(zip(ids, titles, strict=True)):
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


def extended(old: Contents, more: Contents) -> Contents:
    """The titles of ``old``, then those of ``more``."""
    return Contents(
        old.ids.joined(more.ids),
        old.titles.joined(more.titles),
        _joined(old.vectors, more.vectors),
        np.concatenate([old.empty, more.empty + len(old.ids)]),
    )


def of_kept(old: Contents, kept: NDArray[np.bool_]) -> Contents:
    """The titles where ``kept``, (n,), is true; those behind the others move up."""
    places = np.flatnonzero(kept)
    vectors = old.vectors
    rows = vectors.rows(places) if isinstance(vectors, Int8Rows) else vectors[places]
    empty = np.searchsorted(places, old.empty[kept[old.empty]])
    return Contents(old.ids.take(places), old.titles.take(places), rows, empty)


def _joined(old: Vectors, new: Vectors) -> Vectors:
    if isinstance(old, Int8Rows) and isinstance(new, Int8Rows):
        return Int8Rows(
            np.concatenate([old.codes, new.codes]), np.concatenate([old.scales, new.scales])
        )
    return np.concatenate([old, new])
