"""The files of an index folder: written as a whole, mapped into memory when opened."""

import hashlib
import io
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.data.text_array import mapped_texts
from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint, save_model
from sentemb.models.files.model_folder import FILES
from sentemb.models.loading import load
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.bm25 import MAX_FIELD_WEIGHT
from sentemb.search import shortlist_files
from sentemb.search.confidence import Confidence
from sentemb.search.product_fields import TYPES, ProductFields, check_columns
from sentemb.search.ranking.opening import opened_ranker
from sentemb.search.ranking.part import Part, Unfit
from sentemb.search.ranking.parts import PART_TYPES
from sentemb.search.ranking.ranker import Catalogue, HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker, write_ranker
from sentemb.search.ranking.recipe import COSINE, EMBEDDING, MODEL_ALONE
from sentemb.search.snapshot import Snapshot
from sentemb.system import descriptions
from sentemb.system.bounds import is_finite, is_integer
from sentemb.system.checked_files import CheckedFiles, are_listed, sample
from sentemb.system.files import is_file, is_folder, make_folder, path_of, status, writing
from sentemb.system.paths import AnyPath

DESCRIPTION, MODEL = "index.json", "model"
# The folder of the index in one that `sentemb start` has made, and a file next to it.
MADE, MADE_WITH = "index", "titles.tsv"
IDS, TITLES, EMPTY = "ids.txt", "titles.txt", "empty.npy"
# There only if titles have fields.
PRODUCTS = "products.sqlite"
ID_OFFSETS, TITLE_OFFSETS = "id-offsets.npy", "title-offsets.npy"
FORMAT = 1
# How vectors are stored, and the dtype of their file.
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
_MOST = 2**31 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 20
# What the arrays of parts may be, with or without a second axis.
_DTYPES = {"uint8": "|u1", "int8": "|i1", "int32": "<i4", "int64": "<i8"} | {
    "float16": "<f2", "float32": "<f4"
}  # fmt: skip


@dataclass(frozen=True)
class Description:
    """The content of ``index.json``.

    titles, dim : the shape of the vectors
    dtype : one of `DTYPES`
    empty : titles with no known words
    model_sha256 : see `sentemb.models.files.model_files.fingerprint`
    recipe : weights and parameters, as `Recipe.as_dict` has them
    parts : the dtype and shape of each array of each part of the score
    files : size in bytes and SHA-256 of each file of the folder but this one and those of the model
    fields : the type of each field of the titles
    confidence : numbers that `Confidence.of_json` reads; None without a calibration
    clusters : what `sentemb.search.shortlist_files` says of the shortlist; None without one
    search_fields : the weights of the fields in which words are searched
    """

    titles: int
    dim: int
    dtype: str
    empty: int
    model_sha256: str
    recipe: Mapping[str, Any]
    parts: Mapping[str, Mapping[str, Any]]
    files: Mapping[str, Mapping[str, Any]]
    fields: Mapping[str, str]
    confidence: Mapping[str, Any] | None
    clusters: Mapping[str, Any] | None = None
    search_fields: Mapping[str, float] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """One hash of everything in the index."""
        return hashlib.sha256(json.dumps(vars(self), sort_keys=True).encode()).hexdigest()


# -- writing ----------------------------------------------------------------------------------


def write_contents(snapshot: Snapshot, folder: Path) -> None:
    """Write all files of an index into a folder."""
    catalogue, ranker = snapshot.catalogue, snapshot.ranker
    empty = np.flatnonzero(catalogue.is_empty)
    arrays: dict[str, np.ndarray] = {
        IDS: snapshot.ids.raw,
        ID_OFFSETS: snapshot.ids.offsets,
        TITLES: snapshot.titles.raw,
        TITLE_OFFSETS: snapshot.titles.offsets,
        EMPTY: empty,
    }
    if snapshot.fields.types:
        arrays[PRODUCTS] = snapshot.fields.image
    parts: dict[str, dict[str, Any]] = {}
    for name, part in catalogue.parts.items():
        make_folder(folder / name)
        parts[name] = {}
        for array_name, array in part.arrays().items():
            parts[name][array_name] = [array.dtype.name, *array.shape]
            arrays[f"{name}/{array_name}.npy"] = array
    shortlist = catalogue.shortlist
    if shortlist is not None:
        make_folder(folder / shortlist_files.FOLDER)
        arrays |= shortlist_files.arrays_of(shortlist)
    files = {name: _write(folder / name, array) for name, array in arrays.items()}
    for name, listed in files.items():
        listed["sample"] = sample(folder / name)
    saved = ranker.model.saved()
    save_model(saved, folder / MODEL)
    if ranker.recipe != MODEL_ALONE:
        write_ranker(folder / MODEL, ranker.stored())
    description = Description(
        titles=len(snapshot.ids),
        dim=ranker.model.dim,
        dtype=snapshot.dtype,
        empty=len(empty),
        model_sha256=fingerprint(saved),
        recipe=ranker.recipe.as_dict(),
        parts=parts,
        files=files,
        fields=snapshot.fields.types,
        confidence=None if snapshot.confidence is None else snapshot.confidence.as_dict(),
        clusters=None if shortlist is None else shortlist_files.description_of(shortlist),
        search_fields=snapshot.search_fields,
    )
    values = {"format": FORMAT, **vars(description)}
    if not snapshot.search_fields:
        del values["search_fields"]  # as version 1.0 writes it
    text = json.dumps(values, indent=1)
    with writing(folder / DESCRIPTION) as file:
        file.write(f"{text}\n".encode())


