"""An index: a model, titles with ids, and the vectors of the titles."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import Texts
from sentemb.errors import SentembError, naming
from sentemb.models.files.model_files import fingerprint
from sentemb.models.files.saved_model import Stored
from sentemb.models.loading import face_of
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.confidence import Confidence
from sentemb.search.contents import checked, embedded
from sentemb.search.frequent_queries import FrequentQueries
from sentemb.search.id_rows import IdRows
from sentemb.search.index_files import (
    DTYPES,
    Description,
    check_files,
    damaged,
    is_index,
    listed_files,
    open_model,
    open_snapshot,
    part_file,
    read_description,
    verify_contents,
    write_contents,
)
from sentemb.search.product_fields import ProductFields, Value
from sentemb.search.ranking import engine
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.parts import Bm25
from sentemb.search.ranking.ranker import HybridRanker, Share, shares
from sentemb.search.ranking.recipe import BM25, COSINE, MEMORY, MODEL_ALONE, PARTS, Recipe
from sentemb.search.snapshot import Snapshot, Vectors
from sentemb.system.bounds import brief, number, plain, share, whole
from sentemb.system.cluster import Dask, opened_if
from sentemb.system.files import held, names_in, path_of, status
from sentemb.system.html_tables import Rows, excerpt, facts_table
from sentemb.system.locks import is_temporary
from sentemb.system.parallel import Turn, Workers
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_exchangeable, check_free, replacing_folder
from sentemb.text.arguments import as_text, as_texts

# Why a search finds nothing.
NOTHING_KNOWN = "the model and the titles know none of its words"
BELOW_FLOOR = "it does not look like a query that these titles answer"
NO_TITLES = "no titles to choose from"
NO_PRODUCT = "no product meets the condition"
# Sorting and facets are over the titles with the highest scores: at most this many, with at least
# this share of the highest.
MOST_MATCHES, LEAST_SHARE = 1000, 0.5
MOST_SUGGESTIONS = 8
# Ids that are looked up at a time.
_IDS = 8192
_MOST_TITLES = 2**31 - 1
# How often a folder is opened again that was replaced meanwhile.
_TRIES = 5

Fields: TypeAlias = ProductFields | Mapping[str, Sequence[Value]] | None


class Hit(NamedTuple):
    """A title that was found.

    Attributes
    ----------
    id, title : str
    score : float
        The weighted sum of the parts; see `Index.recipe`.
    parts : dict of str to float
        What each part scores; see `sentemb.search.ranking.parts`.
    confidence : float or None
        How often such a score belongs to a clicked title; see `sentemb.search.confidence`. Only the
        first title of a query has one, and only if the index is calibrated.
    fields : dict
        Price, brand and so on, if the index has them; None where one is empty.
    """

    id: str
    title: str
    score: float
    parts: dict[str, float]
    confidence: float | None
    fields: dict[str, Value] = {}  # noqa: RUF012

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict, without ``fields`` if the index has none."""
        hit = self._asdict()
        if not self.fields:
            del hit["fields"]
        return hit


class Changes(NamedTuple):
    """Numbers of titles that `Index.sync` added, changed (text or fields) and removed."""

    added: int
    changed: int
    removed: int


