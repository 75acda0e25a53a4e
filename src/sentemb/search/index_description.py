"""The description of an index folder: what its files hold."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.retrieval.bm25 import MAX_FIELD_WEIGHT
from sentemb.search import shortlist_files
from sentemb.search.confidence import Confidence
from sentemb.search.product_fields import TYPES, check_columns
from sentemb.search.ranking.parts import PART_TYPES
from sentemb.search.ranking.recipe import COSINE
from sentemb.system import descriptions
from sentemb.system.bounds import is_finite, is_integer
from sentemb.system.checked_files import are_listed
from sentemb.system.files import path_of, status
from sentemb.system.paths import AnyPath

DESCRIPTION = "index.json"
FORMAT = 1
# How vectors are stored, and the dtype of their file.
DTYPES = {"float32": "<f4", "float16": "<f2", "int8": "|i1"}
_MOST = 2**31 - 1
_SHA256 = re.compile(r"[0-9a-f]{64}")
# What the arrays of parts may be, with or without a second axis.
ARRAY_DTYPES = {"uint8": "|u1", "int8": "|i1", "int32": "<i4", "int64": "<i8"} | {
    "float16": "<f2", "float32": "<f4"
}  # fmt: skip


@dataclass(frozen=True)
class SegmentDescription:
    """The entries of ``index.json`` about a segment.

    titles : its rows, one for each title
    empty : titles with no known words
    parts : the dtype and shape of each array of each part of the score
    clusters : what `sentemb.search.shortlist_files` says of the shortlist; None without one
    removed : titles that were removed, whose rows are still there
    """

    titles: int
    empty: int
    parts: Mapping[str, Mapping[str, Any]]
    clusters: Mapping[str, Any] | None = None
    removed: int = 0

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict; as version 1.0 has it, if no title was removed."""
        values = dict(vars(self))
        if not self.removed:
            del values["removed"]
        return values


@dataclass(frozen=True)
class Description:
    """The content of ``index.json``.

    segments : the titles, at least one segment, which may be empty
    dim : the length of a vector
    dtype : one of `DTYPES`
    model_sha256 : see `sentemb.models.files.model_files.fingerprint`
    recipe : weights and parameters, as `Recipe.as_dict` has them
    files : size in bytes and SHA-256 of each file of the folder but this one and those of the model
    fields : the type of each field of the titles
    confidence : numbers that `Confidence.of_json` reads; None without a calibration
    search_fields : the weights of the fields in which words are searched
    """

    segments: tuple[SegmentDescription, ...]
    dim: int
    dtype: str
    model_sha256: str
    recipe: Mapping[str, Any]
    files: Mapping[str, Mapping[str, Any]]
    fields: Mapping[str, str]
    confidence: Mapping[str, Any] | None
    search_fields: Mapping[str, float] = field(default_factory=dict)

    @property
    def folders(self) -> Iterable[tuple[str, SegmentDescription]]:
        """Each segment with the begin of the names of its files; see `segment_folder`."""
        return ((segment_folder(k), segment) for k, segment in enumerate(self.segments))

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict; as version 1.0 has it, if there is one segment."""
        first, *behind = (segment.as_dict() for segment in self.segments)
        values = {**first, **vars(self)}
        del values["segments"]
        return {**values, "segments": behind} if behind else values

    @property
    def identity(self) -> str:
        """One hash of everything in the index."""
        return hashlib.sha256(json.dumps(self.as_dict(), sort_keys=True).encode()).hexdigest()


def segment_folder(number: int) -> str:
    """The begin of the names of the files of a segment; empty for the first."""
    return f"segments/{number}/" if number else ""


def read_description(folder: AnyPath) -> Description:
    """The checked description of an index folder."""
    path = path_of(folder) / DESCRIPTION
    if status(path) is None:
        raise SentembError(
            f"{folder}: there is no index here ({DESCRIPTION} is missing); make one with "
            "`sentemb index MODEL TITLES -o INDEX`"
        )
    absent: dict[str, Any] = {"search_fields": {}, "segments": []}
    values = {**absent, **descriptions.read_description(path, FORMAT, damaged)}
    if not isinstance(values["segments"], list):
        raise damaged(path, '"segments" is wrong')
    first = {name: values[name] for name in _OF_SEGMENT if name in values}
    segments = tuple(_segment(path, given) for given in (first, *values["segments"]))
    return Description(segments, **_checked(path, values, _IS_RIGHT))


def _segment(path: Path, values: Any) -> SegmentDescription:
    if not isinstance(values, dict):
        raise damaged(path, '"segments" is wrong')
    segment = SegmentDescription(**_checked(path, {"removed": 0, **values}, _OF_SEGMENT))
    if segment.removed > segment.titles:
        raise damaged(path, '"removed" is wrong')
    return segment


def _checked(
    path: Path, values: Mapping[str, Any], rules: Mapping[str, Callable[[Any], bool]]
) -> dict[str, Any]:
    for name, is_right in rules.items():
        if name not in values or not is_right(values[name]):
            raise damaged(path, f'"{name}" is missing or wrong')
    return {name: values[name] for name in rules}


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
    is_known = isinstance(dtype, str) and dtype in ARRAY_DTYPES
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


_OF_SEGMENT: dict[str, Callable[[Any], bool]] = {
    "titles": _is_between(0),
    "empty": _is_between(0),
    "parts": _are_parts,
    "clusters": shortlist_files.is_right,
    "removed": _is_between(0),
}
_IS_RIGHT: dict[str, Callable[[Any], bool]] = {
    "dim": _is_between(1),
    "dtype": lambda value: isinstance(value, str) and value in DTYPES,
    "model_sha256": lambda value: isinstance(value, str) and bool(_SHA256.fullmatch(value)),
    "recipe": lambda value: isinstance(value, dict),
    "files": are_listed,
    "fields": _are_fields,
    "search_fields": _are_weights,
    "confidence": lambda value: value is None or Confidence.of_json(value) is not None,
}


def part_file(part: str) -> str:
    """The file in which the vectors of a part are, for messages."""
    return f"{part}/{'vectors' if part == COSINE else 'scales'}.npy"


def damaged(path: object, why: str) -> SentembError:
    """The error for a file of an index that cannot be used."""
    return SentembError(
        f"{path}: the index is damaged: {why}; restore it from a copy or make it again with "
        "`sentemb index`"
    )
