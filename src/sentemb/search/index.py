"""An index: a model, titles with ids, and the vectors of the titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from sentemb.data.product_tables import products_of
from sentemb.data.text_array import Texts
from sentemb.errors import SentembError
from sentemb.models.face import Face
from sentemb.models.files.model_files import fingerprint
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.bm25 import FieldTexts
from sentemb.search.confidence import Confidence
from sentemb.search.contents import checked, embedded
from sentemb.search.index_description import DTYPES, Description, read_description
from sentemb.search.index_fields import IndexFields
from sentemb.search.index_files import (
    check_files,
    index_folder,
    is_index,
    listed_files,
    open_model,
    open_snapshot,
    verify_contents,
    write_contents,
)
from sentemb.search.product_fields import ProductFields, Value
from sentemb.search.ranking.ranker import HybridRanker
from sentemb.search.ranking.recipe import MODEL_ALONE, Recipe
from sentemb.search.ranking.shortlist import Shortlist
from sentemb.search.searched_fields import checked_weights, texts_of
from sentemb.search.searcher import Searcher, as_ids
from sentemb.search.segment import Segment, Vectors, settled
from sentemb.search.shortlisting import with_shortlist
from sentemb.search.snapshot import Snapshot
from sentemb.search.syncing import Changes, compared
from sentemb.system.bounds import brief, plain
from sentemb.system.cluster import Dask, opened_if
from sentemb.system.files import held, names_in, path_of, status
from sentemb.system.html_tables import excerpt, facts_table
from sentemb.system.locks import is_temporary
from sentemb.system.parallel import Turn, Workers
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_exchangeable, check_free, replacing_folder
from sentemb.text.arguments import as_texts

# Ids that are looked up at a time.
_IDS = 8192
# How often a folder is opened again that was replaced meanwhile.
_TRIES = 5

# A table of pandas, Polars or pyarrow, or a dict of columns.
Table: TypeAlias = Any
Fields: TypeAlias = ProductFields | Mapping[str, Sequence[Value]] | None


class Index(Searcher):
    """Titles that a query is searched in, with the model that embeds both.

    Make one with `build`, or open a folder with `open`. Several threads may search in one index
    while others change it: a search finds what the old or the new index would, and a change that an
    exception stops leaves the index as it was. It can be copied and pickled, and it works in a
    forked process. It is a `sentemb.models.contracts.Retriever`.

    Parameters
    ----------
    snapshot : Snapshot or path
        Model, weights, titles and the parts of their scores; or a folder, as for `open`.
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
        snapshot: Snapshot | AnyPath,
        threads: int | None = None,
        scratch: AnyPath | None = None,
    ) -> None:
        if not isinstance(snapshot, Snapshot):
            self.__dict__ = copy(type(self).open(snapshot, threads, scratch)).__dict__
            return
        super().__init__(snapshot.ranker.model, threads)
        self._snapshot = snapshot
        # Changes take turns, and each ends with one assignment; searches never wait.
        self._turn = Turn()
        self._threads = threads
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
            # An embedding that is an object is in no file.
            known = {"embedding": snapshot.ranker.embedding, "threads": self._threads}
            return {"source": snapshot.source, **known}
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
        opened.ranker.embedding = state["embedding"]
        self.__dict__ = copy(opened).__dict__

    # -- making and storing -------------------------------------------------------------------

    @classmethod
    def build(
        cls,
        model: Face | HybridRanker,
        titles: Sequence[str] | Mapping[str, str] | Table,
        ids: Sequence[str] | None = None,
        fields: Fields = None,
        *,
        search_fields: Mapping[str, float] | Iterable[str] = (),
        dtype: str = "float32",
        exact: bool = False,
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
        titles : list of str, dict of id to title, or table
            Two may be equal. A title without a word that the model knows is kept and counted in
            `n_empty`; only BM25 finds it. A table of pandas, Polars or pyarrow has a column title,
            perhaps a column id, and fields.
        ids : list of str, optional
            One per title, each once, without white space. By default "0", "1", "2", ... Clicks of a
            log with ids belong to the title with the same id. Those of a log without ids belong to
            the id of the title from now on: `sync` may change its text.
        fields : dict of str to list, optional
            Price, brand and so on: for each column one integer, float, text, True, False or None
            per title. `search` filters and sorts by them.
        search_fields : list of str or dict of str to float, optional
            Fields of texts whose words find the title too, such as brand and tags. With a dict a
            word of a field counts by its weight in BM25, where one of the title counts 1.
        dtype : {"float32", "float16", "int8"}
            How the vectors are stored. float16 takes half the memory, int8 a quarter and less time
            per query; its scores are rounded.
        exact : bool
            Compare a query with every title. By default, from 30,000 titles on, a search looks at a
            part of them and misses some of the best; the attribute `clusters` has the recall.
        threads : int, optional
            For searching; by default all processors.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all; for clusters again from the
            start.
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
            if not isinstance(model, Face):
                raise SentembError(f"a model is needed, not {type(model).__name__}")
            model.saved().towers()  # refuses a pair model
            assert isinstance(model, SentenceEncoder)
            ranker = HybridRanker(model, MODEL_ALONE, threads=threads)
        if dtype not in DTYPES:
            raise SentembError(f"dtype is {brief(dtype)}; give {', '.join(DTYPES)}")
        titles, ids, fields = _products(titles, ids, fields)
        numbers = [str(number) for number in range(len(titles))] if ids is None else ids
        title_texts, id_texts = checked(titles, numbers, scratch)
        stored_fields = ProductFields.given(fields, len(title_texts))
        weights = checked_weights(search_fields, stored_fields, ranker.recipe)
        if ids is not None:
            # From now on a title may change without losing its clicks.
            ranker = ranker.with_ids(title_texts, id_texts)
        with Workers(threads) as workers:
            with opened_if(dask) as cluster:
                vectors = embedded(
                    ranker.model, title_texts, dtype, on_progress, workers, scratch, cluster
                )
            searched = texts_of(weights, stored_fields)
            of_titles = title_texts, id_texts, vectors
            catalogue = ranker.catalogue(
                *of_titles, searched=searched, on_progress=on_progress, scratch=scratch
            )
            if not exact:
                catalogue = with_shortlist(catalogue, ranker, workers, on_progress, scratch)
        segment = Segment.of(id_texts, catalogue, stored_fields)
        return cls(Snapshot(ranker, (segment,), search_fields=weights), threads, scratch)

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
            A folder that `save` or ``sentemb index`` wrote, or one of ``sentemb start`` with such.
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
        path = index_folder(path)
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
        ranker = open_model(path, description, threads, in_memory)
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
            write_contents(snapshot, new, opened is not None)
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

    def __repr__(self) -> str:
        return f"Index({len(self):,} titles, {self.dtype}, {self.model})"

    def _repr_html_(self) -> str:
        """The facts and the first titles, for notebooks."""
        snapshot, opened = self._snapshot, self._opened
        n, heads = len(snapshot), ["id", "title"]
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
    def clusters(self) -> Shortlist | None:
        """Looks titles up in clusters of vectors; None where a search compares all."""
        return self._snapshot.clusters

    @property
    def dtype(self) -> str:
        """How the vectors are stored: float32, float16 or int8."""
        return self._snapshot.dtype

    @property
    def n_empty(self) -> int:
        """The number of titles with no words that the model knows. Only BM25 finds them."""
        return sum(segment.n_empty for segment in self._snapshot.segments)

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
        segments = tuple(segment.of_cosine() for segment in snapshot.segments)
        return Index(snapshot.changed(ranker=ranker, segments=segments), self._threads)

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
        searched = texts_of(snapshot.search_fields, snapshot.fields)
        of_titles = snapshot.titles, snapshot.ids, snapshot.vectors
        snapshot.remember_embedding(ranker.embedding)
        catalogue = ranker.catalogue(*of_titles, searched=searched)
        if self.clusters is not None:
            catalogue = with_shortlist(catalogue, ranker, self._workers)
        segment = Segment.of(snapshot.ids, catalogue, snapshot.fields.as_one())
        return snapshot.changed(ranker=ranker, segments=(segment,))

    @property
    def search_fields(self) -> Mapping[str, float]:
        """The fields in which words are searched, with their weights."""
        return self._snapshot.search_fields

    def searched_texts(self, id: str | None) -> list[FieldTexts]:
        """The fields of one title in which words are searched; none without an id."""
        snapshot = self._snapshot
        if id is None or not snapshot.search_fields:
            return []
        segment, row = snapshot.located(int(snapshot.known_numbers([id])[0]))
        return texts_of(snapshot.search_fields, segment.fields.take(np.array([row])))

    @property
    def fields(self) -> IndexFields:
        """Price, brand and so on of the titles."""
        return self._snapshot.fields

    def add(
        self,
        titles: Sequence[str] | Mapping[str, str] | Table,
        ids: Sequence[str] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        fields: Fields = None,
    ) -> None:
        """Add titles at the end, with the model of the index; `save` writes them.

        A title, or id, that was clicked in the log of the ranker has its clicks.

        Parameters
        ----------
        titles : list of str, dict of id to title, or table
            The new titles; see `build`.
        ids : list of str
            One per title, unless they come with the titles; none of them is in the index.
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
        titles, ids, fields = _with_ids(titles, ids, fields)
        new = ids if isinstance(ids, Texts) else as_texts(ids)
        with self._turn.lock:
            old = self._snapshot
            for first in range(0, len(new), _IDS):
                portion = new[first : first + _IDS]
                there = np.flatnonzero(old.numbers_of(portion) >= 0)
                if there.size:
                    raise SentembError(
                        f"the id {plain(portion[there[0]])} is in the index already; remove it "
                        "first, or leave it out"
                    )
            texts, new = checked(titles, new, self._scratch)
            given = ProductFields.given(fields, len(texts))
            types = old.fields.joined_types(given, new)
            segments = [each.with_fields(each.fields.as_types(types)) for each in old.segments]
            if len(texts):
                segments.append(self._segment(old, texts, new, given.as_types(types), on_progress))
            self._put(old, segments)

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
        id_list = as_ids(ids)
        with self._turn.lock:
            old = self._snapshot
            self._put(old, old.without(old.known_numbers(id_list)))

    def sync(
        self,
        titles: Sequence[str] | Mapping[str, str] | Table,
        ids: Sequence[str] | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        fields: Fields = None,
    ) -> Changes:
        """Make the titles of the index these, in one step; `save` writes them.

        A title whose text changed, or a field in which words are searched, keeps its id, and so its
        clicks. It moves to the end.

        Parameters
        ----------
        titles : list of str, dict of id to title, or table
            All titles that the index is to have; see `build`.
        ids : list of str
            One per title, each once, unless they come with the titles.
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
        titles, ids, fields = _with_ids(titles, ids, fields)
        texts, id_texts = checked(titles, ids, self._scratch)
        given = ProductFields.given(fields, len(texts))
        with self._turn.lock:
            old = self._snapshot
            given = given.as_types(old.fields.types_of(given, id_texts))
            changes, segments, is_new = compared(old, texts, id_texts, given)
            if is_new.any():
                new = texts.take(is_new, self._scratch), id_texts.take(is_new, self._scratch)
                of_new = given.take(np.flatnonzero(is_new))
                segments.append(self._segment(old, *new, of_new, on_progress))
            if any(changes) or given.types != old.fields.types:
                self._put(old, segments)
            return changes

    def _segment(
        self,
        old: Snapshot,
        titles: Texts,
        ids: Texts,
        fields: ProductFields,
        on_progress: Callable[[int, int], None] | None,
    ) -> Segment:
        """A segment of new titles, which ``old`` lacks."""
        of_index = on_progress, self._workers, self._scratch
        vectors = embedded(self.model, titles, old.dtype, *of_index)
        searched = texts_of(old.search_fields, fields)
        behind = old.segments[0].catalogue
        of_titles = titles, ids, vectors
        catalogue = old.ranker.catalogue(
            *of_titles, searched=searched, behind=behind, on_progress=on_progress
        )
        return Segment.of(ids, catalogue, fields)

    def _put(self, old: Snapshot, segments: Sequence[Segment]) -> None:
        """Make segments the contents of the index; ``old`` were its contents."""
        self._snapshot = old.changed(
            segments=tuple(
                self._looked_up(old, segment) for segment in settled(segments, self._scratch)
            )
        )

    def _looked_up(self, old: Snapshot, segment: Segment) -> Segment:
        """A segment with a shortlist, if it is new and large, and the index has one."""
        catalogue = segment.catalogue
        if old.clusters is None or catalogue.shortlist is not None or segment.files is not None:
            return segment
        return segment.with_catalogue(with_shortlist(catalogue, old.ranker, self._workers))


def _products(
    titles: Any, ids: Sequence[str] | None, fields: Fields
) -> tuple[Sequence[str], Sequence[str] | None, Fields]:
    """Titles, ids and fields; those that come with the titles are not given again."""
    products = products_of(titles)
    for name, given, of_table in (("ids", ids, products.ids), ("fields", fields, products.fields)):
        if given is not None and of_table is not None:
            raise SentembError(f"the titles come with {name}; leave {name} out")
    return (
        products.titles,
        products.ids if ids is None else ids,
        products.fields if fields is None else fields,
    )


def _with_ids(
    titles: Any, ids: Sequence[str] | None, fields: Fields
) -> tuple[Sequence[str], Sequence[str], Fields]:
    """As `_products`, of which each must have an id."""
    texts, known, of_fields = _products(titles, ids, fields)
    if known is None:
        raise SentembError("the titles have no ids; give ids, one per title")
    return texts, known, of_fields


def check_output(path: AnyPath, force: bool) -> None:
    """Refuse a folder that `Index.save` would refuse, before any work."""
    folder = path_of(path)
    check_free(path, force)
    names = [name for name in names_in(path) if not is_temporary(name)] if status(folder) else []
    if names and not is_index(folder):
        raise SentembError(f"{path}: holds other files than an index; name a new or empty folder")
    listed_files(path)
    check_exchangeable(folder)
