"""``--to usearch``: a graph of the library usearch, for approximate search."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sentemb.exporting.places import new_folder
from sentemb.exporting.targets import Exported
from sentemb.exporting.titles import IDS, TITLES, portions, text_files
from sentemb.system.extras import package
from sentemb.system.files import unwritable

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

GRAPH = "vectors.usearch"
# What usearch calls the types of numbers.
_KINDS = {"float32": "f32", "float16": "f16", "int8": "i8"}
_CONNECTIVITY, _EXPANSION = 16, 128


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    dtype: str = "float32",
) -> Exported:
    """Write ``vectors.usearch``, a graph of cosines, with ``ids.txt`` and ``titles.txt``.

    The key of a title is its line in the text files, from 0. Titles of which the model knows no
    word are left out. One thread adds them, so that the same index gives the same file. Needs the
    package usearch.

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
    dtype : {"float32", "float16", "int8"}
        Type of the numbers that the graph keeps.
    """
    usearch = package("usearch.index", "usearch", "--to usearch")
    graph = usearch.Index(
        ndim=source.model.dim,
        metric="cos",
        dtype=_KINDS[dtype],
        connectivity=_CONNECTIVITY,
        expansion_add=_EXPANSION,
        expansion_search=_EXPANSION,
    )
    with new_folder(out, force, GRAPH, IDS, TITLES) as folder:
        with text_files(folder) as append:
            # Small portions: adding takes longer than anything else here.
            for portion in portions(source, on_progress, 1024):
                kept = portion.only_known()
                keys = np.arange(len(graph), len(graph) + len(kept.ids))
                graph.add(keys, kept.vectors, threads=1)
                append(kept)
        try:
            graph.save(str(folder / GRAPH))
        except (RuntimeError, UnicodeError) as error:  # no space, or a name that is not UTF-8
            raise unwritable(folder / GRAPH, error) from error
    files = [Path(out) / name for name in (GRAPH, IDS, TITLES)]
    return Exported(files, len(graph), left_out=len(source) - len(graph))
