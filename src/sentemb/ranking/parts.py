"""The parts of a ranker's score over one catalogue of titles.

    cosine(q, t)   of the two towers
    BM25(q, t)     divided by the highest BM25 score of q over all titles of the catalogue
    memory(q, t)   the larger of cosine(q, t) and the highest cosine of q and a query that t was
                   clicked for, both read by the query tower

A catalogue is all titles that are ranked: those of an index, of held-out clicks, or of a judged
set. Each part is prepared when it is first asked for, so a part without weight costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.clicked_queries import clicked_texts
from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.baselines.words_and_stems import words_of
from sentemb.data.click_log import ClickLog
from sentemb.face import keeping_text_warnings
from sentemb.kernels.matmul import add_matmul
from sentemb.models.similarity import indexed_cosines, unit_rows
from sentemb.ranking.memory import QueryMemory, Remembered
from sentemb.ranking.recipe import BM25, COSINE, MEMORY, Recipe
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.system.parallel import Turn, Workers
from sentemb.system.paths import AnyPath

# Scores of one part in memory at a time: 16 MB of them.
_CELLS = 4_000_000

T = TypeVar("T")
# Part -> scores.
PairParts: TypeAlias = dict[str, NDArray[np.float64]]
AllParts: TypeAlias = dict[str, NDArray[np.float32]]


class TitleParts:
    """The parts of the score over a catalogue.

    Parameters
    ----------
    model : SentenceEncoder
        Embeds queries and titles.
    titles : list of str
        The catalogue.
    recipe : Recipe
        The parameters of BM25. Its weights are not used here.
    clicks : ClickLog or None
        What BM25 and the memory read; None if they read nothing.
    workers : Workers
        Threads; no score depends on their number.
    lists : InvertedIndex, optional
        That of `bm25_lists`, if it exists already.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        titles: list[str],
        recipe: Recipe,
        clicks: ClickLog | None,
        workers: Workers,
        lists: InvertedIndex | None = None,
    ) -> None:
        self.titles = titles
        self._model, self._recipe, self._clicks = model, recipe, clicks
        self._workers = workers
        # What has been prepared, by name; of several threads one prepares and the others wait.
        self._prepared: dict[str, Any] = {} if lists is None else {"lists": lists}
        self._turn = Turn()

    def _once(self, name: str, prepare: Callable[[], T]) -> T:
        with self._turn.lock:
            if name not in self._prepared:
                self._prepared[name] = prepare()
            found: T = self._prepared[name]
            return found

    @property
    def lists(self) -> InvertedIndex:
        """BM25 over the titles."""
        return self._once("lists", lambda: bm25_lists(self.titles, self._clicks, self._recipe))

    @property
    def memory(self) -> QueryMemory:
        """The clicked queries of the titles."""
        clicks = self._clicks
        assert clicks is not None  # a recipe with a weight for the memory needs clicks
        return self._once("memory", lambda: QueryMemory.build(self._model, self.titles, clicks))

    @property
    def _vectors(self) -> np.ndarray:
        """The vectors of the titles, (n_titles, dim) float."""
        return self._once("vectors", lambda: self._model.encode_document(self.titles))

    @property
    def _across(self) -> NDArray[np.float32]:
        """The unit vectors of the titles, one per column, (dim, n_titles)."""

        def across() -> NDArray[np.float32]:
            vectors = self._prepared.get("vectors")
            if vectors is None:  # they are not kept twice
                vectors = self._model.encode_document(self.titles)
            return np.ascontiguousarray(unit_rows(vectors).T, np.float32)

        return self._once("across", across)

    # -- some pairs ---------------------------------------------------------------------------

    def of_pairs(
        self,
        queries: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
        parts: Sequence[str],
    ) -> PairParts:
        """Scores of some pairs, each (k,) float64, by part.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        query_index, title_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with title number ``title_index[j]``.
        parts : sequence of str
            Which parts to compute.
        """
        pairs = np.asarray(query_index, np.int64), np.asarray(title_index, np.int64)
        found: PairParts = {}
        if COSINE in parts or MEMORY in parts:
            with keeping_text_warnings():
                # `SentenceEncoder.score_pairs` does not warn of texts without known words either.
                vectors = self._model.encode_query(queries)
                cosines = indexed_cosines(vectors, self._vectors, *pairs)
            if COSINE in parts:
                found[COSINE] = cosines
            if MEMORY in parts:
                remembered = self.memory.scores_of_pairs(unit_rows(vectors), *pairs, self._workers)
                found[MEMORY] = np.maximum(cosines, remembered)
        if BM25 in parts:
            sums = self.lists.scores(queries, *pairs, self._workers)
            found[BM25] = sums / self._highest(queries)[pairs[0]]
        return found

    def _highest(self, queries: Sequence[str]) -> NDArray[np.float64]:
        """The highest BM25 score of each query, 1 where no title has a word of it."""
        if not self.titles:
            return np.ones(len(queries))
        _, highest = self.lists.find(queries, 1, self._workers)
        return np.where(highest[:, 0] > 0, highest[:, 0], 1.0)

    def nearest(self, query: str, place: int) -> Remembered | None:
        """The nearest query that title number ``place`` was clicked for; None without clicks."""
        with keeping_text_warnings():
            (vector,) = unit_rows(self._model.encode_query([query]))
        return self.memory.nearest(vector, place)

    # -- all titles ---------------------------------------------------------------------------

    def of_all(
        self, queries: Sequence[str], parts: Sequence[str]
    ) -> Iterator[tuple[slice, AllParts]]:
        """Scores of all titles, for one portion of the queries after the other.

        Memory is bounded, whatever the numbers of queries and titles are.

        Yields
        ------
        some : slice
            Which queries.
        scores : dict of str to (m, n_titles) float32
            By part.
        """
        needs_vectors = COSINE in parts or MEMORY in parts
        vectors = unit_rows(self._model.encode_query(queries)) if needs_vectors else None
        for some in self._portions(len(queries)):
            found: AllParts = {}
            if vectors is not None:
                cosines = self._cosines(np.ascontiguousarray(vectors[some], np.float32))
                if COSINE in parts:
                    found[COSINE] = cosines
                if MEMORY in parts:
                    remembered = self.memory.scores(vectors[some], self._workers)
                    found[MEMORY] = np.maximum(cosines, remembered)
            if BM25 in parts:
                found[BM25] = self._bm25(list(queries[some]))
            yield some, found

    def _portions(self, n_queries: int) -> Iterator[slice]:
        size = max(1, _CELLS // max(1, len(self.titles)))
        for first in range(0, n_queries, size):
            yield slice(first, min(first + size, n_queries))

    def _cosines(self, vectors: NDArray[np.float32]) -> NDArray[np.float32]:
        products = np.zeros((len(vectors), len(self.titles)), np.float32)
        across = self._across

        def multiply(first: int, end: int) -> None:
            add_matmul(products[first:end], vectors[first:end], across)

        self._workers.over(len(vectors), multiply)
        return products

    def _bm25(self, queries: list[str]) -> NDArray[np.float32]:
        scores = np.zeros((len(queries), len(self.titles)), np.float32)
        lists = self.lists
        offsets, words = lists.look_up(queries)

        def add(first: int, end: int) -> None:
            for q in range(first, end):
                places, sums = lists.matches(words[offsets[q] : offsets[q + 1]])
                if places.size:
                    scores[q, places] = sums / sums.max()

        self._workers.over(len(queries), add)
        return scores


def bm25_lists(
    titles: Sequence[str],
    clicks: ClickLog | None,
    recipe: Recipe,
    scratch: AnyPath | None = None,
) -> InvertedIndex:
    """BM25 with the parameters of a recipe over titles and the queries that they were clicked for.

    Parameters
    ----------
    titles : sequence of str
        The catalogue.
    clicks : ClickLog or None
        Not read if the recipe's ``click_weight`` is 0.
    recipe : Recipe
        The parameters.
    scratch : path, optional
        See `InvertedIndex`.
    """
    words = words_of(recipe.stem)
    if clicks is None or not recipe.click_weight:
        return InvertedIndex(titles, recipe.k1, recipe.b, words, scratch=scratch)
    clicked, weight = clicked_texts(titles, clicks), recipe.click_weight
    return InvertedIndex(titles, recipe.k1, recipe.b, words, clicked, weight, scratch)


def weighted_sum(
    recipe: Recipe, scores: Mapping[str, NDArray[np.floating[Any]]]
) -> NDArray[np.floating[Any]]:
    """The scores of the parts, each times its weight, added in the order of `PARTS`."""
    total: NDArray[np.floating[Any]] | None = None
    for part in recipe.parts:
        weight = recipe.weight(part)
        term = scores[part] if weight == 1 else scores[part] * scores[part].dtype.type(weight)
        total = term if total is None else total + term
    assert total is not None  # a recipe has at least one weight
    return total
