"""Many texts in one array of bytes: mapped from a file, decoded when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.system.checked_files import CheckedFiles

# Texts that are decoded at a time by whatever reads all of them.
_PORTION = 8192
_LINE_END = ord("\n")


@dataclass(frozen=True, eq=False)
class Texts(Sequence[str]):
    """A sequence of str, each followed by a line end.

    Attributes
    ----------
    raw : (n_bytes,) uint8
        The lines, in UTF-8.
    offsets : (n + 1,) int64
        Where each line starts, and the end of the last.
    """

    raw: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Texts:
        """``texts``, which must be valid Unicode without line ends."""
        raw, ends = bytearray(), [np.zeros(1, np.int64)]
        # In portions: all texts joined would take more memory once more.
        some = iter(texts)
        while portion := list(islice(some, _PORTION)):
            lines = "\n".join([*portion, ""]).encode()
            ends.append(len(raw) + 1 + np.flatnonzero(np.frombuffer(lines, np.uint8) == _LINE_END))
            raw += lines
        return cls(np.frombuffer(raw, np.uint8), np.concatenate(ends))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, place: int) -> str: ...
    @overload
    def __getitem__(self, place: slice) -> list[str]: ...
    def __getitem__(self, place: int | slice) -> str | list[str]:
        if isinstance(place, slice):
            first, end, step = place.indices(len(self))
            if step != 1:
                return [self[one] for one in range(first, end, step)]
            return self._decoded(first, max(first, end))
        number = place + len(self) if place < 0 else place
        if not 0 <= number < len(self):
            raise IndexError(f"there are {len(self):,} texts")
        return self._decoded(number, number + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _PORTION):
            yield from self._decoded(first, min(first + _PORTION, len(self)))

    def _decoded(self, first: int, end: int) -> list[str]:
        raw = self.raw[self.offsets[first] : self.offsets[end]].tobytes()
        try:
            found = raw.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            found = []
        # A line before must have ended where the first begins.
        starts = not self.offsets[first] or self.raw[self.offsets[first] - 1] == _LINE_END
        if not starts or len(found) != end - first + 1 or found.pop():
            raise SentembError(
                "the folder is damaged: its texts and their offsets do not fit; restore it from a "
                "copy or make it again"
            )
        return found

    def take(self, places: NDArray[np.int64]) -> Texts:
        """Some of the texts, in rising order of ``places``."""
        lengths = np.diff(self.offsets)[places]
        offsets = np.zeros(len(places) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        # The bytes of kept lines: each is as far from its old place as its line.
        kept = np.zeros(len(self), np.bool_)
        kept[places] = True
        return Texts(self.raw[np.repeat(kept, np.diff(self.offsets))], offsets)

    def joined(self, others: Texts) -> Texts:
        """These texts, then ``others``."""
        offsets = np.concatenate([self.offsets, others.offsets[1:] + self.offsets[-1]])
        return Texts(np.concatenate([self.raw, others.raw]), offsets)


def mapped_texts(files: CheckedFiles, name: str, offsets_name: str, count: int) -> Texts:
    """``count`` texts of a file and, from an array in another, where each begins; both mapped."""
    raw = files.raw(name)
    offsets = files.array(offsets_name, "<i8", (count + 1,), read_only=True)
    is_rising = bool((offsets[1:] > offsets[:-1]).all())
    if offsets[0] or offsets[-1] != raw.size or not is_rising:
        raise files.damaged(files.folder / offsets_name, "it does not fit its text file")
    return Texts(raw, offsets)
