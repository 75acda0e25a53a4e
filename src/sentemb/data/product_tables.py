"""Products in memory: a table with the columns title, id and fields, or a dict of id to title."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from sentemb.data.frames import columns_of, is_frame, is_missing, listed
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer

_ID, _TITLE = "id", "title"


class Products(NamedTuple):
    """Titles with ids and fields, None where there are none."""

    titles: Sequence[str]
    ids: Sequence[str] | None = None
    fields: Mapping[str, Sequence[Any]] | None = None


def products_of(given: Any) -> Products:
    """The products in a table of pandas, Polars or pyarrow, a dict, or a sequence of titles.

    The columns title and id may be written in any case; the others are fields. A dict of texts has
    a title for each id. Anything else is taken as the titles.

    Raises
    ------
    SentembError
        For a table without a column title, or an id that is missing or neither text nor integer.
    """
    if isinstance(given, Mapping) and all(isinstance(title, str) for title in given.values()):
        return Products(list(given.values()), [_id(id, f"id {id!r}") for id in given])
    if not is_frame(given):
        return Products(given)
    names = columns_of(given)
    by_meaning = {str(name).lower(): name for name in names}
    if _TITLE not in by_meaning:
        raise SentembError(
            f"the table has no column title; its columns are {', '.join(map(str, names[:20]))}: "
            "rename one"
        )
    columns = {name: listed(given[name]) for name in names}
    titles = columns.pop(by_meaning[_TITLE])
    ids = columns.pop(by_meaning[_ID]) if _ID in by_meaning else None
    if ids is not None:
        ids = [_id(id, f"row {row}: the id") for row, id in enumerate(ids)]
    fields = {
        str(name): [None if is_missing(value) else value for value in values]
        for name, values in columns.items()
    }
    return Products(titles, ids, fields or None)


def _id(value: Any, what: str) -> str:
    """An id as a text: tables often have integers, and pandas has floats where one is missing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) or is_integer(value):
        return str(value)
    raise SentembError(f"{what} is {brief(value)}; give texts or integers, and drop rows without")