class Index:
    """Titles that a query is searched in, with the model that embeds both.

    Make one with `build`, or open a folder with `open`. Several threads may search in one index
    while others change it: a search finds what the old or the new index would, and a change that an
    exception stops leaves the index as it was. It can be copied and pickled, and it works in a
    forked process. It is a `sentemb.models.contracts.Retriever`.

    Parameters
    ----------
    snapshot : Snapshot
        Model, weights, titles and the parts of their scores.
    threads : int, optional
        By default all processors.
    scratch : path, optional
        A folder on the disk that large arrays are kept on until `save`; by default in memory.

    Attributes
    ----------
    model : SentenceEncoder
        Embeds queries and new titles.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        threads: int | None = None,
        scratch: AnyPath | None = None,
    ) -> None:
        self.model = snapshot.ranker.model
        self._snapshot = snapshot
        # Changes take turns, and each ends with one assignment; searches never wait.
        self._turn = Turn()
        self._threads = threads
        self._workers = Workers(threads)
        self._scratch = scratch
        # The folder that the index was opened from, and the identities that it may have there.
        self._opened: tuple[Path, frozenset[str]] | None = None

    def __copy__(self) -> Index:
        index = Index(self._snapshot, self._threads, self._scratch)
        index._opened = self._opened
        return index

    def __getstate__(self) -> dict[str, Any]:
        snapshot = self._snapshot
        if snapshot.source is not None:  # the other process maps the same files
            return {"source": snapshot.source, "threads": self._threads}
        return {"snapshot": snapshot, "threads": self._threads}

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "source" not in state:
            self.__init__(**state)  # type: ignore[misc]
            return
        source = state["source"]
        opened = type(self).open(source[0], state["threads"])
        if opened.snapshot.source != source:
            raise SentembError(
                f"{source[0]}: the index has changed since the object was pickled; open it again"
            )
        self.__dict__ = copy(opened).__dict__

    # -- making and storing -------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        model: Stored | HybridRanker,
        titles: Sequence[str],
        ids: Sequence[str] | None = None,
        fields: Fields = None,
        *,
        dtype: str = "float32",
        threads: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        scratch: AnyPath | None = None,
        dask: Dask | None = None,
    ) -> Index:
        """Embed titles.

        Parameters
        ----------
        model : HybridRanker or SentenceEncoder
            The ranker of a model, from `sentemb.load_ranker` or `sentemb.fit_ranker`: the index
            ranks with its weights and clicks. A model with a vector per text, also what `SIF.fit`
            returns, ranks by the cosine; `sentemb.search.index_tuning.tune` fits other weights.
        titles : list of str
            Two may be equal. A title without a word that the model knows is kept and counted in
            `n_empty`; only BM25 finds it.
        ids : list of str, optional
            One per title, each once, without white space. By default "0", "1", "2", ... Clicks of a
            log with ids belong to the title with the same id. Those of a log without ids belong to
            the id of the title from now on: `sync` may change its text.
        fields : dict of str to list, optional
            Price, brand and so on: for each column one integer, float, text or None per title.
            `search` filters and sorts by them.
        dtype : {"float32", "float16", "int8"}
            How the vectors are stored. float16 takes half the memory, int8 a quarter and less time
            per query; its scores are rounded.
        threads : int, optional
            For searching; by default all processors.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all.
        scratch : path, optional
            A folder on the disk that vectors are kept on until `save`, in files without names; by
            default they are in memory. With what `sentemb.search.title_files.read_titles` read as
            ``titles`` and ``ids``, millions of titles need little memory.
        dask : str or distributed.Client, optional
            A cluster of Dask that embeds the titles, to the same bits: "local", "local:2" for two
            processes, the address of a scheduler, or a client. Needs the extra sentemb[dask].

        Raises
        ------
        SentembError
            If the model has no vectors of texts, an id is repeated or has white space, or a title
            has a line end.
        """
        if isinstance(model, HybridRanker):
            ranker = model
        else:
            if not hasattr(model, "saved"):
                raise SentembError(f"a model is needed, not {type(model).__name__}")
            saved = model.saved()
            saved.towers()  # refuses a pair model
            encoder = model if isinstance(model, SentenceEncoder) else face_of(saved)
            assert isinstance(encoder, SentenceEncoder)
            ranker = HybridRanker(encoder, MODEL_ALONE, threads=threads)
        if dtype not in DTYPES:
            raise SentembError(f"dtype is {brief(dtype)}; give {', '.join(DTYPES)}")
        numbers = [str(number) for number in range(len(titles))] if ids is None else ids
        title_texts, id_texts = checked(titles, numbers, scratch)
        stored_fields = ProductFields.given(fields, len(title_texts))
        if ids is not None:
            # From now on a title may change without losing its clicks.
            ranker = ranker.with_ids(title_texts, id_texts)
        with Workers(threads) as workers, opened_if(dask) as cluster:
            vectors = embedded(
                ranker.model, title_texts, dtype, on_progress, workers, scratch, cluster
            )
        catalogue = ranker.catalogue(title_texts, id_texts, vectors)
        return cls(Snapshot(ranker, id_texts, catalogue, stored_fields), threads, scratch)

    @classmethod
    def open(
        cls,
        path: AnyPath,
        threads: int | None = None,
        scratch: AnyPath | None = None,
        in_memory: bool = False,
    ) -> Index:
        """Open an index folder; titles and vectors are mapped into memory, not read.

        Sizes, shapes and samples of all files are checked, and the model is read and checked as a
        whole. `verify` also reads all that is mapped.

        Parameters
        ----------
        path : path
            A folder that `save` or ``sentemb index`` wrote.
        threads : int, optional
            By default all processors.
        scratch : path, optional
            A folder on the disk that large arrays are kept on after `add` and `remove`, until
            `save`; by default they are in memory.
        in_memory : bool
            Read all files instead. Opening takes longer, each process has a copy of its own, and
            the folder may be changed in any way: a process that has mapped a file which another
            program shortens in place is ended by the system (SIGBUS).

        Raises
        ------
        SentembError
            If the folder is not an index, is damaged, or was written by a newer version.
        """
        for _ in range(_TRIES):
            with held(path) as is_there:
                description = read_description(path)
                try:
                    index = cls._of_folder(path, description, threads, in_memory)
                except SentembError:
                    if is_there() and read_description(path) == description:
                        raise
                else:
                    # Otherwise it was replaced, and some files are old and others new.
                    if is_there() and read_description(path) == description:
                        index._scratch = scratch
                        return index
        raise SentembError(f"{path}: the index is being replaced again and again; try later")

    @classmethod
    def _of_folder(
        cls, path: AnyPath, description: Description, threads: int | None, in_memory: bool
    ) -> Index:
        check_files(path, description)
        ranker = open_model(path, description, threads)
        if in_memory:
            ranker.read()
        snapshot = open_snapshot(path, description, ranker, in_memory)
        index = cls(snapshot, threads)
        index._opened = path_of(path).resolve(), frozenset([description.identity])
        return index

    @staticmethod
    def verify(path: AnyPath) -> None:
        """Read a whole index folder.

        Raises
        ------
        SentembError
            If a file is missing or its contents do not match their checksum.
        """
        Index.open(path, 1).ranker.read()
        verify_contents(path, read_description(path))

    def save(self, path: AnyPath, force: bool = False) -> None:
        """Write the index folder, all of it or nothing; docs/formats.md describes its files.

        Parameters
        ----------
        path : path
            A new or empty folder, or with ``force`` an index, which is replaced.
        force : bool
            Replace an index that is there.

        Raises
        ------
        SentembError
            If the folder holds something else, holds an index and ``force`` is not set, or cannot
            be written; if it is the folder that this index was opened from, and another process has
            changed it since.
        """
        check_output(path, force)
        snapshot, opened = self._snapshot, self._opened
        if opened is not None and path_of(path).resolve() != opened[0]:
            opened = None  # another folder says nothing of that which was opened
        with replacing_folder(path, listed_files(path)) as new:
            self._check_unchanged(path)
            write_contents(snapshot, new)
            identity = read_description(new).identity
            if opened is not None:
                # An exception may come before or after the folder is in its place.
                self._opened = opened[0], opened[1] | {identity}
        if opened is not None:
            self._opened = opened[0], frozenset([identity])

    def _check_unchanged(self, path: AnyPath) -> None:
        """Refuse to undo what another process has written to the folder of this index."""
        if self._opened is None or not is_index(path):
            return
        folder, identities = self._opened
        if path_of(path).resolve() == folder and read_description(path).identity not in identities:
            raise SentembError(
                f"{path}: the index has changed since it was opened; open it again, or save to "
                "another folder"
            )

    # -- contents -----------------------------------------------------------------------------

    @property
    def snapshot(self) -> Snapshot:
        """All that searches read now: an object that never changes."""
        return self._snapshot

    def adopt(self, snapshot: Snapshot, before: Snapshot) -> None:
        """Make ``snapshot`` the contents of the index, in one step.

        Parameters
        ----------
        snapshot : Snapshot
            The new contents.
        before : Snapshot
            The contents that ``snapshot`` was made from.

        Raises
        ------
        SentembError
            If the index has been changed since it had ``before``.
        """
        with self._turn.lock:
            if self._snapshot is not before:
                raise SentembError("another thread has changed the index; do it again")
            self._snapshot = snapshot

    def __len__(self) -> int:
        return len(self._snapshot.ids)

    def __repr__(self) -> str:
        return f"Index({len(self):,} titles, {self.dtype}, {self.model})"

    def _repr_html_(self) -> str:
        """The facts and the first titles, for notebooks."""
        snapshot, opened = self._snapshot, self._opened
        n, heads = len(snapshot.ids), ["id", "title"]
        return facts_table(
            {
                "titles": n,
                "of them with no known words": self.n_empty or None,
                "length of a vector": self.model.dim,
                "dtype": snapshot.dtype,
                "model": self.model,
                "score": snapshot.ranker.recipe,
                "confidence": "not calibrated" if snapshot.confidence is None else "calibrated",
                "folder": None if opened is None else opened[0],
            }
        ) + excerpt(zip(snapshot.ids, snapshot.titles, strict=True), n, heads, texts=(0, 1))

    @property
    def ids(self) -> Sequence[str]:
        """The ids, in the order in which they were added."""
        return self._snapshot.ids

    @property
    def titles(self) -> Sequence[str]:
        """The titles, in the order of `ids`."""
        return self._snapshot.titles

    @property
    def vectors(self) -> Vectors:
        """Unit vectors of the titles, (n, dim); do not change them."""
        return self._snapshot.vectors

    @property
    def dtype(self) -> str:
        """How the vectors are stored: float32, float16 or int8."""
        return self._snapshot.dtype

    @property
    def n_empty(self) -> int:
        """The number of titles with no words that the model knows. Only BM25 finds them."""
        return int(self._snapshot.catalogue.is_empty.sum())

    @property
    def ranker(self) -> HybridRanker:
        """The ranker: model, weights and clicks."""
        return self._snapshot.ranker

    @property
    def recipe(self) -> Recipe:
        """The weights of the parts of a score, and the parameters of BM25."""
        return self._snapshot.ranker.recipe

    @property
    def confidence(self) -> Confidence | None:
        """The calibration of the scores; None before `calibrate`, and after a change of scores."""
        return self._snapshot.confidence

    @confidence.setter
    def confidence(self, confidence: Confidence | None) -> None:
        with self._turn.lock:
            self._snapshot = self._snapshot.changed(confidence=confidence)

    def model_alone(self) -> Index:
        """The same titles ranked by the cosine of the model alone."""
        snapshot = self._snapshot
        ranker = HybridRanker(self.model, MODEL_ALONE, threads=self._threads)
        return Index(snapshot.changed(ranker=ranker), self._threads)

    def ranked_by(self, ranker: HybridRanker) -> Snapshot:
        """The contents of the index with another ranker of the same model; see `adopt`.

        Raises
        ------
        SentembError
            If the ranker is of another model.
        """
        snapshot = self._snapshot
        if fingerprint(ranker.model.saved()) != fingerprint(self.model.saved()):
            raise SentembError("the ranker is of another model; give a ranker of this model")
        ranker = ranker.with_ids(snapshot.titles, snapshot.ids)
        catalogue = ranker.catalogue(snapshot.titles, snapshot.ids, snapshot.vectors)
        return snapshot.changed(ranker=ranker, catalogue=catalogue)

    @property
    def fields(self) -> ProductFields:
        """Price, brand and so on of the titles."""
        return self._snapshot.fields

    def row_of(self) -> IdRows:
        """The row of every id. It is made on first use: one pass over the ids."""
        return self._snapshot.row_of

    def add(
        self,
        titles: Sequence[str],
        ids: Sequence[str],
        on_progress: Callable[[int, int], None] | None = None,
        fields: Fields = None,
    ) -> None:
        """Add titles at the end, with the model of the index; `save` writes them.

        A title, or id, that was clicked in the log of the ranker has its clicks.

        Parameters
        ----------
        titles : list of str
            The new titles.
        ids : list of str
            One per title; none of them is in the index.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all.
        fields : dict of str to list, optional
            As for `build`. A column that only old or only new titles have is empty for the others.

        Raises
        ------
        SentembError
            Nothing is added then: an id that is there already, a text in a column of numbers, or
            what `build` refuses.
        """
        new = ids if isinstance(ids, Texts) else as_texts(ids)
        with self._turn.lock:
            old = self._snapshot
            for first in range(0, len(new), _IDS):
                portion = new[first : first + _IDS]
                there = np.flatnonzero(old.row_of.of(portion) >= 0)
                if there.size:
                    raise SentembError(
                        f"the id {plain(portion[there[0]])} is in the index already; remove it "
                        "first, or leave it out"
                    )
            texts, new = checked(titles, new, self._scratch)
            joined = old.fields.joined(ProductFields.given(fields, len(texts)), new)
            self._snapshot = self._with(old, joined, None, texts, new, on_progress)

    def remove(self, ids: Iterable[str]) -> None:
        """Remove titles; `save` writes the rest.

        Parameters
        ----------
        ids : list of str
            Ids of the index.

        Raises
        ------
        SentembError
            Nothing is removed then: an id that is not in the index.
        """
        id_list = _as_ids(ids)
        with self._turn.lock:
            old = self._snapshot
            rows = _rows_of(old, id_list)
            stays = np.ones(len(old.ids), np.bool_)
            stays[rows] = False
            fields = old.fields.take(np.flatnonzero(stays))
            self._snapshot = self._with(old, fields, stays, None, None, None)

    def sync(
        self,
        titles: Sequence[str],
        ids: Sequence[str],
        on_progress: Callable[[int, int], None] | None = None,
        fields: Fields = None,
    ) -> Changes:
        """Make the titles of the index these, in one step; `save` writes them.

        A title whose text changed keeps its id, and so its clicks. It moves to the end.

        Parameters
        ----------
        titles : list of str
            All titles that the index is to have.
        ids : list of str
            One per title, each once.
        on_progress : function, optional
            Called with the numbers of titles that are embedded and of all that are new or changed.
        fields : dict of str to list, optional
            As for `build`: all fields that the index is to have.

        Returns
        -------
        Changes

        Raises
        ------
        SentembError
            Nothing is changed then: a text in a column that has been of numbers, or what `build`
            refuses.
        """
        texts, id_texts = checked(titles, ids, self._scratch)
        given = ProductFields.given(fields, len(texts))
        with self._turn.lock:
            old = self._snapshot
            given = old.fields.replaced_by(given, id_texts)
            new_row_of = IdRows(id_texts)
            new_rows = np.full(len(old.ids), -1)
            stays = np.zeros(len(old.ids), np.bool_)
            for first in range(0, len(old.ids), _IDS):
                portion = slice(first, first + _IDS)
                new_rows[portion] = rows = new_row_of.of(old.ids[portion])
                for k, (row, title) in enumerate(
                    zip(rows.tolist(), old.titles[portion], strict=True)
                ):
                    stays[first + k] = row >= 0 and texts[row] == title
            is_new = np.ones(len(id_texts), np.bool_)
            is_new[new_rows[stays]] = False
            n_removed = int((new_rows < 0).sum())
            n_changed = len(old.ids) - n_removed - int(stays.sum())
            n_added = int(is_new.sum()) - n_changed
            unchanged = given.take(new_rows[stays])
            n_refreshed = old.fields.take(np.flatnonzero(stays)).differing(unchanged)
            if stays.all() and not is_new.any():
                if n_refreshed or old.fields.types != given.types:
                    self._snapshot = old.changed(fields=unchanged)
                return Changes(0, n_refreshed, 0)
            following = texts.take(is_new, self._scratch), id_texts.take(is_new, self._scratch)
            ordered = given.take(np.concatenate([new_rows[stays], np.flatnonzero(is_new)]))
            self._snapshot = self._with(old, ordered, stays, *following, on_progress)
            return Changes(n_added, n_changed + n_refreshed, n_removed)

    def _with(
        self,
        old: Snapshot,
        fields: ProductFields,
        stays: NDArray[np.bool_] | None,
        titles: Texts | None,
        ids: Texts | None,
        on_progress: Callable[[int, int], None] | None,
    ) -> Snapshot:
        """The titles of ``old`` where ``stays`` is true, all without it, then ``titles``."""
        scratch = self._scratch
        all_ids, all_titles, catalogue = old.ids, old.titles, old.catalogue
        if stays is not None:
            all_ids, all_titles = all_ids.take(stays, scratch), all_titles.take(stays, scratch)
            catalogue = catalogue.without(stays, all_titles)
        if titles is not None and ids is not None:
            vectors = embedded(self.model, titles, old.dtype, on_progress, self._workers, scratch)
            following = old.ranker.catalogue(titles, ids, vectors)
            all_ids, all_titles = all_ids.joined(ids, scratch), all_titles.joined(titles, scratch)
            catalogue = catalogue.joined(following, all_titles)
        return old.changed(ids=all_ids, catalogue=catalogue, fields=fields)

    # -- search -------------------------------------------------------------------------------

    # A str is a Sequence[str] as well; the first signature that fits counts.
    @overload
    def search(  # type: ignore[overload-overlap]
        self,
        queries: str,
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        min_score: float | None = None,
        min_confidence: float | None = None,
        cosine: bool = False,
        everything: bool = False,
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        min_score: float | None = None,
        min_confidence: float | None = None,
        cosine: bool = False,
        everything: bool = False,
    ) -> list[list[Hit]]: ...
    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        min_score: float | None = None,
        min_confidence: float | None = None,
        cosine: bool = False,
        everything: bool = False,
    ) -> list[Hit] | list[list[Hit]]:
        """The titles with the highest scores.

        Parameters
        ----------
        queries : str or list of str
            One query, or a list of them.
        k : int
            Titles per query.
        only : list of str, optional
            The ids that may be found. Ids that are not in the index are ignored.
        where : str, optional
            A condition on the fields, such as ``stock > 0 and brand in ('Acme', 'Bolt')``; see
            `sentemb.search.filters.checked_condition`. The titles are ranked as if the index had
            only those that meet it.
        sort : str, optional
            A field that the matches are ordered by, rising, or falling with ``-price`` or ``price
            desc``; titles without a value come last. Matches are the 1,000 titles with the highest
            scores, as far as they have half the highest.
        facets : list of str, optional
            Fields whose values are counted among the matches: the attribute ``facets`` has the 20
            most frequent of each.
        min_score : float, optional
            Leave out titles with a lower score.
        min_confidence : float, optional
            Find nothing for a query whose first title has a lower confidence, 0 to 1.
        cosine : bool
            Score by the cosine of the model alone, whatever the weights of the index are.
        everything : bool
            Find the best titles also for a query that they cannot answer; see
            `sentemb.search.ranking.floor`.

        Returns
        -------
        list of Hit, or a list of them for each query
            Best first, equal scores in the order of the titles. Empty where there is no good match;
            the attribute ``reason`` then says why: neither the model nor BM25 knows a word of the
            query, it is below the floor, or another limit leaves every title out. A title whose id
            is the query, or the query in capitals or small letters, comes first. For a query
            without a good match, or with a word that no title has, the attribute ``did_you_mean``
            is the nearest frequent query of the log that finds something, or None.

        Raises
        ------
        SentembError
            If ``queries`` is not a text or a list of texts, or k is not an integer of at least 0;
            for a condition or a field that is wrong; for ``min_confidence`` without a calibration
            for these weights.
        """
        if min_score is not None:
            number("min_score", min_score, -np.inf)
        texts = [as_text(queries)] if isinstance(queries, str) else as_texts(queries)
        snapshot = self._snapshot
        where = _text("where", where)
        mask = snapshot.mask(None if only is None else _as_ids(only), where)
        limits = _Limits(
            _text("sort", sort),
            _names(facets),
            min_score,
            min_confidence,
            cosine,
            everything,
            where,
        )
        hits = self._search(snapshot, texts, k, mask, limits)
        return hits[0] if isinstance(queries, str) else hits

    def similar(
        self,
        id: str,
        k: int = 10,
        *,
        where: str | None = None,
        sort: str | None = None,
        facets: Iterable[str] = (),
        cosine: bool = False,
    ) -> list[Hit]:
        """The titles that are found with another title as query, without itself.

        Parameters
        ----------
        id : str
            An id of the index.
        k, where, sort, facets, cosine
            As for `search`.

        Raises
        ------
        SentembError
            As `search`, and if the id is not in the index.
        """
        snapshot = self._snapshot
        (row,) = _rows_of(snapshot, [as_text(id)]).tolist()
        mask = np.ones(len(snapshot.ids), np.bool_)
        where = _text("where", where)
        if where is not None:
            mask &= snapshot.fields.mask(where)
        mask[row] = False
        limits = _Limits(
            _text("sort", sort), _names(facets), cosine=cosine, everything=True, where=where
        )
        return self._search(snapshot, [snapshot.titles[row]], k, mask, limits)[0]

    def _search(
        self,
        snapshot: Snapshot,
        texts: list[str],
        k: int,
        mask: NDArray[np.bool_] | None,
        limits: _Limits,
    ) -> Rows[list[Hit]]:
        whole("k", k, 0, _MOST_TITLES)
        confidence = limits.confidence(snapshot)
        n_ranked = max(k, MOST_MATCHES) if limits.sort or limits.facets else k
        ranked = self._ranked(snapshot, texts, n_ranked, mask, limits.cosine)
        is_below = np.zeros(len(texts), np.bool_)
        if not (limits.everything or limits.cosine):
            is_below = snapshot.ranker.is_below_floor(texts, ranked)
        confidences: list[float] | list[None] = [None] * len(texts)
        if confidence is not None and ranked.titles.size:
            # A query for which nothing is found has the score -inf; its confidence is not used.
            is_there = ranked.titles[:, 0] >= 0
            confidences = confidence(np.where(is_there, ranked.scores[:, 0], 0)).tolist()
        n_titles = len(snapshot.ids) if mask is None else int(mask.sum())
        is_unknown = _have_unknown_words(snapshot, texts)
        hits: Rows[list[Hit]] = Rows()
        for q, (text, of_first) in enumerate(zip(texts, confidences, strict=True)):
            matches = _matches(ranked, q)
            first = matches[0].row if matches else None
            reason: str | None = NOTHING_KNOWN if n_titles and k else limits.none_left
            if matches:
                reason = limits.reason(is_below[q], of_first)
            matches = [] if reason else limits.of(matches)
            if not matches and reason is None:
                reason = f"every score is below {limits.min_score:g}"
            facets = limits.counted(snapshot.fields, matches)
            matches = limits.ordered(snapshot.fields, matches)[:k]
            named = self._named(snapshot, text, mask, limits.cosine) if k else None
            if named is not None:
                reason = None
                matches = [named, *(match for match in matches if match.row != named.row)]
            confident = first if matches and matches[0].row == first else None
            shown = _hits(snapshot, matches[:k], None if confident is None else of_first)
            meant = None
            if named is None and (reason or is_unknown[q]) and not limits.cosine:
                meant = self._meant(snapshot, text)
            hits.append(Rows(shown, text, reason, facets, meant))
        return hits

    def _meant(self, snapshot: Snapshot, text: str) -> str | None:
        """The nearest frequent query that finds something, if there is one."""
        # A search needs no clicks: it answers even if they were replaced or damaged since.
        with contextlib.suppress(SentembError):
            return next(self._finding(snapshot, snapshot.frequent.near(text)), None)
        return None

    def suggest(self, begun: str, k: int = MOST_SUGGESTIONS) -> list[str]:
        """Frequent queries of the log that begin with a text and find something.

        Case, accents and punctuation do not count. An index that ranks by the cosine alone has no
        queries.

        Parameters
        ----------
        begun : str
            The beginning of a query.
        k : int
            The largest number of queries.

        Returns
        -------
        list of str
            The most clicked first.
        """
        whole("k", k, 0, _MOST_TITLES)
        snapshot = self._snapshot
        queries = snapshot.frequent.beginning_with(as_text(begun))
        return list(islice(self._finding(snapshot, queries), k))

    def frequent_queries(self, least: int) -> list[str]:
        """The queries of the log with at least ``least`` clicks that find something.

        Of several spellings the most clicked; the most clicked query is first.
        """
        snapshot = self._snapshot
        frequent = FrequentQueries.of(snapshot.ranker.clicks, least)
        return list(self._finding(snapshot, frequent.by_key.values()))

    def _finding(self, snapshot: Snapshot, queries: Iterable[str]) -> Iterator[str]:
        """Those of ``queries`` that find something."""
        for query in queries:
            if query not in snapshot.finds:
                ranked = self._ranked(snapshot, [query], 1, None, cosine=False)
                (is_below,) = snapshot.ranker.is_below_floor([query], ranked)
                snapshot.finds[query] = not is_below and bool((ranked.titles >= 0).any())
            if snapshot.finds[query]:
                yield query

    def _named(
        self, snapshot: Snapshot, text: str, mask: NDArray[np.bool_] | None, cosine: bool
    ) -> _Match | None:
        """The title whose id is the query."""
        row = snapshot.row_named(text)
        if row is None or not (mask is None or mask[row]):
            return None
        scores, values = engine.of_pairs(
            snapshot.catalogue.parts,
            snapshot.recipe(cosine),
            snapshot.ranker.asked([text]),
            np.zeros(1, np.int64),
            np.array([row]),
            self._workers,
        )
        parts = {name: float(values[name][0]) for name in PARTS if name in values}
        return _Match(row, float(scores[0]), parts)

    def explain(self, query: str, ids: Sequence[str], cosine: bool = False) -> list[list[Share]]:
        """The share of each part in the scores of given titles.

        Parameters
        ----------
        query : str
            One query.
        ids : list of str
            Ids of the index.
        cosine : bool
            As for `search`.

        Returns
        -------
        list of list of Share
            For each title one for each part with a weight. What they add is the score.

        Raises
        ------
        SentembError
            If an id is not in the index.
        """
        snapshot = self._snapshot
        rows = _rows_of(snapshot, as_texts(ids))
        ranker, recipe = snapshot.ranker, snapshot.recipe(cosine)
        asked = ranker.asked([as_text(query)])
        queries = ranker.clicks.queries if recipe.weight(MEMORY) else ()
        return [
            shares(snapshot.catalogue, recipe, asked, row, queries, self._workers)
            for row in rows.tolist()
        ]

    def find(
        self,
        queries: Sequence[str],
        k: int,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The places and scores of the best titles; see `sentemb.models.contracts.Retriever`.

        Parameters
        ----------
        queries : list of str
            The queries.
        k : int
            Titles per query.
        mask : (n,) bool, optional
            The titles that may be found.
        """
        ranked = self.ranked(queries, k, mask)
        return ranked.titles, ranked.scores

    def ranked(
        self,
        queries: Sequence[str],
        k: int,
        mask: NDArray[np.bool_] | None = None,
        cosine: bool = False,
    ) -> Ranked:
        """As `find`, with what each part scores; see `search` for the last argument."""
        return self._ranked(self._snapshot, as_texts(queries), k, mask, cosine)

    def _ranked(
        self,
        snapshot: Snapshot,
        queries: list[str],
        k: int,
        mask: NDArray[np.bool_] | None,
        cosine: bool,
    ) -> Ranked:
        whole("k", k, 0, _MOST_TITLES)
        catalogue = snapshot.catalogue
        if mask is not None and mask.shape != (len(snapshot.ids),):
            raise SentembError(
                f"a mask of shape {mask.shape} is not of the {len(snapshot.ids):,} titles of the "
                "index; make it again"
            )
        ranked = engine.best(
            catalogue.parts,
            snapshot.recipe(cosine),
            snapshot.ranker.asked(queries),
            k,
            catalogue.is_empty,
            self._workers,
            mask,
        )
        # Files of vectors are not read when they are opened: refuse what no unit vectors give.
        for part in (COSINE, MEMORY):
            values = ranked.values.get(part)
            if values is not None and not (np.abs(values) <= LONGEST).all():
                file = part_file(part)
                path = file if self._opened is None else self._opened[0] / file
                raise damaged(path, "a vector is not of unit length")
        return ranked

    def mask_of(self, ids: Iterable[str]) -> NDArray[np.bool_]:
        """Which titles have one of ``ids``: (n,) bool. Unknown ids are ignored."""
        return self._snapshot.mask_of(_as_ids(ids))


