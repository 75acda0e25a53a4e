"""The files of an index folder: written as a whole, mapped into memory when opened."""

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.bounds import is_finite, is_integer
from sentemb.data.texts import Texts, mapped_texts
from sentemb.errors import SentembError
from sentemb.models.int8_rows import Int8Rows
from sentemb.ranking.memory import QueryMemory
from sentemb.ranking.recipe import MAX_WEIGHT
from sentemb.search.confidence import Confidence
from sentemb.search.lexical import Lexical
from sentemb.search.memory import Memory
from sentemb.search.snapshot import Contents, Snapshot
from sentemb.storage.folder import FILES
from sentemb.system import descriptions
from sentemb.system.checked_files import CheckedFiles, are_listed, checksum, sample
from sentemb.system.files import (
    is_file,
    is_folder,
    make_folder,
    path_of,
    status,
    writing,
)
from sentemb.system.paths import AnyPath

DESCRIPTION, MODEL, BM25 = "index.json", "model", "bm25"
MEMORY = "memory"
IDS, TITLES, VECTORS, SCALES, EMPTY = (
    "ids.txt",
    "titles.txt",
    "vectors.npy",
    "scales.npy",
    "empty.npy",
)
# In the folder of the memory.
QUERIES, QUERY_OFFSETS, MEMORY_VECTORS = "queries.txt", "query-offsets.npy", "vectors.npy"
LIST_OFFSETS, LIST_TITLES = "list-offsets.npy", "list-titles.npy"
ID_OFFSETS, TITLE_OFFSETS = "id-offsets.npy", "title-offsets.npy"
FORMAT = 1
# How vectors are stored, and the dtype of vectors.npy.
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
_MOST = 2**31 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 20


