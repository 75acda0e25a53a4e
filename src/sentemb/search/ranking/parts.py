"""The parts of a score, each over one catalogue of titles.

    cosine(q, t)        of the two towers
    memory(q, t)        see `sentemb.retrieval.memory`
    embedding(q, t)     the cosine of an embedding; see `sentemb.search.ranking.embedding`
    bm25(q, t)          BM25 over the words of t and of its clicked queries
    clicked_bm25(q, t)  BM25 over the words of its clicked queries alone
    unclicked(q, t)     1 for a title without clicks, else 0
    clicks(q, t)        ln(1 + c / 2) for c clicks on t for exactly this query
    name(q, t)          1 if all words of q are in t, else 0; the engine says when it counts
    examined(q, t)      -ln(1 + n / 6) if t was looked at n times for exactly this query

`PART_TYPES` lists them: the fit, the index and its files take them from there. The last three are
in `sentemb.search.ranking.direct_parts`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import TextArray
from sentemb.kernels.dense import add_products
from sentemb.retrieval.bm25 import Counts, Lists, Statistics
from sentemb.retrieval.int8_rows import LARGEST, Int8Rows
from sentemb.retrieval.memory import MemoryRows
from sentemb.retrieval.row_products import LONGEST, QueryRows, exact_products, products
from sentemb.search.ranking.direct_parts import Clicks, Examined, Name
from sentemb.search.ranking.part import (
    UNIT,
    Asked,
    Bound,
    Material,
    Part,
    Unfit,
    check,
    check_offsets,
)
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    COSINE,
    EMBEDDING,
    MEMORY,
    UNCLICKED,
    Recipe,
)
from sentemb.system.contracts import Arrays, Runner
from sentemb.system.growing import joined_rows
from sentemb.system.paths import AnyPath

# Titles that are multiplied at a time.
_TITLES = 4096


@dataclass(frozen=True, eq=False)
class Cosine:
    """The cosine of the two towers; ``rows`` are (n_titles, dim) float32, float16 or int8."""

    rows: np.ndarray | Int8Rows
    name: ClassVar[str] = COSINE
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = False

    @classmethod
    def build(cls, material: Material) -> Self:
        return cls(material.rows)

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        n_tasks, queries = -(-len(self.rows) // _TITLES), self._rows_of(asked)
        workers.over(n_tasks, self._add, total, np.float32(weight), queries)
        reach = abs(weight) * LONGEST
        return Bound(abs(weight) * queries.error + 2 * UNIT * reach, reach, 1)

    @staticmethod
    def _rows_of(asked: Asked) -> QueryRows:
        return asked.rows

    def _add(
        self,
        total: NDArray[np.float32],
        weight: np.float32,
        queries: QueryRows,
        first: int,
        end: int,
    ) -> None:
        for low in range(first * _TITLES, min(end * _TITLES, len(self.rows)), _TITLES):
            block = slice(low, low + _TITLES)
            rows = self.rows.rows(block) if isinstance(self.rows, Int8Rows) else self.rows[block]
            add_products(total, weight, products(queries, rows), low)

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        queries = self._rows_of(asked)
        return exact_products(queries, self.rows, query_index, title_index, workers)

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        rows: np.ndarray | Int8Rows
        if isinstance(self.rows, Int8Rows):
            rows = self.rows.take(is_kept, scratch)
        else:
            rows = joined_rows([self.rows], scratch, is_kept)
        return type(self)(rows)

    def joined(self, behind: Cosine, scratch: AnyPath | None = None) -> Self:
        if isinstance(self.rows, Int8Rows) and isinstance(behind.rows, Int8Rows):
            return type(self)(self.rows.joined(behind.rows, scratch))
        assert not isinstance(self.rows, Int8Rows) and not isinstance(behind.rows, Int8Rows)
        return type(self)(joined_rows([self.rows, behind.rows], scratch))

    def arrays(self) -> Arrays:
        rows = self.rows
        if isinstance(rows, Int8Rows):
            return {"codes": rows.codes, "scales": rows.scales}
        return {"vectors": rows}

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        if "vectors" in arrays:
            rows = arrays["vectors"]
            is_float = rows.dtype in (np.float32, np.float16)
            check("vectors", rows.shape == (n_titles, dim) and is_float)
            return cls(rows)
        return cls(int8_rows(arrays, n_titles, dim))


class Embedded(Cosine):
    """The cosine of an embedding; its ``rows`` are int8."""

    rows: Int8Rows
    name: ClassVar[str] = EMBEDDING

    @classmethod
    def build(cls, material: Material) -> Self:
        assert material.embedded is not None
        return cls(material.embedded)

    @staticmethod
    def _rows_of(asked: Asked) -> QueryRows:
        return asked.embedded

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        return cls(int8_rows(arrays, n_titles, dim))


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory of the log; see `sentemb.retrieval.memory`.

    Where ``is_read_for_cosine`` is set, its rows are read and not also the vectors of the titles.
    """

    memory: MemoryRows
    name: ClassVar[str] = MEMORY
    is_read_for_cosine: ClassVar[bool] = True
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = True

    @classmethod
    def build(cls, material: Material) -> Self:
        of_log = material.clicks, material.queries
        return cls(MemoryRows.of(material.rows, material.titles, *of_log, material.scratch))

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        self.memory.add(total, weight, asked.rows, workers)
        return self.bound(weight, asked)

    @staticmethod
    def bound(weight: float, asked: Asked) -> Bound:
        """The bound that `add` returns."""
        reach = abs(weight) * LONGEST
        return Bound(abs(weight) * asked.rows.error + 2 * UNIT * reach, reach, 1)

    @cached_property
    def most_below_cosine(self) -> float:
        """How far the memory of a title can be below its cosine.

        Each number of a row is rounded by at most half its scale, and no query is longer than
        `LONGEST`.
        """
        offsets, rows = self.memory.offsets, self.memory.rows
        first = offsets[:-1][offsets[1:] > offsets[:-1]]
        largest, dim = float(rows.scales[first].max(initial=0)), rows.codes.shape[1]
        return 0.51 * largest * math.sqrt(dim) * LONGEST

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        return self.memory.best(asked.rows, query_index, title_index, workers)[0]

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        return type(self)(self.memory.without(is_kept, scratch))

    def joined(self, behind: Memory, scratch: AnyPath | None = None) -> Self:
        return type(self)(self.memory.joined(behind.memory, scratch))

    def arrays(self) -> Arrays:
        memory = self.memory
        return {
            "offsets": memory.offsets,
            "codes": memory.rows.codes,
            "scales": memory.rows.scales,
            "texts": memory.texts,
        }

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        texts, offsets = arrays["texts"], arrays["offsets"]
        rows = int8_rows(arrays, texts.size, dim)
        check("texts", texts.ndim == 1 and texts.dtype == np.int32)
        check("offsets", offsets.dtype == np.int64)
        check_offsets(offsets, n_titles, texts.size)
        return cls(MemoryRows(offsets, rows, texts))


