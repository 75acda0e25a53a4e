"""Several indexes that are searched as one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Self

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint
from sentemb.retrieval.bm25 import Statistics
from sentemb.search.filters import REAL
from sentemb.search.index import Index
from sentemb.search.index_fields import IndexFields
from sentemb.search.product_fields import kind_of
from sentemb.search.ranking.floor import Floor
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.searcher import Searcher
from sentemb.search.snapshot import Snapshot
from sentemb.system.bounds import plain
from sentemb.system.paths import AnyPath

# Ids that are looked up at a time.
_PORTION = 8192


class ShardedIndex(Searcher):
    """Indexes of the same model and ranker, searched as one.

    It finds what one index with all titles would, to the bit, with equal scores in the order of the
    indexes. Their titles stay where they are.

    Parameters
    ----------
    indexes : dict of str to Index
        By the names that errors have for them. Later changes of an index are not seen.
    threads : int, optional
        By default all processors.

    Raises
    ------
    SentembError
        If two have different models, rankers or fields, or share an id.
    """

    def __init__(self, indexes: Mapping[str, Index], threads: int | None = None) -> None:
        if not indexes:
            raise SentembError("no index to search; name at least one")
        (name, first), *following = indexes.items()
        super().__init__(first.model, threads)
        for name_of_index, index in following:
            what = _difference(first, index)
            if what is not None:
                raise _unlike(name_of_index, what, name)
        snapshots = {name: index.snapshot for name, index in indexes.items()}
        # Without titles the types of fields are not known.
        with_titles = {name: each for name, each in snapshots.items() if len(each)}
        for (name, earlier), (name_of_later, later) in combinations(with_titles.items(), 2):
            if not _have_same_fields(earlier.fields, later.fields):
                raise _unlike(name_of_later, "set of fields", name)
            id = _shared_id(earlier, later)
            if id is not None:
                raise SentembError(
                    f"{name_of_later}: has the id {plain(id)}, which is in {name} too; remove it "
                    "from one"
                )
        # One ranker serves all: the clicks of the others need no memory.
        self._snapshot = _of_one_type(list((with_titles or snapshots).values()))

    @property
    def snapshot(self) -> Snapshot:
        """All that searches read."""
        return self._snapshot

    @classmethod
    def open(cls, paths: Sequence[AnyPath], threads: int | None = None) -> Self:
        """Open index folders; see `Index.open`."""
        names = list(map(str, paths))
        repeated = next((name for k, name in enumerate(names) if name in names[:k]), None)
        if repeated is not None:
            raise SentembError(f"{repeated}: is named twice; name each index once")
        return cls({name: Index.open(name, threads) for name in names}, threads)


def _difference(first: Index, second: Index) -> str | None:
    """The first thing that two indexes must share and do not; None if they share all."""
    if fingerprint(first.model.saved()) != fingerprint(second.model.saved()):
        return "model"
    if not _rank_alike(first.ranker, second.ranker):
        return "ranker"
    if first.snapshot.search_fields != second.snapshot.search_fields:
        return "set of searched fields"
    return None


def _unlike(name: str, what: str, earlier: str) -> SentembError:
    return SentembError(
        f"{name}: has another {what} than {earlier}; search indexes of one model and one ranker "
        "together, with the same fields"
    )


def _rank_alike(first: HybridRanker, second: HybridRanker) -> bool:
    """Whether two rankers of one model give a pair the same score, and refuse the same queries."""
    if first.recipe != second.recipe or _facts(first.floor) != _facts(second.floor):
        return False
    if first.embedding is not None and not first.embedding.is_like(second.embedding):
        return False
    if first.recipe.needs_clicks and list(first.clicks.queries) != list(second.clicks.queries):
        return False
    return not first.recipe.reads_words or all(map(_are_equal, first.fields, second.fields))


def _facts(floor: Floor | None) -> object:
    return None if floor is None else (floor.as_dict(), floor.letters.counts)


def _are_equal(first: Statistics, second: Statistics) -> bool:
    return (
        (first.n_titles, first.mean_length) == (second.n_titles, second.mean_length)
        and list(first.words) == list(second.words)
        and np.array_equal(first.holding, second.holding)
    )


def _have_same_fields(first: IndexFields, second: IndexFields) -> bool:
    """Whether the names are the same, and no field has values of two kinds."""
    return list(first.types) == list(second.types) and all(
        kind_of(kind) == kind_of(second.types[name]) or name in first.empty or name in second.empty
        for name, kind in first.types.items()
    )


def _shared_id(first: Snapshot, second: Snapshot) -> str | None:
    """An id that both have, if there is one."""
    ids = first.ids
    for start in range(0, len(ids), _PORTION):
        portion = ids[start : start + _PORTION]
        there = np.flatnonzero(second.numbers_of(portion) >= 0)
        if there.size:
            return str(portion[there[0]])
    return None


def _of_one_type(snapshots: Sequence[Snapshot]) -> Snapshot:
    """The titles of all, with fields of the types that they would have in one index."""
    first = snapshots[0]
    types = dict(first.fields.types)
    for name in types:
        kinds = {each.fields.types[name] for each in snapshots if name not in each.fields.empty}
        types[name] = kinds.pop() if len(kinds) == 1 else REAL if kinds else types[name]
    segments = tuple(
        segment.with_fields(segment.fields.with_types(types))
        for each in snapshots
        for segment in each.segments
    )
    alike = all(each.confidence == first.confidence for each in snapshots)
    confidence = first.confidence if alike else None
    return replace(first, segments=segments, confidence=confidence)
