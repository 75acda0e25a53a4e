"""The directions in which word vectors differ most."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.sif import orthogonalise_rows
from sentemb.models.vectors.word_vectors import WordVectors

_SWEEPS = 100
_BLOCK = 4096
# A share of the squared lengths that float32 cannot tell from zero.
_NOISE = 1e-12


@dataclass(frozen=True, eq=False)
class PrincipalComponents:
    """The mean of some word vectors, and the directions in which they differ most from it.

    mean : (d,) float64
    directions : (k, d) float64, orthonormal, the strongest first
    mean_square : the mean squared length of the vectors without their mean, along the directions
    n_words : how many vectors there were
    """

    mean: NDArray[np.float64]
    directions: NDArray[np.float64]
    mean_square: float
    n_words: int

    @classmethod
    def of(cls, vectors: WordVectors, k: int) -> PrincipalComponents:
        """The first ``k``, or all if the vectors span fewer directions."""
        mean = np.zeros(vectors.dim)
        for _, rows in _portions(vectors):
            mean += rows.sum(axis=0)
        mean /= max(1, len(vectors))
        second = np.zeros((vectors.dim, vectors.dim))
        for _, rows in _portions(vectors):
            rows -= mean
            add_matmul(second, rows.T, rows)
        total = np.trace(second)
        if total > 0:
            # Scaled, so that no product overflows.
            second /= total
            orthogonalise_rows(second, _SWEEPS)
        shares = np.sqrt(np.einsum("ij,ij->i", second, second))
        order = np.argsort(-shares, kind="stable")[:k]
        order = order[shares[order] > _NOISE]
        # The sum of the eigenvalues that are kept, over the words.
        mean_square = float(total * shares[order].sum() / max(1, len(vectors)))
        return cls(mean, second[order] / shares[order, None], mean_square, len(vectors))

    def expect(self, k: int, name: str, setting: str) -> None:
        """Raise a `SentembError`, which calls the vectors ``name``, unless there are ``k``.

        ``setting`` is the one that has asked for as many.
        """
        if len(self.directions) < k:
            raise SentembError(
                f"{name}: the vectors of {self.n_words:,} words span fewer than {k} directions; "
                f"give other vectors or a smaller {setting}"
            )

    def turned(
        self, vectors: WordVectors, scale: float = 1.0
    ) -> Iterator[tuple[int, NDArray[np.float64]]]:
        """Yield ``(first, rows)``: the components of the vectors, (n, k), times ``scale``."""
        turned = np.ascontiguousarray(self.directions.T) * scale
        for first, rows in _portions(vectors):
            rows -= self.mean
            product = np.zeros((len(rows), len(self.directions)))
            add_matmul(product, rows, turned)
            yield first, product


def _portions(vectors: WordVectors) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield ``(first, rows)``: copies in float64."""
    for first in range(0, len(vectors), _BLOCK):
        yield first, vectors.vectors[first : first + _BLOCK].astype(np.float64)
