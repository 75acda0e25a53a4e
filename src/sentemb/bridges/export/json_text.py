"""Titles and vectors as JSON."""

import json
from collections.abc import Iterator

from sentemb.bridges.export.titles import Portion

# Significant digits of a number. Elasticsearch wants squared lengths within 1e-4 of 1; rounding
# changes them by 1e-6 at most.
_DIGITS = 7


def as_json(value: object) -> str:
    """``value`` as JSON on one line; letters of all scripts are kept."""
    return json.dumps(value, ensure_ascii=False)


def vectors_as_json(portion: Portion) -> Iterator[str | None]:
    """The vector of each title as a JSON array; None if it is zero."""
    form = "[" + ",".join([f"%.{_DIGITS}g"] * portion.vectors.shape[1]) + "]"
    for row, known in zip(portion.vectors.tolist(), portion.known.tolist(), strict=True):
        yield form % tuple(row) if known else None
