"""Vectors in a quarter of the memory: integers of 8 bits with a factor for each row."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.system.growing import joined_rows
from sentemb.system.paths import AnyPath

LARGEST = 127


@dataclass(frozen=True, eq=False)
class Int8Rows:
    """Row r is the vector ``scales[r] * codes[r]``.

    codes : (n, dim), from -127 to 127
    scales : (n,), the largest absolute value of each row, divided by 127
    """

    codes: NDArray[np.int8]
    scales: NDArray[np.float32]

    def __len__(self) -> int:
        return len(self.codes)

    @classmethod
    def of(cls, vectors: np.ndarray) -> "Int8Rows":
        """The nearest rows to ``vectors``, (n, dim) float. Zero rows stay zero."""
        largest = np.abs(vectors).max(axis=1, initial=0)
        scales = (largest / LARGEST).astype(np.float32)
        factors = np.divide(LARGEST, largest, out=np.zeros_like(largest), where=scales > 0)
        return cls(np.rint(vectors * factors[:, None]).astype(np.int8), scales)

    def rows(self, which: "slice | NDArray[np.int64]") -> "Int8Rows":
        """Some of the rows."""
        return Int8Rows(self.codes[which], self.scales[which])

    def vectors(self) -> NDArray[np.float32]:
        """The vectors, (n, dim)."""
        return self.codes * self.scales[:, None]

    def take(self, mask: NDArray[np.bool_], scratch: AnyPath | None = None) -> "Int8Rows":
        """The rows where ``mask``, (n,), is true; see `sentemb.system.growing.joined_rows`."""
        codes = joined_rows([self.codes], scratch, mask)
        return Int8Rows(codes, joined_rows([self.scales], scratch, mask))

    def joined(self, behind: "Int8Rows", scratch: AnyPath | None = None) -> "Int8Rows":
        """These rows, then those of ``behind``; see `sentemb.system.growing.joined_rows`."""
        codes = joined_rows([self.codes, behind.codes], scratch)
        return Int8Rows(codes, joined_rows([self.scales, behind.scales], scratch))
