"""Files of a folder that have the sizes and the checksums in its description."""

import hashlib
import io
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.system.bounds import is_integer
from sentemb.system.files import is_file, reading, status, unreadable
from sentemb.system.mapped_arrays import mapped_array

_SHA256 = re.compile(r"[0-9a-f]{64}")
_PIECE = 1 << 20
# What opening reads of a large file: this many pieces of this many bytes, spread over all of it.
_SAMPLES, _SAMPLE = 16, 1 << 16


@dataclass(frozen=True)
class CheckedFiles:
    """The files that a description lists.

    listed : ``bytes`` and ``sha256`` of each file by its name
    description : the name of the file that lists them
    damaged : makes the error for a file that is not as described, from its path and the reason
    in_memory : whether files are read instead of mapped
    """

    folder: Path
    listed: Mapping[str, Mapping[str, Any]]
    description: str
    damaged: Callable[[object, str], SentembError]
    in_memory: bool = False

    def array(
        self, name: str, dtype: str, shape: tuple[int | None, ...], read_only: bool = False
    ) -> np.ndarray:
        """The array in a ``.npy`` file, mapped as by `mapped_array`; only its size is checked."""
        path = self._sized(name)
        try:
            return mapped_array(path, dtype, shape, read_only, self.in_memory)
        except SentembError as error:
            why = f"it {str(error).removeprefix(f'{path}: ')}"
            raise self.damaged(path, why) from None

    def raw(self, name: str) -> np.ndarray:
        """The bytes of a file, mapped, (n,) uint8; only their number is checked."""
        path = self._sized(name)
        if not self.listed[name]["bytes"]:
            return np.empty(0, np.uint8)  # nothing cannot be mapped
        try:
            if not self.in_memory:
                return np.asarray(np.memmap(path, np.uint8, "r"))
            content = np.fromfile(path, np.uint8)
        except (OSError, ValueError) as error:
            raise unreadable(path, error) from error
        if content.size != self.listed[name]["bytes"]:
            raise self.damaged(path, "it has changed while it was read")
        content.flags.writeable = False
        return content

    def verify(self) -> None:
        """Read every file; a `SentembError` unless each has its checksum."""
        for name, file in self.listed.items():
            path = self._sized(name)
            if checksum(path)["sha256"] != file["sha256"]:
                raise self.damaged(path, "its contents do not match their checksum")

    def check_samples(self) -> None:
        """Read a little of every file; a `SentembError` unless all have the size and the sample.

        So a file of another folder is found, also one of the same size, however large files are.
        """
        for name, file in self.listed.items():
            path = self._sized(name)
            if sample(path) != file.get("sample"):
                raise self.damaged(
                    path, f"its contents are not those that {self.description} lists"
                )

    def _sized(self, name: str) -> Path:
        """The path of a file, which has the size that the description says."""
        path = self.folder / name
        metadata = status(path)
        if metadata is None or not is_file(path):
            raise self.damaged(
                path, "it is missing" if metadata is None else "it is not a regular file"
            )
        size = self.listed.get(name, {}).get("bytes")
        if metadata.st_size != size:
            listed = "none" if size is None else f"{size:,}"
            why = f"it has {metadata.st_size:,} bytes, but {self.description} lists {listed}"
            raise self.damaged(path, why)
        return path


def checksum(path: Path) -> dict[str, Any]:
    """``bytes`` and ``sha256`` of a file."""
    digest, size = hashlib.sha256(), 0
    with reading(path) as file:
        while piece := file.read(_PIECE):
            digest.update(piece)
            size += len(piece)
    return {"bytes": size, "sha256": digest.hexdigest()}


def described(path: Path) -> dict[str, Any]:
    """A file as `CheckedFiles.listed` has it, with the sample that `check_samples` compares."""
    return {**checksum(path), "sample": sample(path)}


def sample(path: Path) -> str:
    """The SHA-256 of pieces of a file, from the first to the last; of all of a small file."""
    digest = hashlib.sha256()
    with reading(path) as file:
        last = file.seek(0, io.SEEK_END) - _SAMPLE
        is_small = last <= _SAMPLE * (_SAMPLES - 1)
        for k in range(_SAMPLES):
            file.seek(k * _SAMPLE if is_small else last * k // (_SAMPLES - 1))
            digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def are_listed(value: Any) -> bool:
    """Whether ``value`` can be `CheckedFiles.listed`."""
    return isinstance(value, dict) and all(
        isinstance(file, dict)
        and is_integer(file.get("bytes"))
        and isinstance(file.get("sha256"), str)
        and _SHA256.fullmatch(file["sha256"])
        for file in value.values()
    )
