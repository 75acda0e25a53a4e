"""``--to faiss``: an exact index of the library faiss."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from sentemb.exporting.places import new_folder
from sentemb.exporting.targets import Exported
from sentemb.exporting.titles import IDS, TITLES, portions, text_files
from sentemb.system.extras import package
from sentemb.system.files import unwritable

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

VECTORS = "vectors.faiss"


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write ``vectors.faiss``, an ``IndexFlatIP``, with ``ids.txt`` and ``titles.txt``.

    faiss numbers the titles from 0, in the order of the lines of the text files. Titles of which
    the model knows no word are left out. Needs the package faiss-cpu.

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
    """
    faiss = package("faiss", "faiss", "--to faiss")
    flat = faiss.IndexFlatIP(source.model.dim)
    with new_folder(out, force, VECTORS, IDS, TITLES) as folder:
        with text_files(folder) as append:
            for portion in portions(source, on_progress):
                kept = portion.only_known()
                flat.add(kept.vectors)
                append(kept)
        try:
            faiss.write_index(flat, str(folder / VECTORS))
        except RuntimeError as error:  # the disk is full
            raise unwritable(folder / VECTORS, error) from error
    files = [Path(out) / name for name in (VECTORS, IDS, TITLES)]
    return Exported(files, flat.ntotal, left_out=len(source) - flat.ntotal)
