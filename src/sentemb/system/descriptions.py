"""The JSON files that say what a folder holds, and in which format."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer
from sentemb.system.files import is_file, reading, status

# A description lists names and sizes, so no honest one is larger.
_MOST_BYTES = 1 << 20


def parse_json(text: str | bytes) -> Any:
    """`json.loads` with a ValueError for every failure, lone surrogates included."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError:
        raise ValueError("nested too deep") from None
    return value


def check_format(path: object, description: Mapping[str, Any], number: int) -> None:
    """Raise a `SentembError` unless ``description`` is of format ``number``."""
    written = description.get("format")
    if not is_integer(written) or written != number:
        what = "no format number" if written is None else f"format {brief(written)}"
        raise SentembError(
            f"{path}: has {what}, and this version of sentemb reads format {number}; use the "
            "version that wrote it, or make it again"
        )


def read_description(
    path: Path, number: int, damaged: Callable[[Path, str], SentembError]
) -> dict[str, Any]:
    """Read a description of format ``number``.

    Raises `SentembError` for another format; ``damaged`` makes the error for a file that is not a
    description, from its path and the reason.
    """
    metadata = status(path)
    if metadata is None:
        raise damaged(path, "it is missing")
    if not is_file(path) or metadata.st_size > _MOST_BYTES:
        raise damaged(path, "it is not a regular file, or a huge one")
    with reading(path) as file:
        raw = file.read(_MOST_BYTES)
    try:
        description = parse_json(raw)
    except ValueError:
        raise damaged(path, "it is not JSON") from None
    if not isinstance(description, dict):
        raise damaged(path, "it is not a JSON object")
    check_format(path, description, number)
    return description
