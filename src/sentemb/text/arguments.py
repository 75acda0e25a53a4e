"""Texts as users give them, and pairs of them, checked."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sentemb.errors import SentembError


def as_texts(texts: Iterable[str]) -> list[str]:
    """``texts`` as a list of str; one str, bytes, a set or a table is an error."""
    if type(texts) is list:  # of which the checks below find nothing to say
        checked = texts.copy()
    else:
        remedy = _remedy(texts)
        try:
            if remedy or getattr(texts, "ndim", 1) != 1:
                raise TypeError
            checked = list(texts)
        except TypeError:
            message = f"give a list of texts, not {type(texts).__name__}{remedy}"
            raise SentembError(message) from None
    if not set(map(type, checked)) <= {str}:
        for position, text in enumerate(checked):
            if not isinstance(text, str):
                raise _not_a_text(position, text)
    return checked


def as_text(text: str) -> str:
    """``text`` if it is a str."""
    if not isinstance(text, str):
        raise SentembError(f"a text must be str, not {type(text).__name__}")
    return text


def _remedy(texts: object) -> str:
    """Advice for an iterable that is not a list of texts."""
    if isinstance(texts, str | bytes):
        return "; put it in a list: [text]"
    if isinstance(texts, Mapping):
        return "; give its values: list(texts.values())"
    if isinstance(texts, set | frozenset):
        return ", which has no order; give sorted(texts)"
    # Tables of pandas, polars and pyarrow would be read as the names or the arrays of the columns.
    return "; give one column of it, such as table['title']" if hasattr(texts, "columns") else ""


def _not_a_text(position: int, text: object) -> SentembError:
    """The error for ``texts[position]``, which is not a str."""
    is_nan = isinstance(text, float | np.floating) and np.isnan(text)
    if text is None or is_nan or type(text).__name__ in ("NAType", "NaTType"):
        shown = "NaN" if is_nan else str(text)
        remedy = "fill or drop it, as with series.fillna('')"
    else:
        shown, remedy = type(text).__name__, "convert it with str()"
    return SentembError(f"text {position}, counted from 0, is {shown}, not str; {remedy}")


def as_pairs(
    query_index: ArrayLike, title_index: ArrayLike, n_queries: int, n_titles: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The query's and the title's index of each pair of ``score_pairs`` as arrays, (k,) each.

    Raises `SentembError` if they are not integers, not within the texts, or not equally many.
    """
    queries = _as_index("query_index", query_index, n_queries)
    titles = _as_index("title_index", title_index, n_titles)
    if queries.size != titles.size:
        raise SentembError(
            f"query_index has {queries.size:,} entries and title_index {titles.size:,}; give one "
            "of each per pair"
        )
    return queries, titles


def _as_index(name: str, index: ArrayLike, size: int) -> NDArray[np.int64]:
    """``index`` as (k,) int64, each at least 0 and below ``size``."""
    try:
        array = np.asarray(index)
    except (TypeError, ValueError):  # rows of different lengths
        array = np.empty((0, 0))
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise SentembError(f"{name} must be a list of integers, one per pair")
    wrong = array[(array < 0) | (array >= size)]
    if wrong.size:
        raise SentembError(f"{name} has {wrong[0]}, and there are {size:,} texts, counted from 0")
    return array.astype(np.int64)
