"""The shortlist of an index as files: the folder ``clusters`` and an entry of the description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sentemb.retrieval.cluster_rows import ClusterRows
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.ranking.part import Part, Unfit, check, check_offsets
from sentemb.search.ranking.parts import int8_rows
from sentemb.search.ranking.recipe import Recipe
from sentemb.search.ranking.shortlist import OF_QUERIES, OF_TITLES, Breadth, Shortlist, entries_of
from sentemb.system.bounds import is_finite, is_integer
from sentemb.system.checked_files import CheckedFiles

FOLDER = "clusters"
_MOST = 2**31 - 1
_NUMBERS = ("count", "rows", "probed", "retained")
_NAMES = {*_NUMBERS, "recall", "measured_with"}
# Version 1.0 had clusters for rankings by the cosine alone; they are not read.
_OF_1_0 = {"count", "probed", "recall"}, ("centres", "offsets", "titles")
_ARRAYS = ("centres", "offsets", "titles", "codes", "scales", "net")


def arrays_of(shortlist: Shortlist) -> dict[str, np.ndarray]:
    """The arrays of a shortlist by the name of their file in the index."""
    clusters = shortlist.clusters
    arrays = (
        *(clusters.centres, clusters.offsets, clusters.titles),
        *(clusters.rows.codes, clusters.rows.scales, shortlist.net),
    )
    return dict(zip(map(_file, _ARRAYS), arrays, strict=True))


def description_of(shortlist: Shortlist) -> dict[str, Any]:
    """The facts of a shortlist in the description of an index."""
    centres, rows = shortlist.clusters.centres, shortlist.clusters.rows
    numbers = (len(centres), len(rows), *shortlist.breadth)
    described: dict[str, Any] = dict(zip(_NUMBERS, numbers, strict=True))
    return {**described, "recall": shortlist.recall, "measured_with": shortlist.measured_with}


def is_right(value: Any) -> bool:
    """Whether a description can say this of a shortlist."""
    if value is None:
        return True
    return (
        isinstance(value, dict)
        and (value.keys() == _NAMES or value.keys() - {"measured_with"} == _OF_1_0[0])
        and value.get("measured_with", OF_TITLES) in (OF_TITLES, OF_QUERIES)
        and all(is_integer(value[name]) for name in _NUMBERS if name in value)
        and all(1 <= value[name] <= _MOST for name in _NUMBERS if name in value)
        and value["probed"] <= value["count"]
        and is_finite(value["recall"])
        and 0 <= value["recall"] <= 1
    )


def files_of(description: Mapping[str, Any] | None) -> set[str]:
    """The files of the shortlist that a description has."""
    if description is None:
        return set()
    return set(map(_file, _ARRAYS if "retained" in description else _OF_1_0[1]))


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
    count, n, *breadth = (description[name] for name in _NUMBERS)
    entries = entries_of(parts, recipe)
    shapes = {
        "centres": ("<f4", (count, dim)), "offsets": ("<i8", (count + 1,)),
        "titles": ("<i4", (n,)), "codes": ("|i1", (n, dim)), "scales": ("<f4", (n,)),
        "net": ("<f4", (entries,)),
    }  # fmt: skip
    arrays = {
        name: files.array(_file(name), *shape, read_only=True) for name, shape in shapes.items()
    }
    centres, offsets, titles, codes, scales, net = arrays.values()
    try:
        check("centres", bool((np.abs(centres) <= LONGEST).all()))
        check_offsets(offsets, count, n)
        check("titles", 0 <= int(titles.min()) <= int(titles.max()) < n_titles)
        check("net", bool(np.isfinite(net).all()))
        rows = int8_rows({"codes": codes, "scales": scales}, n, dim)
    except Unfit as error:
        raise Unfit(_file(error.args[0]), error.args[1]) from None
    clusters = ClusterRows(centres, offsets, titles, rows)
    of_recall = description["recall"], description["measured_with"]
    return Shortlist(parts, recipe, clusters, net, Breadth(*breadth), *of_recall)


def _file(name: str) -> str:
    return f"{FOLDER}/{name}.npy"
