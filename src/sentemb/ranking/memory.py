"""The memory of a click log: a title is as good as the nearest query that it was clicked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.face import keeping_text_warnings
from sentemb.kernels.memory import best_clicked, best_clicked_of_pairs
from sentemb.models.similarity import unit_rows
from sentemb.protocols import Embedder, Runner


class Remembered(NamedTuple):
    """A clicked query.

    Attributes
    ----------
    query : str
    cosine : float
        With the query that was asked, both embedded as queries.
    """

    query: str
    cosine: float


@dataclass(frozen=True, eq=False)
class QueryMemory:
    """The queries of a click log as vectors, and the titles that they were clicked for.

    Attributes
    ----------
    queries : sequence of str
        Distinct clicked queries, in the order of the log; once they are embedded, without those of
        which the model knows no word.
    vectors : (n_queries, dim) float32 or None
        Their unit vectors, by the query tower; None before `embedded`.
    offsets, places : (n_queries + 1,) int64, (n_entries,) int32
        Query c was clicked for the titles ``places[offsets[c]:offsets[c + 1]]``, at least one, in
        ascending order.
    n_titles : int
        The size of the catalogue.
    """

    queries: Sequence[str]
    vectors: NDArray[np.float32] | None
    offsets: NDArray[np.int64]
    places: NDArray[np.int32]
    n_titles: int

    @classmethod
    def build(cls, encoder: Embedder, titles: Sequence[str], log: ClickLog) -> Self:
        """Embed the clicked queries of a log.

        Parameters
        ----------
        encoder : Embedder
            Its query tower embeds clicked queries, and later the queries that are asked.
        titles : sequence of str
            The catalogue. Titles with the same text, white space around it aside, get the same
            queries.
        log : ClickLog
            A query that was clicked several times counts once. Titles of the log that are not in
            the catalogue are ignored.
        """
        return cls.listed(titles, log).embedded(encoder)

    @classmethod
    def listed(cls, titles: Sequence[str], log: ClickLog) -> Self:
        """As `build`, without vectors; see there."""
        # Only of titles of the log: the catalogue may be much larger.
        places_of: dict[str, list[int]] = {title: [] for title in log.titles}
        for place, title in enumerate(titles):
            if (some := places_of.get(title.strip())) is not None:
                some.append(place)
        # The places of all titles of the log, one title after the other.
        found = [places_of[title] for title in log.titles]
        sizes = np.array([len(some) for some in found], np.int64)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        places = np.array([place for some in found for place in some], np.int32)
        lengths = sizes[log.title_index]
        firsts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        entries = np.repeat(starts[log.title_index], lengths) + np.arange(len(firsts)) - firsts
        asked = np.repeat(log.query_index, lengths)
        order = np.lexsort((places[entries], asked))
        asked, places = asked[order], places[entries][order]
        own = np.unique(asked)
        queries = [log.queries[q] for q in own.tolist()]
        lengths = np.bincount(np.searchsorted(own, asked), minlength=own.size)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(queries, None, offsets, places, len(titles))

    def embedded(self, encoder: Embedder) -> Self:
        """The memory with vectors; queries of which the model knows no word are dropped."""
        queries = list(self.queries)
        with keeping_text_warnings():
            rows = encoder.encode_query(queries) if queries else np.empty((0, encoder.dim))
        vectors = unit_rows(rows).astype(np.float32)
        return replace(self, vectors=vectors)._of(np.asarray(vectors.any(axis=1)))

    def scores(
        self, query_vectors: np.ndarray, workers: Runner | None = None
    ) -> NDArray[np.float32]:
        """The highest cosine of each query with a clicked query of each title.

        Parameters
        ----------
        query_vectors : (m, dim) float
            Unit vectors by the query tower.
        workers : Runner, optional
            Threads to share the queries; the result does not depend on them.

        Returns
        -------
        (m, n_titles) float32
            -1 for a title without clicked queries. A score has the same bits in every call.
        """
        own, rows = self._vectors(), self._rows(query_vectors)
        found = np.empty((len(rows), self.n_titles), np.float32)
        arguments = found, rows, own, self.offsets, self.places
        if workers is None:
            best_clicked(*arguments, 0, len(rows))
        else:
            workers.over(len(rows), best_clicked, *arguments)
        return found

    def scores_of_pairs(
        self,
        query_vectors: np.ndarray,
        query_index: NDArray[np.int64],
        places: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float32]:
        """`scores` of some pairs, from the clicked queries of their titles alone.

        Parameters
        ----------
        query_vectors : (m, dim) float
            As for `scores`.
        query_index, places : (k,) int64
            Pair j is row ``query_index[j]`` of the vectors and title ``places[j]``.
        workers : Runner
            Threads to share the titles; the result does not depend on them.

        Returns
        -------
        (k,) float32
            The bits of `scores`.
        """
        found = np.empty(len(places), np.float32)
        rows, pairs = self._rows(query_vectors), _by_title(places, self.n_titles)
        arguments = found, rows, query_index, *pairs, self._vectors(), *self._queries_of_titles
        workers.over(self.n_titles, best_clicked_of_pairs, *arguments)
        return found

    @cached_property
    def _queries_of_titles(self) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """Title t was clicked for the queries ``own[offsets[t]:offsets[t + 1]]``."""
        offsets, entries = _by_title(self.places, self.n_titles)
        asked = np.repeat(np.arange(len(self.queries), dtype=np.int32), np.diff(self.offsets))
        return offsets, asked[entries]

    def nearest(self, query_vector: np.ndarray, place: int) -> Remembered | None:
        """The nearest query that a title was clicked for; the first of equally near ones.

        Parameters
        ----------
        query_vector : (dim,) float
            A unit vector by the query tower.
        place : int
            The title.

        Returns
        -------
        Remembered or None
            None for a title without clicked queries.
        """
        own = np.searchsorted(self.offsets, np.flatnonzero(self.places == place), "right") - 1
        if not own.size:
            return None
        # The kernel, so that the cosine has the bits of `scores`.
        each = np.arange(own.size, dtype=np.int32)
        alone = replace(
            self,
            vectors=self._vectors()[own],
            offsets=np.arange(own.size + 1),
            places=each,
            n_titles=own.size,
        )
        cosines = alone.scores(query_vector[None])[0]
        best = int(cosines.argmax())
        return Remembered(self.queries[int(own[best])], float(cosines[best]))

    @cached_property
    def has_clicks(self) -> NDArray[np.bool_]:
        """Which titles have clicked queries: (n_titles,) bool; do not change it."""
        found = np.zeros(self.n_titles, np.bool_)
        found[self.places] = True
        return found

    # -- changes ------------------------------------------------------------------------------

    def extended(self, count: int) -> Self:
        """The memory with ``count`` more titles at the end, which have no clicked queries."""
        return replace(self, n_titles=self.n_titles + count)

    def without(self, places: NDArray[np.integer]) -> Self:
        """The memory without some titles; those behind them move up."""
        is_kept = np.ones(self.n_titles, np.bool_)
        is_kept[places] = False
        entries = is_kept[self.places]
        offsets = np.concatenate([[0], np.cumsum(entries)])[self.offsets]
        left = (np.cumsum(is_kept) - 1)[self.places[entries]].astype(np.int32)
        n_left = int(np.count_nonzero(is_kept))
        whole = replace(self, offsets=offsets, places=left, n_titles=n_left)
        return whole._of(np.diff(offsets) > 0)

    def _of(self, is_kept: NDArray[np.bool_]) -> Self:
        """The memory of some of the queries."""
        if is_kept.all():
            return self
        kept = np.flatnonzero(is_kept)
        lengths = np.diff(self.offsets)
        offsets = np.concatenate([[0], np.cumsum(lengths[kept])])
        queries = [self.queries[c] for c in kept.tolist()]
        places = self.places[np.repeat(is_kept, lengths)]
        vectors = None if self.vectors is None else self.vectors[kept]
        return replace(self, queries=queries, vectors=vectors, offsets=offsets, places=places)

    def _rows(self, query_vectors: np.ndarray) -> NDArray[np.float32]:
        """Vectors of queries that are asked, checked, as the kernels want them."""
        dim = self._vectors().shape[1]
        if query_vectors.ndim != 2 or query_vectors.shape[1] != dim:
            raise SentembError(
                f"vectors of shape {query_vectors.shape} do not fit the memory; give rows of {dim} "
                "numbers"
            )
        return np.ascontiguousarray(query_vectors, np.float32)

    def _vectors(self) -> NDArray[np.float32]:
        if self.vectors is None:
            raise SentembError("the clicked queries have no vectors; call embedded first")
        return self.vectors


def _by_title(
    places: NDArray[np.integer], n_titles: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where title t is in ``places``: ``entries[offsets[t]:offsets[t + 1]]``, ascending."""
    offsets = np.concatenate([[0], np.cumsum(np.bincount(places, minlength=n_titles))])
    return offsets, np.argsort(places, kind="stable")