@dataclass(frozen=True, eq=False)
class Bm25:
    """BM25 over titles and clicked queries."""

    lists: Lists
    name: ClassVar[str] = BM25
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = False

    @classmethod
    def build(cls, material: Material) -> Self:
        counts, statistics = cls._field(material)
        return cls(Lists.of(counts, statistics, material.recipe.k1, material.recipe.b))

    @staticmethod
    def _field(material: Material) -> tuple[Counts, Statistics]:
        return material.counted.whole, material.fields.whole

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        words = asked.words_in(self.lists)
        self.lists.add(total, weight, words, workers)
        lengths = np.diff(words.offsets)
        of_query = np.repeat(np.arange(len(asked)), lengths)
        largest = self.lists.largest[words.words].astype(np.float64)
        reach = abs(weight) * np.bincount(of_query, largest, len(asked)).astype(np.float64)
        return Bound(2 * UNIT * reach, reach, int(lengths.max(initial=0)))

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        return self.lists.scores(asked.words_in(self.lists), query_index, title_index, workers)

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        return type(self)(self.lists.without(is_kept))

    def joined(self, behind: Bm25, scratch: AnyPath | None = None) -> Self:
        return type(self)(self.lists.joined(behind.lists))

    def arrays(self) -> Arrays:
        lists = self.lists
        words = lists.words if isinstance(lists.words, TextArray) else TextArray.of(lists.words)
        return {
            "words": words.raw,
            "offsets": lists.offsets,
            "titles": lists.titles,
            "weights": lists.weights,
        }

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        check("words", arrays["words"].ndim == 1 and arrays["words"].dtype == np.uint8)
        try:
            words = TextArray.of_lines(arrays["words"])
        except ValueError:
            raise Unfit("words", "it is not UTF-8 with line ends") from None
        offsets, titles, weights = (arrays[name] for name in ("offsets", "titles", "weights"))
        check("titles", titles.ndim == 1 and titles.dtype == np.int32)
        check("weights", weights.shape == titles.shape and weights.dtype == np.float32)
        check("offsets", offsets.dtype == np.int64)
        check_offsets(offsets, len(words), titles.size)
        if titles.size:
            is_there = 0 <= int(titles.min()) <= int(titles.max()) < n_titles
            check("titles", is_there, "it names a title that does not exist")
            check("weights", bool(np.isfinite(weights).all()), "a weight is not finite")
            check("offsets", bool((offsets[1:] > offsets[:-1]).all()), "a word has no title")
        lists = Lists(words, offsets, titles, weights, n_titles)
        check("words", lists.rows.repeated is None, "a word is in it twice")
        return cls(lists)


