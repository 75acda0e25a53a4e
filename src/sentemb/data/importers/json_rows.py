"""Rows of JSON lines: one object on each line."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from sentemb.data.importers.columns import Row, TableFile, field_of, listed, remedy, same_names
from sentemb.errors import SentembError
from sentemb.system.bounds import brief


def json_rows(table: TableFile, lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """The rows in ``lines``; a `SentembError` if none of them has one of the columns."""
    steps = [(column, column.split(".")) for column in table.columns]
    missing, names = set(table.columns) - set(table.optional), None
    for number, line in lines:
        if not line or line.isspace():
            continue
        where = f"{table.name}:{number}"
        record = _record(table, line, where)
        if record is None:
            continue
        if names is None:
            names = list(record)
            table.on_names(names)
            same = (same_names(column, names) for column in table.columns)
            steps = [
                (step[0], step[0].split(".")) if len(step) == 1 else known
                for step, known in zip(same, steps, strict=True)
            ]
        values = [field_of(record, *step) for step in steps]
        if missing:
            pairs = zip(table.columns, values, strict=True)
            missing.difference_update(column for column, value in pairs if value is not None)
        texts = table.texts(values, where)
        if texts is not None:
            yield number, texts
    if missing and names is not None:
        column = next(column for column in table.columns if column in missing)
        raise SentembError(
            f"{table.name}: no line has {brief(column)}; the first line has {listed(names)}; "
            f"{remedy(column, names)}"
        )


def _record(table: TableFile, line: str, where: str) -> dict[str, Any] | None:
    """The object on a line; None, and a bad row, if it is not one."""
    reason = "not an object"
    try:
        record = json.loads(line.removeprefix("\ufeff"))
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
