"""Exact search for the nearest titles: the highest dot products of rows."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.top_k import top_k
from sentemb.models.similarity import unit_rows
from sentemb.protocols import Embedder

# Scores that are in memory at a time: 64 MB of them, whatever the number of titles and queries.
_BLOCK_SCORES = 16_000_000


def nearest(
    queries: np.ndarray, titles: np.ndarray, k: int, mask: NDArray[np.bool_] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The titles with the highest dot products.

    Parameters
    ----------
    queries, titles : (m, dim), (n, dim) float
        Rows of unit length give cosines.
    k : int
        Titles per query.
    mask : (n,) bool, optional
        The titles that may be found; by default all.

    Returns
    -------
    places, scores : (m, min(k, n)) int64, (m, min(k, n)) float64
        Rows of ``titles`` and their dot products, highest first, equal ones in the order of the
        rows; -1 and -inf where the mask leaves fewer.
    """
    k = min(k, len(titles))
    places = np.empty((len(queries), k), np.int64)
    found = np.empty((len(queries), k))
    block = max(1, _BLOCK_SCORES // max(len(titles), 1))
    for first in range(0, len(queries), block):
        some = slice(first, first + block)
        scores = queries[some] @ titles.T
        if mask is not None:
            scores[:, ~mask] = -np.inf
        top_k(places[some], scores, 0, len(scores))
        found[some] = np.take_along_axis(scores, places[some], axis=1)
    places[found == -np.inf] = -1
    return places, found


class TitleVectors:
    """A catalogue as vectors: a `sentemb.protocols.Retriever`.

    Parameters
    ----------
    embedder : Embedder
        What embeds queries and titles.
    titles : sequence of str
        The catalogue.
    """

    def __init__(self, embedder: Embedder, titles: Sequence[str]) -> None:
        self._embedder = embedder
        self._vectors = unit_rows(embedder.encode_document(titles))

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The titles with the highest cosines; see `sentemb.protocols.Retriever`."""
        return nearest(unit_rows(self._embedder.encode_query(queries)), self._vectors, k)
