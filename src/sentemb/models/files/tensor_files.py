"""Named arrays in one safetensors file with a checksum of its contents.

Reading executes nothing, and arrays are read one by one, after the file's header has said how large
they are. A file may have a checksum of each array, so that some are read and checked without the
others.
"""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BufferedReader
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from sentemb.errors import SentembError
from sentemb.system.descriptions import parse_json
from sentemb.system.files import is_file, reading, replacing, status, unreadable
from sentemb.system.mapped_arrays import bytes_of
from sentemb.system.paths import AnyPath

if TYPE_CHECKING:
    from hashlib import _Hash


# One entry only: safetensors writes several in random order, and equal contents should make equal
# files.
_METADATA = "sentemb"
_MAX_HEADER_BYTES = 16 << 20
# Training leaves no larger values; sums of values up to this are finite.
_LARGEST = 1e12
# In the order in which they are in a file.
_TYPES = {"I64": "int64", "F64": "float64", "F32": "float32", "I32": "int32", "U8": "uint8"}


class TensorFile(Mapping[str, np.ndarray]):
    """The arrays of an open file by name. Each is read when it is asked for.

    ``metadata`` is the metadata that `write_tensors` was given.
    """

    metadata: dict[str, Any]

    def __init__(self, path: AnyPath, file: Any, raw: BufferedReader) -> None:
        self.path = path
        self._raw, self._is_checked = raw, False
        self._mapped: np.ndarray | None = None
        stored = parse_json((file.metadata() or {}).get(_METADATA, "{}"))
        contents = stored.get("contents") if isinstance(stored, dict) else None
        if not isinstance(contents, dict):
            raise damaged(path, "it is not a file that sentemb wrote")
        self.metadata = contents
        self._sha256 = stored.get("sha256")
        slices = {name: file.get_slice(name) for name in sorted(file.keys())}
        self._shapes = {name: tuple(part.get_shape()) for name, part in slices.items()}
        self._types = {name: _TYPES.get(str(part.get_dtype())) for name, part in slices.items()}
        strange = next((name for name in slices if self._types[name] is None), None)
        if strange is not None:
            raise damaged(path, f"{strange} is of a type that sentemb does not write")
        self._starts = _starts(raw)
        # Of each array, if the file has them; the checksum of the file is then that of these.
        self._digests = stored.get("tensors")
        if self._digests is not None:
            expected = _digest([contents, self._digests]).hexdigest()
            if self._sha256 != expected or self._digests.keys() != self._shapes.keys():
                raise damaged(path, "its contents do not match their own checksum")

    @property
    def sha256(self) -> str:
        """The checksum that the file has of itself, see `checksum`."""
        return str(self._sha256)

    def __len__(self) -> int:
        return len(self._shapes)

    def __iter__(self) -> Iterator[str]:
        return iter(self._shapes)

    def __contains__(self, name: object) -> bool:
        return name in self._shapes

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._shapes:
            raise KeyError(name)
        array = np.empty(self._shapes[name], self._types[name])
        # Pages of a mapped file would count as memory of this process, as well as the array.
        try:
            self._raw.seek(self._starts[name])
            n_bytes = self._raw.readinto(array.data.cast("B")) if array.size else 0
        except OSError as error:
            raise unreadable(self.path, error) from error
        if n_bytes != array.nbytes:
            raise damaged(self.path, f"it ends within {name}")
        return array

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of array ``name``, or None if the file lacks it."""
        return self._shapes.get(name)

    def dtype(self, name: str) -> np.dtype | None:
        """The type of array ``name``, or None if the file lacks it."""
        return np.dtype(self._types[name]) if name in self._types else None

    def expect(self, name: str, shape: Sequence[int], dtype: DTypeLike) -> None:
        """Raise a `Damaged` unless array ``name`` exists with this shape and dtype."""
        if self._shapes.get(name) != tuple(shape) or self._types[name] != np.dtype(dtype).name:
            raise damaged(self.path, f"{name} is missing or of another shape")

    def damaged(self, why: str) -> "Damaged":
        """The error to raise if this file cannot be used."""
        return damaged(self.path, why)

    def checked(self) -> Iterator[tuple[str, np.ndarray]]:
        """Yield every name and array, each read once.

        Raises `Damaged` if a value is not finite or is huge; after the last array, if any byte
        differs from what was written. Do not use the arrays before that.
        """
        digest = _digest(self.metadata)
        for name in self:
            array = self[name] if self._mapped is None else self._of_map(name)
            if self._digests is None:
                _add(digest, name, array)
            elif self._digests[name] != _digest_of(name, array):
                raise damaged(self.path, f"{name} does not match its checksum")
            if not _is_moderate(array):
                raise damaged(self.path, f"{name} has a value that is not a finite number or huge")
            yield name, array
        if self._digests is None and self._sha256 != digest.hexdigest():
            raise damaged(self.path, "its contents do not match their own checksum")

    def map(self) -> None:
        """Map the file, so that its arrays can be read after it is closed, and replaced."""
        try:
            raw: Any = self._raw
            self._mapped = np.asarray(np.memmap(raw, np.uint8, "r"))
        except (OSError, ValueError) as error:
            raise unreadable(self.path, error) from error

    def mapped(self, name: str) -> np.ndarray:
        """An array of a file that is mapped, compared with its checksum.

        Without checksums of arrays the whole file is checked. Raises `Damaged` as `checked`, or if
        the file lacks the array.
        """
        if name not in self._shapes:
            raise damaged(self.path, f"{name} is missing")
        array = self._of_map(name)
        if self._digests is None:
            self.check()
        elif self._digests[name] != _digest_of(name, array):
            raise damaged(self.path, f"{name} does not match its checksum")
        return array

    def _of_map(self, name: str) -> np.ndarray:
        assert self._mapped is not None
        shape, dtype = self._shapes[name], np.dtype(self._types[name])
        start = self._starts[name]
        raw = self._mapped[start : start + math.prod(shape) * dtype.itemsize]
        return raw.view(dtype).reshape(shape)

    def check(self) -> None:
        """`checked` without the arrays."""
        if self._is_checked:
            return
        self._is_checked = True
        for _ in self.checked():
            pass


@contextlib.contextmanager
def open_tensors(path: AnyPath) -> Iterator[TensorFile]:
    """Open a file that `write_tensors` wrote; `Damaged` if it is another file, or not a whole one.

    The arrays are not checked yet: see `TensorFile.expect` and `TensorFile.checked`.
    """
    from safetensors import SafetensorError, safe_open

    check_regular(path)
    with reading(path) as file:
        size = int.from_bytes(file.read(8), "little")
    if size > _MAX_HEADER_BYTES:
        raise damaged(path, f"its header claims to have {size:,} bytes")
    with contextlib.ExitStack() as stack:
        try:
            opened = TensorFile(path, *_open_twice(path, stack, safe_open))
        except Damaged:
            raise
        except MemoryError as error:
            raise unreadable(path, error) from error
        except (SafetensorError, OSError, ValueError, TypeError) as error:
            raise damaged(path, f"it is not a whole safetensors file ({error})") from error
        yield opened


def _open_twice(
    path: AnyPath, stack: contextlib.ExitStack, safe_open: Callable[..., Any]
) -> tuple[Any, BufferedReader]:
    """The same file opened by safetensors and for reading its bytes; ``stack`` closes both."""
    while True:
        with contextlib.ExitStack() as attempt:
            raw = attempt.enter_context(open(path, "rb"))
            file = attempt.enter_context(safe_open(path, framework="np"))
            # If a save replaced the file in between, these are two files.
            if os.path.samestat(os.fstat(raw.fileno()), os.stat(path)):
                stack.push(attempt.pop_all())
                return file, raw


def write_tensors(
    path: AnyPath, tensors: Mapping[str, np.ndarray], metadata: Any, singly: bool = False
) -> None:
    """Write arrays by name, and metadata that JSON can hold, to ``path``.

    The file is replaced in one step, see `replacing`. Of the arrays that are not contiguous one at
    a time is copied. If ``singly`` is set, each has a checksum, for `TensorFile.mapped`.
    """
    for name in sorted(tensors):
        if not _is_moderate(tensors[name]):  # reading would refuse it
            raise SentembError(
                f"{path}: cannot be written: {name} has a value that is not a finite number or "
                "huge; nothing was changed there"
            )
    stored = {"contents": metadata}
    if singly:
        stored["tensors"] = {name: _digest_of(name, tensors[name]) for name in sorted(tensors)}
        stored["sha256"] = _digest([metadata, stored["tensors"]]).hexdigest()
    else:
        stored["sha256"] = checksum(tensors, metadata)
    with replacing(path) as temporary:
        _save_file(tensors, temporary, json.dumps(stored))


def checksum(tensors: Mapping[str, np.ndarray], metadata: Any) -> str:
    """The SHA-256 of arrays and metadata that a file of both has of itself, in hexadecimal."""
    digest = _digest(metadata)
    for name in sorted(tensors):
        _add(digest, name, tensors[name])
    return digest.hexdigest()


def _save_file(tensors: Mapping[str, np.ndarray], path: AnyPath, stored_metadata: str) -> None:
    """Write the same bytes as `safetensors.numpy.save_file`.

    That function first writes to a temporary file with a name of its own, which only the user can
    read and which remains if the process is killed.
    """
    codes = {kind: code for code, kind in _TYPES.items()}
    order = list(codes)
    names = sorted(tensors, key=lambda name: (order.index(tensors[name].dtype.name), name))
    header: dict[str, dict[str, Any]] = {"__metadata__": {_METADATA: stored_metadata}}
    end = 0
    for name in names:
        array = tensors[name]
        first, end = end, end + array.nbytes
        header[name] = {
            "dtype": codes[array.dtype.name],
            "shape": list(array.shape),
            "data_offsets": [first, end],
        }
    raw = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    raw += b" " * (-len(raw) % 8)
    with open(path, "wb") as file:
        file.write(len(raw).to_bytes(8, "little"))
        file.write(raw)
        for name in names:
            file.write(bytes_of(tensors[name]))


def _starts(raw: BufferedReader) -> dict[str, int]:
    """Offsets of the arrays in a file whose header is known to be right."""
    raw.seek(0)
    size = int.from_bytes(raw.read(8), "little")
    header = parse_json(raw.read(size))
    header.pop("__metadata__", None)
    return {name: 8 + size + about["data_offsets"][0] for name, about in header.items()}


class Damaged(SentembError):
    """A file was not written by sentemb, or has changed since."""


def check_regular(path: AnyPath) -> None:
    """Raise a `Damaged` unless ``path`` is a regular file: a pipe or a device may have no end."""
    if not is_file(path):
        missing = status(path) is None
        raise damaged(path, "it is missing" if missing else "it is not a regular file")


def damaged(path: object, why: str) -> Damaged:
    """The error for a file of a model that cannot be used."""
    return Damaged(
        f"{path}: the model is damaged: {why}; restore the file from a copy or train again"
    )


def _digest(metadata: Any) -> "_Hash":
    return hashlib.sha256(json.dumps(metadata, sort_keys=True).encode())


def _digest_of(name: str, array: np.ndarray) -> str:
    digest = hashlib.sha256()
    _add(digest, name, array)
    return digest.hexdigest()


def _add(digest: "_Hash", name: str, array: np.ndarray) -> None:
    """Add the name, type, shape and bytes of an array."""
    digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
    digest.update(bytes_of(array))


def _is_moderate(array: np.ndarray) -> bool:
    return not array.size or bool(-_LARGEST <= array.min() <= array.max() <= _LARGEST)
