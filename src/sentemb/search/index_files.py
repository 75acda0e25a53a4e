"""The files of an index folder: written as a whole, mapped into memory when opened."""

import hashlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import mapped_texts
from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint, save_model
from sentemb.models.files.model_folder import FILES
from sentemb.models.loading import load
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.search import shortlist_files
from sentemb.search.confidence import Confidence
from sentemb.search.index_description import (
    ARRAY_DTYPES,
    DESCRIPTION,
    FORMAT,
    Description,
    SegmentDescription,
    damaged,
    read_description,
    segment_folder,
)
from sentemb.search.left import Left
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.opening import opened_ranker
from sentemb.search.ranking.part import Part, Unfit
from sentemb.search.ranking.parts import PART_TYPES
from sentemb.search.ranking.ranker import Catalogue, HybridRanker
from sentemb.search.ranking.ranker_files import has_ranker, write_ranker
from sentemb.search.ranking.recipe import EMBEDDING, MODEL_ALONE
from sentemb.search.segment import PRODUCTS, Segment
from sentemb.search.snapshot import Snapshot
from sentemb.system.checked_files import CheckedFiles, sample
from sentemb.system.files import (
    is_file,
    is_folder,
    make_folder,
    path_of,
    writing,
)
from sentemb.system.kept_files import KeptFiles
from sentemb.system.paths import AnyPath

MODEL = "model"
# The folder of the index in one that `sentemb start` has made, and a file next to it.
MADE, MADE_WITH = "index", "titles.tsv"
IDS, TITLES, EMPTY = "ids.txt", "titles.txt", "empty.npy"
# There only if titles were removed.
REMOVED = "removed.npy"
ID_OFFSETS, TITLE_OFFSETS = "id-offsets.npy", "title-offsets.npy"
_PIECE = 1 << 20


# -- writing ----------------------------------------------------------------------------------


def write_contents(snapshot: Snapshot, folder: Path, replaces: bool) -> None:
    """Write all files of an index into a folder.

    ``replaces`` says that it takes the place of the one that was opened: the files of segments, of
    the model and of the ranker that have not changed are not written again.
    """
    ranker = snapshot.ranker
    segments: list[SegmentDescription] = []
    files: dict[str, dict[str, Any]] = {}
    for k, segment in enumerate(snapshot.segments):
        name = segment_folder(k)
        described, of_segment = _write_segment(segment, folder / name, replaces)
        segments.append(described)
        files |= {name + file: listed for file, listed in of_segment.items()}
    saved, stored = ranker.model.saved(), ranker.files if replaces else None
    if stored is None or not stored.link(folder / MODEL):
        save_model(saved, folder / MODEL)
        if ranker.recipe != MODEL_ALONE:
            write_ranker(folder / MODEL, ranker.stored())
    description = Description(
        tuple(segments),
        dim=ranker.model.dim,
        dtype=snapshot.dtype,
        model_sha256=fingerprint(saved),
        recipe=ranker.recipe.as_dict(),
        files=files,
        fields=snapshot.fields.types,
        confidence=None if snapshot.confidence is None else snapshot.confidence.as_dict(),
        search_fields=snapshot.search_fields,
    )
    values = {"format": FORMAT, **description.as_dict()}
    if not snapshot.search_fields:
        del values["search_fields"]  # as version 1.0 writes it
    text = json.dumps(values, indent=1)
    with writing(folder / DESCRIPTION) as file:
        file.write(f"{text}\n".encode())


