"""An embedding that the model knows nothing of, as a part of a ranking.

It is a model of sentence-transformers, an ONNX file with its tokeniser, or any object that turns
queries and titles into vectors. Vectors are scaled to unit length; a text without words is zero.
Queries are encoded one at a time: in a batch the last bits depend on the others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.bounds import brief
from sentemb.system.extras import package
from sentemb.system.files import status
from sentemb.system.parallel import Turn
from sentemb.system.paths import AnyPath
from sentemb.text.words import plain_words

_ONNX = ".onnx"
# Titles that are encoded at a time, and vectors of queries that are kept, so that the fit, which
# asks them many times, and queries that are typed again cost nothing.
_TITLES, _KEPT = 1024, 10_000
# A query by whose vector an embedding is known again, and the longest difference of the two: other
# machines and a 16-bit copy round, another model is far away.
_PROBE, _ROUNDED = "cheap hotel in paris", 0.1


@runtime_checkable
class TextEncoder(Protocol):
    """Anything that has vectors for queries and titles, as sentence-transformers has."""

    def encode_query(self, texts: list[str]) -> Any:
        """Vectors of queries: an array-like of shape (n, dim)."""
        ...

    def encode_document(self, texts: list[str]) -> Any:
        """Vectors of titles: an array-like of shape (n, dim)."""
        ...


class Embedding:
    """An embedding, opened when its first vector is needed.

    Parameters
    ----------
    name : str
        The name that `of` opens; "" for an object, which has to be given again.
    probe : (dim,) float32
        The unit vector of one query, or zeros, by which the embedding is known again.
    encoder : TextEncoder, optional
        The embedding itself, if it is open.
    """

    def __init__(
        self, name: str, probe: NDArray[np.float32], encoder: TextEncoder | None = None
    ) -> None:
        self.name, self.probe, self._encoder = name, probe, encoder
        self._turn = Turn()
        self._queries: dict[str, NDArray[np.float32]] = {}
        self._known: tuple[Sequence[str], Int8Rows] | None = None

    @classmethod
    def of(cls, given: AnyPath | TextEncoder) -> Embedding:
        """An embedding by its name, or an object.

        A name that ends in ``.onnx`` is a file with ``tokenizer.json`` next to it or one folder
        above; any other is a folder or a name for sentence-transformers. Raises `SentembError` for
        what cannot be opened, a package that is missing, or an object without vectors.
        """
        name = ""
        if isinstance(given, str | os.PathLike) and os.fspath(given):
            # A folder must be found again from wherever somebody searches.
            name = os.path.abspath(given) if status(given) is not None else os.fspath(given)
            encoder = _opened(name, may_download=True)
        elif isinstance(given, TextEncoder):
            encoder = given
        else:
            raise SentembError(
                f"embedding is {brief(given)}; give a name, or an object with encode_query and "
                "encode_document"
            )
        return cls(name, _checked(encoder.encode_query([_PROBE]), 1, name)[0], encoder)

    def __reduce__(self) -> tuple[Any, ...]:
        # One with a name is opened again.
        return Embedding, (self.name, self.probe, None if self.name else self._encoder)

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self.probe.size)

    def is_like(self, second: Embedding | None) -> bool:
        """Whether both have the same vectors, as far as one query says."""
        if second is None or self.dim != second.dim:
            return False
        return float(np.linalg.norm(self.probe - second.probe)) <= _ROUNDED

    def use(self, given: AnyPath | TextEncoder) -> None:
        """Take the embedding from another place, or from an object; it must be the same one."""
        embedding = Embedding.of(given)
        self._take(embedding.open(), embedding.name)

    def _take(self, encoder: TextEncoder, name: str) -> None:
        probe = _checked(encoder.encode_query([_PROBE]), 1, name)[0]
        if not self.is_like(Embedding(name, probe)):
            raise SentembError(
                f"the embedding {name or 'that is given'} is not the one that the ranker was "
                "fitted with; give that one, or run `sentemb tune` again"
            )
        self._encoder = encoder

    def open(self) -> TextEncoder:
        """The embedding itself; a `SentembError` if it, or its package, is missing."""
        with self._turn.lock:
            if self._encoder is None:
                if not self.name:
                    raise SentembError(
                        "the ranker has a part by an embedding that was an object in Python; give "
                        "it again with ranker.embedding.use(object)"
                    )
                # A folder that somebody else has made must not fetch anything.
                self._take(_opened(self.name, may_download=False), self.name)
            assert self._encoder is not None
            return self._encoder

    def queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The unit vectors of queries, (n, dim)."""
        rows = np.zeros((len(texts), self.dim), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._of_query(text)
        return rows

    def _of_query(self, text: str) -> NDArray[np.float32] | float:
        """The vector of one query; 0 for one without words."""
        vector = self._queries.get(text)
        if vector is None and plain_words(text):
            vector = _checked(self.open().encode_query([text]), 1, self.name)[0]
            if len(self._queries) >= _KEPT:
                self._queries.clear()
            self._queries[text] = vector
        return 0.0 if vector is None else vector

    def titles(
        self, texts: Sequence[str], on_progress: Callable[[int, int], None] | None = None
    ) -> Int8Rows:
        """The unit vectors of titles as 8-bit integers; those of the last titles are kept.

        ``on_progress`` is called with the numbers of titles that are done and of all.
        """
        known = self._known
        if known is not None and list(known[0]) == list(texts):
            return known[1]
        codes = np.zeros((len(texts), self.dim), np.int8)
        rows = Int8Rows(codes, np.zeros(len(texts), np.float32))
        for low in range(0, len(texts), _TITLES):
            portion = list(texts[low : low + _TITLES])
            there = np.flatnonzero([bool(plain_words(text)) for text in portion])
            if there.size:
                vectors = self.open().encode_document([portion[n] for n in there.tolist()])
                coded = Int8Rows.of(_checked(vectors, there.size, self.name))
                rows.codes[low + there], rows.scales[low + there] = coded.codes, coded.scales
            if on_progress is not None:
                on_progress(low + len(portion), len(texts))
        self.know(texts, rows)
        return rows

    def know(self, titles: Sequence[str], rows: Int8Rows) -> None:
        """Keep the vectors of titles that are known already."""
        self._known = titles, rows


def _opened(name: str, may_download: bool) -> TextEncoder:
    """The embedding with this name; sentence-transformers may download what is not there."""
    if os.path.isabs(name) and status(name) is None:
        what = "not found; check the path"
        if not may_download:  # it is that of a ranker
            what = (
                "the embedding of the ranker is missing; put it back, or run `sentemb tune` "
                "without it or with another one"
            )
        raise SentembError(f"{name}: {what}")
    if name.endswith(_ONNX):
        from sentemb.models.onnx_embedding import OnnxEmbedding

        return OnnxEmbedding(Path(name))
    transformers = package(
        "sentence_transformers", "sentence-transformers", f"the embedding {name}"
    )
    try:
        is_local = not may_download
        opened: TextEncoder = transformers.SentenceTransformer(name, local_files_only=is_local)
    except Exception as error:  # of many packages
        why = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise SentembError(f"{name}: sentence-transformers cannot open it: {why}") from error
    return opened


def _checked(vectors: Any, n: int, name: str) -> NDArray[np.float32]:
    rows = np.asarray(vectors, np.float32)
    if rows.ndim != 2 or len(rows) != n or not np.isfinite(rows).all():
        raise SentembError(
            f"the embedding {name or 'that is given'} must give a finite vector for each text, not "
            f"an array of the shape {rows.shape}"
        )
    return unit_rows(rows)
