"""Approximate search: a graph of neighbouring titles, kept by the package usearch.

The graph is an HNSW (Malkov and Yashunin, 2018). It only proposes titles; their scores are computed
like those of exact search, so a title has the same score in both.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.models.int8_rows import Int8Rows
from sentemb.models.nearest import nearest
from sentemb.search.graph_file import fault_in_graph
from sentemb.search.index_files import Vectors, damaged, write_bytes
from sentemb.system.extras import package
from sentemb.system.files import unwritable
from sentemb.system.parallel import Workers, renew_after_fork

# Neighbours per title, and titles that are looked at for a new title and for a query.
_CONNECTIVITY, _EXPANSION_ADD, _EXPANSION_SEARCH = 16, 128, 128
# Titles whose neighbours tell what the graph misses, and the neighbours of each.
_SAMPLE, _DEPTH = 1000, 10
# Vectors that are added at a time.
_PORTION = 8192


class Graph:
    """A graph over the vectors of an index. Several threads may use it; they take turns.

    Parameters
    ----------
    found : usearch.index.Index
        Keys are places.
    """

    def __init__(self, found: Any) -> None:
        self._graph = found
        self._raw: NDArray[np.uint8] | None = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock, after a fork: in the child the old one may never be released."""
        self._turn = threading.Lock()

    @classmethod
    def build(cls, vectors: Vectors) -> Graph:
        """The graph over ``vectors``. One thread builds it: with more it would vary."""
        rows = vectors.codes if isinstance(vectors, Int8Rows) else vectors
        graph = _usearch().Index(
            ndim=rows.shape[1],
            metric="ip",
            dtype="f16",
            connectivity=_CONNECTIVITY,
            expansion_add=_EXPANSION_ADD,
            expansion_search=_EXPANSION_SEARCH,
        )
        for first in range(0, len(vectors), _PORTION):
            places = np.arange(first, min(first + _PORTION, len(vectors)))
            graph.add(places, _singles(vectors, places), threads=1)
        return cls(graph)

    @classmethod
    def open(cls, raw: NDArray[np.uint8], name: object, n: int, dim: int) -> Graph:
        """Use a mapped file that `write` wrote; every number that usearch follows is checked.

        Parameters
        ----------
        raw : (n_bytes,) uint8
            The file.
        name : path
            What an error calls it.
        n, dim : int
            The shape of the vectors of the index.
        """
        usearch = _usearch()
        fault = fault_in_graph(raw, n, dim, _CONNECTIVITY)
        if fault is not None:
            raise damaged(name, f"{fault}; or make the graph again with --approximate")
        try:
            # usearch keeps the address of these bytes, and the graph keeps the bytes.
            graph = usearch.Index.restore(raw.data, view=True)
        except (RuntimeError, ValueError, OSError) as error:
            raise damaged(name, f"usearch cannot read it ({error})") from error
        if graph is None:
            raise damaged(name, "usearch cannot read it")
        graph.expansion_search = _EXPANSION_SEARCH
        opened = cls(graph)
        opened._raw = raw
        return opened

    def write(self, path: Path) -> None:
        """Write the graph to a file."""
        if self._raw is not None:
            write_bytes(path, self._raw)
            return
        try:
            str(path).encode()
            self._graph.save(path)
        except UnicodeEncodeError:  # usearch does not open a name that is not UTF-8
            write_bytes(path, np.frombuffer(self._graph.save(None), np.uint8))
        except RuntimeError as error:  # no space
            raise unwritable(path, error) from error

    def propose(self, queries: np.ndarray, k: int) -> NDArray[np.int64]:
        """Places near each query, (m, k) in any order; -1 where there are fewer."""
        m = len(queries)
        places = np.full((m, k), -1)
        if not len(self._graph) or not m or not k:
            return places
        with self._turn:
            # A deeper search than usual where more titles are wanted.
            self._graph.expansion_search = max(_EXPANSION_SEARCH, 2 * k)
            matches = self._graph.search(queries.astype(np.float32).reshape(m, -1), k, threads=1)
            keys = np.asarray(matches.keys).reshape(m, -1).astype(np.int64)
            counts = np.broadcast_to(getattr(matches, "counts", keys.shape[1]), m)
        for row, (own, count) in enumerate(zip(keys, counts, strict=True)):
            places[row, :count] = own[:count]
        return places

    def find(
        self, queries: np.ndarray, vectors: Vectors, k: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The proposed places with their exact scores, best first; see `nearest`."""
        k = min(k, len(vectors))
        places, scores = self.propose(queries, k), np.full((len(queries), k), -np.inf)
        for row, proposed in enumerate(places):
            known = np.sort(proposed[proposed >= 0])
            some = vectors.rows(known) if isinstance(vectors, Int8Rows) else vectors[known]
            own, found = nearest(queries[row : row + 1], some, len(known))
            places[row], scores[row, : len(known)] = -1, found[0]
            places[row, : len(known)] = known[own[0]]
        return places, scores

    def recall(self, vectors: Vectors, workers: Workers) -> tuple[float, int]:
        """How many of the 10 nearest titles of a sample of titles are found.

        Returns
        -------
        recall, size : float, int
            The share of titles that are as near as the tenth, and the size of the sample.
        """
        n = len(vectors)
        places = np.unique(np.linspace(0, max(n - 1, 0), min(n, _SAMPLE)).astype(np.int64))
        queries, k = _singles(vectors, places), min(_DEPTH, n)
        if not k:
            return 1.0, 0
        _, exact = nearest(queries, vectors, k, workers=workers)
        _, found = self.find(queries, vectors, k)
        return float((found >= exact[:, -1:]).mean()), len(places)


def _singles(vectors: Vectors, places: NDArray[np.int64]) -> NDArray[np.float32]:
    if isinstance(vectors, Int8Rows):
        return vectors.rows(places).vectors()
    return np.asarray(vectors[places], np.float32)


def _usearch() -> Any:
    purpose = "approximate search (unless --exact or exact=True)"
    return package("usearch.index", "approximate", purpose)
