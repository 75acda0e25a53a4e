"""``--to numpy``: an array of vectors, with ids and titles in text files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.lib import format as npy

from sentemb.errors import SentembError
from sentemb.exporting.places import new_folder
from sentemb.exporting.targets import Exported
from sentemb.exporting.titles import IDS, TITLES, portions, text_files
from sentemb.system.files import writing

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.system.paths import AnyPath

VECTORS = "vectors.npy"


def write(
    source: Index,
    out: AnyPath,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
) -> Exported:
    """Write ``vectors.npy``, ``ids.txt`` and ``titles.txt``, with a row or a line per title.

    The array is float32, of shape (titles, dim) and with rows of unit length. Titles of which the
    model knows no word are left out.

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
    expected, written = len(source) - source.n_empty, 0
    whole = np.broadcast_to(np.zeros((), "<f4"), (expected, source.model.dim))
    with new_folder(out, force, VECTORS, IDS, TITLES) as folder:
        with writing(folder / VECTORS) as file, text_files(folder) as append:
            header = npy.header_data_from_array_1_0(whole) | {"fortran_order": False}
            npy.write_array_header_1_0(file, header)
            for portion in portions(source, on_progress):
                kept = portion.only_known()
                file.write(kept.vectors.astype("<f4", copy=False).tobytes())
                append(kept)
                written += len(kept.ids)
        if written != expected:
            raise SentembError(
                f"the index is damaged: {len(source) - written:,} vectors are zero and not "
                f"{source.n_empty:,}; make it again with `sentemb index`"
            )
    files = [Path(out) / name for name in (VECTORS, IDS, TITLES)]
    return Exported(files, written, left_out=len(source) - written)
