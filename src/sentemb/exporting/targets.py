"""What a model or an index can be exported to, and the one function that does it."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.system.paths import AnyPath

if TYPE_CHECKING:
    from sentemb.search.index import Index
    from sentemb.sentence_encoder import SentenceEncoder

MODEL, INDEX = "model", "index"


@dataclass(frozen=True)
class Target:
    """A form that other programs read.

    Attributes
    ----------
    module : str
        The module of this room whose ``write`` makes it.
    takes : str
        What it is made of: a model or an index.
    help : str
        One line for ``--help``.
    options : tuple of str
        The keyword arguments of ``write`` that a caller may set.
    """

    module: str
    takes: str
    help: str
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class Exported:
    """What was written.

    Attributes
    ----------
    files : list of path
    titles : int
        Titles that were written; 0 if a model was exported.
    left_out : int
        Titles that were left out because their vector is zero.
    notes : list of str
        What the user should know.
    """

    files: list[Path]
    titles: int = 0
    left_out: int = 0
    notes: list[str] = field(default_factory=list)


TARGETS = {
    "elasticsearch": Target(
        "elasticsearch", INDEX, "mapping, bulk files and a query", ("name", "part_bytes")
    ),
    "opensearch": Target(
        "opensearch", INDEX, "mapping, bulk files and a query", ("name", "part_bytes")
    ),
    "jsonl": Target("json_lines", INDEX, "one line per title with id, title and vector"),
    "parquet": Target("parquet", INDEX, "a table of id, title and vector"),
    "numpy": Target("numpy_files", INDEX, "vectors.npy, ids.txt and titles.txt"),
    "faiss": Target("faiss_index", INDEX, "a flat index with ids and titles"),
    "usearch": Target("usearch_index", INDEX, "a graph with ids and titles"),
    "page": Target("page", INDEX, "one HTML file that searches without a server", ("dtype",)),
    "onnx": Target("onnx_model", MODEL, "both towers as ONNX, with a tokeniser in Python and Java"),
    "sentence-transformers": Target(
        "sentence_transformers", MODEL, "a model folder that SentenceTransformer opens"
    ),
}


def export(
    source: SentenceEncoder | Index,
    out: AnyPath,
    to: str,
    *,
    force: bool = False,
    on_progress: Callable[[int, int], None] | None = None,
    **options: Any,
) -> Exported:
    """Write a model or an index for another program.

    Parameters
    ----------
    source : SentenceEncoder or Index
        What to export; of an index, targets that take a model use its model.
    out : path
        The file or folder to write, all of it or nothing.
    to : str
        A name of `TARGETS`.
    force : bool
        Replace what is there.
    on_progress : callable, optional
        Called with how many titles are written and how many there are.
    **options
        What the target allows, see `Target.options`.

    Returns
    -------
    Exported

    Raises
    ------
    SentembError
        For an unknown target or option, a model where an index is needed, a package that is not
        installed, or a place that cannot be written.
    """
    from sentemb.search.index import Index

    if to not in TARGETS:
        raise SentembError(f"no such target: {to!r}; choose one of {', '.join(TARGETS)}")
    target = TARGETS[to]
    for option in options:
        if option not in target.options:
            raise SentembError(f"{option} is not an option of {to}")
    if target.takes == INDEX and not isinstance(source, Index):
        raise SentembError(f"{to} needs an index; make one with `sentemb index`")
    if target.takes == MODEL and isinstance(source, Index):
        source = source.model
    write = importlib.import_module(f"sentemb.exporting.{target.module}").write
    written: Exported = write(source, out, force=force, on_progress=on_progress, **options)
    return written
