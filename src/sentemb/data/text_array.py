"""Many texts in one array of bytes: mapped from a file, decoded when they are asked for."""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import compress, islice
from typing import overload

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.system.checked_files import CheckedFiles
from sentemb.system.growing import Growing
from sentemb.system.paths import AnyPath

# Texts that are decoded at a time by whatever reads all of them.
_PORTION = 8192
_LINE_END = ord("\n")
# Bytes that are looked at at a time.
_PIECE = 1 << 20


@dataclass(frozen=True, eq=False)
class TextArray(Sequence[str]):
    """A sequence of str, each followed by a line end.

    raw : (n_bytes,), the lines, in UTF-8
    offsets : (n + 1,), where each line starts, and the end of the last
    """

    raw: NDArray[np.uint8]
    offsets: NDArray[np.int64]

    @classmethod
    def of(cls, texts: Iterable[str], scratch: AnyPath | None = None) -> TextArray:
        """``texts``, which must be valid Unicode without line ends; see `TextsBuilder`."""
        builder = TextsBuilder(scratch)
        # In portions: all texts joined would take more memory once more.
        remaining = iter(texts)
        while portion := list(islice(remaining, _PORTION)):
            builder.append(portion)
        return builder.texts()

    @classmethod
    def of_lines(cls, raw: NDArray[np.uint8]) -> TextArray:
        """The lines of a text; a `ValueError` unless it is UTF-8 and each line has an end."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        for first in range(0, raw.size, _PIECE):
            decoder.decode(raw[first : first + _PIECE].data)
        decoder.decode(b"", final=True)
        if raw.size and raw[-1] != _LINE_END:
            raise ValueError("the last line has no end")
        return cls(raw, np.append(0, 1 + np.flatnonzero(raw == _LINE_END)))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            if step != 1:
                return [self[k] for k in range(first, end, step)]
            return self._decoded(first, max(first, end))
        n = self.offsets.size - 1
        number = index + n if index < 0 else index
        if not 0 <= number < n:
            raise IndexError(f"there are {n:,} texts")
        return self._decoded(number, number + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _PORTION):
            yield from self._decoded(first, min(first + _PORTION, len(self)))

    def _decoded(self, first: int, end: int) -> list[str]:
        raw = self.raw[self.offsets[first] : self.offsets[end]].tobytes()
        try:
            texts = raw.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            texts = []
        # A line before must have ended where the first begins.
        starts = not self.offsets[first] or self.raw[self.offsets[first] - 1] == _LINE_END
        if not starts or len(texts) != end - first + 1 or texts.pop():
            raise _damaged()
        return texts

    def chosen(self, rows: NDArray[np.integer]) -> list[str]:
        """The texts of some rows; of rows that are near each other in less time."""
        first, end = int(rows.min(initial=len(self))), int(rows.max(initial=-1)) + 1
        if end - first <= 2 * rows.size:
            between = self[first:end]
            return [between[row] for row in (rows - first).tolist()]
        texts: list[str] = []
        for first in range(0, rows.size, _PORTION):
            portion = rows[first : first + _PORTION]
            starts, ends = self.offsets[portion], self.offsets[portion + 1]
            # As in `_decoded`, for each of them: what one lacks, the next must not make up for.
            edges = np.concatenate([starts[starts > 0], ends])
            if not (self.raw[edges - 1] == _LINE_END).all():
                raise _damaged()
            lengths = ends - starts
            offsets = np.append(0, np.cumsum(lengths))
            before = np.repeat(starts - offsets[:-1], lengths)
            texts += TextArray(self.raw[before + np.arange(offsets[-1])], offsets)[:]
        return texts

    def take(self, mask: NDArray[np.bool_], scratch: AnyPath | None = None) -> TextArray:
        """The texts where ``mask``, (n,), is true; see `TextsBuilder`."""
        builder = TextsBuilder(scratch)
        builder.extend(self, mask)
        return builder.texts()

    def joined(self, following: TextArray, scratch: AnyPath | None = None) -> TextArray:
        """These texts, then ``following``; see `TextsBuilder`."""
        builder = TextsBuilder(scratch)
        builder.extend(self)
        builder.extend(following)
        return builder.texts()


def _damaged() -> SentembError:
    return SentembError(
        "the folder is damaged: its texts and their offsets do not fit; restore it from a copy or "
        "make it again"
    )


def chosen(texts: Sequence[str], rows: NDArray[np.integer]) -> list[str]:
    """The texts of some rows."""
    if isinstance(texts, TextArray):
        return texts.chosen(rows)
    return [texts[row] for row in rows.tolist()]


def taken(texts: Sequence[str], mask: NDArray[np.bool_]) -> Sequence[str]:
    """The texts where ``mask``, (n,), is true; those of `TextArray` are `TextArray`."""
    return texts.take(mask) if isinstance(texts, TextArray) else list(compress(texts, mask))


def together(first: Sequence[str], following: Sequence[str]) -> Sequence[str]:
    """Some texts, then others; those of `TextArray` are `TextArray`."""
    if isinstance(first, TextArray) and isinstance(following, TextArray):
        return first.joined(following)
    return [*first, *following]


class TextsBuilder:
    """Collects `TextArray`.

    ``scratch`` is a folder on the disk that texts are kept on if there are many; see
    `sentemb.system.growing.Growing`.
    """

    def __init__(self, scratch: AnyPath | None = None) -> None:
        self._raw, self._offsets = Growing(scratch), Growing(scratch)
        self._offsets.append(np.zeros(1, np.int64))
        self._size = 0

    def append(self, texts: Sequence[str]) -> None:
        """Append texts, which must be valid Unicode without line ends."""
        lines = np.frombuffer("\n".join([*texts, ""]).encode(), np.uint8)
        self._append(lines, 1 + np.flatnonzero(lines == _LINE_END))

    def extend(self, texts: TextArray, mask: NDArray[np.bool_] | None = None) -> None:
        """Append those of ``texts`` where ``mask``, (n,), is true, by default all."""
        for first in range(0, len(texts), _PORTION):
            offsets = texts.offsets[first : first + _PORTION + 1]
            raw, ends = texts.raw[offsets[0] : offsets[-1]], offsets[1:] - offsets[0]
            if mask is not None:
                portion_mask, lengths = mask[first : first + _PORTION], np.diff(offsets)
                raw, ends = raw[np.repeat(portion_mask, lengths)], np.cumsum(lengths[portion_mask])
            self._append(raw, ends)

    def _append(self, raw: NDArray[np.uint8], ends: NDArray[np.int64]) -> None:
        self._raw.append(raw)
        self._offsets.append(ends + self._size)
        self._size += len(raw)

    def texts(self) -> TextArray:
        """All of them; nothing is appended after it."""
        return TextArray(self._raw.array(np.uint8), self._offsets.array(np.int64))


def mapped_texts(files: CheckedFiles, name: str, offsets_name: str, count: int) -> TextArray:
    """``count`` texts of a file and, from an array in another, where each begins; both mapped."""
    raw = files.raw(name)
    offsets = files.array(offsets_name, "<i8", (count + 1,), read_only=True)
    is_rising = bool((offsets[1:] > offsets[:-1]).all())
    if offsets[0] or offsets[-1] != raw.size or not is_rising:
        raise files.damaged(files.folder / offsets_name, "it does not fit its text file")
    return TextArray(raw, offsets)
