"""An index: a model, titles with ids, and the vectors of the titles."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.bounds import brief, number, plain, whole
from sentemb.data.lines import is_id
from sentemb.errors import SentembError
from sentemb.loading import face_of, load
from sentemb.models.int8_rows import Int8Rows
from sentemb.models.nearest import nearest
from sentemb.models.similarity import unit_rows
from sentemb.search.index_files import (
    DTYPES,
    MODEL,
    Contents,
    Vectors,
    damaged,
    is_index,
    open_contents,
    read_description,
    verify_contents,
    write_contents,
)
from sentemb.search.texts import Texts
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import fingerprint, save_model
from sentemb.storage.saved_model import Stored
from sentemb.system.files import names_in, path_of, status
from sentemb.system.locks import is_temporary
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.system.whole_folder import check_free, replacing_folder
from sentemb.text.checks import as_text, as_texts

# Titles that are encoded at a time.
_PORTION = 8192


class Hit(NamedTuple):
    """A title that was found.

    Attributes
    ----------
    id, title : str
    score : float
        The cosine of the query and the title.
    """

    id: str
    title: str
    score: float


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

    Attributes
    ----------
    model : SentenceEncoder
        What embeds queries and new titles.
    """

    def __init__(
        self,
        model: SentenceEncoder,
        contents: Contents,
        model_sha256: str,
        threads: int | None = None,
    ) -> None:
        self.model = model
        self.model_sha256 = model_sha256
        self._threads = threads
        self._workers = Workers(threads)
        # The folder that the index was opened from, and its description: none after a change.
        self._source: tuple[Path, str] | None = None
        self._set(contents)

    def _set(self, contents: Contents) -> None:
        self._contents = contents
        self._place_of: dict[str, int] | None = None
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
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        source = state.pop("source", None)
        if source is None:
            self.__init__(**state)  # type: ignore[misc]
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
        threads: int | None = None,
        on_progress: Callable[[int, int], None] | None = None,
    ) -> Index:
        """Embed titles.

        Parameters
        ----------
        model : SentenceEncoder
            A model with a vector per text; also what `SIF.fit` returns.
        titles : list of str
            Two may be equal. A title without words is kept, counted in `n_empty` and never found.
        ids : list of str, optional
            One per title, each once, without white space. By default "0", "1", "2", ...
        dtype : {"float32", "float16", "int8"}
            How the vectors are stored. float16 takes half the memory, int8 a quarter and less time
            per query; its scores are rounded.
        threads : int, optional
            For searching; by default all processors.
        on_progress : function, optional
            Called with the numbers of titles that are done and of all.

        Raises
        ------
        SentembError
            If the model has no vectors of texts, an id is repeated or has white space, or a title
            has a line end.
        """
        if not hasattr(model, "saved"):
            raise SentembError(f"a model is needed, not {type(model).__name__}")
        saved = model.saved()
        saved.towers()  # refuses a pair model
        encoder = model if isinstance(model, SentenceEncoder) else face_of(saved)
        assert isinstance(encoder, SentenceEncoder)
        if dtype not in DTYPES:
            raise SentembError(f"dtype is {brief(dtype)}; give {', '.join(DTYPES)}")
        named = [str(place) for place in range(len(titles))] if ids is None else ids
        contents = _encoded(encoder, titles, named, dtype, on_progress)
        return cls(encoder, contents, fingerprint(saved), threads)

    @classmethod
    def open(cls, path: AnyPath, threads: int | None = None) -> Index:
        """Open an index folder; titles and vectors are mapped into memory, not read.

        Sizes and shapes of all files are checked, and the model is read and checked as a whole.
        `verify` also checks the contents of the files that are mapped.

        Parameters
        ----------
        path : path
            A folder that `save` or ``sentemb index`` wrote.
        threads : int, optional
            By default all processors.

        Raises
        ------
        SentembError
            If the folder is not an index, is damaged, or was written by a newer version.
        """
        description = read_description(path)
        contents = open_contents(path, description)
        model = load(path_of(path) / MODEL, threads)
        if (
            not isinstance(model, SentenceEncoder)
            or model.dim != description.dim
            or fingerprint(model.saved()) != description.model_sha256
        ):
            raise damaged(path_of(path) / MODEL, "it is another model than that of the vectors")
        index = cls(model, contents, description.model_sha256, threads)
        index._source = path_of(path).resolve(), description.identity
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
            be written.
        """
        check_output(path, force)
        with replacing_folder(path) as new:
            write_contents(self._contents, self.model_sha256, new)
            save_model(self.model.saved(), new / MODEL)

    # -- contents -----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._contents.ids)

    def __repr__(self) -> str:
        return f"Index({len(self):,} titles, {self.dtype}, {self.model})"

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
        """The number of titles without words, which are never found."""
        return len(self._contents.empty)

    def place_of(self) -> dict[str, int]:
        """The place of every id. It is made on first use: one pass over the ids."""
        if self._place_of is None:
            self._place_of = {id: place for place, id in enumerate(self._contents.ids)}
        return self._place_of

    def add(self, titles: Sequence[str], ids: Sequence[str]) -> None:
        """Add titles at the end, with the model of the index; `save` writes them.

        Parameters
        ----------
        titles : list of str
            The new titles.
        ids : list of str
            One per title; none of them is in the index.

        Raises
        ------
        SentembError
            Nothing is added then: an id that is there already, or what `build` refuses.
        """
        new = as_texts(ids)
        known = self.place_of()
        twice = next((id for id in new if id in known), None)
        if twice is not None:
            raise SentembError(
                f"the id {plain(twice)} is in the index already; remove it first, or leave it out"
            )
        old, more = self._contents, _encoded(self.model, titles, new, self.dtype, None)
        self._set(
            Contents(
                old.ids.joined(more.ids),
                old.titles.joined(more.titles),
                _joined(old.vectors, more.vectors),
                np.concatenate([old.empty, more.empty + len(old.ids)]),
            )
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
        known, kept = self.place_of(), np.ones(len(self), np.bool_)
        for id in as_texts(ids):
            if id not in known:
                raise SentembError(f"the id {plain(id)} is not in the index; leave it out")
            kept[known[id]] = False
        old, places = self._contents, np.flatnonzero(kept)
        vectors = old.vectors
        rows = vectors.rows(places) if isinstance(vectors, Int8Rows) else vectors[places]
        empty = np.searchsorted(places, old.empty[kept[old.empty]])
        self._set(Contents(old.ids.take(places), old.titles.take(places), rows, empty))

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
    ) -> list[Hit]: ...
    @overload
    def search(
        self,
        queries: Sequence[str],
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        min_score: float | None = None,
    ) -> list[list[Hit]]: ...
    def search(
        self,
        queries: str | Sequence[str],
        k: int = 10,
        *,
        only: Iterable[str] | None = None,
        min_score: float | None = None,
    ) -> list[Hit] | list[list[Hit]]:
        """The titles with the highest cosines.

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

        Returns
        -------
        list of Hit, or a list of them for each query
            Best first, equal scores in the order of the titles. Empty for a query without words.

        Raises
        ------
        SentembError
            If ``queries`` is not a text or a list of texts, or k is not an integer of at least 0.
        """
        if min_score is not None:
            number("min_score", min_score, -np.inf)
        texts = [as_text(queries)] if isinstance(queries, str) else as_texts(queries)
        mask = None if only is None else self.mask_of(only)
        places, scores = self.find(texts, k, mask)
        if min_score is not None:
            places = np.where(scores >= min_score, places, -1)
        found = [
            [
                Hit(self.ids[place], self.titles[place], score)
                for place, score in zip(some, each, strict=True)
                if place >= 0
            ]
            for some, each in zip(places.tolist(), scores.tolist(), strict=True)
        ]
        return found[0] if isinstance(queries, str) else found

    def find(
        self, queries: Sequence[str], k: int, mask: NDArray[np.bool_] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The places and cosines of the best titles; see `sentemb.protocols.Retriever`.

        Parameters
        ----------
        queries : list of str
            The queries.
        k : int
            Titles per query.
        mask : (n,) bool, optional
            The titles that may be found.
        """
        whole("k", k, 0, 2**31 - 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a query without words finds nothing
            vectors = unit_rows(self.model.encode_query(as_texts(queries)))
        allowed = self._findable
        if mask is not None:
            allowed = mask if allowed is None else mask & allowed
        places, scores = nearest(vectors, self._contents.vectors, k, allowed, self._workers)
        without_words = ~vectors.any(axis=1)
        places[without_words], scores[without_words] = -1, -np.inf
        return places, scores

    def mask_of(self, ids: Iterable[str]) -> NDArray[np.bool_]:
        """Which titles have one of ``ids``: (n,) bool. Unknown ids are ignored."""
        known, mask = self.place_of(), np.zeros(len(self), np.bool_)
        mask[[known[id] for id in as_texts(ids) if id in known]] = True
        return mask


def check_output(path: AnyPath, force: bool) -> None:
    """Refuse a folder that `Index.save` would refuse, before any work."""
    place = path_of(path)
    if not str(path):
        raise SentembError("the name of the index folder is empty; give one")
    check_free(path, force)
    names = [name for name in names_in(path) if not is_temporary(name)] if status(place) else []
    if names and not is_index(place):
        raise SentembError(f"{path}: holds other files than an index; name a new or empty folder")


def _encoded(
    encoder: SentenceEncoder,
    titles: Sequence[str],
    ids: Sequence[str],
    dtype: str,
    on_progress: Callable[[int, int], None] | None,
) -> Contents:
    """Titles and ids, checked, with the vectors of the titles."""
    texts, named = as_texts(titles), as_texts(ids)
    if len(texts) != len(named):
        raise SentembError(f"{len(texts):,} titles and {len(named):,} ids; give one id per title")
    _check(texts, named)
    n, dim = len(texts), encoder.dim
    vectors: Vectors
    if dtype == "int8":
        vectors = Int8Rows(np.empty((n, dim), np.int8), np.empty(n, np.float32))
    else:
        vectors = np.empty((n, dim), dtype)
    empty = [np.empty(0, np.int64)]
    for first in range(0, n, _PORTION):
        some = slice(first, min(first + _PORTION, n))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # titles without words are counted
            rows = unit_rows(encoder.encode_document(texts[some]))
        empty.append(first + np.flatnonzero(~rows.any(axis=1)))
        if isinstance(vectors, Int8Rows):
            coded = Int8Rows.of(rows)
            vectors.codes[some], vectors.scales[some] = coded.codes, coded.scales
        else:
            vectors[some] = rows
        if on_progress is not None:
            on_progress(some.stop, n)
    return Contents(Texts.of(named), Texts.of(texts), vectors, np.concatenate(empty))


def _check(titles: list[str], ids: list[str]) -> None:
    """Raise a `SentembError` for an id or a title that could not be stored."""
    place_of: dict[str, int] = {}
    for place, id in enumerate(ids):
        if not is_id(id):
            raise SentembError(
                f"id {place} is {brief(id)}; give ids that are not empty and have no white space"
            )
        if place_of.setdefault(id, place) != place:
            raise SentembError(
                f"titles {place_of[id]:,} and {place:,} have the same id, {plain(id)}; give each "
                "its own"
            )
    for place, (id, title) in enumerate(zip(ids, titles, strict=True)):
        if "\n" in title or "\0" in title:
            raise SentembError(
                f"title {place:,} has a line end or a NUL character: {brief(title)}; replace it by "
                "a space"
            )
        try:
            (id + title).encode()
        except UnicodeEncodeError:
            raise SentembError(
                f"title {place:,} or its id is not valid Unicode: {brief(title)}; correct it"
            ) from None


def _joined(old: Vectors, new: Vectors) -> Vectors:
    if isinstance(old, Int8Rows) and isinstance(new, Int8Rows):
        return Int8Rows(
            np.concatenate([old.codes, new.codes]), np.concatenate([old.scales, new.scales])
        )
    return np.concatenate([old, new])
