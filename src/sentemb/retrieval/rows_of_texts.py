"""The rows of texts, such as ids or words, in 8 to 16 bytes a text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import Texts
from sentemb.kernels.text_table import fill_table, find_texts


class _Packed(NamedTuple):
    """Texts as kernels read them; see `sentemb.kernels.text_table`."""

    raw: NDArray[np.uint8]
    offsets: NDArray[np.int64]
    gap: int

    @classmethod
    def of(cls, texts: Sequence[str]) -> _Packed:
        if isinstance(texts, Texts):
            raw, offsets = texts.raw.view(), texts.offsets.view()
        else:
            encoded = [text.encode("utf-8", "surrogatepass") for text in texts]
            raw = np.frombuffer(b"".join(encoded), np.uint8)
            offsets = np.zeros(len(encoded) + 1, np.int64)
            np.cumsum(list(map(len, encoded)), out=offsets[1:])
        # Kernels are compiled once, for arrays that cannot be written.
        raw.flags.writeable = offsets.flags.writeable = False
        return cls(raw, offsets, int(isinstance(texts, Texts)))


class TextRows(Mapping[str, int]):
    """The row of every text, as a mapping that keeps numbers and compares the texts themselves.

    ``texts`` is kept. A row is the number of a text in this sequence, of equal texts the last.

    Attributes
    ----------
    repeated : (int, int) or None
        The first row whose text came before: where that was, and the row.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._packed = _Packed.of(texts)
        # The seed differs from table to table, so no texts can be written that share a slot.
        self._seed = np.uint64(int.from_bytes(os.urandom(8), "little"))
        self._slots = np.full(2 << len(texts).bit_length(), -1, np.int32)
        first, again = fill_table(self._slots, self._seed, *self._packed)
        self.repeated = None if again < 0 else (first, again)

    def __len__(self) -> int:
        return len(self._texts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __getitem__(self, text: str) -> int:
        row = int(self.of([text])[0])
        if row < 0:
            raise KeyError(text)
        return row

    def of(self, texts: Sequence[str]) -> NDArray[np.int64]:
        """The rows of ``texts``, (k,); -1 for a text that is unknown."""
        rows = np.empty(len(texts), np.int64)
        find_texts(rows, self._slots, self._seed, *self._packed, *_Packed.of(texts))
        return rows

    def shared(self, following: TextRows) -> str | None:
        """A text that ``following`` has as well, if there is one."""
        there = np.flatnonzero(following.of(self._texts) >= 0)
        return self._texts[int(there[0])] if there.size else None
