"""The text files of a model folder, read with a limit on their size."""

from collections.abc import Iterable
from pathlib import Path

from sentemb.models.files.tensor_files import check_regular, damaged
from sentemb.system.files import reading

# sentemb does not write a larger text file into a model folder.
_MAX_TEXT_BYTES = 64 << 20


def contents_of(path: Path) -> bytes:
    """The contents of a small regular file. A device may have no end and is refused."""
    check_regular(path)
    with reading(path) as file:
        contents = file.read(_MAX_TEXT_BYTES + 1)
    if len(contents) > _MAX_TEXT_BYTES:
        raise damaged(path, f"it has more than {_MAX_TEXT_BYTES:,} bytes")
    return contents


def lines_of(path: object, raw: bytes) -> list[str]:
    """The lines of a text, each of which ends; ``path`` is named if it is not UTF-8."""
    try:
        return raw.decode("utf-8").split("\n")[:-1]
    except UnicodeDecodeError:
        raise damaged(path, "it is not valid UTF-8") from None


def text_of(lines: Iterable[str]) -> str:
    """The text with these lines."""
    return "".join(f"{line}\n" for line in lines)
