"""Products in memory: a table with the columns title, id and fields, or a dict of id to title."""

from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple

from sentemb.data.column_names import ID, TITLE, Meaning
from sentemb.data.frames import columns_of, is_frame, is_missing, listed
from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer


class Products(NamedTuple):
    """Titles with ids and fields, None where there are none."""

    titles: Sequence[str]
    ids: Sequence[str] | None = None
    fields: Mapping[str, Sequence[Any]] | None = None


def products_of(given: Any) -> Products:
    """The products in a table of pandas, Polars or pyarrow, a dict, or a sequence of titles.

    Title and id are the columns that are named so, in any case, or else those whose names are usual
    for them, such as name and sku; the index of pandas counts too. The others are fields, in which
    a list is one text. A list of dicts is a table, and a dict of texts has a title for each id.
    Anything else is taken as the titles.

    Raises
    ------
    SentembError
        For a table without a column of titles, or an id that is missing or neither text nor
        integer.
    """
    if isinstance(given, Mapping) and all(isinstance(title, str) for title in given.values()):
        return Products(list(given.values()), [_id(id, f"id {id!r}") for id in given])
    given = _table_of_dicts(given)
    if not is_frame(given):
        return Products(given)
    names = columns_of(given)
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise SentembError(f"{names.count(twice)} columns are named {twice}; rename all but one")
    title_name = _column(TITLE, names)
    if title_name is None:
        raise SentembError(
            f"the table has no column title; its columns are {', '.join(map(str, names[:20]))}: "
            "rename one"
        )
    columns = {name: listed(given[name]) for name in names}
    titles = columns.pop(title_name)
    id_name = _column(ID, [name for name in names if name != title_name])
    ids = _index_of(given) if id_name is None else columns.pop(id_name)
    if ids is not None:
        ids = [_id(id, f"row {row}: the id") for row, id in enumerate(ids)]
    fields = {str(name): [_field(value) for value in values] for name, values in columns.items()}
    return Products(titles, ids, fields or None)


def _column(meaning: Meaning, names: Sequence[Any]) -> Any:
    """The column with the very name of a meaning, else the one that usually has it, or None."""
    texts = [name for name in names if isinstance(name, str)]
    exact = next((name for name in texts if name.strip().lower() == meaning.what), None)
    return exact or meaning.column(texts)


def _table_of_dicts(given: Any) -> Any:
    """A list of dicts as a table; anything else as it is."""
    if not isinstance(given, list) or not given or not all(isinstance(r, Mapping) for r in given):
        return given
    names = dict.fromkeys(name for record in given for name in record)
    return {name: [record.get(name) for record in given] for name in names}


def _index_of(frame: Any) -> list[Any] | None:
    """The index of a table of pandas if its name is usual for an id; else None."""
    index = getattr(frame, "index", None)
    name = getattr(index, "name", None)
    return listed(index) if isinstance(name, str) and ID.has(name) else None


def _field(value: Any) -> Any:
    """A field: None where it is missing, a list and a date as text, a decimal as a number."""
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return ", ".join(str(each) for each in value if not is_missing(each)) or None
    if is_missing(value):
        return None
    if isinstance(value, date):
        return value.isoformat().removesuffix("T00:00:00")
    return float(value) if isinstance(value, Decimal) else value


def _id(value: Any, what: str) -> str:
    """An id as a text: tables often have integers, and pandas has floats where one is missing."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) or is_integer(value):
        return str(value)
    raise SentembError(f"{what} is {brief(value)}; give texts or integers, and drop rows without")
