"""Parts of a score: the protocol, and the material that they are made of.

A part is one class: it is built from a `Material`, adds its scores of all titles in float32 with a
bound on their errors, scores pairs exactly, and is copied when titles come and go.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.retrieval.bm25 import (
    AskedWords,
    CountedFields,
    FieldTexts,
    Lists,
    Statistics,
    count_words,
)
from sentemb.retrieval.clicked_queries import ClicksOfTitles
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.postings import Postings
from sentemb.retrieval.read_queries import Embed, ReadQueries
from sentemb.retrieval.row_products import QueryRows
from sentemb.retrieval.rows_of_texts import PackedTexts
from sentemb.retrieval.words_and_stems import tokens_of
from sentemb.search.ranking.recipe import Recipe
from sentemb.system.contracts import Arrays, Runner
from sentemb.system.paths import AnyPath
from sentemb.text.batch import Tokens
from sentemb.text.hashes import hash_of, hashes_of
from sentemb.text.words import exact_key, folded_words

# The largest relative error of a rounded float32.
UNIT = 2.0**-24


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
    searched : the further fields in which words are searched
    scratch : a folder on the disk for large arrays; see `sentemb.system.growing.scratch_array`
    embedded : the titles by the embedding of a ranker that has one
    """

    titles: Sequence[str]
    rows: np.ndarray | Int8Rows
    clicks: ClicksOfTitles
    queries: ReadQueries
    recipe: Recipe
    statistics: Fields | None = None
    counted_words: Collection[str] | None = None
    searched: Sequence[FieldTexts] = ()
    scratch: AnyPath | None = None
    embedded: Int8Rows | None = None

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
        counted = self.counted_words
        return count_words(self.titles, self.clicks, queries, words, counted, self.searched)

    @cached_property
    def fields(self) -> Fields:
        """The statistics that BM25 uses."""
        return self.statistics or Fields.of(self.counted)


class Asked:
    """Queries in the forms that parts need.

    ``embed`` makes unit vectors of texts by the query tower; zero for a query with no known words.
    ``embed_too`` makes those of an embedding; None where the recipe has none.
    ``recipe`` says how BM25 splits texts into words; before a part asks for words, nothing is split
    and no stemmer is needed.
    """

    def __init__(
        self,
        queries: Sequence[str],
        embed: Embed,
        recipe: Recipe,
        embed_too: Embed | None = None,
    ) -> None:
        self.queries = queries
        self._embed, self._embed_too, self._recipe = embed, embed_too, recipe
        # Of a part; no function of these queries themselves, which would refer to each other and
        # keep an index that is replaced until the garbage collector runs.
        self._look_up: Callable[[Lists], AskedWords] | None = None
        # What was looked up, each once.
        self._numbers: dict[Postings, NDArray[np.int64]] = {}
        self._titles: dict[tuple[Postings, int], NDArray[np.int32]] = {}
        self._words: dict[Lists, AskedWords] = {}
        self._word_numbers: dict[Lists, NDArray[np.int32]] = {}
        # Queries for which names do not add their scores: the engine says what they count there.
        self.is_typed = np.zeros(len(queries), np.bool_)

    def __len__(self) -> int:
        return len(self.queries)

    def part(self, which: slice | NDArray[np.int64]) -> Asked:
        """Some of the queries, which are not read again."""
        rows = np.arange(len(self))[which]
        part = Asked(
            [self.queries[row] for row in rows.tolist()],
            lambda _: self.rows.exact[rows],
            self._recipe,
            lambda _: self.embedded.exact[rows],
        )
        part._look_up = lambda lists: self.words_in(lists).part(rows)
        part.keys, part.names = self.keys[rows], [self.names[row] for row in rows.tolist()]
        part.is_typed = self.is_typed[rows]
        return part

    @cached_property
    def rows(self) -> QueryRows:
        """The queries by the query tower."""
        return QueryRows(self._embed(list(self.queries)))

    @cached_property
    def is_unknown(self) -> NDArray[np.bool_]:
        """Which queries have no word that the model knows, (m,)."""
        return np.logical_not(self.rows.exact.any(axis=1))

    @cached_property
    def embedded(self) -> QueryRows:
        """The queries by the embedding."""
        assert self._embed_too is not None
        return QueryRows(self._embed_too(list(self.queries)))

    @cached_property
    def keys(self) -> NDArray[np.int64]:
        """The hashes of their `exact_key`, (m,)."""
        return hashes_of(list(map(exact_key, self.queries)))

    @cached_property
    def names(self) -> list[NDArray[np.int64]]:
        """The hashes of the distinct folded words of each, ascending."""
        return [
            np.array(sorted(set(map(hash_of, folded_words(query)))), np.int64)
            for query in self.queries
        ]

    @cached_property
    def tokens(self) -> Tokens:
        """Their words, as BM25 reads them."""
        return tokens_of(self.queries, self._recipe.words)

    @cached_property
    def packed(self) -> PackedTexts:
        """The distinct words of `tokens`, for tables of words."""
        return PackedTexts.of(self.tokens.words)

    def numbers_in(self, postings: Postings) -> NDArray[np.int64]:
        """The numbers of their keys in ``postings``, (m,); -1 for one that is not there."""
        if postings not in self._numbers:
            self._numbers[postings] = postings.numbers(self.keys)
        return self._numbers[postings]

    def titles_in(self, postings: Postings, q: int) -> NDArray[np.int32]:
        """The titles that have all `names` of query ``q`` in ``postings``, ascending."""
        if (postings, q) not in self._titles:
            self._titles[postings, q] = postings.holding_all(self.names[q])
        return self._titles[postings, q]

    def words_in(self, lists: Lists) -> AskedWords:
        """Their words, as numbers of ``lists``."""
        if lists not in self._words:
            self._words[lists] = (
                lists.look_up(self.tokens, self.word_numbers_in(lists))
                if self._look_up is None
                else self._look_up(lists)
            )
        return self._words[lists]

    def word_numbers_in(self, lists: Lists) -> NDArray[np.int32]:
        """The numbers of the words of `tokens` in ``lists``, (n,); -1 for one without a title."""
        if lists not in self._word_numbers:
            self._word_numbers[lists] = lists.numbers_of(self.packed)
        return self._word_numbers[lists]


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


def check(name: str, is_right: bool, why: str = "it does not fit the other files") -> None:
    if not is_right:
        raise Unfit(name, why)


def check_offsets(offsets: np.ndarray, n: int, size: int) -> None:
    is_right = offsets.shape == (n + 1,) and not offsets[0] and offsets[-1] == size
    check("offsets", is_right and bool((offsets[1:] >= offsets[:-1]).all()))


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
