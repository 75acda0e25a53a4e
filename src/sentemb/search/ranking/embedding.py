"""An embedding that the model knows nothing of, as a part of a ranking.

It is a model of sentence-transformers, an ONNX file with its tokeniser, or any object that turns
queries and titles into vectors. Vectors are scaled to unit length; a text without words is zero.
Queries are encoded one at a time: in a batch the last bits depend on the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.text_encoder import (
    TextEncoder,
    are_alike,
    called,
    checked_vectors,
    open_encoder,
    open_named,
    probe_of,
)
from sentemb.retrieval.int8_rows import Int8Rows
from sentemb.system.parallel import Turn
from sentemb.system.paths import AnyPath
from sentemb.text.words import plain_words

# Titles that are encoded at a time, and vectors of queries that are kept, so that the fit, which
# asks them many times, and queries that are typed again cost nothing.
_TITLES, _KEPT = 1024, 10_000


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
        name, encoder = open_encoder(given)
        return cls(name, probe_of(name, encoder), encoder)

    def __reduce__(self) -> tuple[Any, ...]:
        # One with a name is opened again.
        return Embedding, (self.name, self.probe, None if self.name else self._encoder)

    @property
    def dim(self) -> int:
        """Numbers of a vector."""
        return int(self.probe.size)

    def is_like(self, second: Embedding | None) -> bool:
        """Whether both have the same vectors, as far as one query says."""
        return second is not None and are_alike(self.probe, second.probe)

    def use(self, given: AnyPath | TextEncoder) -> None:
        """Take the embedding from another place, or from an object; it must be the same one."""
        embedding = Embedding.of(given)
        self._take(embedding.open(), embedding.name)

    def _take(self, encoder: TextEncoder, name: str) -> None:
        if not are_alike(self.probe, probe_of(name, encoder)):
            raise SentembError(
                f"the embedding {called(name)} is not the one that the ranker was "
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
                self._take(open_named(self.name, may_download=False), self.name)
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
            vector = checked_vectors(self.open().encode_query([text]), 1, self.name)[0]
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
                coded = Int8Rows.of(checked_vectors(vectors, there.size, self.name))
                rows.codes[low + there], rows.scales[low + there] = coded.codes, coded.scales
            if on_progress is not None:
                on_progress(low + len(portion), len(texts))
        self.know(texts, rows)
        return rows

    def know(self, titles: Sequence[str], rows: Int8Rows) -> None:
        """Keep the vectors of titles that are known already."""
        self._known = titles, rows
