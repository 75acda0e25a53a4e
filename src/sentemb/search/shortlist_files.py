"""The shortlist of an index as files: the folder ``clusters`` and an entry of the description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sentemb.retrieval.cluster_rows import ClusterRows
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.ranking.part import Part, Unfit, check, check_offsets
from sentemb.search.ranking.parts import Embedded, int8_rows
from sentemb.search.ranking.recipe import EMBEDDING, Recipe
from sentemb.search.ranking.shortlist import OF_QUERIES, OF_TITLES, Breadth, Shortlist, entries_of
from sentemb.system.bounds import is_finite, is_integer
from sentemb.system.checked_files import CheckedFiles

FOLDER = "clusters"
_MOST = 2**31 - 1
_NUMBERS = ("count", "rows", "probed", "retained")
_NAMES = {*_NUMBERS, "recall", "measured_with"}
# Version 1.0 had clusters for rankings by the cosine alone; they are not read.
_OF_1_0 = {"count", "probed", "recall"}, ("centres", "offsets", "titles")
_ARRAYS = ("centres", "offsets", "titles", "codes", "scales")
# Before the names of the arrays of an embedding's clusters.
_EMBEDDED = "embedded_"


def arrays_of(shortlist: Shortlist) -> dict[str, np.ndarray]:
    """The arrays of a shortlist by the name of their file in the index."""
    arrays: dict[str, np.ndarray] = {_file("net"): shortlist.net}
    for before, clusters in (("", shortlist.clusters), (_EMBEDDED, shortlist.embedded)):
        if clusters is not None:
            of_clusters = (
                *(clusters.centres, clusters.offsets, clusters.titles),
                *(clusters.rows.codes, clusters.rows.scales),
            )
            names = [_file(before + name) for name in _ARRAYS]
            arrays |= dict(zip(names, of_clusters, strict=True))
    return arrays


def description_of(shortlist: Shortlist) -> dict[str, Any]:
    """The facts of a shortlist in the description of an index."""
    described: dict[str, Any] = _counts(shortlist.clusters) | shortlist.breadth._asdict()
    described |= {"recall": shortlist.recall, "measured_with": shortlist.measured_with}
    if shortlist.embedded is not None:
        described[EMBEDDING] = _counts(shortlist.embedded)
    return described


def _counts(clusters: ClusterRows) -> dict[str, Any]:
    return {"count": len(clusters.centres), "rows": len(clusters.rows)}


def is_right(value: Any) -> bool:
    """Whether a description can say this of a shortlist."""
    if value is None:
        return True
    return (
        isinstance(value, dict)
        and _are_counts(value.get(EMBEDDING, {"count": 1, "rows": 1}))
        and (value.keys() - {EMBEDDING} == _NAMES or value.keys() - {"measured_with"} == _OF_1_0[0])
        and value.get("measured_with", OF_TITLES) in (OF_TITLES, OF_QUERIES)
        and all(_is_count(value[name]) for name in _NUMBERS if name in value)
        and value["probed"] <= value["count"]
        and is_finite(value["recall"])
        and 0 <= value["recall"] <= 1
    )


def _is_count(value: Any) -> bool:
    return is_integer(value) and 1 <= value <= _MOST


def _are_counts(value: Any) -> bool:
    names = {"count", "rows"}
    return isinstance(value, dict) and value.keys() == names and all(map(_is_count, value.values()))


def files_of(description: Mapping[str, Any] | None) -> set[str]:
    """The files of the shortlist that a description has."""
    if description is None:
        return set()
    if "retained" not in description:
        return set(map(_file, _OF_1_0[1]))
    of_embedding = [_EMBEDDED + name for name in _ARRAYS if EMBEDDING in description]
    return set(map(_file, ["net", *_ARRAYS, *of_embedding]))


def opened(
    files: CheckedFiles,
    description: Mapping[str, Any] | None,
    parts: Mapping[str, Part],
    recipe: Recipe,
    n_titles: int,
    dim: int,
) -> Shortlist | None:
    """Map the files of a shortlist over a catalogue.

    Raises `Unfit`, with the name of a file, if kernels could not use an array.
    """
    if description is None or "retained" not in description:
        return None
    entries = entries_of(parts, recipe)
    net = files.array(_file("net"), "<f4", (entries,), read_only=True)
    if not np.isfinite(net).all():
        raise Unfit(_file("net"), "a number is not finite")
    clusters = _opened(files, "", description, n_titles, dim)
    embedded, of_embedding = None, description.get(EMBEDDING)
    if of_embedding is not None and recipe.weight(EMBEDDING):
        part = parts[EMBEDDING]
        assert isinstance(part, Embedded)
        embedded = _opened(files, _EMBEDDED, of_embedding, n_titles, part.rows.codes.shape[1])
    breadth = Breadth(description["probed"], description["retained"])
    of_recall = description["recall"], description["measured_with"]
    return Shortlist(parts, recipe, clusters, net, breadth, *of_recall, embedded)


def _opened(
    files: CheckedFiles, before: str, counts: Mapping[str, Any], n_titles: int, dim: int
) -> ClusterRows:
    """Map the files of clusters whose names have ``before`` in front."""
    count, n = counts["count"], counts["rows"]
    shapes = {
        "centres": ("<f4", (count, dim)), "offsets": ("<i8", (count + 1,)),
        "titles": ("<i4", (n,)), "codes": ("|i1", (n, dim)), "scales": ("<f4", (n,)),
    }  # fmt: skip
    centres, offsets, titles, codes, scales = (
        files.array(_file(before + name), *shape, read_only=True) for name, shape in shapes.items()
    )
    try:
        check("centres", bool((np.abs(centres) <= LONGEST).all()))
        check_offsets(offsets, count, n)
        check("titles", 0 <= int(titles.min()) <= int(titles.max()) < n_titles)
        rows = int8_rows({"codes": codes, "scales": scales}, n, dim)
    except Unfit as error:
        raise Unfit(_file(before + error.args[0]), error.args[1]) from None
    return ClusterRows(centres, offsets, titles, rows)


def _file(name: str) -> str:
    return f"{FOLDER}/{name}.npy"