class _Match(NamedTuple):
    """A title for a query: its row, its score, and the score of each part."""

    row: int
    score: float
    parts: dict[str, float]


@dataclass(frozen=True)
class _Limits:
    """How `Index.search` chooses and orders titles; see there."""

    sort: str | None = None
    facets: tuple[str, ...] = ()
    min_score: float | None = None
    min_confidence: float | None = None
    cosine: bool = False
    everything: bool = False
    where: str | None = None

    def confidence(self, snapshot: Snapshot) -> Confidence | None:
        """The calibration of the scores; an error if one is needed and there is none."""
        is_calibrated = snapshot.recipe(self.cosine) == snapshot.recipe(False)
        confidence = snapshot.confidence if is_calibrated else None
        if self.min_confidence is not None:
            share("min_confidence", self.min_confidence)
            if confidence is None:
                raise SentembError(
                    "the index is not calibrated for these weights; run `sentemb calibrate INDEX "
                    "DEV`"
                )
        return confidence

    @property
    def none_left(self) -> str:
        """Why there are no titles to choose from."""
        return NO_TITLES if self.where is None else NO_PRODUCT

    def reason(self, is_below: bool, confidence: float | None) -> str | None:
        """Why no title is shown although there are matches."""
        if is_below:
            return BELOW_FLOOR
        if self.min_confidence is not None and (confidence or 0) < self.min_confidence:
            return f"the confidence of the first title is below {self.min_confidence:g}"
        return None

    def of(self, matches: list[_Match]) -> list[_Match]:
        """Those with high enough scores."""
        least = -np.inf if self.min_score is None else self.min_score
        return [match for match in matches if match.score >= least]

    def counted(self, fields: ProductFields, matches: list[_Match]) -> dict[str, dict[Value, int]]:
        """The values of each facet among the best matches."""
        rows = [match.row for match in _best(matches)]
        return {column: fields.facet(column, rows) for column in self.facets}

    def ordered(self, fields: ProductFields, matches: list[_Match]) -> list[_Match]:
        """The matches in the order of a field, or as they are."""
        if self.sort is None:
            return matches
        matches = _best(matches)
        return [matches[k] for k in fields.ordered(self.sort, [match.row for match in matches])]


