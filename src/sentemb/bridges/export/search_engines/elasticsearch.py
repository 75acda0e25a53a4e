"""``--to elasticsearch`` and ``--to opensearch``: mapping, bulk files and a query."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sentemb.bridges.export.destination import new_folder
from sentemb.bridges.export.json_text import as_json, vectors_as_json
from sentemb.bridges.export.search_engines.bulk_files import BulkFiles
from sentemb.bridges.export.search_engines.instructions import (
    README,
    REQUEST,
    SCRIPT,
    readme,
    request,
    script,
)
from sentemb.bridges.export.search_engines.requests import (
    ENGINES,
    Engine,
    has_stemmer,
    mapping,
    query,
)
from sentemb.bridges.export.search_engines.scoring import (
    CLICKED,
    COUNTS,
    FIELDS,
    TITLE,
    VECTOR,
    EngineScoring,
    count_name,
)
from sentemb.bridges.export.targets import Exported
from sentemb.bridges.export.titles import Portion, portions
from sentemb.errors import SentembError
from sentemb.retrieval.clicked_queries import ClickedQueries, ClicksOfTitles
from sentemb.search.ranking.direct_parts import KAPPA
from sentemb.search.ranking.recipe import CLICKS, UNCLICKED
from sentemb.system.bounds import brief, plain, whole

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

MAPPING, QUERY = "mapping.json", "query.json"
PART_BYTES = 50_000_000
_MOST_PART_BYTES = 2**31 - 1
_MOST_ID_BYTES = 512
# A subset of what both engines allow, and of what a shell and an address take as it is.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,254}")


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    engine: str = "elasticsearch",
    name: str = "titles",
    clicked_queries: str = "yes",
    part_bytes: int = PART_BYTES,
) -> Exported:
    """Write a folder to fill a search engine from.

    It holds ``mapping.json``, ``bulk-00001.ndjson.gz`` and so on, ``query.json``, a README.md that
    explains them, a shell script that sends them, and ``request.py``, which fills in a query. A
    title without a word that the model knows has no vector: both engines refuse zeros.

    force : replace an earlier export
    on_progress : called with how many titles are done and how many there are
    engine : "elasticsearch" or "opensearch", whose formats are written
    name : the engine's name for its index
    clicked_queries : "yes" or "no": whether titles get the queries that they were clicked for, if
        the ranking of the index reads their words
    part_bytes : the most bytes of a bulk file before compression

    Raises `SentembError` for a name, a field or an id that the engine refuses, vectors that are too
    long for it, an index without titles, or a title that does not fit into a part.
    """
    target = ENGINES[engine]
    _check(source, target, name)
    whole("part_bytes", part_bytes, 1, _MOST_PART_BYTES)
    recipe, ranker, types = source.recipe, source.ranker, source.fields.types
    reads_clicks = recipe.reads_words or any(map(recipe.weight, (UNCLICKED, CLICKS)))
    clicks = ranker.clicks if reads_clicks else ClickedQueries.nothing()
    of_titles = clicks.of_titles(source.titles, source.ids)
    knows_clicks = bool(of_titles.queries.size)
    scoring = EngineScoring(recipe, knows_clicks, clicked_queries == "yes")
    differences = scoring.differences()
    if recipe.stem is not None and not has_stemmer(recipe.stem):
        differences.append(f"the engines have no stemmer for {recipe.stem}: whole words count")
    first = without = 0
    with new_folder(out, force) as folder:
        with BulkFiles(folder, part_bytes) as bulk:
            for portion in portions(source, on_progress):
                without += int(np.count_nonzero(~portion.known))
                clicked = _clicked(of_titles, clicks.queries, first, scoring)
                first += len(portion.ids)
                for lines in _lines(portion, clicked):
                    bulk.add(lines)
        texts = {
            MAPPING: _indented(mapping(target, source.model.dim, scoring, types)),
            QUERY: _indented(query(target, scoring, bool(types))),
            SCRIPT: script(target, name),
            REQUEST: request(target),
            README: readme(target, name, scoring, differences, len(source), without, types),
        }
        for file, text in texts.items():
            (folder / file).write_bytes(text.encode())
    files = [Path(out) / file for file in (README, SCRIPT, REQUEST, MAPPING, QUERY, *bulk.names)]
    notes = [f"query.json ranks by {scoring}; the index by {recipe}", *differences]
    if scoring.has_clicks:
        held = np.unique(of_titles.queries).size
        notes.append(
            f"{out} holds {held:,} clicked queries of the log as plain text; --clicked-queries no "
            "leaves them out"
        )
    return Exported(files, len(source), without_vector=without, notes=notes)


def _check(index: Index, engine: Engine, name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise SentembError(
            f"name is {brief(name)}; give up to 255 small letters from a to z, digits, ., _ and -, "
            "the first a letter or a digit"
        )
    if index.model.dim > engine.max_dim:
        raise SentembError(
            f"{engine.title} takes vectors of up to {engine.max_dim:,} numbers, and these have "
            f"{index.model.dim:,}; train a smaller model"
        )
    if not len(index):
        raise SentembError("the index has no titles; add some with `sentemb index INDEX --add`")
    fields = index.fields.types
    for field in fields:
        is_below_another = any(field.startswith(f"{parent}.") for parent in fields)
        if is_below_another or not all(map(str.strip, field.split("."))):
            raise SentembError(
                f"a field is named {plain(field)}, and {engine.title} reads a dot as a path; "
                "rename it"
            )
    for id in index.ids:
        if len(id.encode()) > _MOST_ID_BYTES:
            raise SentembError(
                f"the id {brief(id)} has {len(id.encode()):,} bytes; {engine.title} takes up to "
                f"{_MOST_ID_BYTES}"
            )


def _clicked(
    clicks: ClicksOfTitles, queries: Sequence[str], first: int, scoring: EngineScoring
) -> Iterator[dict[str, Any]]:
    """The fields of each title from ``first`` on that hold its clicked queries."""
    for low, high in pairwise(clicks.offsets[first:].tolist()):
        of_title: dict[str, Any] = {}
        if scoring.has_clicks and low < high:
            texts = of_title[CLICKED] = [queries[q] for q in clicks.queries[low:high].tolist()]
            if scoring.clicks:
                counts: Counter[str] = Counter()
                for text, count in zip(texts, clicks.clicks[low:high].tolist(), strict=True):
                    counts[count_name(text)] += count
                of_title[COUNTS] = {name: count / KAPPA for name, count in counts.items()}
        yield of_title


def _lines(portion: Portion, clicked: Iterator[dict[str, Any]]) -> Iterator[bytes]:
    """The action and the source of each title."""
    vectors = vectors_as_json(portion)
    rows = zip(portion.ids, portion.titles, vectors, portion.fields, strict=True)
    for (id, title, vector, fields), of_title in zip(rows, clicked, strict=False):
        source = f'"{TITLE}":{as_json(title)}'
        for name, value in of_title.items():
            source += f',"{name}":{as_json(value)}'
        if given := {name: value for name, value in fields.items() if value is not None}:
            source += f',"{FIELDS}":{as_json(given)}'
        if vector is not None:
            source += f',"{VECTOR}":{vector}'
        yield f'{{"index":{{"_id":{as_json(id)}}}}}\n{{{source}}}\n'.encode()


def _indented(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"
