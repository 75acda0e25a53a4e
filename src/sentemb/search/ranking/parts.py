"""The parts of a score, each over one catalogue of titles.

    cosine(q, t)        of the two towers
    memory(q, t)        see `sentemb.retrieval.memory`
    bm25(q, t)          BM25 over the words of t and of its clicked queries
    clicked_bm25(q, t)  BM25 over the words of its clicked queries alone
    unclicked(q, t)     1 for a title without clicks, else 0

A part is one class: it is built from a `Material`, adds its scores of all titles in float32 with a
bound on their errors, scores pairs exactly, and is copied when titles come and go. `PART_TYPES`
lists them: the fit, the index and its files take them from there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.dense import add_products
from sentemb.retrieval.bm25 import AskedWords, CountedFields, Counts, Lists, Statistics, count_words
from sentemb.retrieval.clicked_queries import ClicksOfTitles
from sentemb.retrieval.cluster_lists import ClusterLists
from sentemb.retrieval.int8_rows import LARGEST, Int8Rows
from sentemb.retrieval.memory import MemoryRows
from sentemb.retrieval.read_queries import Embed, ReadQueries
from sentemb.retrieval.row_products import LONGEST, QueryRows, exact_products, products
from sentemb.retrieval.words_and_stems import tokens_of
from sentemb.search.ranking.recipe import BM25, CLICKED_BM25, COSINE, MEMORY, UNCLICKED, Recipe
from sentemb.system.contracts import Arrays, Runner
from sentemb.system.growing import joined_rows
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.text.batch import Tokens

# Titles that are multiplied at a time.
_TITLES = 4096
_UNIT = 2.0**-24


class Fields(NamedTuple):
    """The statistics of both fields of BM25; see `sentemb.retrieval.bm25`."""

    whole: Statistics
    clicked: Statistics

    @classmethod
    def of(cls, counted: CountedFields) -> Self:
        return cls(Statistics.of(counted.whole), Statistics.of(counted.clicked))


@dataclass(frozen=True, eq=False)
class Material:
    """The titles and clicks that parts are built from.

    rows : (n_titles, dim) float32 or float16, or `Int8Rows`: by the document tower, of unit length,
        or zero for a title with no known words
    clicks : the clicked queries of the titles, as numbers of ``queries``
    recipe : the parameters of BM25
    statistics : those of BM25; None for those of these titles
    counted_words : the words that BM25 counts, with given ``statistics``; None for all
    """

    titles: Sequence[str]
    rows: np.ndarray | Int8Rows
    clicks: ClicksOfTitles
    queries: ReadQueries
    recipe: Recipe
    statistics: Fields | None = None
    counted_words: Collection[str] | None = None

    @cached_property
    def is_empty(self) -> NDArray[np.bool_]:
        """Which titles have no known words, (n_titles,)."""
        rows = self.rows.codes if isinstance(self.rows, Int8Rows) else self.rows
        return np.logical_not(rows.any(axis=1))

    def with_recipe(self, recipe: Recipe, statistics: Fields | None = None) -> Material:
        """The same material with other parameters of BM25; its words are not counted again."""
        changed = replace(self, recipe=recipe, statistics=statistics or self.statistics)
        if (recipe.stem, recipe.letters) == (self.recipe.stem, self.recipe.letters):
            changed.__dict__["counted"] = self.counted
        return changed

    @cached_property
    def counted(self) -> CountedFields:
        """The words of the titles."""
        words = self.recipe.words
        queries = self.queries.tokens(words)
        return count_words(self.titles, self.clicks, queries, words, self.counted_words)

    @cached_property
    def fields(self) -> Fields:
        """The statistics that BM25 uses."""
        return self.statistics or Fields.of(self.counted)


class Asked:
    """Queries in the forms that parts need.

    ``embed`` makes unit vectors of texts by the query tower; zero for a query with no known words.
    ``recipe`` says how BM25 splits texts into words; before a part asks for words, nothing is split
    and no stemmer is needed.
    """

    def __init__(self, queries: Sequence[str], embed: Embed, recipe: Recipe) -> None:
        self.queries = queries
        self._embed, self._recipe = embed, recipe
        self._look_up: Callable[[Lists], AskedWords] = lambda lists: lists.look_up(self.tokens)
        self._words_in: dict[int, tuple[Lists, AskedWords]] = {}

    def __len__(self) -> int:
        return len(self.queries)

    def part(self, which: slice) -> Asked:
        """Some of the queries, which are not read again."""
        part = Asked(self.queries[which], lambda _: self._vectors[which], self._recipe)
        part._look_up = lambda lists: self.words_in(lists).part(which)
        return part

    @cached_property
    def _vectors(self) -> np.ndarray:
        return self._embed(list(self.queries))

    @cached_property
    def rows(self) -> QueryRows:
        """The queries by the query tower."""
        return QueryRows(self._vectors)

    @cached_property
    def tokens(self) -> Tokens:
        """Their words, as BM25 reads them."""
        return tokens_of(self.queries, self._recipe.words)

    def words_in(self, lists: Lists) -> AskedWords:
        """Their words, as numbers of ``lists``."""
        known = self._words_in.get(id(lists))
        if known is None or known[0] is not lists:
            known = self._words_in[id(lists)] = lists, self._look_up(lists)
        return known[1]


class Bound(NamedTuple):
    """Bounds on float32 scores that a part has added.

    error : (m,) or (), at least the difference between the part's float32 and its exact scores
    reach : (m,) or (), at least the absolute value of its scores
    steps : how often at most a sum was rounded
    """

    error: NDArray[np.float64] | float
    reach: NDArray[np.float64] | float
    steps: int


class Unfit(Exception):
    """An array that does not fit the others; ``args`` are its name and the reason."""


def _check(name: str, is_right: bool, why: str = "it does not fit the other files") -> None:
    if not is_right:
        raise Unfit(name, why)


def _check_offsets(offsets: np.ndarray, n: int, size: int) -> None:
    is_right = offsets.shape == (n + 1,) and not offsets[0] and offsets[-1] == size
    _check("offsets", is_right and bool((offsets[1:] >= offsets[:-1]).all()))


class Part(Protocol):
    """A part of the score over one catalogue.

    is_evidence : whether a score other than 0 says that the title has to do with the query
    needs_clicks : whether the part is useless for a log without clicks on the titles
    """

    name: ClassVar[str]
    is_evidence: ClassVar[bool]
    needs_clicks: ClassVar[bool]

    @classmethod
    def build(cls, material: Material) -> Self:
        """The part over the titles of ``material``."""
        ...

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        """Add ``weight`` times the scores of all titles to ``total``, (n_queries, n_titles)."""
        ...

    def of_pairs(
        self,
        asked: Asked,
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        workers: Runner,
    ) -> NDArray[np.float64]:
        """The scores of pairs, (k,) float64, with the same bits whatever else is scored."""
        ...

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        """The part over the titles where ``is_kept``, (n_titles,), is true.

        Vectors are copied to the folder ``scratch``; see `sentemb.system.growing.joined_rows`.
        """
        ...

    def joined(self, behind: Any, scratch: AnyPath | None = None) -> Self:
        """The part over its own titles, then those of ``behind``, of the same class.

        Vectors are copied as by `without`.
        """
        ...

    def arrays(self) -> Arrays:
        """Everything in the part, by name: what a folder keeps of it."""
        ...

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        """The inverse of `arrays`.

        Raises `Unfit` if kernels could not use an array: they do not look before they read.
        """
        ...


@dataclass(frozen=True, eq=False)
class Cosine:
    """The cosine of the two towers; ``rows`` are (n_titles, dim) float32, float16 or int8."""

    rows: np.ndarray | Int8Rows
    clusters: ClusterLists | None = None
    name: ClassVar[str] = COSINE
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = False

    @classmethod
    def build(cls, material: Material) -> Self:
        return cls(material.rows)

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        n_tasks = -(-len(self.rows) // _TITLES)
        workers.over(n_tasks, self._add, total, np.float32(weight), asked.rows)
        reach = abs(weight) * LONGEST
        return Bound(abs(weight) * asked.rows.error + 2 * _UNIT * reach, reach, 1)

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
        return exact_products(asked.rows, self.rows, query_index, title_index, workers)

    def without(self, is_kept: NDArray[np.bool_], scratch: AnyPath | None = None) -> Self:
        rows: np.ndarray | Int8Rows
        if isinstance(self.rows, Int8Rows):
            rows = self.rows.take(is_kept, scratch)
        else:
            rows = joined_rows([self.rows], scratch, is_kept)
        return type(self)(rows, self.clusters and self.clusters.without(is_kept))

    def joined(self, behind: Cosine, scratch: AnyPath | None = None) -> Self:
        clusters = self.clusters
        if clusters is not None:
            with Workers() as workers:
                clusters = clusters.joined(behind.rows, len(self.rows), workers)
        if isinstance(self.rows, Int8Rows) and isinstance(behind.rows, Int8Rows):
            return type(self)(self.rows.joined(behind.rows, scratch), clusters)
        assert not isinstance(self.rows, Int8Rows) and not isinstance(behind.rows, Int8Rows)
        return type(self)(joined_rows([self.rows, behind.rows], scratch), clusters)

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
            _check("vectors", rows.shape == (n_titles, dim) and is_float)
            return cls(rows)
        return cls(_int8_rows(arrays, n_titles, dim))


@dataclass(frozen=True, eq=False)
class Memory:
    """The memory of the log; see `sentemb.retrieval.memory`."""

    memory: MemoryRows
    name: ClassVar[str] = MEMORY
    is_evidence: ClassVar[bool] = True
    needs_clicks: ClassVar[bool] = True

    @classmethod
    def build(cls, material: Material) -> Self:
        rows = material.rows
        vectors = rows.vectors() if isinstance(rows, Int8Rows) else rows
        of_log = material.clicks, material.queries
        return cls(MemoryRows.of(vectors, material.titles, *of_log))

    def add(
        self, total: NDArray[np.float32], weight: float, asked: Asked, workers: Runner
    ) -> Bound:
        self.memory.add(total, weight, asked.rows, workers)
        return self.bound(weight, asked)

    @staticmethod
    def bound(weight: float, asked: Asked) -> Bound:
        """The bound that `add` returns."""
        reach = abs(weight) * LONGEST
        return Bound(abs(weight) * asked.rows.error + 2 * _UNIT * reach, reach, 1)

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
        rows = _int8_rows(arrays, texts.size, dim)
        _check("texts", texts.ndim == 1 and texts.dtype == np.int32)
        _check("offsets", offsets.dtype == np.int64)
        _check_offsets(offsets, n_titles, texts.size)
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
        return Bound(2 * _UNIT * reach, reach, int(lengths.max(initial=0)))

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
        words = np.frombuffer("\n".join([*lists.words, ""]).encode(), np.uint8)
        return {
            "words": words,
            "offsets": lists.offsets,
            "titles": lists.titles,
            "weights": lists.weights,
        }

    @classmethod
    def of_arrays(cls, arrays: Arrays, n_titles: int, dim: int) -> Self:
        try:
            words = arrays["words"].tobytes().decode().split("\n")[:-1]
        except UnicodeDecodeError:
            raise Unfit("words", "it is not UTF-8") from None
        offsets, titles, weights = (arrays[name] for name in ("offsets", "titles", "weights"))
        _check("titles", titles.ndim == 1 and titles.dtype == np.int32)
        _check("weights", weights.shape == titles.shape and weights.dtype == np.float32)
        _check("offsets", offsets.dtype == np.int64)
        _check_offsets(offsets, len(words), titles.size)
        _check("words", len(set(words)) == len(words), "a word is in it twice")
        if titles.size:
            is_there = 0 <= int(titles.min()) <= int(titles.max()) < n_titles
            _check("titles", is_there, "it names a title that does not exist")
            _check("weights", bool(np.isfinite(weights).all()), "a weight is not finite")
            _check("offsets", bool((offsets[1:] > offsets[:-1]).all()), "a word has no title")
        return cls(Lists(words, offsets, titles, weights, n_titles))


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
        return Bound(_UNIT * abs(weight), abs(weight), 1)

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
        _check("values", is_right and bool(np.isin(values, (0, 1)).all()))
        return cls(values)


PART_TYPES: tuple[type[Part], ...] = (Cosine, Memory, Bm25, ClickedBm25, Unclicked)


def _int8_rows(arrays: Arrays, n: int, dim: int) -> Int8Rows:
    codes, scales = arrays["codes"], arrays["scales"]
    _check("codes", codes.shape == (n, dim) and codes.dtype == np.int8)
    _check("scales", scales.shape == (n,) and scales.dtype == np.float32)
    is_unit = bool(((scales >= 0) & (scales <= LONGEST / LARGEST)).all())
    _check("scales", is_unit, "a vector is not of unit length")
    return Int8Rows(codes, scales)


def stored_rows(vectors: np.ndarray, dtype: str) -> np.ndarray | Int8Rows:
    """Unit vectors as they are stored: float32, float16 or int8."""
    rows = np.asarray(vectors, np.float32)
    if dtype == "int8":
        return Int8Rows.of(rows)
    return rows.astype(dtype, copy=False)
