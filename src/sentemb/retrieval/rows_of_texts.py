"""The rows of texts, such as ids or words, in 8 to 16 bytes a text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import TextArray
from sentemb.kernels.text_table import fill_table, find_texts

# A few texts are fewer than one in this many of all.
_FEW = 16


class PackedTexts(NamedTuple):
    """Texts as kernels read them; see `sentemb.kernels.text_table`."""

    raw: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    gap: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> PackedTexts:
        gap = 0
        if type(texts) is TextArray:  # not `isinstance`, which takes a while for any Sequence
            raw, offsets, gap = texts.raw.view(), texts.offsets.view(), 1
        else:
            encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
            raw = np.frombuffer(b"".join(encoded), np.uint8)
            offsets = np.array([*accumulate(map(len, encoded), initial=0)], np.int64)
        # Kernels are compiled once, for arrays that cannot be written.
        raw.flags.writeable = offsets.flags.writeable = False
        return cls(raw, offsets, gap)


class _Table(NamedTuple):
    """A hash table of texts.

    repeated : the first text that came before: where that was, and its number; None for none
    """

    packed: PackedTexts
    seed: np.uint64
    slots: NDArray[np.int32]
    repeated: tuple[int, int] | None

    @classmethod
    def of(cls, packed: PackedTexts) -> _Table:
        # The seed differs from table to table, so no texts can be written that share a slot.
        seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
        slots = np.full(2 << (packed.offsets.size - 1).bit_length(), -1, np.int32)
        first, again = fill_table(slots, seed, *packed)
        return cls(packed, seed, slots, None if again < 0 else (first, again))

    def rows(self, sought: PackedTexts) -> NDArray[np.int64]:
        """The number of each text that is sought; -1 for one that is not here."""
        rows = np.empty(sought.offsets.size - 1, np.int64)
        find_texts(rows, self.slots, self.seed, *self.packed, *sought)
        return rows


class TextRows(Mapping[str, int]):
    """The row of every text, as a mapping that keeps numbers and compares the texts themselves.

    ``texts`` is kept. A row is the number of a text in this sequence, of equal texts the last.
    The first time that a few texts are asked for, as by a command that changes an index, they are
    sought among all; from the second time on there is a table of all.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts, self._was_asked = texts, False

    @cached_property
    def _packed(self) -> PackedTexts:
        return PackedTexts.of(self._texts)

    @cached_property
    def _table(self) -> _Table:
        return _Table.of(self._packed)

    @property
    def repeated(self) -> tuple[int, int] | None:
        """The first row whose text came before: where that was, and the row."""
        return self._table.repeated

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __getitem__(self, text: str) -> int:
        row = int(self.of([text])[0])
        if row < 0:
            raise KeyError(text)
        return row

    def of(self, texts: Sequence[str] | PackedTexts) -> NDArray[np.int64]:
        """The rows of ``texts``, (k,); -1 for a text that is unknown."""
        packed = texts if isinstance(texts, PackedTexts) else PackedTexts.of(texts)
        is_first, self._was_asked = not self._was_asked, True
        few = (packed.offsets.size - 1) * _FEW
        if is_first and few < len(self) and "_table" not in self.__dict__:
            return self._sought(packed)
        return self._table.rows(packed)

    def _sought(self, packed: PackedTexts) -> NDArray[np.int64]:
        """The rows of a few texts, by a look at all."""
        few = _Table.of(packed)
        number_of = few.rows(self._packed)
        rows = np.full(len(packed.offsets) - 1, -1)
        there = np.flatnonzero(number_of >= 0)
        rows[number_of[there]] = there
        return rows[few.rows(packed)]
