"""Targets for the export of a model or an index, and the one function that exports."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.system.bounds import brief
from sentemb.system.extras import package
from sentemb.system.files import path_of, status
from sentemb.system.outputs import Output, check_outputs
from sentemb.system.paths import AnyPath

if TYPE_CHECKING:
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.search.index import Index

MODEL, INDEX = "model", "index"


@dataclass(frozen=True)
class TargetOption:
    """A keyword argument of the ``write`` of some targets.

    help : one sentence; the command line adds which targets have it
    kind : str or int
    metavar : the name that the help shows for its value; "" where the values are listed
    """

    help: str
    kind: type = str
    metavar: str = ""


OPTIONS = {
    "name": TargetOption("What the engine calls its index. [default: titles]", metavar="NAME"),
    "clicked_queries": TargetOption(
        "Whether titles are written with the queries that they were clicked for. [default: yes]"
    ),
    "part_bytes": TargetOption(
        "Size of a bulk file before compression. [default: 50000000]", int, "BYTES"
    ),
    "dtype": TargetOption("Type of the numbers."),
    "min_queries": TargetOption(
        "Publish no word that fewer different clicked queries have, unless a title has it, and as "
        "suggestions no queries with fewer clicks. "
        "[default: 5]",
        int,
        "NUMBER",
    ),
    "heading": TargetOption(
        "What the page is called. [default: the name of the file]", metavar="TEXT"
    ),
    "log": TargetOption("The click log that the pairs come from. [required]", metavar="LOG"),
    "negatives": TargetOption("Hard negatives per pair. [default: 2]", int, "NUMBER"),
}

# An option that a target has -> the values that it may have, the default first; () for any.
Values = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True)
class Target:
    """A form that other programs read.

    module : the module of `sentemb.bridges` whose ``write`` makes it
    takes : its source: a model or an index
    help : one line for ``--help``
    options : the keyword arguments of ``write`` that a caller may set, names of `OPTIONS`, with the
        values that they may have; an empty tuple for any
    required : the option that ``write`` cannot do without
    settings : keyword arguments of ``write`` that belong to the target
    needs : a package and the extra that installs it
    writes_model : whether it writes a model folder, and so may replace one
    """

    module: str
    takes: str
    help: str
    options: Values = field(default_factory=dict)
    required: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    needs: tuple[str, str] | None = None
    writes_model: bool = False


@dataclass(frozen=True)
class Exported:
    """Files and counts of an export.

    Attributes
    ----------
    files : list of path
    titles : int
        Titles that were written; 0 if a model was exported.
    without_vector : int
        Titles that were written without a vector because it is zero.
    notes : list of str
        Remarks for the user.
    """

    files: list[Path]
    titles: int = 0
    without_vector: int = 0
    notes: list[str] = field(default_factory=list)


_ENGINE: Values = {"name": (), "clicked_queries": ("yes", "no"), "part_bytes": ()}

TARGETS = {
    "elasticsearch": Target(
        "export.search_engines.elasticsearch",
        INDEX,
        "a folder with mapping, bulk files and a query",
        _ENGINE,
        settings={"engine": "elasticsearch"},
    ),
    "opensearch": Target(
        "export.search_engines.elasticsearch",
        INDEX,
        "the same for OpenSearch",
        _ENGINE,
        settings={"engine": "opensearch"},
    ),
    "parquet": Target(
        "export.parquet",
        INDEX,
        "a table with id, title and vector",
        {"dtype": ("float32", "float16")},
        needs=("pyarrow.parquet", "parquet"),
    ),
    "page": Target(
        "page.exported_page",
        INDEX,
        "one HTML file that searches without a server",
        {"dtype": ("int8", "float32"), "heading": (), "min_queries": ()},
    ),
    "onnx": Target(
        "export.onnx.model",
        MODEL,
        "a folder with both towers and a tokeniser in Python",
        needs=("onnx", "onnx"),
    ),
    "sentence-transformers": Target(
        "export.sentence_transformers",
        MODEL,
        "a model folder that SentenceTransformer opens",
        writes_model=True,
    ),
    "triplets": Target(
        "export.triplets",
        MODEL,
        "clicks with hard negatives, to train a transformer on",
        {"log": (), "negatives": ()},
        required="log",
    ),
}


def export(
    source: SentenceEncoder | Index | AnyPath,
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
    source : SentenceEncoder, Index or path
        The model or index, or its folder. Of an index, targets that take a model use its model.
    out : path
        The file or folder to write, all of it or nothing.
    to : str
        The target; docs/export.md describes all of them.
    force : bool
        Replace what an earlier export wrote to ``out``.
    on_progress : callable, optional
        Called with how many titles or pairs are written and how many there are.
    **options
        Options of the target: ``name``, ``clicked_queries`` and ``part_bytes`` of
        ``elasticsearch`` and ``opensearch``, ``dtype`` of ``parquet`` and ``page``, ``heading`` and
        ``min_queries`` of ``page``, ``log`` and ``negatives`` of ``triplets``.

    Returns
    -------
    Exported

    Raises
    ------
    SentembError
        For an unknown or missing target or option, a model where an index is needed, a package that
        is not installed, or a place that cannot be written. Nothing is written then.
    """
    target = checked_target(to, options)
    if target.needs is not None:
        package(*target.needs, purpose=f"--to {to}")
    if target.writes_model:
        check_outputs([Output(out, is_folder=True)], [], force)
    if str(out) != "-":
        _check_place(out, target.writes_model)
    opened = _opened(source, target, to)
    write = importlib.import_module(f"sentemb.bridges.{target.module}").write
    settings = {**target.settings, **options}
    written: Exported = write(opened, out, force=force, on_progress=on_progress, **settings)
    return written


