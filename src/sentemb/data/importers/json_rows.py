"""Rows of JSON: one object on each line, or a list of objects."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from typing import Any

from sentemb.data.column_names import Meaning
from sentemb.data.importers.columns import (
    Row,
    TableFile,
    Wanted,
    field_of,
    listed,
    remedy,
    same_names,
    usual_name,
)
from sentemb.errors import SentembError
from sentemb.system.bounds import brief

# Records whose keys are the columns: the first may lack some.
_LOOKED_AT = 1_000
# How deep the rows of a whole object may be, as in {"hits": {"hits": [...]}}.
_DEEPEST = 3
_BLANKS = " \t\r\n\ufeff"
_GAP = re.compile(r"[\s,]*")
# Characters of a value that is not on one line.
_MOST_WHOLE = 1 << 28


def json_rows(table: TableFile, lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """The rows in ``lines``; a `SentembError` if none of them has one of the columns."""
    missing, records = set(table.columns) - set(table.optional), _records(table, lines)
    first = list(islice(records, _LOOKED_AT))
    if not first:
        return
    keys = list(dict.fromkeys(key for _, record in first for key in record))
    names = _names_in_all([record for _, record in first])
    table.on_names(names)
    steps = [_steps(column, keys, names, table.name) for column in table.columns]
    for number, record in chain(first, records):
        where = f"{table.name}:{number}"
        values = [field_of(record, *step) for step in steps]
        if missing:
            pairs = zip(table.columns, values, strict=True)
            missing.difference_update(column for column, value in pairs if value is not None)
        texts = table.texts(values, where)
        if texts is not None:
            yield number, texts
    if missing:
        lacking = next(column for column in table.columns if column in missing)
        column = lacking.what if isinstance(lacking, Meaning) else lacking
        raise SentembError(
            f"{table.name}: no line has {brief(column)}; the first lines have {listed(names)}; "
            f"{remedy(column, names)}"
        )


def names_in(record: dict[str, Any]) -> list[str]:
    """The columns of a record; those of an object in it, or of a list of them, as ``a.b``."""
    names = []
    for name, value in record.items():
        objects = value if isinstance(value, list) else [value]
        if objects and all(isinstance(each, dict) for each in objects):
            inner = dict.fromkeys(below for each in objects for below in names_in(each))
            names += [f"{name}.{below}" for below in inner]
        else:
            names.append(name)
    return names


def _names_in_all(records: Iterable[dict[str, Any]]) -> list[str]:
    """The columns of records, of which some may lack an object that others have."""
    names = dict.fromkeys(name for record in records for name in names_in(record))
    objects = {name[:at] for name in names for at, letter in enumerate(name) if letter == "."}
    return [name for name in names if name not in objects]


def _steps(column: Wanted, keys: list[str], names: list[str], name: str) -> tuple[str, list[str]]:
    """A column, and the path to it."""
    if isinstance(column, Meaning):
        column = usual_name(column, names, name)
    same = same_names(column, keys) or same_names(column, names)
    if len(same) == 1:
        return same[0], [same[0]] if same[0] in keys else same[0].split(".")
    return column, column.split(".")


def _records(
    table: TableFile, lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects, with the numbers of their lines."""
    filled: Iterator[tuple[int, str]]
    filled = ((number, line) for number, line in lines if line.strip(_BLANKS))
    first = next(filled, None)
    if first is None:
        return
    if table.how.format != "jsonl":
        if first[1].lstrip(_BLANKS).startswith("["):
            yield from _items(table, "".join(line for _, line in _few(table, first, filled)))
            return
        if _continues(first[1]):
            whole = list(_few(table, first, filled))
            _check_whole(table.name, "".join(line for _, line in whole))
            first, *rest = whole
            filled = chain(rest, filled)
    following = next(filled, None)
    for number, line in chain([first], [] if following is None else [following], filled):
        record = _record(table, line, f"{table.name}:{number}")
        if record is None:
            continue
        if following is None and not _has(record, table) and (path := _rows_path(record)):
            raise _one_object(table.name, path)
        yield number, record


