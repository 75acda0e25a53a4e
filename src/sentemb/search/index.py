"""An index: a model, titles with ids, and the vectors of the titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import brief, number, plain, share, whole
from sentemb.data.click_log import ClickLog
from sentemb.data.texts import Texts
from sentemb.distributed.cluster import Dask, opened_if
from sentemb.errors import SentembError
from sentemb.face import keeping_text_warnings
from sentemb.loading import face_of, load
from sentemb.models.nearest import nearest
from sentemb.models.similarity import unit_rows
from sentemb.ranking.memory import QueryMemory, Remembered
from sentemb.ranking.ranker import HybridRanker
from sentemb.ranking.recipe import MAX_WEIGHT, Recipe
from sentemb.search.confidence import Confidence
from sentemb.search.contents import checked, embedded, extended, of_kept
from sentemb.search.hybrid import Found, Weights, best_sums
from sentemb.search.index_files import (
    DTYPES,
    MEMORY,
    MEMORY_VECTORS,
    MODEL,
    VECTORS,
    Description,
    check_files,
    damaged,
    is_index,
    listed_files,
    open_bm25,
    open_contents,
    open_memory,
    read_description,
    verify_contents,
    write_contents,
)
from sentemb.search.lexical import Lexical, checked_weight
from sentemb.search.memory import Memory
from sentemb.search.places import Places
from sentemb.search.snapshot import Contents, Snapshot, Vectors
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import fingerprint, save_model
from sentemb.storage.saved_model import Stored
from sentemb.system.files import held, names_in, path_of, status
from sentemb.system.html_tables import Rows, excerpt, facts_table
from sentemb.system.locks import is_temporary
from sentemb.system.parallel import Turn, Workers
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_exchangeable, check_free, replacing_folder
from sentemb.text.checks import as_text, as_texts

# No cosine is higher, with all that rounding to int8 may add.
_MOST = 1.1
# Ids that are looked up at a time.
_IDS = 8192
# How often a folder is opened again that was replaced meanwhile.
_TRIES = 5


class Hit(NamedTuple):
    """A title that was found.

    Attributes
    ----------
    id, title : str
    score : float
        The cosine of the query and the title, plus the shares of BM25 and of the memory of the log
        if the index has them; see `Index.recipe`.
    cosine : float
        0 if the model knows nothing of the query or of the title.
    bm25 : float or None
        The score of BM25 as it is; None if it is not part of the score.
    confidence : float or None
        How often such a score belongs to a clicked title; see `sentemb.search.confidence`. Only the
        first title of a query has one, and only if the index is calibrated.
    memory : float or None
        The larger of the cosine and the highest cosine of the query and a query that the title was
        clicked for; None if it is not part of the score.
    """

    id: str
    title: str
    score: float
    cosine: float
    bm25: float | None
    confidence: float | None
    memory: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """All of it, without the memory if that is not part of the score."""
        found = self._asdict()
        if self.memory is None:
            del found["memory"]
        return found


class Index:
    """Titles that a query is searched in, with the model that embeds both.

    Make one with `build`, or open a folder with `open`. Several threads may search in one index
    while others change it: a search finds what the old or the new index would, and a change that an
    exception stops leaves the index as it was. It can be copied and pickled, and it works in a
    forked process. It is a `sentemb.protocols.Retriever`.

    Parameters
    ----------
    model : SentenceEncoder
    snapshot : Snapshot
        Titles, vectors and weights; all that is not the model.
    model_sha256 : str
        The fingerprint of the model.
    threads : int, optional
        By default all processors.
    scratch : path, optional
        A folder on the disk that large arrays are kept on until `save`; by default in memory.

    Attributes
    ----------
    model : SentenceEncoder
        What embeds queries and new titles.
    model_sha256 : str
        The fingerprint of the model.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        snapshot: Snapshot,
        model_sha256: str,
        threads: int | None = None,
        scratch: AnyPath | None = None,
    ) -> None:
        self.model = model
        self.model_sha256 = model_sha256
        self._snapshot = snapshot
        # Changes take turns, and each ends with one assignment; searches never wait.
        self._turn = Turn()
        self._threads = threads
        self._workers = Workers(threads)
        self._scratch = scratch
        # The folder that the index was opened from, and the identities that it may have there.
        self._opened: tuple[Path, frozenset[str]] | None = None

    def __copy__(self) -> Index:
        other = Index(self.model, self._snapshot, self.model_sha256, self._threads, self._scratch)
        other._opened = self._opened
        return other

    def __getstate__(self) -> dict[str, Any]:
        snapshot = self._snapshot
        if snapshot.source is not None:  # the other process maps the same files
            return {"source": snapshot.source, "threads": self._threads}
        return {
            "model": self.model,
            "snapshot": snapshot,
            "model_sha256": self.model_sha256,
            "threads": self._threads,
        }

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
        model: Stored,
        titles: Sequence[str],
        ids: Sequence[str] | None = None,
        *,
        dtype: str = "float32",
        bm25: bool = False,
        log: ClickLog | None = None,
        stem: str | None = None,
        ranker: HybridRanker | None = None,
        threads: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
        scratch: AnyPath | None = None,
        dask: Dask | None = None,
    ) -> Index:
        """Embed titles.

        Parameters
        ----------
        model : SentenceEncoder
            A model with a vector per text; also what `SIF.fit` returns.
        titles : list of str
            Two may be equal. A title without a word that the model knows is kept and counted in
            `n_empty`; only BM25 and the memory find it.
        ids : list of str, optional
            One per title, each once, without white space. By default "0", "1", "2", ...
        dtype : {"float32", "float16", "int8"}
            How the vectors are stored. float16 takes half the memory, int8 a quarter and less time
            per query; its scores are rounded.
        bm25 : bool
            Whether the words of the titles are indexed too. BM25 is then part of the score, with a
            small weight; `sentemb.search.tuning.tune` chooses a better one.
        log : ClickLog, optional
            BM25 indexes each title together with the queries that it was clicked for, and the index
            keeps them, so that `tune` can also choose a weight for the memory of the log. Leave out
            the clicks that `tune` measures on.
        stem : str, optional
            BM25 compares stems of this language instead of words, such as "english"; needs the
            package PyStemmer.
        ranker : HybridRanker, optional
            The ranker of ``model``, from `sentemb.load_ranker`: the index takes over its weights,
            its BM25 and its clicks, in place of ``bm25``, ``log`` and ``stem``.
        threads : int, optional
            For searching; by default all processors.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all.
        scratch : path, optional
            A folder on the disk that large arrays are kept on until `save`, in files without names;
            by default they are in memory. With what `sentemb.search.title_files.read_titles` read
            as ``titles`` and ``ids``, millions of titles need little memory.
        dask : str or distributed.Client, optional
            A cluster of Dask that embeds the titles, to the same bits: "local", "local:2" for two
            processes, the address of a scheduler, or a client. Needs the extra sentemb[dask].

        Raises
        ------
        SentembError
            If the model has no vectors of texts, an id is repeated or has white space, or a title
            has a line end; for ``log`` or ``stem`` without ``bm25``, or an unknown language; for a
            ranker of another model, or together with ``bm25``, ``log`` or ``stem``.
        """
        if ranker is not None and (bm25 or log is not None or stem is not None):
            raise SentembError(
                "the ranker has a BM25 of its own; leave out bm25, log and stem, or the ranker"
            )
        if not isinstance(ranker, HybridRanker | None):
            raise SentembError(f"ranker must be a HybridRanker, not {type(ranker).__name__}")
        if not bm25 and (log is not None or stem is not None):
            raise SentembError("log and stem are for BM25; add bm25=True")
        if not hasattr(model, "saved"):
            raise SentembError(f"a model is needed, not {type(model).__name__}")
        saved = model.saved()
        saved.towers()  # refuses a pair model
        encoder = model if isinstance(model, SentenceEncoder) else face_of(saved)
        assert isinstance(encoder, SentenceEncoder)
        if dtype not in DTYPES:
            raise SentembError(f"dtype is {brief(dtype)}; give {', '.join(DTYPES)}")
        named = [str(place) for place in range(len(titles))] if ids is None else ids
        texts, named = checked(titles, named, scratch)
        with Workers(threads) as workers, opened_if(dask) as cluster:
            contents = embedded(
                encoder, texts, named, dtype, on_progress, workers, scratch, cluster
            )
        sha256 = fingerprint(saved)
        if ranker is not None:
            return cls._of_ranker(ranker, encoder, contents, sha256, threads, scratch)
        half = Lexical.build(texts, log, stem, scratch) if bm25 else None
        memory = None if log is None else Memory(QueryMemory.listed(texts, log))
        return cls(encoder, Snapshot(contents, half, memory), sha256, threads, scratch)

    @classmethod
    def _of_ranker(
        cls,
        ranker: HybridRanker,
        encoder: SentenceEncoder,
        contents: Contents,
        sha256: str,
        threads: int | None,
        scratch: AnyPath | None,
    ) -> Index:
        """An index that scores as ``ranker`` does."""
        if fingerprint(ranker.model.saved()) != sha256:
            raise SentembError("the ranker is of another model; give the ranker of this model")
        recipe, titles = ranker.recipe, contents.titles
        clicks = ranker.clicks if recipe.needs_clicks else None
        half = Lexical.of_recipe(titles, clicks, recipe, scratch) if recipe.bm25 else None
        memory = None
        if clicks is not None:
            memory = Memory(QueryMemory.listed(titles, clicks)).weighted(recipe.memory, encoder)
        snapshot = Snapshot(contents, half, memory, recipe.cosine)
        return cls(encoder, snapshot, sha256, threads, scratch)

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
        """The index in a folder with this description."""
        check_files(path, description)
        contents = open_contents(path, description, in_memory)
        model = load(path_of(path) / MODEL, threads)
        if (
            not isinstance(model, SentenceEncoder)
            or model.dim != description.dim
            or fingerprint(model.saved()) != description.model_sha256
        ):
            raise damaged(path_of(path) / MODEL, "it is another model than that of the vectors")
        snapshot = Snapshot(
            contents,
            open_bm25(path, description, in_memory),
            open_memory(path, description, in_memory),
            description.cosine,
            Confidence.of_json(description.confidence),
            (path_of(path).resolve(), description.identity),
        )
        index = cls(model, snapshot, description.model_sha256, threads)
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
        Index.open(path, 1)
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
        is_own = opened is not None and path_of(path).resolve() == opened[0]
        with replacing_folder(path, listed_files(path)) as new:
            self._check_unchanged(path)
            write_contents(snapshot, self.model_sha256, new)
            save_model(self.model.saved(), new / MODEL)
            identity = read_description(new).identity
            if opened is not None and is_own:
                # An exception may come before or after the folder is in its place.
                self._opened = opened[0], opened[1] | {identity}
        if opened is not None and is_own:
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
        return len(self._snapshot.contents.ids)

    def __repr__(self) -> str:
        return f"Index({len(self):,} titles, {self.dtype}, {self.model})"

    def _repr_html_(self) -> str:
        """What it holds, for notebooks."""
        snapshot, opened = self._snapshot, self._opened
        half, memory, contents = snapshot.bm25, snapshot.memory, snapshot.contents
        n, heads = len(contents.ids), ["id", "title"]
        return facts_table(
            {
                "titles": n,
                "of them without a known word": len(contents.empty) or None,
                "length of a vector": self.model.dim,
                "dtype": contents.dtype,
                "model": self.model,
                "BM25": "no" if half is None else f"weight {half.weight:g} in the score",
                "queries that titles were clicked for": "part of BM25"
                if half is not None and half.has_clicks
                else None,
                "memory of these queries": f"weight {memory.weight:g} in the score"
                if memory is not None
                else None,
                "confidence": "not calibrated" if snapshot.confidence is None else "calibrated",
                "folder": None if opened is None else opened[0],
            }
        ) + excerpt(zip(contents.ids, contents.titles, strict=True), n, heads, texts=(0, 1))

    @property
    def ids(self) -> Sequence[str]:
        """The ids, in the order in which they were added."""
        return self._snapshot.contents.ids

    @property
    def titles(self) -> Sequence[str]:
        """The titles, in the order of `ids`."""
        return self._snapshot.contents.titles

    @property
    def vectors(self) -> Vectors:
        """Unit vectors of the titles, (n, dim); do not change them."""
        return self._snapshot.contents.vectors

    @property
    def dtype(self) -> str:
        """How the vectors are stored: float32, float16 or int8."""
        return self._snapshot.contents.dtype

    @property
    def n_empty(self) -> int:
        """The number of titles without a word that the model knows.

        Only BM25 and the memory find them.
        """
        return len(self._snapshot.contents.empty)

    @property
    def bm25(self) -> Lexical | None:
        """BM25 over the titles, and its weight in the score."""
        return self._snapshot.bm25

    @property
    def memory(self) -> Memory | None:
        """The queries that titles were clicked for, and the weight of the memory in the score."""
        return self._snapshot.memory

    @property
    def cosine_weight(self) -> float:
        """The weight of the cosine in the score."""
        return self._snapshot.cosine

    @property
    def memory_weight(self) -> float:
        """The weight of the memory of the log in the score; 0 without clicks."""
        return self._snapshot.memory_weight

    @property
    def confidence(self) -> Confidence | None:
        """What `calibrate` fitted to the scores; None before, and after a change of them."""
        return self._snapshot.confidence

    @confidence.setter
    def confidence(self, confidence: Confidence | None) -> None:
        with self._turn.lock:
            self._snapshot = self._snapshot.changed(confidence=confidence)

    @property
    def recipe(self) -> Recipe:
        """The weights of the parts of a score, and the parameters of BM25."""
        return self._snapshot.recipe()

    def set_bm25(
        self, k1: float, b: float, weight: float, click_weight: float | None = None
    ) -> None:
        """Change the parameters and the weight of BM25; a calibration for others is dropped.

        Parameters
        ----------
        k1, b : float
            Saturation of a word's count, and how much a title's length reduces it.
        weight : float
            Of BM25 in the score.
        click_weight : float, optional
            How much a word of a clicked query counts, from 0 to 1; by default as before.

        Raises
        ------
        SentembError
            If the index has no BM25, or a number is out of range; for another ``click_weight`` if
            the index has no counts of clicked queries.
        """
        with self._turn.lock:
            half = self._snapshot.half()
            lists = half.lists
            same = lists.click_weight if click_weight is None else click_weight
            if (k1, b, same) != (lists.k1, lists.b, lists.click_weight):
                lists = lists.with_parameters(k1, b, click_weight)
            changed = Lexical(lists, checked_weight(weight))
            self._snapshot = self._snapshot.changed(bm25=changed)

    def set_weights(self, cosine: float, memory: float = 0.0) -> None:
        """Change the weights of the cosine and of the memory; see `set_bm25` for that of BM25.

        A calibration for other weights is dropped.

        Parameters
        ----------
        cosine, memory : float
            From 0 to 1000.

        Raises
        ------
        SentembError
            If a number is out of range, or the index has no clicks and the memory has a weight.
        """
        number("the weight of the cosine", cosine, 0, MAX_WEIGHT)
        with self._turn.lock:
            half = self._snapshot.memory
            if half is not None:
                half = half.weighted(memory, self.model)
            elif memory:
                raise SentembError(
                    "the index has no clicked queries; make it again with --bm25 --log LOG, or of "
                    "a model with a ranker"
                )
            self._snapshot = self._snapshot.changed(cosine=float(cosine), memory=half)

    def half(self) -> Lexical:
        """BM25 over the titles; a `SentembError` if the index has none."""
        return self._snapshot.half()

    def place_of(self) -> Places:
        """The place of every id. It is made on first use: one pass over the ids."""
        return self._snapshot.contents.places

    def add(
        self,
        titles: Sequence[str],
        ids: Sequence[str],
        on_progress: Callable[[int, int], None] | None = None,
    ) -> None:
        """Add titles at the end, with the model of the index; `save` writes them.

        They have no clicked queries: their clicks come in when the index is made again.

        Parameters
        ----------
        titles : list of str
            The new titles.
        ids : list of str
            One per title; none of them is in the index.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all.

        Raises
        ------
        SentembError
            Nothing is added then: an id that is there already, or what `build` refuses.
        """
        new = ids if isinstance(ids, Texts) else as_texts(ids)
        with self._turn.lock:
            old = self._snapshot
            known = old.contents.places
            for first in range(0, len(new), _IDS):
                some = new[first : first + _IDS]
                there = np.flatnonzero(known.of(some) >= 0)
                if there.size:
                    raise SentembError(
                        f"the id {plain(some[there[0]])} is in the index already; remove it first, "
                        "or leave it out"
                    )
            scratch = self._scratch
            texts, new = checked(titles, new, scratch)
            dtype = old.contents.dtype
            more = embedded(self.model, texts, new, dtype, on_progress, self._workers, scratch)
            half, memory = old.bm25, old.memory
            self._snapshot = old.changed(
                contents=extended(old.contents, more, scratch),
                bm25=half and replace(half, lists=half.lists.extended(texts)),
                memory=memory and replace(memory, lists=memory.lists.extended(len(new))),
            )

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
        wanted = _as_ids(ids)
        with self._turn.lock:
            old = self._snapshot
            places = old.contents.places.of(wanted)
            if (places < 0).any():
                unknown = wanted[int(np.argmax(places < 0))]
                raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
            kept = np.ones(len(old.contents.ids), np.bool_)
            kept[places] = False
            gone = np.flatnonzero(~kept)
            half, memory = old.bm25, old.memory
            self._snapshot = old.changed(
                contents=of_kept(old.contents, kept, self._scratch),
                bm25=half and replace(half, lists=half.lists.without(gone)),
                memory=memory and replace(memory, lists=memory.lists.without(gone)),
            )

    # -- search -------------------------------------------------------------------------------

    # A str is a Sequence[str] as well; the first signature that fits counts.
    @overload
    def search(  # type: ignore[overload-overlap]
        self,
        queries: str,
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
        bm25_weight: float | None = None,
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
        bm25_weight: float | None = None,
    ) -> list[list[Hit]]: ...
    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        min_score: float | None = None,
        min_confidence: float | None = None,
        bm25_weight: float | None = None,
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
        min_score : float, optional
            Leave out titles with a lower score.
        min_confidence : float, optional
            Find nothing for a query whose first title has a lower confidence, 0 to 1.
        bm25_weight : float, optional
            Score by the cosine plus this weight of BM25, whatever the weights of the index are; 0
            leaves the cosine alone.

        Returns
        -------
        list of Hit, or a list of them for each query
            Best first, equal scores in the order of the titles. Empty for a query without words,
            and for one of which neither the model nor BM25 knows a word.

        Raises
        ------
        SentembError
            If ``queries`` is not a text or a list of texts, or k is not an integer of at least 0;
            for ``min_confidence`` without a calibration for these weights, or ``bm25_weight``
            without BM25.
        """
        if min_score is not None:
            number("min_score", min_score, -np.inf)
        texts = [as_text(queries)] if isinstance(queries, str) else as_texts(queries)
        snapshot = self._snapshot
        mask = None if only is None else _mask_of(snapshot.contents, only)
        weights = snapshot.weights(bm25_weight)
        confidence = snapshot.confidence if weights == snapshot.weights(None) else None
        if min_confidence is not None:
            share("min_confidence", min_confidence)
            if confidence is None:
                raise SentembError(
                    "the index is not calibrated for these weights; run `sentemb calibrate INDEX "
                    "DEV`"
                )
        found = self._find(snapshot, texts, k, weights, mask)
        confidences = None
        if confidence is not None and found.places.size:
            # A query for which nothing is found has the score -inf; its confidence is not used.
            confidences = confidence(np.where(found.places[:, 0] >= 0, found.scores[:, 0], 0))
        hits: Rows[list[Hit]] = Rows()
        for q in range(len(texts)):
            sure = None if confidences is None else float(confidences[q])
            is_sure = min_confidence is None or (sure is not None and sure >= min_confidence)
            own = _hits(snapshot.contents, found, q, sure, min_score, weights) if is_sure else []
            hits.append(Rows(own, caption=texts[q]))
        return hits[0] if isinstance(queries, str) else hits

    def nearest_clicked(self, query: str, ids: Sequence[str]) -> list[Remembered | None]:
        """For some titles the clicked query that is nearest to a query.

        Parameters
        ----------
        query : str
            One query.
        ids : list of str
            Ids of the index.

        Returns
        -------
        list of Remembered or None
            None for a title without clicked queries, for all if the query has no known word, or if
            the memory has no weight in this index.

        Raises
        ------
        SentembError
            If an id is not in the index.
        """
        snapshot = self._snapshot
        known, memory = snapshot.contents.places, snapshot.memory
        unknown = next((id for id in ids if id not in known), None)
        if unknown is not None:
            raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
        (vector,) = self._embedded([as_text(query)])
        if memory is None or not memory.weight or not vector.any():
            return [None] * len(ids)
        return [memory.lists.nearest(vector, known[id]) for id in ids]

    def _embedded(self, queries: list[str]) -> np.ndarray:
        with keeping_text_warnings():  # a query without words finds nothing
            return unit_rows(self.model.encode_query(queries))

    def find(
        self,
        queries: Sequence[str],
        k: int,
        mask: NDArray[np.bool_] | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The places and scores of the best titles; see `sentemb.protocols.Retriever`.

        Parameters
        ----------
        queries : list of str
            The queries.
        k : int
            Titles per query.
        mask : (n,) bool, optional
            The titles that may be found.
        """
        found = self.find_sums(queries, k, mask)
        return found.places, found.scores

    def find_sums(
        self,
        queries: Sequence[str],
        k: int,
        mask: NDArray[np.bool_] | None = None,
        bm25_weight: float | None = None,
    ) -> Found:
        """As `find`, with what the scores consist of; see `search` for ``bm25_weight``."""
        snapshot = self._snapshot
        return self._find(snapshot, queries, k, snapshot.weights(bm25_weight), mask)

    def find_weighted(
        self,
        queries: Sequence[str],
        k: int,
        weights: Weights,
        mask: NDArray[np.bool_] | None = None,
    ) -> Found:
        """As `find_sums`, with other weights of all parts.

        The index needs a BM25 or vectors of clicked queries where these have a weight.
        """
        return self._find(self._snapshot, queries, k, weights, mask)

    def _find(
        self,
        snapshot: Snapshot,
        queries: Sequence[str],
        k: int,
        weights: Weights,
        mask: NDArray[np.bool_] | None,
    ) -> Found:
        whole("k", k, 0, 2**31 - 1)
        texts = as_texts(queries)
        vectors = self._embedded(texts)
        contents, workers = snapshot.contents, self._workers
        titles, embedded = contents.vectors, contents.has_vector
        if mask is not None and mask.shape != (len(contents.ids),):
            raise SentembError(
                f"a mask of shape {mask.shape} is not of the {len(contents.ids):,} titles of the "
                "index; make it again"
            )
        if weights.bm25 or weights.memory or weights.cosine != 1:
            lists = snapshot.half().lists if weights.bm25 else None
            half = snapshot.memory
            memory = half.lists if half is not None and weights.memory else None
            found = best_sums(
                texts, vectors, titles, lists, weights, k, mask, embedded, workers, memory
            )
            self._check_cosines(found.cosines)
            if memory is not None:
                self._check_cosines(found.memory, f"{MEMORY}/{MEMORY_VECTORS}")
            return found
        allowed = embedded if mask is None else mask if embedded is None else mask & embedded
        places, scores = nearest(vectors, titles, k, allowed, workers)
        self._check_cosines(scores[places >= 0])
        without_words = ~vectors.any(axis=1)
        places[without_words], scores[without_words] = -1, -np.inf
        cosines = np.where(places >= 0, scores, 0)
        return Found(places, scores, cosines, np.zeros(places.shape), cosines)

    def _check_cosines(self, cosines: NDArray[np.float64], file: str = VECTORS) -> None:
        """Refuse what vectors of unit length cannot give: files of vectors are not read at once."""
        if not (np.abs(cosines) <= _MOST).all():
            name = file if self._opened is None else self._opened[0] / file
            raise damaged(name, "a vector is not of unit length")

    def mask_of(self, ids: Iterable[str]) -> NDArray[np.bool_]:
        """Which titles have one of ``ids``: (n,) bool. Unknown ids are ignored."""
        return _mask_of(self._snapshot.contents, ids)