def checked_target(to: str, options: Mapping[str, Any]) -> Target:
    """The target with this name; a `SentembError` unless it exists and has these options."""
    if not isinstance(to, str) or to not in TARGETS:
        near = nearest_names(str(to), TARGETS)
        question = f"did you mean {' or '.join(near)}? " if near else ""
        raise SentembError(
            f"no such target: {brief(to)}; {question}choose one of {', '.join(TARGETS)}"
        )
    target = TARGETS[to]
    for option, value in options.items():
        if option not in target.options:
            having = [name for name, candidate in TARGETS.items() if option in candidate.options]
            only = f"; only {', '.join(having)} can have it" if having else ""
            raise SentembError(f"{option} is not an option of {to}{only}")
        allowed = target.options[option]
        if allowed and value not in allowed:
            raise SentembError(f"{option} is {brief(value)}; {to} takes {' or '.join(allowed)}")
    if target.required and target.required not in options:
        raise SentembError(f"{target.required} is missing; {to} needs it")
    return target


def nearest_names(name: str, names: Iterable[str]) -> list[str]:
    """Up to two of ``names`` that begin with ``name``, or are like it."""
    every = list(names)
    longer = [candidate for candidate in every if name and candidate.startswith(name)]
    return list(dict.fromkeys([*longer, *get_close_matches(name, every, 2)]))[:2]


def _opened(source: SentenceEncoder | Index | AnyPath, target: Target, to: str) -> Any:
    """The model or the index that ``target`` takes."""
    from sentemb.models.loading import face_of, load
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.search.index import Index
    from sentemb.search.index_files import index_folder, is_index

    made: Any = source
    if isinstance(source, str | os.PathLike):
        made = Index.open(source) if is_index(index_folder(source)) else load(source)
    if isinstance(made, Index):
        return made if target.takes == INDEX else made.model
    if not hasattr(made, "saved"):
        raise SentembError(f"a model or an index is needed, not {type(source).__name__}")
    saved = made.saved()
    saved.towers()  # refuses a pair model
    if target.takes == INDEX:
        raise SentembError(
            f"{to} needs an index, and this is a model; make one with `sentemb index MODEL TITLES "
            "-o INDEX`"
        )
    return made if isinstance(made, SentenceEncoder) else face_of(saved)


def _check_place(out: AnyPath, writes_model: bool) -> None:
    """Refuse a place inside an index, and a model where something else is to be written."""
    from sentemb.models.files.model_folder import TENSORS
    from sentemb.search.index_files import is_index

    path = Path(os.path.realpath(path_of(out)))
    for folder in (path, *path.parents):
        if is_index(folder):
            where = "is an index" if folder == path else f"is inside the index {folder}"
            raise SentembError(f"{out}: {where}; export to another place")
    if not writes_model and status(path / TENSORS) is not None:
        raise SentembError(f"{out}: is a model; export to another place")