@dataclass(frozen=True)
class Description:
    """What ``index.json`` says.

    Attributes
    ----------
    titles, dim : int
        The shape of the vectors.
    dtype : str
        One of `DTYPES`.
    empty : int
        Titles without a vector: the model knows none of their words.
    model_sha256 : str
        See `sentemb.storage.model_files.fingerprint`.
    bm25 : mapping or None
        ``weight`` of BM25; None without BM25.
    files : mapping
        Size in bytes and SHA-256 of each file of the folder but this one and those of the model.
    memory : mapping or None
        ``weight`` of the memory, and how many clicked ``queries`` it has, with how many titles
        in all (``entries``); None without clicks.
    cosine : float
        Weight of the cosine.
    confidence : mapping or None
        What `Confidence.of_json` reads; None without a calibration.
    """

    titles: int
    dim: int
    dtype: str
    empty: int
    model_sha256: str
    bm25: Mapping[str, Any] | None
    files: Mapping[str, Mapping[str, Any]]
    memory: Mapping[str, Any] | None
    cosine: float
    confidence: Mapping[str, Any] | None

    @property
    def identity(self) -> str:
        """One hash of everything in the index."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()


# -- writing ----------------------------------------------------------------------------------


def write_contents(snapshot: Snapshot, model_sha256: str, folder: Path) -> None:
    """Write all files but those of the model into a folder."""
    contents, bm25, memory = snapshot.contents, snapshot.bm25, snapshot.memory
    files = {name: _write(folder / name, array) for name, array in _arrays(contents).items()}
    told_of_bm25 = None
    if bm25 is not None:
        bm25.lists.save(folder / BM25)
        told_of_bm25 = {"weight": bm25.weight}
        for path in sorted((folder / BM25).iterdir()):
            files[f"{BM25}/{path.name}"] = checksum(path)
    told_of_memory = None
    if memory is not None:
        make_folder(folder / MEMORY)
        for name, array in _arrays_of(memory).items():
            files[f"{MEMORY}/{name}"] = _write(folder / MEMORY / name, array)
        told_of_memory = {
            "weight": memory.weight,
            "queries": len(memory.lists.queries),
            "entries": len(memory.lists.places),
        }
    for name, listed in files.items():
        listed["sample"] = sample(folder / name)
    description = Description(
        titles=len(contents.ids),
        dim=contents.dim,
        dtype=contents.dtype,
        empty=len(contents.empty),
        model_sha256=model_sha256,
        bm25=told_of_bm25,
        files=files,
        memory=told_of_memory,
        cosine=snapshot.cosine,
        confidence=None if snapshot.confidence is None else vars(snapshot.confidence),
    )
    told = json.dumps({"format": FORMAT, **vars(description)}, indent=1)
    with writing(folder / DESCRIPTION) as file:
        file.write(f"{told}\n".encode())


def _arrays(contents: Contents) -> dict[str, np.ndarray]:
    """The arrays by the names of their files, those of texts as bytes."""
    found: dict[str, np.ndarray] = {
        IDS: contents.ids.raw,
        ID_OFFSETS: contents.ids.offsets,
        TITLES: contents.titles.raw,
        TITLE_OFFSETS: contents.titles.offsets,
        EMPTY: contents.empty,
    }
    if isinstance(contents.vectors, Int8Rows):
        found[VECTORS], found[SCALES] = contents.vectors.codes, contents.vectors.scales
    else:
        found[VECTORS] = contents.vectors
    return found


def _arrays_of(memory: Memory) -> dict[str, np.ndarray]:
    """The arrays of a memory by the names of their files."""
    lists = memory.lists
    queries = lists.queries if isinstance(lists.queries, Texts) else Texts.of(lists.queries)
    found: dict[str, np.ndarray] = {
        QUERIES: queries.raw,
        QUERY_OFFSETS: queries.offsets,
        LIST_OFFSETS: lists.offsets,
        LIST_TITLES: lists.places,
    }
    if lists.vectors is not None:
        found[MEMORY_VECTORS] = lists.vectors
    return found


def _write(path: Path, array: np.ndarray) -> dict[str, Any]:
    """Write one array; its size and checksum."""
    digest, size = hashlib.sha256(), 0
    with writing(path) as file:
        pieces = [] if path.suffix == ".txt" else [_header(array)]
        # A mapped array is read and written in pieces, or all of it would be in memory.
        rows = max(1, _PIECE // max(1, array[:1].nbytes))
        for first in range(0, len(array), rows):
            pieces.append(np.ascontiguousarray(array[first : first + rows]).tobytes())
            for piece in pieces:
                digest.update(piece)
                file.write(piece)
                size += len(piece)
            pieces = []
        for piece in pieces:
            digest.update(piece)
            file.write(piece)
            size += len(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}


def _header(array: np.ndarray) -> bytes:
    header = io.BytesIO()
    kind = array.dtype.newbyteorder("<").str
    np.lib.format.write_array_header_1_0(
        header, {"descr": kind, "fortran_order": False, "shape": array.shape}
    )
    return header.getvalue()


# -- reading ----------------------------------------------------------------------------------


def is_index(folder: AnyPath) -> bool:
    """Whether ``folder`` has the description of an index."""
    return is_folder(folder) and is_file(Path(folder) / DESCRIPTION)


def listed_files(folder: AnyPath) -> frozenset[str]:
    """The files of the index in ``folder``, those of its model included; none without an index.

    Raises
    ------
    SentembError
        If the description cannot be read.
    """
    if not is_index(folder):
        return frozenset()
    try:
        files = read_description(folder).files
    except SentembError as error:
        raise SentembError(
            f"{folder}: its {DESCRIPTION} cannot be read, so its files are not known; remove the "
            "folder yourself or name another"
        ) from error
    model = (f"{MODEL}/{name}" for name in FILES)
    return frozenset([DESCRIPTION, *files, *model])


def read_description(folder: AnyPath) -> Description:
    """The checked description of an index folder."""
    place = path_of(folder)
    path = place / DESCRIPTION
    if status(path) is None:
        raise SentembError(
            f"{folder}: there is no index here ({DESCRIPTION} is missing); make one with "
            "`sentemb index MODEL TITLES -o INDEX`"
        )
    told = descriptions.read_description(path, FORMAT, damaged)
    for name, is_right in _IS_RIGHT.items():
        if name not in told or not is_right(told[name]):
            raise damaged(path, f'"{name}" is missing or wrong')
    return Description(**{name: told[name] for name in _IS_RIGHT})


def _is_between(least: int) -> Callable[[Any], bool]:
    return lambda value: is_integer(value) and least <= value <= _MOST


def _is_of_bm25(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    return value.keys() == {"weight"} and _is_weight(value["weight"])


def _is_of_memory(value: Any) -> bool:
    if not isinstance(value, dict):
        return value is None
    counts = (value.get(name) for name in ("queries", "entries"))
    return _is_weight(value.get("weight")) and all(map(_is_between(0), counts))


def _is_weight(value: Any) -> bool:
    return is_finite(value) and 0 <= value <= MAX_WEIGHT


_IS_RIGHT: dict[str, Callable[[Any], bool]] = {
    "titles": _is_between(0),
    "dim": _is_between(1),
    "dtype": lambda value: isinstance(value, str) and value in DTYPES,
    "empty": _is_between(0),
    "model_sha256": lambda value: isinstance(value, str) and bool(_SHA256.fullmatch(value)),
    "bm25": _is_of_bm25,
    "files": are_listed,
    "memory": _is_of_memory,
    "cosine": _is_weight,
    "confidence": lambda value: value is None or Confidence.of_json(value) is not None,
}


def open_contents(folder: AnyPath, description: Description, in_memory: bool) -> Contents:
    """Map or read the files of an index. Sizes and shapes are checked, the contents are not."""
    place, n, dim = path_of(folder), description.titles, description.dim
    files = _files(folder, description, in_memory)

    def array(name: str, dtype: str, *shape: int) -> np.ndarray:
        return files.array(name, dtype, shape, read_only=True)

    rows = array(VECTORS, DTYPES[description.dtype], n, dim)
    is_int8 = description.dtype == "int8"
    vectors = Int8Rows(rows, array(SCALES, "<f4", n)) if is_int8 else rows
    texts = [
        mapped_texts(files, name, offsets, n)
        for name, offsets in ((IDS, ID_OFFSETS), (TITLES, TITLE_OFFSETS))
    ]
    empty = array(EMPTY, "<i8", description.empty)
    if empty.size and not 0 <= empty.min() <= empty.max() < n:
        raise damaged(place / EMPTY, "it names a title that does not exist")
    return Contents(texts[0], texts[1], vectors, empty)


def open_memory(folder: AnyPath, description: Description, in_memory: bool) -> Memory | None:
    """The clicked queries of an index; their texts and vectors are mapped or read."""
    if description.memory is None:
        return None
    place, n, dim = path_of(folder), description.titles, description.dim
    weight, n_queries = description.memory["weight"], description.memory["queries"]
    names = (f"{MEMORY}/{name}" for name in (LIST_OFFSETS, LIST_TITLES, MEMORY_VECTORS))
    list_offsets, list_titles, list_vectors = names
    texts, text_offsets = f"{MEMORY}/{QUERIES}", f"{MEMORY}/{QUERY_OFFSETS}"
    files = _files(folder, description, in_memory)
    queries = mapped_texts(files, texts, text_offsets, n_queries)

    def array(name: str, dtype: str, *shape: int) -> np.ndarray:
        return files.array(name, dtype, shape, read_only=True)

    offsets = array(list_offsets, "<i8", n_queries + 1)
    places = array(list_titles, "<i4", description.memory["entries"])
    # The kernel does not look before it reads.
    if offsets[0] or offsets[-1] != places.size or (offsets[1:] <= offsets[:-1]).any():
        raise damaged(place / list_offsets, "it does not fit the titles of queries")
    if places.size and not 0 <= places.min() <= places.max() < n:
        raise damaged(place / list_titles, "it names a title that does not exist")
    vectors = array(list_vectors, "<f4", n_queries, dim) if weight else None
    return Memory(QueryMemory(queries, vectors, offsets, places, n), float(weight))


def check_files(folder: AnyPath, description: Description) -> None:
    """Refuse a folder in which a listed file is missing, of no part, or that of another index."""
    for part, told in ((BM25, description.bm25), (MEMORY, description.memory)):
        if told is None and any(name.startswith(f"{part}/") for name in description.files):
            path = path_of(folder) / DESCRIPTION
            raise damaged(path, f'"{part}" is null, and files of it are listed')
    _files(folder, description).check_samples()


def open_bm25(folder: AnyPath, description: Description, in_memory: bool) -> Lexical | None:
    """BM25 over the titles of an index; `check_files` comes first."""
    if description.bm25 is None:
        return None
    place = path_of(folder) / BM25
    lists = InvertedIndex.open(place, in_memory)
    for name in lists.file_names():
        if f"{BM25}/{name}" not in description.files:
            raise damaged(place / name, f"{DESCRIPTION} does not list it")
    if lists.n_titles != description.titles:
        raise damaged(place, "it is not of the titles of the index")
    return Lexical(lists, float(description.bm25["weight"]))


def verify_contents(folder: AnyPath, description: Description) -> None:
    """Read every file of an index; a `SentembError` unless each has its checksum."""
    _files(folder, description).verify()


def _files(folder: AnyPath, description: Description, in_memory: bool = False) -> CheckedFiles:
    return CheckedFiles(path_of(folder), description.files, DESCRIPTION, damaged, in_memory)


def damaged(path: object, why: str) -> SentembError:
    """The error for a file of an index that cannot be used."""
    return SentembError(
        f"{path}: the index is damaged: {why}; restore it from a copy or make it again with "
        "`sentemb index`"
    )