def _hits(
    contents: Contents,
    found: Found,
    q: int,
    confidence: float | None,
    min_score: float | None,
    used: Weights,
) -> list[Hit]:
    """What was found for one query."""
    hits: list[Hit] = []
    of_query = (one[q].tolist() for one in found)
    for place, score, cosine, lexical, remembered in zip(*of_query, strict=True):
        if place >= 0 and (min_score is None or score >= min_score):
            sure = None if hits else confidence
            own = lexical if used.bm25 else None
            memory = remembered if used.memory else None
            id, title = contents.ids[place], contents.titles[place]
            hits.append(Hit(id, title, score, cosine, own, sure, memory))
    return hits


def _mask_of(contents: Contents, ids: Iterable[str]) -> NDArray[np.bool_]:
    places, mask = contents.places.of(_as_ids(ids)), np.zeros(len(contents.ids), np.bool_)
    mask[places[places >= 0]] = True
    return mask


def _as_ids(ids: Iterable[str]) -> list[str]:
    """Ids whose order does not matter."""
    return as_texts(sorted(ids) if isinstance(ids, set | frozenset) else ids)


def check_output(path: AnyPath, force: bool) -> None:
    """Refuse a folder that `Index.save` would refuse, before any work."""
    place = path_of(path)
    check_free(path, force)
    names = [name for name in names_in(path) if not is_temporary(name)] if status(place) else []
    if names and not is_index(place):
        raise SentembError(f"{path}: holds other files than an index; name a new or empty folder")
    listed_files(path)
    check_exchangeable(place)