def _write_segment(
    segment: Segment, folder: Path, replaces: bool
) -> tuple[SegmentDescription, dict[str, dict[str, Any]]]:
    """Write the files of a segment into a folder; their sizes and checksums, by name."""
    catalogue, removed = segment.catalogue, segment.left.removed
    empty = np.flatnonzero(catalogue.is_empty)
    arrays: dict[str, np.ndarray] = {
        IDS: segment.ids.raw,
        ID_OFFSETS: segment.ids.offsets,
        TITLES: segment.titles.raw,
        TITLE_OFFSETS: segment.titles.offsets,
        EMPTY: empty,
    }
    if segment.fields.types:
        arrays[PRODUCTS] = segment.fields.image
    if removed.size:
        arrays[REMOVED] = removed
    parts: dict[str, dict[str, Any]] = {}
    for name, part in catalogue.parts.items():
        parts[name] = {}
        for array_name, array in part.arrays().items():
            parts[name][array_name] = [array.dtype.name, *array.shape]
            arrays[f"{name}/{array_name}.npy"] = array
    shortlist = catalogue.shortlist
    if shortlist is not None:
        arrays |= shortlist_files.arrays_of(shortlist)
    kept_files = segment.files if replaces else None
    is_linked = kept_files is not None and kept_files.link(folder)
    files = {
        name: segment.listed[name]
        if is_linked and (folder / name).exists()
        else _written(folder / name, array)
        for name, array in arrays.items()
    }
    clusters = None if shortlist is None else shortlist_files.description_of(shortlist)
    return SegmentDescription(len(segment.ids), len(empty), parts, clusters, removed.size), files


def _written(path: Path, array: np.ndarray) -> dict[str, Any]:
    """Write one array; its size, checksum and sample."""
    make_folder(path.parent)
    return {**_write(path, array), "sample": sample(path)}


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


def open_model(
    folder: AnyPath, description: Description, threads: int | None, in_memory: bool
) -> HybridRanker:
    """The ranker of an index: that in the folder of its model, or the model alone."""
    path = path_of(folder) / MODEL
    files = KeptFiles.of(path, FILES)
    model = load(path, threads)
    if (
        not isinstance(model, SentenceEncoder)
        or model.dim != description.dim
        or fingerprint(model.saved()) != description.model_sha256
    ):
        raise damaged(path, "it is another model than that of the vectors")
    if has_ranker(path):
        ranker = opened_ranker(path, model, None, threads, in_memory)
    else:
        ranker = HybridRanker(model, MODEL_ALONE, threads=threads)
    # Version 1.0 wrote no letters.
    if ranker.recipe.as_dict() != {"letters": ranker.recipe.letters, **description.recipe}:
        raise damaged(path, f"its ranker is another one than {DESCRIPTION} says")
    ranker.is_stored_in(files)
    return ranker


def open_snapshot(
    folder: AnyPath, description: Description, ranker: HybridRanker, in_memory: bool
) -> Snapshot:
    """Map the files of an index. Sizes and shapes are checked; vectors and texts are not read."""
    path = path_of(folder)
    segments = tuple(
        _opened_segment(files, segment, description, ranker)
        for files, segment in _of_segments(folder, description, in_memory)
    )
    snapshot = Snapshot(
        ranker,
        segments,
        Confidence.of_json(description.confidence),
        (path.resolve(), description.identity),
        description.search_fields,
    )
    if snapshot.dtype != description.dtype:
        raise damaged(path / DESCRIPTION, '"dtype" is another one than that of the vectors')
    return snapshot


def _opened_segment(
    files: CheckedFiles, segment: SegmentDescription, description: Description, ranker: HybridRanker
) -> Segment:
    """Map the files of a segment."""
    path, n = files.folder, segment.titles
    texts = [
        mapped_texts(files, name, offsets, n)
        for name, offsets in ((IDS, ID_OFFSETS), (TITLES, TITLE_OFFSETS))
    ]
    is_empty = np.zeros(n, np.bool_)
    is_empty[_rows(files, EMPTY, segment.empty, n)] = True
    removed = np.empty(0, np.int64)
    if segment.removed:
        removed = _rows(files, REMOVED, segment.removed, n)
        if (np.diff(removed) <= 0).any():
            raise damaged(path / REMOVED, "its numbers do not rise")
    parts = {
        part.name: _opened_part(files, part, segment, _dim(part, description, ranker))
        for part in PART_TYPES
        if part.name in segment.parts
    }
    lacking = set(ranker.recipe.parts) - parts.keys()
    if lacking:
        raise damaged(path / DESCRIPTION, f"the part {min(lacking)} is missing")
    of_titles = parts, ranker.recipe, n, description.dim
    try:
        shortlist = shortlist_files.opened(files, segment.clusters, *of_titles)
    except Unfit as error:
        raise damaged(path / error.args[0], error.args[1]) from None
    fields = ProductFields.given(None, n)
    if description.fields:
        image = files.raw(PRODUCTS)
        mapped = None if files.in_memory else path / PRODUCTS
        fields = ProductFields(description.fields, n, image, mapped)
        fields.check()
    return Segment(
        texts[0],
        Catalogue(texts[1], parts, is_empty, shortlist=shortlist),
        fields,
        Left(n, removed),
        KeptFiles.of(path.resolve(), files.listed.keys() - {REMOVED}),
        files.listed,
    )