def _text(name: str, text: str | None) -> str | None:
    """``text`` if it is a str or None."""
    if not (text is None or isinstance(text, str)):
        raise SentembError(f"{name} is {brief(text)}; give a text")
    return text


def _names(facets: Iterable[str]) -> tuple[str, ...]:
    """The names of fields in ``facets``."""
    with naming("facets"):
        return tuple(_as_ids(facets))


def _best(matches: list[_Match]) -> list[_Match]:
    """The matches that are sorted and counted."""
    highest = matches[0].score if matches else 0.0
    least = highest - (1 - LEAST_SHARE) * abs(highest)
    return [match for match in matches[:MOST_MATCHES] if match.score >= least]


def _matches(ranked: Ranked, q: int) -> list[_Match]:
    """The titles of query ``q``, best first."""
    names = [name for name in PARTS if name in ranked.values]
    values = zip(*(ranked.values[name][q].tolist() for name in names), strict=True)
    rows = zip(ranked.titles[q].tolist(), ranked.scores[q].tolist(), values, strict=True)
    return [
        _Match(row, score, dict(zip(names, of_parts, strict=True)))
        for row, score, of_parts in rows
        if row >= 0
    ]


def _have_unknown_words(snapshot: Snapshot, texts: list[str]) -> NDArray[np.bool_]:
    """Which texts have a word that no title and no clicked query has; none without BM25."""
    part = snapshot.catalogue.parts.get(BM25)
    if not isinstance(part, Bm25):
        return np.zeros(len(texts), np.bool_)
    tokens = snapshot.ranker.asked(texts).tokens
    return np.diff(part.lists.look_up(tokens).offsets) < np.diff(tokens.offsets)