def _few(
    table: TableFile, first: tuple[int, str], rest: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, str]]:
    """The lines of a value that is read as a whole; a `SentembError` if it is too long for that."""
    size = 0
    for number, line in chain([first], rest):
        size += len(line)
        if size > _MOST_WHOLE:
            raise SentembError(
                f"{table.name}: JSON of more than {_MOST_WHOLE:,} characters in one value; write "
                "one object on each line (jq -c '.[]')"
            )
        yield number, line


def _has(record: dict[str, Any], table: TableFile) -> bool:
    """Whether a record has one of the columns."""
    names = [*record, *names_in(record)]
    return any(
        column.column(names) if isinstance(column, Meaning) else same_names(column, names)
        for column in table.columns
    )


def _continues(line: str) -> bool:
    """Whether an object that begins on a line continues after it."""
    bare = line.strip(_BLANKS)
    try:
        json.loads(bare)
    except json.JSONDecodeError as error:
        return error.pos >= len(bare)
    except (ValueError, RecursionError):
        pass
    return False


def _check_whole(name: str, text: str) -> None:
    """Refuse a text that is one object on several lines."""
    try:
        whole = json.loads(text.strip(_BLANKS))
    except (ValueError, RecursionError):
        return
    raise _one_object(name, _rows_path(whole))


def _one_object(name: str, path: str) -> SentembError:
    if not path:
        return SentembError(f"{name}: is one object of JSON and no table; write one on each line")
    return SentembError(
        f"{name}: is one object of JSON with its rows in {path}, as the answer of an API; write "
        f"them one on each line: jq -c '.{path}[]'"
    )


def _rows_path(record: Any) -> str:
    """The path of the longest list of objects in an object; empty without one."""
    lists: list[tuple[int, str]] = []

    def look(value: dict[str, Any], path: str, depth: int) -> None:
        for name, inner in value.items():
            below = f"{path}.{name}" if path else name
            if isinstance(inner, list) and inner and all(isinstance(row, dict) for row in inner):
                lists.append((len(inner), below))
            elif isinstance(inner, dict) and depth < _DEEPEST:
                look(inner, below, depth + 1)

    if isinstance(record, dict):
        look(record, "", 1)
    return max(lists, key=lambda rows: rows[0])[1] if lists else ""


def _items(table: TableFile, text: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a list, each with the number of the line on which it begins."""
    read = json.JSONDecoder().raw_decode
    before, number, at = 0, 1, text.index("[") + 1
    while True:
        at = _GAP.match(text, at).end()  # type: ignore[union-attr]  # matches anywhere
        number, before = number + text.count("\n", before, at), at
        where = f"{table.name}:{number}"
        if text[at : at + 1] == "]":
            at = _GAP.match(text, at + 1).end()  # type: ignore[union-attr]
            if text[at : at + 1] == "[":  # another list
                at += 1
                continue
            if text[at:].strip(_BLANKS):
                table.bad(where, "something follows the list of objects; give one list")
            return
        try:
            record, at = read(text, at)
        except (ValueError, RecursionError):
            table.bad(where, "not JSON; write one object on each line (jq -c '.[]')")
            return
        if isinstance(record, dict):
            yield number, record
        else:
            table.bad(where, "not an object of JSON; give a list of objects")


def _record(table: TableFile, line: str, where: str) -> dict[str, Any] | None:
    """The object on a line; None, and a bad row, if it is not one."""
    reason = "not an object"
    try:
        record = json.loads(line.removeprefix("\ufeff").rstrip(", \t\r\n"))
        if isinstance(record, dict):
            return record
    except json.JSONDecodeError as error:
        reason = error.msg
    except RecursionError:
        reason = "nested too deeply"
    except ValueError:
        reason = "a number of thousands of digits"
    table.bad(where, f"not JSON ({reason}); write one object on each line")
    return None