class ClickedBm25(Bm25):
    """BM25 over clicked queries alone."""

    name: ClassVar[str] = CLICKED_BM25
    needs_clicks: ClassVar[bool] = True

    @staticmethod
    def _field(material: Material) -> tuple[Counts, Statistics]:
        return material.counted.clicked, material.fields.clicked


@dataclass(frozen=True, eq=False)
class Unclicked:
    """A constant for titles without clicks: ``values`` (n_titles,) are 1 without clicks, else 0."""

    values: NDArray[np.float32]
    name: ClassVar[str] = UNCLICKED
    is_evidence: ClassVar[bool] = False
    needs_clicks: ClassVar[bool] = True

    @classmethod
    def build(cls, material: Material) -> Self:
        return cls((np.diff(material.clicks.offsets) == 0).astype(np.float32))

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        total += np.float32(weight) * self.values
        return Bound(UNIT * abs(weight), abs(weight), 1)

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        return self.values[title_index].astype(np.float64)

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        return type(self)(self.values[is_kept])

    def joined(self, behind: Unclicked, scratch: AnyPath | None = None) -> Self:
        return type(self)(np.concatenate([self.values, behind.values]))

    def arrays(self) -> Arrays:
        return {"values": self.values}

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        values = arrays["values"]
        is_right = values.shape == (n_titles,) and values.dtype == np.float32
        check("values", is_right and bool(np.isin(values, (0, 1)).all()))
        return cls(values)


PART_TYPES: tuple[type[Part], ...] = (
    Cosine,
    Memory,
    Embedded,
    Bm25,
    ClickedBm25,
    Unclicked,
    Clicks,
    Name,
    Examined,
)


def bound_of_cosine(parts: Mapping[str, Part], recipe: Recipe) -> Memory | None:
    """The memory, if it is read for the cosine too: the vector of a title is one of its rows."""
    memory = parts.get(MEMORY)
    if not isinstance(memory, Memory) or not memory.is_read_for_cosine:
        return None
    return memory if recipe.weight(COSINE) > 0 and recipe.weight(MEMORY) > 0 else None


def int8_rows(arrays: Arrays, n: int, dim: int) -> Int8Rows:
    """Stored rows of unit length at most; `Unfit` for others."""
    codes, scales = arrays["codes"], arrays["scales"]
    check("codes", codes.shape == (n, dim) and codes.dtype == np.int8)
    check("scales", scales.shape == (n,) and scales.dtype == np.float32)
    is_unit = bool(((scales >= 0) & (scales <= LONGEST / LARGEST)).all())
    check("scales", is_unit, "a vector is not of unit length")
    return Int8Rows(codes, scales)


def stored_rows(vectors: np.ndarray, dtype: str) -> np.ndarray | Int8Rows:
    """Unit vectors as they are stored: float32, float16 or int8."""
    rows = np.asarray(vectors, np.float32)
    if dtype == "int8":
        return Int8Rows.of(rows)
    return rows.astype(dtype, copy=False)
