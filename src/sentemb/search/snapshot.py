"""All that a search in an index reads, as one object that never changes.

A change of an index makes another snapshot and puts it in place in one assignment, so that an
exception leaves the index as it was, and a search in another thread reads either all of the old one
or all of the new one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.words_and_stems import stem_of
from sentemb.data.texts import Texts
from sentemb.errors import SentembError
from sentemb.models.int8_rows import Int8Rows
from sentemb.ranking.recipe import Recipe
from sentemb.search.confidence import Confidence
from sentemb.search.hybrid import Weights
from sentemb.search.lexical import Lexical, checked_weight
from sentemb.search.memory import Memory
from sentemb.search.places import Places

Vectors = np.ndarray | Int8Rows


@dataclass(frozen=True, eq=False)
class Contents:
    """The titles of an index.

    Attributes
    ----------
    ids, titles : Texts
    vectors : (n, dim) float32 or float16, or Int8Rows
        Of unit length, except for rounding; zero for a title of which the model knows no word.
    empty : (n_empty,) int64
        The places of the zero vectors.
    """

    ids: Texts
    titles: Texts
    vectors: Vectors
    empty: np.ndarray

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the places: hashes differ from process to process.
        return Contents, (self.ids, self.titles, self.vectors, self.empty)

    @property
    def dtype(self) -> str:
        """float32, float16 or int8."""
        return "int8" if isinstance(self.vectors, Int8Rows) else self.vectors.dtype.name

    @property
    def dim(self) -> int:
        """Length of a vector."""
        rows = self.vectors.codes if isinstance(self.vectors, Int8Rows) else self.vectors
        return int(rows.shape[1])

    @cached_property
    def places(self) -> Places:
        """The place of every id. It is made on first use: one pass over the ids."""
        return Places(self.ids)

    @cached_property
    def has_vector(self) -> NDArray[np.bool_] | None:
        """Which titles have a vector that is not zero, (n,) bool; None if all have."""
        if not self.empty.size:
            return None
        found = np.ones(len(self.ids), np.bool_)
        found[self.empty] = False
        return found


@dataclass(frozen=True, eq=False)
class Snapshot:
    """What an index holds in addition to its model.

    Attributes
    ----------
    contents : Contents
    bm25 : Lexical or None
        BM25 over the same titles.
    memory : Memory or None
        The queries that the same titles were clicked for.
    cosine : float
        The weight of the cosine in the score.
    confidence : Confidence or None
        What was fitted to scores with these weights.
    source : tuple of path and str, or None
        The folder that holds all of this, and its identity.
    """

    contents: Contents
    bm25: Lexical | None = None
    memory: Memory | None = None
    cosine: float = 1.0
    confidence: Confidence | None = None
    source: tuple[Path, str] | None = None

    @property
    def memory_weight(self) -> float:
        """The weight of the memory in the score; 0 without clicks."""
        return 0.0 if self.memory is None else self.memory.weight

    def half(self) -> Lexical:
        """BM25 over the titles; a `SentembError` if there is none."""
        if self.bm25 is None:
            raise SentembError("the index has no BM25; make it again with --bm25 (bm25=True)")
        return self.bm25

    def weights(self, bm25_weight: float | None) -> Weights:
        """The weights of a search: those of the index, or the cosine and a weight of BM25."""
        if bm25_weight is None:
            of_bm25 = 0.0 if self.bm25 is None else self.bm25.weight
            return Weights(of_bm25, self.cosine, self.memory_weight)
        weight = checked_weight(bm25_weight)
        if weight:
            self.half()
        return Weights(weight)

    def recipe(self) -> Recipe:
        """The weights of the parts of a score, and the parameters of BM25."""
        half = self.bm25
        if half is None:
            return Recipe(self.cosine, memory=self.memory_weight)
        lists = half.lists
        click_weight = lists.click_weight if lists.has_clicks else 0.0
        return Recipe(
            self.cosine,
            half.weight,
            self.memory_weight,
            k1=lists.k1,
            b=lists.b,
            click_weight=click_weight,
            stem=stem_of(lists.words),
        )

    def scoring(self) -> tuple[object, ...]:
        """What decides the scores of given titles."""
        settings = None if self.bm25 is None else self.bm25.settings()
        return settings, self.cosine, self.memory_weight

    def changed(self, **changes: Any) -> Snapshot:
        """This with other fields; the confidence is dropped unless scores are made as before."""
        other = replace(self, **changes, source=None)
        is_same = other.scoring() == self.scoring()
        return other if is_same else replace(other, confidence=None)
