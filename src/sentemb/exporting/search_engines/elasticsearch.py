"""``--to elasticsearch`` and ``--to opensearch``: mapping, bulk files and a query."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sentemb.baselines.clicked_queries import clicked_queries
from sentemb.baselines.words_and_stems import stem_of
from sentemb.bounds import brief, whole
from sentemb.data.click_log import ClickLog, read_click_log
from sentemb.errors import SentembError
from sentemb.exporting.json_text import as_json, vectors_as_json
from sentemb.exporting.places import new_folder
from sentemb.exporting.search_engines.bulk_files import BulkFiles
from sentemb.exporting.search_engines.requests import (
    CLICKED,
    ENGINES,
    TITLE,
    VECTOR,
    Engine,
    has_stemmer,
    mapping,
    query,
)
from sentemb.exporting.search_engines.texts import README, SCRIPT, readme, script
from sentemb.exporting.targets import Exported
from sentemb.exporting.titles import Portion, portions

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

MAPPING, QUERY = "mapping.json", "query.json"
PART_BYTES = 50_000_000
_MOST_PART_BYTES = 2**31 - 1
_MOST_ID_BYTES = 512
# A subset of what both engines allow, and of what a shell and an address take as it is.
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,254}")
# Queries whose best scores tell what a typical one is.
_SAMPLE = 1000


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    engine: str = "elasticsearch",
    name: str = "titles",
    log: ClickLog | AnyPath | None = None,
    part_bytes: int = PART_BYTES,
) -> Exported:
    """Write a folder to fill a search engine from.

    It holds ``mapping.json``, ``bulk-00001.ndjson.gz`` and so on, ``query.json``, a README.md that
    explains them and a shell script that sends them. A title of which the model knows no word has
    no vector: both engines refuse zeros.

    Parameters
    ----------
    source : Index
        What to export.
    out : path
        A folder.
    force : bool
        Replace an earlier export.
    on_progress : callable, optional
        Called with how many titles are done and how many there are.
    engine : {"elasticsearch", "opensearch"}
        Whose formats are written.
    name : str
        What the engine calls its index.
    log : ClickLog or path, optional
        Clicks. The boost of words fits the typical BM25 score of their queries; where BM25 of the
        index has clicked queries, the titles get them.
    part_bytes : int
        The most bytes of a bulk file before compression.

    Raises
    ------
    SentembError
        For a name or an id that the engine refuses, vectors that are too long for it, an index
        without titles, or a title that does not fit into a part.
    """
    target = ENGINES[engine]
    _check(source, target, name)
    whole("part_bytes", part_bytes, 1, _MOST_PART_BYTES)
    clicks = read_click_log(log) if log is not None and not isinstance(log, ClickLog) else log
    half = source.bm25
    boost, told = _boost(source, clicks)
    queries_of: dict[str, list[str]] = {}
    click_weight = 1.0 if half is None else half.lists.click_weight
    if clicks is not None and half is not None and half.has_clicks and click_weight:
        queries_of = clicked_queries(clicks)
    with_clicks, without = bool(queries_of), 0
    with new_folder(out, force) as folder:
        with BulkFiles(folder, part_bytes) as bulk:
            for portion in portions(source, on_progress):
                without += int(np.count_nonzero(~portion.known))
                for lines in _lines(portion, queries_of):
                    bulk.add(lines)
        texts = {
            MAPPING: _indented(mapping(target, source.model.dim, half, with_clicks)),
            QUERY: _indented(query(target, boost, with_clicks, click_weight)),
            SCRIPT: script(target, name),
            README: readme(
                target,
                name,
                titles=len(source),
                without_vector=without,
                with_clicks=with_clicks,
                boost=told,
                two_fields=with_clicks and click_weight != 1 and boost is not None,
            ),
        }
        for file, text in texts.items():
            (folder / file).write_bytes(text.encode())
    files = [Path(out) / file for file in (README, SCRIPT, MAPPING, QUERY, *bulk.names)]
    notes = _notes(source, with_clicks)
    if with_clicks:
        held = {query for title in source.titles for query in queries_of.get(title.strip(), ())}
        notes.append(
            f"{out} holds {len(held):,} clicked queries of the log as plain text; without --log "
            "they are left out"
        )
    return Exported(files, len(source), without_vector=without, notes=notes)


def _check(index: Index, engine: Engine, name: str) -> None:
    """Refuse what the engine would refuse."""
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
    for id in index.ids:
        if len(id.encode()) > _MOST_ID_BYTES:
            raise SentembError(
                f"the id {brief(id)} has {len(id.encode()):,} bytes; {engine.title} takes up to "
                f"{_MOST_ID_BYTES}"
            )


def _boost(index: Index, log: ClickLog | None) -> tuple[float | None, str]:
    """The boost of words, and a sentence for the README that says where it is from.

    Our score is the cosine plus weight · BM25 / the highest BM25 of the query. An engine cannot
    divide by the latter, so a typical value takes its place, and its score is half of ours. It has
    no memory either: the memory of a title without clicked queries is the cosine.
    """
    half = index.bm25
    if half is None:
        return None, "It compares vectors only, because the index has no BM25."
    if not half.weight:
        return None, "It compares vectors only, because the weight of BM25 in the index is 0."
    texts: Sequence[str] = index.titles if log is None else log.queries
    places = np.unique(np.linspace(0, len(texts) - 1, min(len(texts), _SAMPLE)).astype(np.int64))
    _, scores = half.lists.find([texts[int(place)] for place in places], 1)
    found = scores[np.isfinite(scores) & (scores > 0)]
    if not found.size:
        return None, "It compares vectors only, because no title has a word in common with the log."
    typical = float(np.median(found))
    of = "titles as queries, which is more than queries have" if log is None else "queries"
    weight = half.weight / (index.cosine_weight + index.memory_weight or 1)
    boost = float(f"{weight / typical / 2:.6g}")
    where = "the weight of BM25 in the index"
    if weight != half.weight:
        where += " for a weight of the cosine of 1"
    return boost, (
        f"The score is (1 + cosine) / 2 + {boost:g} · BM25. The factor is half of {weight:g}, "
        f"{where}, divided by {typical:.4g}, the median of the highest "
        f"BM25 of {of}."
    )


def _lines(portion: Portion, queries_of: Mapping[str, list[str]]) -> Iterator[bytes]:
    """The action and the source of each title."""
    rows = zip(portion.ids, portion.titles, vectors_as_json(portion), strict=True)
    for id, title, vector in rows:
        source = f'"{TITLE}":{as_json(title)}'
        if queries := queries_of.get(title.strip()):
            source += f',"{CLICKED}":{as_json(queries)}'
        if vector is not None:
            source += f',"{VECTOR}":{vector}'
        yield f'{{"index":{{"_id":{as_json(id)}}}}}\n{{{source}}}\n'.encode()


def _indented(value: dict[str, Any]) -> str:
    return json.dumps(value, indent=2) + "\n"


def _notes(index: Index, with_clicks: bool) -> list[str]:
    """What the user should know of words."""
    half, notes = index.bm25, []
    if index.memory_weight:
        notes.append("the memory of the log is left out: query.json ranks without it")
    if half is None:
        return [
            *notes,
            "the index has no BM25, so query.json compares vectors only; make the index with "
            "--bm25 and run `sentemb tune` for a weight of words",
        ]
    if not half.weight:
        return [
            *notes,
            "the weight of BM25 in the index is 0, so query.json compares vectors only",
        ]
    if not (index.cosine_weight or index.memory_weight):
        notes.append("the index ranks by BM25 alone; query.json adds the cosine")
    click_weight = half.lists.click_weight
    if with_clicks and click_weight != 1:
        notes.append(
            f"a word of a clicked query counts {click_weight:g} times in BM25 of the index; "
            "query.json adds the scores of two fields instead, which is not quite the same"
        )
    if half.has_clicks and click_weight and not with_clicks:
        notes.append(
            "BM25 of the index has clicked queries, and its weight was chosen with them; "
            "give --log to write them too"
        )
    language = stem_of(half.lists.words)
    if language is not None and not has_stemmer(language):
        notes.append(f"the engines have no stemmer for {language}; the mapping compares words")
    return notes