def part_file(part: str) -> str:
    """The file in which the vectors of a part are, for messages."""
    return f"{part}/{'vectors' if part == COSINE else 'scales'}.npy"


def _write(path: Path, array: np.ndarray) -> dict[str, Any]:
    """Write one array; its size and checksum."""
    digest, size = hashlib.sha256(), 0
    with writing(path) as file:
        pieces = [_header(array)] if path.suffix == ".npy" else []
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


def index_folder(folder: AnyPath) -> AnyPath:
    """The folder of an index: ``folder``, or that of the index which `sentemb start` made in it."""
    made = path_of(folder) / MADE
    is_made = is_file(path_of(folder) / MADE_WITH) and is_index(made)
    return str(made) if is_made and not is_index(folder) else folder


def listed_files(folder: AnyPath) -> frozenset[str]:
    """The files of the index in ``folder``, those of its model included; none without an index.

    Raises `SentembError` if the description cannot be read.
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
    path = path_of(folder) / DESCRIPTION
    if status(path) is None:
        raise SentembError(
            f"{folder}: there is no index here ({DESCRIPTION} is missing); make one with "
            "`sentemb index MODEL TITLES -o INDEX`"
        )
    values = {"search_fields": {}, **descriptions.read_description(path, FORMAT, damaged)}
    for name, is_right in _IS_RIGHT.items():
        if name not in values or not is_right(values[name]):
            raise damaged(path, f'"{name}" is missing or wrong')
    return Description(**{name: values[name] for name in _IS_RIGHT})


def _is_between(least: int) -> Callable[[Any], bool]:
    return lambda value: is_integer(value) and least <= value <= _MOST


def _are_parts(value: Any) -> bool:
    names = {part.name for part in PART_TYPES}
    return (
        isinstance(value, dict)
        and COSINE in value
        and value.keys() <= names
        and all(isinstance(arrays, dict) and arrays for arrays in value.values())
        and all(_is_array(array) for arrays in value.values() for array in arrays.values())
        and all(name.isidentifier() for arrays in value.values() for name in arrays)
    )


def _is_array(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in (2, 3):
        return False
    dtype, *shape = value
    is_known = isinstance(dtype, str) and dtype in _DTYPES
    return is_known and all(is_integer(size) and size >= 0 for size in shape)


def _are_fields(value: Any) -> bool:
    if not isinstance(value, dict) or not all(kind in TYPES for kind in value.values()):
        return False
    try:
        check_columns(list(value))
    except SentembError:
        return False
    return True


def _are_weights(value: Any) -> bool:
    return isinstance(value, dict) and all(
        is_finite(weight) and 0 < weight <= MAX_FIELD_WEIGHT for weight in value.values()
    )


_IS_RIGHT: dict[str, Callable[[Any], bool]] = {
    "titles": _is_between(0),
    "dim": _is_between(1),
    "dtype": lambda value: isinstance(value, str) and value in DTYPES,
    "empty": _is_between(0),
    "model_sha256": lambda value: isinstance(value, str) and bool(_SHA256.fullmatch(value)),
    "recipe": lambda value: isinstance(value, dict),
    "parts": _are_parts,
    "files": are_listed,
    "fields": _are_fields,
    "clusters": shortlist_files.is_right,
    "search_fields": _are_weights,
    "confidence": lambda value: value is None or Confidence.of_json(value) is not None,
}


def open_model(folder: AnyPath, description: Description, threads: int | None) -> HybridRanker:
    """The ranker of an index: that in the folder of its model, or the model alone."""
    path = path_of(folder) / MODEL
    model = load(path, threads)
    if (
        not isinstance(model, SentenceEncoder)
        or model.dim != description.dim
        or fingerprint(model.saved()) != description.model_sha256
    ):
        raise damaged(path, "it is another model than that of the vectors")
    if has_ranker(path):
        ranker = opened_ranker(path, model, None, threads)
    else:
        ranker = HybridRanker(model, MODEL_ALONE, threads=threads)
    # Version 1.0 wrote no letters.
    if ranker.recipe.as_dict() != {"letters": ranker.recipe.letters, **description.recipe}:
        raise damaged(path, f"its ranker is another one than {DESCRIPTION} says")
    return ranker


def open_snapshot(
    folder: AnyPath, description: Description, ranker: HybridRanker, in_memory: bool
) -> Snapshot:
    """Map the files of an index. Sizes and shapes are checked; vectors and texts are not read."""
    path, n = path_of(folder), description.titles
    files = _files(folder, description, in_memory)
    texts = [
        mapped_texts(files, name, offsets, n)
        for name, offsets in ((IDS, ID_OFFSETS), (TITLES, TITLE_OFFSETS))
    ]
    empty = files.array(EMPTY, "<i8", (description.empty,), read_only=True)
    if empty.size and not 0 <= empty.min() <= empty.max() < n:
        raise damaged(path / EMPTY, "it names a title that does not exist")
    is_empty = np.zeros(n, np.bool_)
    is_empty[empty] = True
    parts = {
        part.name: _opened_part(path, files, part, description, _dim(part, description, ranker))
        for part in PART_TYPES
        if part.name in description.parts
    }
    lacking = set(ranker.recipe.parts) - parts.keys()
    if lacking:
        raise damaged(path / DESCRIPTION, f"the part {min(lacking)} is missing")
    of_titles = parts, ranker.recipe, n, description.dim
    try:
        shortlist = shortlist_files.opened(files, description.clusters, *of_titles)
    except Unfit as error:
        raise damaged(path / error.args[0], error.args[1]) from None
    fields = ProductFields.given(None, n)
    if description.fields:
        image = files.raw(PRODUCTS)
        fields = ProductFields(description.fields, n, image, None if in_memory else path / PRODUCTS)
        fields.check()
    snapshot = Snapshot(
        ranker,
        texts[0],
        Catalogue(texts[1], parts, is_empty, shortlist=shortlist),
        fields,
        Confidence.of_json(description.confidence),
        (path.resolve(), description.identity),
        description.search_fields,
    )
    if snapshot.dtype != description.dtype:
        raise damaged(path / DESCRIPTION, '"dtype" is another one than that of the vectors')
    return snapshot


def _dim(kind: type[Part], description: Description, ranker: HybridRanker) -> int:
    """Numbers of a vector of a part."""
    embedding = ranker.embedding if kind.name == EMBEDDING else None
    return description.dim if embedding is None else embedding.dim


def _opened_part(
    folder: Path, files: CheckedFiles, kind: type[Part], description: Description, dim: int
) -> Part:
    """Map the arrays of one part of an index."""
    arrays = {
        name: files.array(f"{kind.name}/{name}.npy", _DTYPES[dtype], tuple(shape), read_only=True)
        for name, (dtype, *shape) in description.parts[kind.name].items()
    }
    try:
        return kind.of_arrays(arrays, description.titles, dim)
    except KeyError as error:
        why = f"the part {kind.name} has no {error.args[0]}"
        raise damaged(folder / DESCRIPTION, why) from None
    except Unfit as error:
        name, why = error.args
        raise damaged(folder / kind.name / f"{name}.npy", why) from None


def check_files(folder: AnyPath, description: Description) -> None:
    """Refuse a folder in which a listed file is missing, of no part, or that of another index."""
    names = {IDS, ID_OFFSETS, TITLES, TITLE_OFFSETS, EMPTY} | {
        f"{part}/{name}.npy" for part, arrays in description.parts.items() for name in arrays
    }
    if description.fields:
        names.add(PRODUCTS)
    names |= shortlist_files.files_of(description.clusters)
    if names != description.files.keys():
        path = path_of(folder) / DESCRIPTION
        raise damaged(path, "it lists other files than those of its parts")
    _files(folder, description).check_samples()


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
