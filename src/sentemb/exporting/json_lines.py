"""``--to jsonl``: one JSON object per title."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sentemb.exporting.json_text import as_json, vectors_as_json
from sentemb.exporting.places import new_file
from sentemb.exporting.targets import Exported
from sentemb.exporting.titles import Portion, portions

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write lines ``{"id": …, "title": …, "vector": […]}``.

    The vector of a title of which the model knows no word is null.

    Parameters
    ----------
    source : Index
        What to export.
    out : path
        A file, compressed if its name ends in .gz; - is standard output.
    force : bool
        Replace the file.
    on_progress : callable, optional
        Called with how many titles are done and how many there are.
    """
    unknown = 0
    with new_file(out, force) as file:
        for portion in portions(source, on_progress):
            file.write("".join(_lines(portion)).encode())
            unknown += int(np.count_nonzero(~portion.known))
    return Exported([Path(out)], len(source), without_vector=unknown)


def _lines(portion: Portion) -> Iterator[str]:
    """The line of each title."""
    rows = zip(portion.ids, portion.titles, vectors_as_json(portion), strict=True)
    for id, title, vector in rows:
        yield f'{{"id": {as_json(id)}, "title": {as_json(title)}, "vector": {vector or "null"}}}\n'
