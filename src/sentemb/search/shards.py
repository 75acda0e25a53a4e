"""The titles of one snapshot, or of several as if they were one: all that a search reads.

Titles are numbered through: the first shard has the rows from 0, the next those that follow. The
score of a query and a title does not depend on other titles, so the best titles of all are among
the best of each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.confidence import Confidence
from sentemb.search.frequent_queries import FrequentQueries
from sentemb.search.index_files import damaged, part_file
from sentemb.search.product_fields import ProductFields, Value
from sentemb.search.ranking import engine
from sentemb.search.ranking.direct_parts import Clicks
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.part import Asked
from sentemb.search.ranking.parts import Bm25
from sentemb.search.ranking.ranker import HybridRanker, Share, shares
from sentemb.search.ranking.recipe import BM25, CLICKS, COSINE, EMBEDDING, MEMORY, Recipe
from sentemb.search.snapshot import Snapshot
from sentemb.system.bounds import plain
from sentemb.system.parallel import Workers
from sentemb.system.time_limits import check_time
from sentemb.text.batch import Tokens


@dataclass(frozen=True, eq=False)
class Shards:
    """Snapshots with the same model and the same ranker, at least one.

    ``finds`` says of the frequent queries that were looked at whether they find something.
    """

    snapshots: tuple[Snapshot, ...]
    finds: dict[str, bool] = field(default_factory=dict)

    @property
    def ranker(self) -> HybridRanker:
        """Model, weights and clicks."""
        return self.snapshots[0].ranker

    def recipe(self, cosine: bool) -> Recipe:
        """The weights of a search; see `Snapshot.recipe`."""
        return self.snapshots[0].recipe(cosine)

    @property
    def frequent(self) -> FrequentQueries:
        """The frequent queries of the log."""
        return self.snapshots[0].frequent

    @property
    def confidence(self) -> Confidence | None:
        """The calibration that all have; None if they differ."""
        first, *following = (snapshot.confidence for snapshot in self.snapshots)
        return first if all(confidence == first for confidence in following) else None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first row of each shard, and the number of all titles."""
        return np.cumsum([0, *(len(snapshot.ids) for snapshot in self.snapshots)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    # -- titles -------------------------------------------------------------------------------

    def _located(self, row: int) -> tuple[Snapshot, int]:
        """The shard that has a title, and its row there."""
        if len(self.snapshots) == 1:
            return self.snapshots[0], row
        shard = int(np.searchsorted(self.starts, row, "right")) - 1
        return self.snapshots[shard], row - int(self.starts[shard])

    def id(self, row: int) -> str:
        """The id of a title."""
        snapshot, local = self._located(row)
        return snapshot.ids[local]

    def title(self, row: int) -> str:
        """The text of a title."""
        snapshot, local = self._located(row)
        return snapshot.titles[local]

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of ids, (k,); -1 for an id that is unknown."""
        rows = np.full(len(ids), -1)
        for start, snapshot in zip(self.starts, self.snapshots, strict=False):
            of_shard = snapshot.row_of.of(ids)
            rows = np.where(of_shard >= 0, of_shard + start, rows)
        return rows

    def row_named(self, text: str) -> int | None:
        """The row of the title whose id is ``text``; see `Snapshot.row_named`."""
        for start, snapshot in zip(self.starts.tolist(), self.snapshots, strict=False):
            row = snapshot.row_named(text)
            if row is not None:
                return int(start) + row
        return None

    def known_rows(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """The rows of ids; a `SentembError` for one that no title has."""
        rows = self.rows_of(ids)
        if (rows < 0).any():
            unknown = ids[int(np.argmax(rows < 0))]
            raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
        return rows

    def mask(self, only: list[str] | None, where: str | None) -> NDArray[np.bool_] | None:
        """The titles that may be found, (n,); see `Snapshot.mask`."""
        masks = [snapshot.mask(only, where) for snapshot in self.snapshots]
        there = [mask for mask in masks if mask is not None]
        if len(there) < 2:
            return there[0] if there else None
        return np.concatenate(there)

    def _masks(self, mask: NDArray[np.bool_] | None) -> Iterator[NDArray[np.bool_] | None]:
        """The part of a mask that each shard has."""
        for start, end in pairwise(self.starts.tolist()):
            yield None if mask is None else mask[start:end]

    # -- fields -------------------------------------------------------------------------------

    def values(self, rows: Sequence[int]) -> list[dict[str, Value]]:
        """The fields of some titles; see `ProductFields.values`."""
        by_row: dict[int, dict[str, Value]] = {}
        for (start, end), snapshot in zip(
            pairwise(self.starts.tolist()), self.snapshots, strict=True
        ):
            of_shard = [row for row in rows if start <= row < end]
            local = [row - start for row in of_shard]
            by_row |= zip(of_shard, snapshot.fields.values(local), strict=True)
        return [by_row[row] for row in rows]

    def _fields_of(self, rows: Sequence[int]) -> tuple[ProductFields, Sequence[int]]:
        """Fields that have those of some titles, and the rows of the titles there."""
        if len(self.snapshots) == 1:
            return self.snapshots[0].fields, rows
        types, values = self.snapshots[0].fields.types, self.values(rows)
        of_rows = ([row[name] for name in types] for row in values)
        return ProductFields.of(types, len(rows), of_rows), range(len(rows))

    def facet(self, column: str, rows: Sequence[int]) -> dict[Value, int]:
        """How many of some titles have each value of a column; see `ProductFields.facet`."""
        fields, rows_there = self._fields_of(rows)
        return fields.facet(column, rows_there)

    def ordered(self, order: str, rows: Sequence[int]) -> list[int]:
        """The positions of ``rows`` by a column; see `ProductFields.ordered`."""
        fields, rows_there = self._fields_of(rows)
        return fields.ordered(order, rows_there)

    # -- scores -------------------------------------------------------------------------------

    def best(
        self,
        asked: Asked,
        k: int,
        mask: NDArray[np.bool_] | None,
        cosine: bool,
        workers: Workers,
        exact: bool = False,
    ) -> Ranked:
        """The titles with the highest scores; see `sentemb.search.ranking.engine.best`."""
        recipe, of_shards = self.recipe(cosine), []
        for start, snapshot, allowed in zip(
            self.starts, self.snapshots, self._masks(mask), strict=False
        ):
            check_time()
            catalogue = snapshot.catalogue
            arguments = catalogue.parts, recipe, asked, k, catalogue.is_empty, workers, allowed
            ranked = engine.best(*arguments, None if exact else catalogue.shortlist)
            _check_lengths(snapshot, ranked)
            ranked.titles[ranked.titles >= 0] += start
            of_shards.append(ranked)
        return of_shards[0] if len(of_shards) == 1 else _merged(of_shards, min(k, len(self)))

    def are_below_floor(
        self, asked: Asked, ranked: Ranked, mask: NDArray[np.bool_] | None
    ) -> NDArray[np.bool_]:
        """Which queries the titles cannot answer, (m,); ``ranked`` are their best titles."""
        is_below = self.ranker.is_below_floor(asked.queries, ranked)
        return is_below & ~self.are_answered(asked, mask) if is_below.any() else is_below

    def are_clicked(self, asked: Asked) -> NDArray[np.bool_]:
        """Which queries the log has clicks for, if the recipe counts them; (m,)."""
        clicks = self.snapshots[0].catalogue.parts.get(CLICKS)
        if not isinstance(clicks, Clicks):
            return np.zeros(len(asked), np.bool_)
        return clicks.knows(asked)

    def are_answered(self, asked: Asked, mask: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which queries a rule says that titles answer; see `engine.are_answered`."""
        of_shards = [
            engine.are_answered(snapshot.catalogue.parts, asked, allowed)
            for snapshot, allowed in zip(self.snapshots, self._masks(mask), strict=True)
        ]
        return np.asarray(np.any(of_shards, axis=0))

    def of_pair(
        self, query: str, row: int, cosine: bool, workers: Workers
    ) -> tuple[float, dict[str, float]]:
        """The score of a query and a title, and what each part of the recipe scores."""
        snapshot, local = self._located(row)
        scores, values = engine.of_pairs(
            snapshot.catalogue.parts,
            self.recipe(cosine),
            self.ranker.asked([query]),
            np.zeros(1, np.int64),
            np.array([local]),
            workers,
        )
        return float(scores[0]), {name: float(value[0]) for name, value in values.items()}

    def explain(
        self, query: str, rows: Sequence[int], cosine: bool, workers: Workers
    ) -> list[list[Share]]:
        """The share of each part in the scores of some titles."""
        recipe, asked = self.recipe(cosine), self.ranker.asked([query])
        queries = self.ranker.clicks.queries if recipe.weight(MEMORY) else ()
        located = map(self._located, rows)
        return [
            shares(snapshot.catalogue, recipe, asked, local, queries, workers)
            for snapshot, local in located
        ]

    def have_unknown_words(self, asked: Asked) -> NDArray[np.bool_]:
        """Which queries have a word that no title and no clicked query has; none without BM25."""
        parts = [snapshot.catalogue.parts.get(BM25) for snapshot in self.snapshots]
        lists = [part.lists for part in parts if isinstance(part, Bm25)]
        if not lists:
            return np.zeros(len(asked), np.bool_)
        tokens = asked.tokens
        n = len(tokens.words)
        words = Tokens(np.arange(n, dtype=np.int32), np.arange(n + 1), tokens.words)
        is_unknown = ~np.any(
            [np.diff(of_shard.look_up(words).offsets) for of_shard in lists], axis=0
        )
        counts = np.concatenate([[0], np.cumsum(is_unknown[tokens.word_index])])
        return np.diff(counts[tokens.offsets]) > 0


def _check_lengths(snapshot: Snapshot, ranked: Ranked) -> None:
    """Refuse what no unit vectors give: files of vectors are not read when they are opened."""
    for part in (COSINE, MEMORY, EMBEDDING):
        values = ranked.values.get(part)
        if values is not None and not (np.abs(values) <= LONGEST).all():
            folder = Path() if snapshot.source is None else snapshot.source[0]
            raise damaged(folder / part_file(part), "a vector is not of unit length")


def _merged(of_shards: Sequence[Ranked], k: int) -> Ranked:
    """The best k titles of all shards, equal scores in the order of the titles."""
    titles, scores = (
        np.concatenate([getattr(ranked, name) for ranked in of_shards], axis=1)
        for name in ("titles", "scores")
    )
    order = np.lexsort((titles, -scores), axis=1)[:, :k]
    values = {
        name: np.concatenate([ranked.values[name] for ranked in of_shards], axis=1)
        for name in of_shards[0].values
    }
    return Ranked(
        np.take_along_axis(titles, order, axis=1),
        np.take_along_axis(scores, order, axis=1),
        {name: np.take_along_axis(value, order, axis=1) for name, value in values.items()},
    )