def _hits(snapshot: Snapshot, matches: list[_Match], confidence: float | None) -> list[Hit]:
    """Hits; the first has the confidence."""
    fields = snapshot.fields.values([match.row for match in matches])
    return [
        Hit(
            snapshot.ids[row],
            snapshot.titles[row],
            score,
            parts,
            None if number else confidence,
            fields[number],
        )
        for number, (row, score, parts) in enumerate(matches)
    ]


def _rows_of(snapshot: Snapshot, ids: Sequence[str]) -> NDArray[np.int64]:
    """The rows of ids; a `SentembError` for one that is not in the index."""
    rows = snapshot.row_of.of(ids)
    if (rows < 0).any():
        unknown = ids[int(np.argmax(rows < 0))]
        raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
    return rows


def _as_ids(ids: Iterable[str]) -> list[str]:
    """Ids whose order does not matter."""
    return as_texts(sorted(ids) if isinstance(ids, set | frozenset) else ids)


def check_output(path: AnyPath, force: bool) -> None:
    """Refuse a folder that `Index.save` would refuse, before any work."""
    folder = path_of(path)
    check_free(path, force)
    names = [name for name in names_in(path) if not is_temporary(name)] if status(folder) else []
    if names and not is_index(folder):
        raise SentembError(f"{path}: holds other files than an index; name a new or empty folder")
    listed_files(path)
    check_exchangeable(folder)
