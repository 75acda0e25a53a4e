"""The ranking of a model: a weighted sum of parts, over the titles of its log or over others.

    score(q, t) = sum over parts of weight · part(q, t)

`sentemb.search.ranking.parts` defines the parts; docs/ranker.md says when each helps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint, load_model
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.best_titles import how_many
from sentemb.retrieval.bm25 import FieldTexts, count_words
from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.memory import DOCUMENT, TITLE
from sentemb.retrieval.read_queries import Embed, ReadQueries
from sentemb.search.ranking import engine
from sentemb.search.ranking.direct_parts import Clicks, Examined
from sentemb.search.ranking.embedding import Embedding
from sentemb.search.ranking.floor import Floor
from sentemb.search.ranking.part import Asked, Fields, Material, Part
from sentemb.search.ranking.parts import PART_TYPES, Bm25, Memory
from sentemb.search.ranking.ranker_files import StoredRanker, write_ranker
from sentemb.search.ranking.recipe import CLICKS, COSINE, EMBEDDING, PARTS, Recipe
from sentemb.search.ranking.shortlist import Shortlist
from sentemb.system.bounds import whole
from sentemb.system.files import path_of
from sentemb.system.html_tables import facts_table
from sentemb.system.kept_files import KeptFiles
from sentemb.system.locks import locked
from sentemb.system.parallel import Turn, Workers
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_pairs, as_text, as_texts


class Nearest(NamedTuple):
    """The row of the memory that is nearest to a query.

    Attributes
    ----------
    text : str
        A clicked query, or the title itself.
    value : float
        The cosine, times the root of the title's share of the query's clicks.
    is_clicked : bool
        Whether it is a clicked query.
    """

    text: str
    value: float
    is_clicked: bool


@dataclass(frozen=True)
class Share:
    """The share of one part in the score of a query and a title.

    Attributes
    ----------
    part : str
        A name of `sentemb.search.ranking.recipe.PARTS`.
    weight, value : float
        The part adds ``weight * value`` to the score.
    nearest : Nearest or None
        For the memory, the row that the value comes from; None if the title has none.
    words : tuple of (str, float)
        For BM25, the words of the query that the title has, with what each adds to the value.
    clicks : int or None
        For the clicks of the query, how many the title has.
    examined : float or None
        How often the title was looked at for the query, as the records of searches say.
    """

    part: str
    weight: float
    value: float
    nearest: Nearest | None = None
    words: tuple[tuple[str, float], ...] = ()
    clicks: int | None = None
    examined: float | None = None

    @property
    def added(self) -> float:
        """``weight * value``."""
        return self.weight * self.value + 0.0  # never -0, which would be shown as -0.000

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        facts: dict[str, Any] = {"part": self.part, "weight": self.weight, "value": self.value}
        facts["added"] = self.added
        if self.nearest is not None:
            facts["nearest"] = self.nearest._asdict()
        if self.words:
            facts["words"] = dict(self.words)
        if self.clicks is not None:
            facts["clicks"] = self.clicks
        if self.examined is not None:
            facts["examined"] = self.examined
        return facts


class LeftOut(NamedTuple):
    """The effects of the words of a query and of a title on the score.

    of_query, of_title : (Tq,), (Td,), for each word, the score minus the score without it
    """

    score: float
    of_query: NDArray[np.float64]
    of_title: NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Catalogue:
    """Titles with the parts of their scores.

    parts : those that were asked for
    is_empty : (n_titles,), titles with no known words
    counted_words : the words that BM25 has counted; None for all
    shortlist : what finds the titles that can be among the best; None for a look at all
    """

    titles: Sequence[str]
    parts: dict[str, Part]
    is_empty: NDArray[np.bool_]
    counted_words: Set[str] | None = None
    shortlist: Shortlist | None = None

    def can_rank(self, recipe: Recipe, words: Set[str] | None) -> bool:
        """Whether all parts are there, with counts of ``words``, or of all words."""
        has_words = self.counted_words is None or (
            words is not None and words <= self.counted_words
        )
        return has_words and all(name in self.parts for name in recipe.parts)

    def without(
        self, is_kept: NDArray[np.bool_], titles: Sequence[str], scratch: AnyPath | None = None
    ) -> Catalogue:
        """The titles where ``is_kept`` is true; ``titles`` are their texts; see `Part.without`."""
        parts = {name: part.without(is_kept, scratch) for name, part in self.parts.items()}
        shortlist = self.shortlist and self.shortlist.without(parts, is_kept)
        return Catalogue(titles, parts, self.is_empty[is_kept], shortlist=shortlist)

    def joined(
        self, behind: Catalogue, titles: Sequence[str], scratch: AnyPath | None = None
    ) -> Catalogue:
        """These titles, then ``behind``; ``titles`` are the texts of all; see `Part.joined`."""
        parts = {
            name: part.joined(behind.parts[name], scratch) for name, part in self.parts.items()
        }
        shortlist = self.shortlist and self.shortlist.joined(parts, behind.parts)
        is_empty = np.concatenate([self.is_empty, behind.is_empty])
        return Catalogue(titles, parts, is_empty, shortlist=shortlist)


class HybridRanker:
    """Ranks titles by a weighted sum of parts.

    It is a `sentemb.models.contracts.Ranker` and, over its own titles, a
    `sentemb.models.contracts.Retriever`. The score of a query and a title does not depend on other
    titles. It can be pickled, together with its model and its clicks. `sentemb.fit_ranker` makes
    one and `sentemb.load_ranker` reads the one of a model folder.

    Parameters
    ----------
    model : SentenceEncoder
        A model with two towers.
    recipe : Recipe
        The weights of the parts and the parameters of BM25.
    clicks : ClickedQueries or a function that returns one, optional
        The clicks that the memory and BM25 read; by default none. A function is called when
        they are first needed.
    fields : Fields or a function that returns one, optional
        The statistics of BM25; by default those of the clicked titles of ``clicks``.
    titles : sequence of str, optional
        The catalogue that `find` ranks. By default the titles of ``clicks``.
    dev : dict, optional
        The dev figures of the sum and of its parts, as `sentemb.fit_ranker` measured them.
    floor : Floor, optional
        Which queries the titles cannot answer; see `sentemb.search.ranking.floor`.
    threads : int, optional
        By default all processors. No score depends on it.
    embedding : Embedding, optional
        The embedding, if the recipe has a part by one.

    Attributes
    ----------
    model : SentenceEncoder
    recipe : Recipe
    dev : dict
    floor : Floor or None
    embedding : Embedding or None

    Examples
    --------
    >>> import sentemb
    >>> ranker = sentemb.load_ranker("model/")  # doctest: +SKIP
    >>> ranker.rank("fix tap", ["Repair a Faucet", "Paint a Wall"])  # doctest: +SKIP
    [(0, 6.31), (1, 0.2)]
    """

    def __init__(
        self,
        model: SentenceEncoder,
        recipe: Recipe,
        clicks: ClickedQueries | Callable[[], ClickedQueries] | None = None,
        fields: Fields | Callable[[], Fields] | None = None,
        titles: Sequence[str] | None = None,
        dev: dict[str, Any] | None = None,
        floor: Floor | None = None,
        threads: int | None = None,
        embedding: Embedding | None = None,
    ) -> None:
        self.floor, self.embedding = floor, embedding
        self.model, self.recipe, self.dev = model, recipe, dev or {}
        self._clicks, self._fields, self._threads = clicks, fields, threads
        self._workers = Workers(threads)
        # Of several threads one reads and prepares, and the others wait for it.
        self._turn = Turn()
        self._titles = None if titles is None else as_texts(titles)
        self._prepared: Catalogue | None = None
        self._read: ReadQueries | None = None
        self._files: tuple[KeptFiles, Floor | None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        # What is prepared is left out, and a function that reads the clicks cannot be pickled.
        needs = self.recipe.needs_clicks
        return {
            "model": self.model,
            "recipe": self.recipe,
            "clicks": self.clicks if needs else None,
            "fields": self.fields if needs and self.recipe.reads_words else None,
            "titles": self._titles,
            "dev": self.dev,
            "floor": self.floor,
            "threads": self._threads,
            "embedding": self.embedding,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"HybridRanker({self.recipe})"

    def _repr_html_(self) -> str:
        facts: dict[str, object] = {"score": str(self.recipe)}
        for part, figures in self.dev.get("figures", {}).items():
            name = PARTS.get(part, part)
            facts |= {f"{metric} on dev, {name}": value for metric, value in figures.items()}
        return facts_table(facts)

    @property
    def clicks(self) -> ClickedQueries:
        """The clicks of the log that the parts read."""
        with self._turn.lock:
            if callable(self._clicks):
                self._clicks = self._clicks()
            elif self._clicks is None:
                self._clicks = ClickedQueries.nothing()
            return self._clicks

    @property
    def read_queries(self) -> ReadQueries:
        """The clicked queries as parts need them."""
        with self._turn.lock:
            if self._read is None:
                self._read = ReadQueries(self.clicks.queries, self._embed)
            return self._read

    @property
    def fields(self) -> Fields:
        """The statistics of BM25."""
        with self._turn.lock:
            if callable(self._fields):
                self._fields = self._fields()
            elif self._fields is None:
                clicks, titles = self.clicks, list(self.clicks.titles)
                words = self.recipe.words
                of_log = clicks.of_titles(titles), self.read_queries.tokens(words)
                self._fields = Fields.of(count_words(titles, *of_log, words))
            return self._fields

    def read(self) -> None:
        """Read clicks and statistics now, not when they are first needed."""
        self.__getstate__()

    @property
    def titles(self) -> list[str]:
        """The catalogue that `find` ranks.

        Raises
        ------
        SentembError
            If the ranker has none: it was given no titles, and has no clicks.
        """
        if self._titles is None:
            if not self.clicks.titles:
                raise SentembError(
                    "the ranker has no titles of its own; give some, as with ranker.over(titles)"
                )
            self._titles = list(self.clicks.titles)
        return self._titles

    def has_titles(self, titles: Sequence[str]) -> bool:
        """Whether the ranker was given these titles as its catalogue."""
        return self._titles is not None and self._titles == list(titles)

    def over(self, titles: Sequence[str]) -> HybridRanker:
        """The same ranker with another catalogue for `find`."""
        return self._with(self.recipe, titles)

    def alone(self, part: str) -> HybridRanker:
        """The ranker that consists of one part, a name of `sentemb.search.ranking.recipe.PARTS`."""
        return self.weighted({part: 1.0})

    def weighted(self, weights: Mapping[str, float]) -> HybridRanker:
        """The same ranker with other weights of the parts."""
        ranker = self._with(self.recipe.weighted(weights), self._titles)
        ranker._prepared = self._prepared  # what has been prepared serves every sum
        return ranker

    def parts_alone(self) -> dict[str, HybridRanker]:
        """The `Recipe.rankings`, each as a ranker of its own.

        Returns
        -------
        dict of str to HybridRanker
            By the names that tables have for them, such as "BM25 alone". Empty for a ranker that is
            the cosine.
        """
        if self.recipe.parts == (COSINE,):
            return {}
        return {f"{PARTS[part]} alone": self.alone(part) for part in self.recipe.rankings}

    def with_ids(self, titles: Sequence[str], ids: Sequence[str]) -> HybridRanker:
        """The same ranker, for which each title of a catalogue is the product with its id.

        A title that a file has with an id is known by it: a product that was renamed since the
        log was written has its clicks. See `ClickedQueries.with_ids`.
        """
        if not self.recipe.needs_clicks:
            return self
        return self._with(self.recipe, self._titles, self.clicks.with_ids(titles, ids))

    def serving(self, clicks: ClickedQueries) -> HybridRanker:
        """The same weights and statistics with other clicks, and without a catalogue."""
        fields = self.fields if self.recipe.reads_words else self._fields
        return HybridRanker(
            *(self.model, self.recipe, clicks, fields, None),
            *(self.dev, self.floor, self._threads, self.embedding),
        )

    def _with(
        self, recipe: Recipe, titles: Sequence[str] | None, clicks: ClickedQueries | None = None
    ) -> HybridRanker:
        """A copy; ``clicks`` are of the same queries."""
        # The function that reads the clicks is called once, not by each copy.
        needs = recipe.needs_clicks
        fields = self.fields if needs and recipe.reads_words else self._fields
        floor = self.floor if recipe == self.recipe else None
        known = clicks or (self.clicks if needs else self._clicks)
        copy = HybridRanker(
            *(self.model, recipe, known, fields, titles),
            *(self.dev, floor, self._threads, self.embedding),
        )
        if needs:
            copy._read = self.read_queries
        return copy

    # -- scores -------------------------------------------------------------------------------

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Scores of some pairs; see `sentemb.models.contracts.Ranker`.

        Parameters
        ----------
        queries, titles : list of str
            The texts that pairs are made of.
        query_index, title_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with ``titles[title_index[j]]``.

        Returns
        -------
        (k,) float64
            Higher is better.

        Raises
        ------
        SentembError
            For what is not a list of texts, or indices that are not integers within the texts.
        """
        return self.parts_of_pairs(queries, titles, query_index, title_index)[0]

    def parts_of_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> tuple[NDArray[np.float64], dict[str, NDArray[np.float64]]]:
        """As `score_pairs`, with the score of each part by its name, (k,) each."""
        first, second = as_texts(queries), as_texts(titles)
        pairs = as_pairs(query_index, title_index, len(first), len(second))
        asked = self.asked(first)
        catalogue = self._over(second, self._words_in(asked))
        return engine.of_pairs(catalogue.parts, self.recipe, asked, *pairs, self._workers)

    def find(self, queries: Sequence[str], k: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The titles of the catalogue with the highest scores; see `Retriever`.

        Parameters
        ----------
        queries : sequence of str
            The queries.
        k : int
            Titles per query, from 1; at most all are found.

        Returns
        -------
        places, scores : (m, k) int64, (m, k) float64
            Best first, equal scores in the order of the titles; -1 and -inf where fewer titles are
            found: none for a query of which neither the model nor BM25 knows a word.
        """
        ranked = self.ranked(as_texts(queries), whole("k", k, 1, 2**31 - 1))
        return ranked.titles, ranked.scores

    def ranked(
        self, queries: Sequence[str], k: int, titles: Sequence[str] | None = None
    ) -> engine.Ranked:
        """As `find`, with what each part scores, or over other ``titles``."""
        asked = self.asked(queries)
        if titles is None:
            catalogue = self._over(self.titles)
        else:
            catalogue = self.catalogue(titles, counted_words=self._words_in(asked))
        parts, is_empty = catalogue.parts, catalogue.is_empty
        return engine.best(parts, self.recipe, asked, k, is_empty, self._workers)

    @overload
    def rank(  # type: ignore[overload-overlap]
        self, query: str, titles: Sequence[str] | None = None, top_k: int | None = None
    ) -> list[tuple[int, float]]: ...
    @overload
    def rank(
        self, query: Sequence[str], titles: Sequence[str] | None = None, top_k: int | None = None
    ) -> list[list[tuple[int, float]]]: ...

    def rank(
        self,
        query: str | Sequence[str],
        titles: Sequence[str] | None = None,
        top_k: int | None = None,
    ) -> list[tuple[int, float]] | list[list[tuple[int, float]]]:
        """The best titles for a query, or for each of several queries.

        Parameters
        ----------
        query : str or list of str
            One query, or a list of them.
        titles : list of str, optional
            The titles to rank; by default those of the ranker.
        top_k : int, optional
            How many to return; by default all.

        Returns
        -------
        list of (int, float), or a list of such lists
            Index in ``titles`` and score, best first, equal scores in the order given. One list for
            each query if there is a list of them. Titles that say nothing about the query are left
            out.
        """
        given = None if titles is None else as_texts(titles)
        k = how_many(top_k, len(self.titles if given is None else given))
        queries = [query] if isinstance(query, str) else as_texts(query)
        ranked = self.ranked(queries, k, given)
        rankings = [
            [pair for pair in zip(*row, strict=True) if pair[0] >= 0]
            for row in zip(ranked.titles.tolist(), ranked.scores.tolist(), strict=True)
        ]
        return rankings[0] if isinstance(query, str) else rankings

    def are_answered(self, queries: Sequence[str]) -> NDArray[np.bool_]:
        """Which queries the titles of `find` answer by a rule; see `engine.are_answered`."""
        return engine.are_answered(self._over(self.titles).parts, self.asked(queries))

    def is_below_floor(
        self, queries: Sequence[str] | Asked, ranked: engine.Ranked
    ) -> NDArray[np.bool_]:
        """Which queries look as if no title could answer them, (m,); none without a floor.

        Parameters
        ----------
        queries : sequence of str
            The queries. No rule must answer them; see `engine.are_answered`.
        ranked : Ranked
            Their best titles by the recipe of this ranker.
        """
        if self.floor is None or not ranked.titles.shape[1]:
            return np.zeros(len(queries), np.bool_)
        asked = queries if isinstance(queries, Asked) else self.asked(queries)
        return self.floor.is_below(asked, ranked, self.fields.whole)

    # -- explanations -------------------------------------------------------------------------

    def explain(
        self,
        query: str,
        title: str,
        id: str | None = None,
        searched: Sequence[FieldTexts] = (),
    ) -> list[Share]:
        """The share of each part in the score of a query and a title.

        Parameters
        ----------
        query, title : str
            The texts.
        id : str, optional
            The id of the title, by which its clicks are known; by default its text.
        searched : sequence of FieldTexts, optional
            The fields of the title in which words are searched.

        Returns
        -------
        list of Share
            One for each part with a weight. What they add is the score.
        """
        query, title = as_text(query), as_text(title)
        asked = self.asked([query])
        ids = None if id is None else [id]
        words = self._words_in(asked)
        catalogue = self.catalogue([title], ids, counted_words=words, searched=searched)
        return shares(catalogue, self.recipe, asked, 0, self.clicks.queries, self._workers)

    def left_out(
        self,
        query: str,
        title: str,
        query_words: Sequence[str],
        title_words: Sequence[str],
        id: str | None = None,
        searched: Sequence[FieldTexts] = (),
    ) -> LeftOut:
        """The score of a pair, and how it changes when a word is left out.

        Parameters
        ----------
        query, title : str
            The texts.
        query_words, title_words : sequence of str
            Their words, Tq and Td of them.
        id : str
            As for `explain`: a title without a word keeps its clicks.
        searched : sequence of FieldTexts, optional
            As for `explain`.
        """
        queries = [query, *self._with_each_left_out(query_words)]
        titles = [title, *self._with_each_left_out(title_words)]
        query_index = np.concatenate([np.arange(len(queries)), np.zeros(len(titles) - 1, np.int64)])
        title_index = np.concatenate([np.zeros(len(queries), np.int64), np.arange(1, len(titles))])
        if id is None and self.recipe.needs_clicks:
            id = self.clicks.key_of(title)
        asked = self.asked(queries)
        ids = [id] * len(titles)
        words = self._words_in(asked)
        of_all = [field._replace(texts=list(field.texts) * len(titles)) for field in searched]
        catalogue = self.catalogue(titles, ids, counted_words=words, searched=of_all)
        pairs = query_index, title_index
        scores = engine.of_pairs(catalogue.parts, self.recipe, asked, *pairs, self._workers)[0]
        effects = scores[0] - scores[1:]
        return LeftOut(float(scores[0]), effects[: len(query_words)], effects[len(query_words) :])

    def _with_each_left_out(self, words: Sequence[str]) -> list[str]:
        text_of = self.model.vocabulary.text_of
        return [text_of([*words[:t], *words[t + 1 :]]) for t in range(len(words))]

    # -- files --------------------------------------------------------------------------------

    @property
    def files(self) -> KeptFiles | None:
        """The files that hold this very model and ranker, if there are some."""
        if self._files is None or self._files[1] is not self.floor:
            return None
        return self._files[0]

    def is_stored_in(self, files: KeptFiles) -> None:
        """Note that ``files`` hold this very model and ranker."""
        self._files = files, self.floor

    def save(self, folder: AnyPath) -> None:
        """Write the ranker into the folder of its model, in place of the one there.

        The ranker is then the one before or the new one, also if the process is killed. If a part
        reads the log, the file holds its queries and clicked titles as plain text.

        Parameters
        ----------
        folder : path
            Holds the model of this ranker.

        Raises
        ------
        SentembError
            If the folder holds another model, another process writes there, or it cannot be
            written.
        """
        path, stored = path_of(folder), self.stored()
        if fingerprint(load_model(path)) != stored.model_sha256:
            raise SentembError(
                f"{folder}: holds another model than that of the ranker; save the model there "
                "first, or name its folder"
            )
        with locked(path):
            write_ranker(path, stored)

    def stored(self) -> StoredRanker:
        """The ranker as a folder keeps it, next to the model."""
        needs = self.recipe.needs_clicks
        return StoredRanker(
            fingerprint(self.model.saved()),
            self.recipe,
            self.dev,
            self.clicks if needs else None,
            self.fields if needs and self.recipe.reads_words else None,
            self.floor,
            self.embedding if self.recipe.weight(EMBEDDING) else None,
        )

    # -- for catalogues -----------------------------------------------------------------------

    def asked(self, queries: Sequence[str]) -> Asked:
        """Queries in the forms that the parts need."""
        embedding = self.embedding
        embed_too = None if embedding is None else embedding.queries
        return Asked(queries, self._embed, self.recipe, embed_too)

    def catalogue(
        self,
        titles: Sequence[str],
        ids: Sequence[str | None] | None = None,
        vectors: np.ndarray | Int8Rows | None = None,
        counted_words: Set[str] | None = None,
        searched: Sequence[FieldTexts] = (),
        on_progress: Callable[[int, int], None] | None = None,
        behind: Catalogue | None = None,
        scratch: AnyPath | None = None,
    ) -> Catalogue:
        """The parts of the recipe over some titles.

        Parameters
        ----------
        titles : sequence of str
            The titles.
        ids : sequence of str or None, optional
            One per title: by these the clicks of a log with ids are known.
        vectors : (n, dim) float32 or float16, or Int8Rows, optional
            The titles by the document tower, as `SentenceEncoder.unit_vectors` gives them.
        counted_words : set of str, optional
            The words that BM25 counts: those of all queries that will be asked. By default all.
        searched : sequence of FieldTexts, optional
            The fields of the titles in which words are searched.
        on_progress : function, optional
            Called with how many titles an embedding has read, and how many there are.
        behind : Catalogue, optional
            A catalogue of this ranker which knows all queries of the log. Of the log only what
            concerns the titles is read then.
        scratch : path, optional
            A folder on the disk that large arrays are kept on, and what is read of the clicked
            queries is not kept for another catalogue; see `sentemb.search.index.Index.build`.
        """
        needs = self.recipe.needs_clicks
        clicks = self.clicks if needs else ClickedQueries.nothing()
        if needs and scratch is None:
            queries = self.read_queries
        else:
            queries = ReadQueries(clicks.queries, self._embed, is_kept=scratch is None)
        if vectors is None:
            vectors = np.asarray(self.model.unit_vectors(titles, "document"), np.float32)
        of_titles = clicks.of_titles(titles, ids)
        if behind is not None:
            used, of_titles = of_titles.of_few_queries()
            queries = queries.of(used)
        fields = self.fields if self.recipe.reads_words else None
        of_log = of_titles, queries, self.recipe, fields
        embedded = None
        if self.recipe.weight(EMBEDDING):
            embedded = self._needed_embedding.titles(titles, on_progress)
        material = Material(titles, vectors, *of_log, counted_words, searched, scratch, embedded)
        parts = {
            part.name: part.build(material)
            for part in PART_TYPES
            if self.recipe.weight(part.name) or part.name == COSINE
        }
        clicks_of, every = parts.get(CLICKS), None if behind is None else behind.parts.get(CLICKS)
        if isinstance(clicks_of, Clicks) and isinstance(every, Clicks):
            parts[CLICKS] = clicks_of.with_totals_of(every)
        return Catalogue(titles, parts, material.is_empty, counted_words)

    @property
    def _needed_embedding(self) -> Embedding:
        if self.embedding is None:
            raise SentembError("the recipe has a part by an embedding; give the ranker one")
        return self.embedding

    def _words_in(self, asked: Asked) -> Set[str]:
        """The words of queries that BM25 counts."""
        return frozenset(asked.tokens.words) if self.recipe.reads_words else frozenset()

    @property
    def _embed(self) -> Embed:
        # Not a method: what keeps it would keep the ranker, and with a cycle the mapped files of a
        # replaced index would stay open.
        return functools.partial(self.model.unit_vectors, side="query")

    def prepare(self, catalogue: Catalogue) -> None:
        """Take the parts over some titles as they are, instead of making them when needed."""
        with self._turn.lock:
            self._prepared = catalogue

    def _over(self, titles: list[str], words: Set[str] | None = None) -> Catalogue:
        """The catalogue of ``titles``, where BM25 counts ``words`` at least; the last one is kept.

        All words are counted when the titles are asked for again with new words.
        """
        with self._turn.lock:
            prepared = self._prepared
            if prepared is not None and prepared.titles == titles:
                if prepared.can_rank(self.recipe, words):
                    return prepared
                words = None
            prepared = self._prepared = self.catalogue(titles, counted_words=words)
            return prepared


def shares(
    catalogue: Catalogue,
    recipe: Recipe,
    asked: Asked,
    title: int,
    queries: Sequence[str],
    workers: Workers,
) -> list[Share]:
    """The share of each part in the score of one query and one title of a catalogue."""
    pair = np.zeros(1, np.int64), np.array([title])
    _, values = engine.of_pairs(catalogue.parts, recipe, asked, *pair, workers)
    result = []
    for name in recipe.parts:
        part, value = catalogue.parts[name], float(values[name][0])
        source: dict[str, Any] = {}
        if isinstance(part, Memory):
            source["nearest"] = _nearest(part, catalogue, asked, title, queries, workers)
        elif isinstance(part, Bm25) and value:
            source["words"] = part.lists.of_words(asked.tokens, title)
        elif isinstance(part, Clicks):
            source["clicks"] = int(part.counts(asked, *pair)[0])
        elif isinstance(part, Examined):
            source["examined"] = float(part.of(asked, *pair)[0])
        result.append(Share(name, recipe.weight(name), value, **source))
    return result


def _nearest(
    part: Memory,
    catalogue: Catalogue,
    asked: Asked,
    title: int,
    queries: Sequence[str],
    workers: Workers,
) -> Nearest | None:
    """The row that the memory of a title comes from."""
    pair = np.zeros(1, np.int64), np.array([title])
    values, rows = part.memory.best(asked.rows, *pair, workers)
    if rows[0] < 0:
        return None
    text = int(part.memory.texts[rows[0]])
    is_clicked = text not in (DOCUMENT, TITLE)
    if is_clicked and not 0 <= text < len(queries):
        raise SentembError(
            f"the memory names query {text}, and the ranker has {len(queries)}: the index is "
            "damaged; restore it from a copy or make it again"
        )
    shown = queries[text] if is_clicked else catalogue.titles[title]
    return Nearest(shown, float(values[0]), is_clicked)
