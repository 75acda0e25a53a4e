"""Titles and ids as an index stores them, checked, and the vectors of titles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from sentemb.data.lines import is_id
from sentemb.data.text_array import TextArray
from sentemb.errors import SentembError
from sentemb.models.cluster_encoding import encoded, portions_of
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.rows_of_texts import TextRows
from sentemb.search.index_description import DTYPES
from sentemb.search.ranking.parts import stored_rows
from sentemb.search.segment import Vectors
from sentemb.system.bounds import brief, plain
from sentemb.system.cluster import Cluster
from sentemb.system.growing import Growing
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts

# Ids and vectors that are checked or copied at a time.
_PORTION = 8192


def checked(
    titles: Sequence[str], ids: Sequence[str], scratch: AnyPath | None
) -> tuple[TextArray, TextArray]:
    """Titles and ids as they are stored.

    They are given as for `sentemb.search.index.Index.build`; for ``scratch`` see
    `sentemb.data.text_array.TextsBuilder`. Raises `SentembError` for an id or a title that could
    not be stored, for an id that is repeated, or for another number of ids than of titles.
    """
    if isinstance(titles, TextArray) and isinstance(ids, TextArray) and len(titles) == len(ids):
        for first in range(0, len(ids), _PORTION):
            portion = slice(first, first + _PORTION)
            _check_ids(ids[portion], first)
            _check_lines(titles[portion], ids[portion], first)
        _check_each_once(ids)
        return titles, ids
    title_list, id_list = as_texts(titles), as_texts(ids)
    if len(title_list) != len(id_list):
        raise SentembError(
            f"{len(title_list):,} titles and {len(id_list):,} ids; give one id per title"
        )
    _check_ids(id_list)
    _check_each_once(id_list)
    _check_lines(title_list, id_list)
    return TextArray.of(title_list, scratch), TextArray.of(id_list, scratch)


def embedded(
    encoder: SentenceEncoder,
    titles: TextArray,
    dtype: str,
    on_progress: Callable[[int, int], None] | None,
    workers: Workers,
    scratch: AnyPath | None,
    cluster: Cluster | None = None,
) -> Vectors:
    """The unit vectors of titles from `checked`; zero for a title with no known words.

    ``dtype`` is one of `DTYPES`. ``scratch`` is a folder on the disk that many vectors are kept on;
    see `sentemb.system.growing.Growing`. With a ``cluster`` its workers embed the titles, otherwise
    this process. ``on_progress`` is called with the numbers of titles that are done and of all.
    """
    n, dim = len(titles), encoder.dim
    codes, scales = Growing(scratch), Growing(scratch)
    end = 0
    for rows in encoded(encoder, portions_of(titles), "document", known_only=True, cluster=cluster):
        coded = _room(len(rows), dim, dtype)
        workers.over(len(rows), _store, coded, rows)
        if isinstance(coded, Int8Rows):
            codes.append(coded.codes)
            scales.append(coded.scales)
        else:
            codes.append(coded)
        end += len(rows)
        if on_progress is not None:
            on_progress(end, n)
    vectors = codes.array(DTYPES[dtype], n, dim)
    return Int8Rows(vectors, scales.array(np.float32)) if dtype == "int8" else vectors


def _room(n: int, dim: int, dtype: str) -> Vectors:
    if dtype == "int8":
        return Int8Rows(np.empty((n, dim), np.int8), np.empty(n, np.float32))
    return np.empty((n, dim), dtype)


def _store(vectors: Vectors, rows: np.ndarray, first: int, end: int) -> None:
    dtype = "int8" if isinstance(vectors, Int8Rows) else vectors.dtype.name
    stored = stored_rows(rows[first:end], dtype)
    if isinstance(vectors, Int8Rows):
        assert isinstance(stored, Int8Rows)
        vectors.codes[first:end], vectors.scales[first:end] = stored.codes, stored.scales
    else:
        vectors[first:end] = stored


def _check_ids(ids: list[str], start: int = 0) -> None:
    """Raise a `SentembError` for an id that is not allowed; the first is number ``start``."""
    # All at once takes a tenth of the time of one by one, which then finds the number.
    if "\n".join(ids).split() == ids and is_id("".join(ids) or "none"):
        return
    for number, id in enumerate(ids, start):
        if not is_id(id):
            raise SentembError(
                f"id {number} is {brief(id)}; give ids that are not empty and have no white space"
            )


def _check_each_once(ids: Sequence[str]) -> None:
    rows = TextRows(ids).repeated
    if rows is not None:
        raise SentembError(
            f"titles {rows[0]:,} and {rows[1]:,} have the same id, {plain(ids[rows[0]])}; give "
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
    for number, (id, title) in enumerate(zip(ids, titles, strict=True), start):
        if "\n" in title or "\0" in title:
            raise SentembError(
                f"title {number:,} has a line end or a NUL character: {brief(title)}; replace it "
                "by a space"
            )
        try:
            (id + title).encode()
        except UnicodeEncodeError:
            raise SentembError(
                f"title {number:,} or its id is not valid Unicode: {brief(title)}; correct it"
            ) from None
