"""An index: a model, titles with ids, and the vectors of the titles."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.data.text_array import Texts
from sentemb.errors import SentembError
from sentemb.models.files.model_files import fingerprint
from sentemb.models.files.saved_model import Stored
from sentemb.models.loading import face_of
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.retrieval.row_products import LONGEST
from sentemb.search.confidence import Confidence
from sentemb.search.contents import checked, embedded
from sentemb.search.id_slots import Places
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
from sentemb.search.ranking import engine
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.ranker import HybridRanker, Share, shares
from sentemb.search.ranking.recipe import COSINE, MEMORY, MODEL_ALONE, PARTS, Recipe
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
        The weighted sum of the parts; see `Index.recipe`.
    parts : dict of str to float
        What each part scores; see `sentemb.search.ranking.parts`.
    confidence : float or None
        How often such a score belongs to a clicked title; see `sentemb.search.confidence`. Only the
        first title of a query has one, and only if the index is calibrated.
    """

    id: str
    title: str
    score: float
    parts: dict[str, float]
    confidence: float | None

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return self._asdict()


class Changes(NamedTuple):
    """How many titles `Index.sync` added, changed and removed."""

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
        What embeds queries and new titles.
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
        other = Index(self._snapshot, self._threads, self._scratch)
        other._opened = self._opened
        return other

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
        named = [str(place) for place in range(len(titles))] if ids is None else ids
        texts, names = checked(titles, named, scratch)
        if ids is not None:
            # From now on a title may change without losing its clicks.
            ranker = ranker.with_ids(texts, names)
        with Workers(threads) as workers, opened_if(dask) as cluster:
            vectors = embedded(ranker.model, texts, dtype, on_progress, workers, scratch, cluster)
        return cls(
            Snapshot(ranker, names, ranker.catalogue(texts, names, vectors)), threads, scratch
        )

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
        is_own = opened is not None and path_of(path).resolve() == opened[0]
        with replacing_folder(path, listed_files(path)) as new:
            self._check_unchanged(path)
            write_contents(snapshot, new)
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
        return len(self._snapshot.ids)

    def __repr__(self) -> str:
        return f"Index({len(self):,} titles, {self.dtype}, {self.model})"

    def _repr_html_(self) -> str:
        """What it holds, for notebooks."""
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
        """What `calibrate` fitted to the scores; None before, and after a change of them."""
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

    def place_of(self) -> Places:
        """The place of every id. It is made on first use: one pass over the ids."""
        return self._snapshot.places

    def add(
        self,
        titles: Sequence[str],
        ids: Sequence[str],
        on_progress: Callable[[int, int], None] | None = None,
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

        Raises
        ------
        SentembError
            Nothing is added then: an id that is there already, or what `build` refuses.
        """
        new = ids if isinstance(ids, Texts) else as_texts(ids)
        with self._turn.lock:
            old = self._snapshot
            known = old.places
            for first in range(0, len(new), _IDS):
                some = new[first : first + _IDS]
                there = np.flatnonzero(known.of(some) >= 0)
                if there.size:
                    raise SentembError(
                        f"the id {plain(some[there[0]])} is in the index already; remove it first, "
                        "or leave it out"
                    )
            texts, new = checked(titles, new, self._scratch)
            self._snapshot = self._with(old, None, texts, new, on_progress)

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
            places = old.places.of(wanted)
            if (places < 0).any():
                unknown = wanted[int(np.argmax(places < 0))]
                raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
            kept = np.ones(len(old.ids), np.bool_)
            kept[places] = False
            self._snapshot = self._with(old, kept, None, None, None)

    def sync(
        self,
        titles: Sequence[str],
        ids: Sequence[str],
        on_progress: Callable[[int, int], None] | None = None,
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

        Returns
        -------
        Changes

        Raises
        ------
        SentembError
            Nothing is changed then: what `build` refuses.
        """
        texts, named = checked(titles, ids, self._scratch)
        with self._turn.lock:
            old = self._snapshot
            wanted = Places(named)
            kept = np.zeros(len(old.ids), np.bool_)
            is_same = np.zeros(len(named), np.bool_)
            n_changed = 0
            for first in range(0, len(old.ids), _IDS):
                some = slice(first, first + _IDS)
                places = wanted.of(old.ids[some])
                before = old.titles[some]
                for k, place in enumerate(places.tolist()):
                    if place >= 0:
                        kept[first + k] = is_same[place] = texts[place] == before[k]
                        n_changed += not kept[first + k]
            n_removed = int((~kept).sum()) - n_changed
            if kept.all() and is_same.all():
                return Changes(0, 0, 0)
            more = texts.take(~is_same, self._scratch), named.take(~is_same, self._scratch)
            self._snapshot = self._with(old, kept, *more, on_progress)
            return Changes(int((~is_same).sum()) - n_changed, n_changed, n_removed)

    def _with(
        self,
        old: Snapshot,
        kept: NDArray[np.bool_] | None,
        titles: Texts | None,
        ids: Texts | None,
        on_progress: Callable[[int, int], None] | None,
    ) -> Snapshot:
        """The titles of ``old`` where ``kept`` is true, all without it, then more of them."""
        scratch = self._scratch
        all_ids, all_titles, catalogue = old.ids, old.titles, old.catalogue
        if kept is not None:
            all_ids, all_titles = all_ids.take(kept, scratch), all_titles.take(kept, scratch)
            catalogue = catalogue.without(kept, all_titles)
        if titles is not None and ids is not None:
            vectors = embedded(self.model, titles, old.dtype, on_progress, self._workers, scratch)
            more = old.ranker.catalogue(titles, ids, vectors)
            all_ids, all_titles = all_ids.joined(ids, scratch), all_titles.joined(titles, scratch)
            catalogue = catalogue.joined(more, all_titles)
        return old.changed(ids=all_ids, catalogue=catalogue)

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
            query, it is below the floor, or another limit leaves every title out.

        Raises
        ------
        SentembError
            If ``queries`` is not a text or a list of texts, or k is not an integer of at least 0;
            for ``min_confidence`` without a calibration for these weights.
        """
        if min_score is not None:
            number("min_score", min_score, -np.inf)
        texts = [as_text(queries)] if isinstance(queries, str) else as_texts(queries)
        snapshot = self._snapshot
        mask = None if only is None else snapshot.mask_of(_as_ids(only))
        is_calibrated = snapshot.recipe(cosine) == snapshot.recipe(False)
        confidence = snapshot.confidence if is_calibrated else None
        if min_confidence is not None:
            share("min_confidence", min_confidence)
            if confidence is None:
                raise SentembError(
                    "the index is not calibrated for these weights; run `sentemb calibrate INDEX "
                    "DEV`"
                )
        found = self._ranked(snapshot, texts, k, mask, cosine)
        is_below = np.zeros(len(texts), np.bool_)
        if not (everything or cosine):
            is_below = snapshot.ranker.is_below_floor(texts, found)
        confidences = None
        if confidence is not None and found.places.size:
            # A query for which nothing is found has the score -inf; its confidence is not used.
            confidences = confidence(np.where(found.places[:, 0] >= 0, found.scores[:, 0], 0))
        n_titles = len(snapshot.ids) if mask is None else int(mask.sum())
        why_nothing = NOTHING_KNOWN if n_titles and k else NO_TITLES
        hits: Rows[list[Hit]] = Rows()
        for q in range(len(texts)):
            sure = None if confidences is None else float(confidences[q])
            reason = why_nothing if found.places[q, :1].max(initial=-1) < 0 else None
            if reason is None and is_below[q]:
                reason = BELOW_FLOOR
            elif reason is None and min_confidence is not None and (sure or 0) < min_confidence:
                reason = f"the confidence of the first title is below {min_confidence:g}"
            own = [] if reason else _hits(snapshot, found, q, sure, min_score)
            if not own and reason is None:
                reason = f"every score is below {min_score:g}"
            hits.append(Rows(own, caption=texts[q], reason=reason))
        return hits[0] if isinstance(queries, str) else hits

    def explain(self, query: str, ids: Sequence[str], cosine: bool = False) -> list[list[Share]]:
        """What each part adds to the scores of some titles.

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
        places = snapshot.places.of(as_texts(ids))
        if (places < 0).any():
            unknown = ids[int(np.argmax(places < 0))]
            raise SentembError(f"the id {plain(unknown)} is not in the index; leave it out")
        ranker, recipe = snapshot.ranker, snapshot.recipe(cosine)
        asked = ranker.asked([as_text(query)])
        queries = ranker.clicks.queries if recipe.weight(MEMORY) else ()
        return [
            shares(snapshot.catalogue, recipe, asked, place, queries, self._workers)
            for place in places.tolist()
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
        found = self.ranked(queries, k, mask)
        return found.places, found.scores

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
        whole("k", k, 0, 2**31 - 1)
        catalogue = snapshot.catalogue
        if mask is not None and mask.shape != (len(snapshot.ids),):
            raise SentembError(
                f"a mask of shape {mask.shape} is not of the {len(snapshot.ids):,} titles of the "
                "index; make it again"
            )
        found = engine.best(
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
            values = found.values.get(part)
            if values is not None and not (np.abs(values) <= LONGEST).all():
                file = part_file(part)
                name = file if self._opened is None else self._opened[0] / file
                raise damaged(name, "a vector is not of unit length")
        return found

    def mask_of(self, ids: Iterable[str]) -> NDArray[np.bool_]:
        """Which titles have one of ``ids``: (n,) bool. Unknown ids are ignored."""
        return self._snapshot.mask_of(_as_ids(ids))


def _hits(
    snapshot: Snapshot,
    found: Ranked,
    q: int,
    confidence: float | None,
    min_score: float | None,
) -> list[Hit]:
    hits: list[Hit] = []
    names = [name for name in PARTS if name in found.values]
    values = zip(*(found.values[name][q].tolist() for name in names), strict=True)
    rows = zip(found.places[q].tolist(), found.scores[q].tolist(), values, strict=True)
    for place, score, of_parts in rows:
        if place >= 0 and (min_score is None or score >= min_score):
            parts = dict(zip(names, of_parts, strict=True))
            id, title = snapshot.ids[place], snapshot.titles[place]
            hits.append(Hit(id, title, score, parts, None if hits else confidence))
    return hits


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
