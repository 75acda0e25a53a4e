"""An index: a model, titles with ids, and the vectors of the titles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.baselines.words_and_stems import stem_of
from sentemb.bounds import brief, number, plain, share, whole
from sentemb.data.click_log import ClickLog
from sentemb.data.texts import Texts
from sentemb.distributed.cluster import Dask, opened_if
from sentemb.errors import SentembError
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
    BM25,
    CALIBRATION,
    DTYPES,
    MEMORY,
    MEMORY_VECTORS,
    MODEL,
    VECTORS,
    Contents,
    Description,
    Vectors,
    damaged,
    is_index,
    open_contents,
    open_memory,
    read_calibration,
    read_description,
    verify_contents,
    write_calibration,
    write_contents,
)
from sentemb.search.lexical import Lexical, checked_weight
from sentemb.search.memory import Memory
from sentemb.search.places import Places
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import fingerprint, save_model
from sentemb.storage.saved_model import Stored
from sentemb.system.files import names_in, path_of, status
from sentemb.system.html_tables import Rows, excerpt, facts_table
from sentemb.system.locks import is_temporary
from sentemb.system.parallel import Workers
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

    Make one with `build`, or open a folder with `open`. Several threads may search in one index; it
    can be pickled, and it works in a forked process. It is a `sentemb.protocols.Retriever`.

    Parameters
    ----------
    model : SentenceEncoder
    contents : Contents
        Ids, titles and vectors.
    model_sha256 : str
        The fingerprint of the model.
    threads : int, optional
        By default all processors.
    bm25 : Lexical, optional
        BM25 over the same titles.
    memory : Memory, optional
        The queries that the same titles were clicked for.
    cosine_weight : float
        The weight of the cosine in the score, from 0.
    scratch : path, optional
        A folder on the disk that large arrays are kept on until `save`; by default in memory.

    Attributes
    ----------
    model : SentenceEncoder
        What embeds queries and new titles.
    bm25 : Lexical or None
        BM25 over the titles, and its weight in the score.
    memory : Memory or None
        The queries that titles were clicked for, and the weight of the memory in the score.
    cosine_weight : float
        The weight of the cosine in the score.
    confidence : Confidence or None
        What `calibrate` has fitted to the scores; None again after a change of them.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        contents: Contents,
        model_sha256: str,
        threads: int | None = None,
        bm25: Lexical | None = None,
        memory: Memory | None = None,
        cosine_weight: float = 1.0,
        scratch: AnyPath | None = None,
    ) -> None:
        self.model = model
        self.bm25 = bm25
        self.memory = memory
        self.cosine_weight = cosine_weight
        self._confidence: Confidence | None = None
        self.model_sha256 = model_sha256
        self._threads = threads
        self._workers = Workers(threads)
        self._scratch = scratch
        # The folder that the index was opened from, and its identity then; and the same, but none
        # after a change.
        self._opened: tuple[Path, str] | None = None
        self._source: tuple[Path, str] | None = None
        self._set(contents)

    def _set(self, contents: Contents) -> None:
        self._contents = contents
        self._place_of: Places | None = None
        self._source = None
        self._findable: NDArray[np.bool_] | None = None
        if contents.empty.size:
            self._findable = np.ones(len(contents.ids), np.bool_)
            self._findable[contents.empty] = False

    def __getstate__(self) -> dict[str, Any]:
        if self._source is not None:  # the other process maps the same files
            return {"source": self._source, "threads": self._threads}
        return {
            "model": self.model,
            "contents": self._contents,
            "model_sha256": self.model_sha256,
            "threads": self._threads,
            "bm25": self.bm25,
            "memory": self.memory,
            "cosine_weight": self.cosine_weight,
            "confidence": self._confidence,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        source = state.pop("source", None)
        if source is None:
            confidence = state.pop("confidence")
            self.__init__(**state)  # type: ignore[misc]
            self._confidence = confidence
            return
        opened = type(self).open(source[0], state["threads"])
        if opened._source != source:
            raise SentembError(
                f"{source[0]}: the index has changed since the object was pickled; open it again"
            )
        self.__dict__ = opened.__dict__

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
        return cls(encoder, contents, sha256, threads, half, memory, scratch=scratch)

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
        return cls(encoder, contents, sha256, threads, half, memory, recipe.cosine, scratch)

    @classmethod
    def open(
        cls, path: AnyPath, threads: int | None = None, scratch: AnyPath | None = None
    ) -> Index:
        """Open an index folder; titles and vectors are mapped into memory, not read.

        Sizes and shapes of all files are checked, and the model is read and checked as a whole.
        `verify` also checks the contents of the files that are mapped.

        Parameters
        ----------
        path : path
            A folder that `save` or ``sentemb index`` wrote.
        threads : int, optional
            By default all processors.
        scratch : path, optional
            A folder on the disk that large arrays are kept on after `add` and `remove`, until
            `save`; by default they are in memory.

        Raises
        ------
        SentembError
            If the folder is not an index, is damaged, or was written by a newer version.
        """
        for _ in range(_TRIES):
            description = read_description(path)
            try:
                index = cls._of_folder(path, description, threads)
            except SentembError:
                if read_description(path) == description:
                    raise
            else:
                # Otherwise the folder was replaced, and some files are old and others new.
                if read_description(path) == description:
                    index._scratch = scratch
                    return index
        raise SentembError(f"{path}: the index is being replaced again and again; try later")

    @classmethod
    def _of_folder(cls, path: AnyPath, description: Description, threads: int | None) -> Index:
        """The index in a folder with this description."""
        contents = open_contents(path, description)
        model = load(path_of(path) / MODEL, threads)
        if (
            not isinstance(model, SentenceEncoder)
            or model.dim != description.dim
            or fingerprint(model.saved()) != description.model_sha256
        ):
            raise damaged(path_of(path) / MODEL, "it is another model than that of the vectors")
        half = None
        if description.bm25 is not None:
            lists = InvertedIndex.open(path_of(path) / BM25)
            if lists.n_titles != description.titles:
                raise damaged(path_of(path) / BM25, "it is not of the titles of the index")
            half = Lexical(lists, description.bm25["weight"], description.bm25["clicks"])
        index = cls(
            model,
            contents,
            description.model_sha256,
            threads,
            half,
            open_memory(path, description),
            description.cosine,
        )
        told = read_calibration(path)
        if told is not None and told["belongs_to"] == index._scoring():
            index._confidence = Confidence.of_json(told["confidence"])
            if index._confidence is None:
                raise damaged(path_of(path) / CALIBRATION, "it is not a calibration")
        elif told is not None:
            warnings.warn(
                f"{path_of(path) / CALIBRATION} belongs to another model or other weights and "
                "is ignored; run `sentemb calibrate` again",
                stacklevel=2,
            )
        index._source = index._opened = path_of(path).resolve(), description.identity
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
        with replacing_folder(path) as new:
            self._check_unchanged(path)
            write_contents(
                self._contents,
                self.model_sha256,
                self.bm25,
                self.memory,
                self.cosine_weight,
                new,
            )
            save_model(self.model.saved(), new / MODEL)
            if self._confidence is not None:
                write_calibration(new, vars(self._confidence), self._scoring())
            identity = read_description(new).identity
        if self._opened is not None and path_of(path).resolve() == self._opened[0]:
            self._opened = self._opened[0], identity

    def _check_unchanged(self, path: AnyPath) -> None:
        """Refuse to undo what another process has written to the folder of this index."""
        if self._opened is None or not is_index(path):
            return
        folder, identity = self._opened
        if path_of(path).resolve() == folder and read_description(path).identity != identity:
            raise SentembError(
                f"{path}: the index has changed since it was opened; open it again, or save to "
                "another folder"
            )

    # -- contents -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._contents.ids)

    def __repr__(self) -> str:
        return f"Index({len(self):,} titles, {self.dtype}, {self.model})"

    def _repr_html_(self) -> str:
        """What it holds, for notebooks."""
        half = self.bm25
        heads = ["id", "title"]
        return facts_table(
            {
                "titles": len(self),
                "of them without a known word": self.n_empty or None,
                "length of a vector": self.model.dim,
                "dtype": self.dtype,
                "model": self.model,
                "BM25": "no" if half is None else f"weight {half.weight:g} in the score",
                "queries that titles were clicked for": "part of BM25"
                if half is not None and half.has_clicks
                else None,
                "memory of these queries": f"weight {self.memory.weight:g} in the score"
                if self.memory is not None
                else None,
                "confidence": "not calibrated" if self._confidence is None else "calibrated",
                "folder": None if self._opened is None else self._opened[0],
            }
        ) + excerpt(zip(self.ids, self.titles, strict=True), len(self), heads, texts=(0, 1))

    @property
    def ids(self) -> Sequence[str]:
        """The ids, in the order in which they were added."""
        return self._contents.ids

    @property
    def titles(self) -> Sequence[str]:
        """The titles, in the order of `ids`."""
        return self._contents.titles

    @property
    def vectors(self) -> Vectors:
        """Unit vectors of the titles, (n, dim); do not change them."""
        return self._contents.vectors

    @property
    def dtype(self) -> str:
        """How the vectors are stored: float32, float16 or int8."""
        return self._contents.dtype

    @property
    def n_empty(self) -> int:
        """The number of titles without a word that the model knows.

        Only BM25 and the memory find them.
        """
        return len(self._contents.empty)

    @property
    def confidence(self) -> Confidence | None:
        """The fitted confidence; None if the index is not calibrated."""
        return self._confidence

    @confidence.setter
    def confidence(self, confidence: Confidence | None) -> None:
        self._confidence = confidence
        self._source = None

    @property
    def recipe(self) -> Recipe:
        """The weights of the parts of a score, and the parameters of BM25."""
        half = self.bm25
        if half is None:
            return Recipe(self.cosine_weight, memory=self.memory_weight)
        lists = half.lists
        # Without counts of its own, clicks count as part of the title, or there are none.
        click_weight = lists.click_weight if half.has_clicks else 0.0
        return Recipe(
            self.cosine_weight,
            half.weight,
            self.memory_weight,
            k1=lists.k1,
            b=lists.b,
            click_weight=click_weight,
            stem=stem_of(lists.words),
        )

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
        half = self.half()
        before = self._scoring()
        lists = half.lists
        same = lists.click_weight if click_weight is None else click_weight
        if (k1, b, same) != (lists.k1, lists.b, lists.click_weight):
            lists = lists.with_parameters(k1, b, click_weight)
        self.bm25 = Lexical(lists, checked_weight(weight), half.has_clicks)
        self._drop_calibration_unless(before)

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
        before = self._scoring()
        number("the weight of the cosine", cosine, 0, MAX_WEIGHT)
        if self.memory is not None:
            self.memory = self.memory.weighted(memory, self.model)
        elif memory:
            raise SentembError(
                "the index has no clicked queries; make it again with --bm25 --log LOG, or of a "
                "model with a ranker"
            )
        self.cosine_weight = float(cosine)
        self._drop_calibration_unless(before)

    def _drop_calibration_unless(self, before: dict[str, Any]) -> None:
        self._source = None
        if self._scoring() != before:
            self.confidence = None

    @property
    def memory_weight(self) -> float:
        """The weight of the memory of the log in the score; 0 without clicks."""
        return 0.0 if self.memory is None else self.memory.weight

    def half(self) -> Lexical:
        """BM25 over the titles; a `SentembError` if the index has none."""
        if self.bm25 is None:
            raise SentembError("the index has no BM25; make it again with --bm25 (bm25=True)")
        return self.bm25

    def _scoring(self) -> dict[str, Any]:
        """What decides the scores."""
        settings = None if self.bm25 is None else self.bm25.settings()
        found: dict[str, Any] = {"model": self.model_sha256, "bm25": settings}
        # Calibrations of earlier versions have neither.
        if self.cosine_weight != 1:
            found["cosine"] = self.cosine_weight
        if self.memory_weight:
            found["memory"] = self.memory_weight
        return found

    def place_of(self) -> Places:
        """The place of every id. It is made on first use: one pass over the ids."""
        if self._place_of is None:
            self._place_of = Places(self._contents.ids)
        return self._place_of

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
        known = self.place_of()
        for first in range(0, len(new), _IDS):
            some = new[first : first + _IDS]
            there = np.flatnonzero(known.of(some) >= 0)
            if there.size:
                raise SentembError(
                    f"the id {plain(some[there[0]])} is in the index already; remove it first, or "
                    "leave it out"
                )
        texts, new = checked(titles, new, self._scratch)
        workers, scratch = self._workers, self._scratch
        more = embedded(self.model, texts, new, self.dtype, on_progress, workers, scratch)
        self._set(extended(self._contents, more, scratch))
        if self.bm25 is not None:
            self.bm25.lists.add(texts)
        if self.memory is not None:
            lists = self.memory.lists.extended(len(new))
            self.memory = Memory(lists, self.memory.weight)

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
        wanted, kept = _as_ids(ids), np.ones(len(self), np.bool_)
        places = self.place_of().of(wanted)
        if (places < 0).any():
            unknown = wanted[int(np.argmax(places < 0))]
            raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
        kept[places] = False
        self._set(of_kept(self._contents, kept, self._scratch))
        if self.bm25 is not None:
            self.bm25.lists.remove(np.flatnonzero(~kept))
        if self.memory is not None:
            lists = self.memory.lists.without(np.flatnonzero(~kept))
            self.memory = Memory(lists, self.memory.weight)

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
        mask = None if only is None else self.mask_of(only)
        weights = self._weights(bm25_weight)
        confidence = self._confidence if weights == self._weights(None) else None
        if min_confidence is not None:
            share("min_confidence", min_confidence)
            if confidence is None:
                raise SentembError(
                    "the index is not calibrated for these weights; run `sentemb calibrate INDEX "
                    "DEV`"
                )
        found = self.find_weighted(texts, k, weights, mask)
        confidences = None
        if confidence is not None and found.places.size:
            # A query for which nothing is found has the score -inf; its confidence is not used.
            confidences = confidence(np.where(found.places[:, 0] >= 0, found.scores[:, 0], 0))
        hits: Rows[list[Hit]] = Rows()
        for q in range(len(texts)):
            sure = None if confidences is None else float(confidences[q])
            is_sure = min_confidence is None or (sure is not None and sure >= min_confidence)
            own = self._hits(found, q, sure, min_score, weights) if is_sure else []
            hits.append(Rows(own, caption=texts[q]))
        return hits[0] if isinstance(queries, str) else hits

    def _hits(
        self, found: Found, q: int, confidence: float | None, min_score: float | None, used: Weights
    ) -> list[Hit]:
        """What was found for one query."""
        hits: list[Hit] = []
        of_query = (one[q].tolist() for one in found)
        for place, score, cosine, lexical, remembered in zip(*of_query, strict=True):
            if place >= 0 and (min_score is None or score >= min_score):
                sure = None if hits else confidence
                own = lexical if used.bm25 else None
                memory = remembered if used.memory else None
                id, title = self.ids[place], self.titles[place]
                hits.append(Hit(id, title, score, cosine, own, sure, memory))
        return hits

    def _weights(self, bm25_weight: float | None) -> Weights:
        """The weights of a search."""
        if bm25_weight is None:
            of_bm25 = 0.0 if self.bm25 is None else self.bm25.weight
            return Weights(of_bm25, self.cosine_weight, self.memory_weight)
        weight = checked_weight(bm25_weight)
        if weight:
            self.half()
        return Weights(weight)

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
        known = self.place_of()
        unknown = next((id for id in ids if id not in known), None)
        if unknown is not None:
            raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
        (vector,) = self._embedded([as_text(query)])
        if self.memory is None or not self.memory.weight or not vector.any():
            return [None] * len(ids)
        return [self.memory.lists.nearest(vector, known[id]) for id in ids]

    def _embedded(self, queries: list[str]) -> np.ndarray:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a query without words finds nothing
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
        return self.find_weighted(queries, k, self._weights(bm25_weight), mask)

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
        whole("k", k, 0, 2**31 - 1)
        texts = as_texts(queries)
        vectors = self._embedded(texts)
        titles, workers = self._contents.vectors, self._workers
        if weights.bm25 or weights.memory or weights.cosine != 1:
            lists = self.half().lists if weights.bm25 else None
            memory = self.memory.lists if self.memory is not None and weights.memory else None
            found = best_sums(
                texts, vectors, titles, lists, weights, k, mask, self._findable, workers, memory
            )
            self._check_cosines(found.cosines)
            if memory is not None:
                self._check_cosines(found.memory, f"{MEMORY}/{MEMORY_VECTORS}")
            return found
        allowed = self._findable
        if mask is not None:
            allowed = mask if allowed is None else mask & allowed
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
        places, mask = self.place_of().of(_as_ids(ids)), np.zeros(len(self), np.bool_)
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
    check_exchangeable(place)
