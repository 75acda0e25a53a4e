"""All that a search in an index reads, as one object that never changes.

A change of an index makes another snapshot and puts it in place in one assignment, so that an
exception leaves the index as it was, and a search in another thread reads either all of the old one
or all of the new one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.data.lines import is_id
from sentemb.data.text_array import Texts
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.search.confidence import Confidence
from sentemb.search.frequent_queries import FrequentQueries
from sentemb.search.id_rows import IdRows
from sentemb.search.product_fields import ProductFields
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.part import Part
from sentemb.search.ranking.parts import Cosine, Embedded
from sentemb.search.ranking.ranker import Catalogue, HybridRanker
from sentemb.search.ranking.recipe import COSINE, EMBEDDING, MODEL_ALONE, Recipe
from sentemb.search.ranking.shortlist import Shortlist

# Around an id that somebody types: what Python strips, and the mark that begins some files. The
# page strips the same, see engine.js.
_WHITE = "\ufeff" + "".join(filter(str.isspace, map(chr, range(0x3001))))

Vectors = np.ndarray | Int8Rows


@dataclass(frozen=True, eq=False)
class Snapshot:
    """The contents of an index.

    ranker : model, weights and clicks
    catalogue : the titles and the parts of their scores
    fields : price, brand and so on of the titles
    confidence : the confidence that was fitted to scores with these weights, or None
    source : the folder that holds all of this, and its identity; None without one
    search_fields : the weights of the fields in which words are searched
    """

    ranker: HybridRanker
    ids: Texts
    catalogue: Catalogue
    fields: ProductFields
    confidence: Confidence | None = None
    source: tuple[Path, str] | None = None
    search_fields: Mapping[str, float] = field(default_factory=dict)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without what is made on first use: hashes differ from process to process.
        attributes = (self.ranker, self.ids, self.catalogue, self.fields)
        return Snapshot, (*attributes, self.confidence, self.source, self.search_fields)

    @property
    def titles(self) -> Texts:
        """The titles, in the order of the ids."""
        titles = self.catalogue.titles
        assert isinstance(titles, Texts)
        return titles

    @property
    def _cosine(self) -> Cosine:
        cosine = self.catalogue.parts[COSINE]
        assert isinstance(cosine, Cosine)
        return cosine

    @property
    def vectors(self) -> Vectors:
        """Unit vectors of the titles, (n, dim)."""
        return self._cosine.rows

    def remember_embedding(self, embedding: Embedding | None) -> None:
        """Let an embedding know the vectors of these titles, if they are its own."""
        part = self.catalogue.parts.get(EMBEDDING)
        is_own = embedding is not None and embedding.is_like(self.ranker.embedding)
        if isinstance(part, Embedded) and embedding is not None and is_own:
            embedding.know(self.titles, part.rows)

    @property
    def clusters(self) -> Shortlist | None:
        """Looks titles up in clusters; None where a search compares all."""
        return self.catalogue.shortlist

    @property
    def dtype(self) -> str:
        """float32, float16 or int8."""
        vectors = self.vectors
        return "int8" if isinstance(vectors, Int8Rows) else vectors.dtype.name

    @cached_property
    def row_of(self) -> IdRows:
        """The row of every id. It is made on first use: one pass over the ids."""
        return IdRows(self.ids)

    @cached_property
    def frequent(self) -> FrequentQueries:
        """The frequent queries of the log, made on first use: one pass over the queries."""
        return FrequentQueries.of(self.ranker.clicks)

    @cached_property
    def finds(self) -> dict[str, bool]:
        """For frequent queries that were looked at, whether they find something."""
        return {}

    def recipe(self, cosine: bool) -> Recipe:
        """The weights of a search: those of the index, or the model alone."""
        return MODEL_ALONE if cosine else self.ranker.recipe

    def parts(self) -> dict[str, Part]:
        """The parts of the scores, by name."""
        return self.catalogue.parts

    def mask_of(self, ids: list[str]) -> NDArray[np.bool_]:
        """Which titles have one of ``ids``: (n,) bool. Unknown ids are ignored."""
        rows, mask = self.row_of.of(ids), np.zeros(len(self.ids), np.bool_)
        mask[rows[rows >= 0]] = True
        return mask

    def row_named(self, text: str) -> int | None:
        """The title whose id is ``text``; if there is none, in capitals or small letters."""
        name = text.strip(_WHITE)
        ids = dict.fromkeys([name, name.upper(), name.lower()]) if is_id(name) else ()
        return next((row for id in ids if (row := self.row_of.get(id)) is not None), None)

    def mask(self, only: list[str] | None, where: str | None) -> NDArray[np.bool_] | None:
        """Which titles have one of the ids ``only`` and meet the condition ``where``, if given."""
        mask = None if where is None else self.fields.mask(where)
        if only is None:
            return mask
        by_id = self.mask_of(only)
        return by_id if mask is None else mask & by_id

    def changed(self, **changes: Any) -> Snapshot:
        """This with other fields; the confidence is dropped unless scores are made as before."""
        changed = replace(self, **changes, source=None)
        is_same = changed.ranker is self.ranker or "confidence" in changes
        return changed if is_same else replace(changed, confidence=None)