def _dim(kind: type[Part], description: Description, ranker: HybridRanker) -> int:
    """Numbers of a vector of a part."""
    embedding = ranker.embedding if kind.name == EMBEDDING else None
    return description.dim if embedding is None else embedding.dim


def _rows(files: CheckedFiles, name: str, count: int, n: int) -> NDArray[np.int64]:
    """A file of numbers of titles."""
    rows = files.array(name, "<i8", (count,), read_only=True)
    if rows.size and not 0 <= rows.min() <= rows.max() < n:
        raise damaged(files.folder / name, "it names a title that does not exist")
    return rows


def _opened_part(
    files: CheckedFiles, kind: type[Part], segment: SegmentDescription, dim: int
) -> Part:
    """Map the arrays of one part of a segment."""
    arrays = {
        name: files.array(
            f"{kind.name}/{name}.npy", ARRAY_DTYPES[dtype], tuple(shape), read_only=True
        )
        for name, (dtype, *shape) in segment.parts[kind.name].items()
    }
    try:
        return kind.of_arrays(arrays, segment.titles, dim)
    except KeyError as error:
        why = f"the part {kind.name} has no {error.args[0]}"
        raise damaged(files.folder / DESCRIPTION, why) from None
    except Unfit as error:
        name, why = error.args
        raise damaged(files.folder / kind.name / f"{name}.npy", why) from None


def check_files(folder: AnyPath, description: Description) -> None:
    """Refuse a folder in which a listed file is missing, of no part, or that of another index."""
    names = {
        begin + name
        for begin, segment in description.folders
        for name in _names_of(segment, bool(description.fields))
    }
    if names != description.files.keys():
        path = path_of(folder) / DESCRIPTION
        raise damaged(path, "it lists other files than those of its parts")
    _files(folder, description).check_samples()


def _names_of(segment: SegmentDescription, has_fields: bool) -> set[str]:
    """The files of a segment."""
    names = {IDS, ID_OFFSETS, TITLES, TITLE_OFFSETS, EMPTY} | {
        f"{part}/{name}.npy" for part, arrays in segment.parts.items() for name in arrays
    }
    names |= {PRODUCTS} if has_fields else set()
    names |= {REMOVED} if segment.removed else set()
    return names | shortlist_files.files_of(segment.clusters)


def verify_contents(folder: AnyPath, description: Description) -> None:
    """Read every file of an index; a `SentembError` unless each has its checksum."""
    _files(folder, description).verify()


def _files(folder: AnyPath, description: Description, in_memory: bool = False) -> CheckedFiles:
    return CheckedFiles(path_of(folder), description.files, DESCRIPTION, damaged, in_memory)


def _of_segments(
    folder: AnyPath, description: Description, in_memory: bool
) -> Iterator[tuple[CheckedFiles, SegmentDescription]]:
    """The files of each segment, by their names in its own folder."""
    for begin, segment in description.folders:
        names = _names_of(segment, bool(description.fields))
        listed = {name: description.files[begin + name] for name in names}
        inside = path_of(folder) / begin
        yield CheckedFiles(inside, listed, DESCRIPTION, damaged, in_memory), segment
