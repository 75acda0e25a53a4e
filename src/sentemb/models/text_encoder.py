"""An embedding that others have trained: how it is named, opened and checked.

It is a model of sentence-transformers, an ONNX file with its tokeniser, a model of ours, or any
object that turns queries and titles into vectors. A ranking adds its cosine, a training learns it.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.face import keeping_text_warnings
from sentemb.models.files.model_folder import is_ours
from sentemb.retrieval.similarity import unit_rows
from sentemb.system.bounds import brief
from sentemb.system.extras import package
from sentemb.system.files import status
from sentemb.system.paths import AnyPath

_ONNX = ".onnx"
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


def open_encoder(given: AnyPath | TextEncoder) -> tuple[str, TextEncoder]:
    """The name of an embedding, "" for an object, and the embedding itself.

    A name that ends in ``.onnx`` is a file with ``tokenizer.json`` next to it or one folder above;
    a folder may have a model of ours; any other is a folder or a name for sentence-transformers.
    Raises `SentembError` for what cannot
    be opened, a package that is missing, or an object without vectors.
    """
    if isinstance(given, str | os.PathLike) and os.fspath(given):
        # A folder must be found again from wherever somebody searches.
        name = os.path.abspath(given) if status(given) is not None else os.fspath(given)
        return name, open_named(name, may_download=True)
    if isinstance(given, TextEncoder):
        return "", given
    raise SentembError(
        f"{brief(given)} is not an embedding; give a name, or an object with encode_query and "
        "encode_document"
    )


def open_named(name: str, may_download: bool) -> TextEncoder:
    """The embedding with this name; sentence-transformers may download what is not there.

    Raises `SentembError` if it, or its package, is missing.
    """
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
    if is_ours(Path(name)):
        from sentemb.models.loading import load

        model: object = load(name)
        if not isinstance(model, TextEncoder):
            raise SentembError(f"{name}: a pair model has no vectors; give a two-tower model")
        return model
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


def checked_vectors(vectors: Any, n: int, name: str) -> NDArray[np.float32]:
    """The unit vectors of ``n`` texts by the embedding ``name``, (n, dim).

    Raises `SentembError` if they are anything else, or not finite.
    """
    try:
        rows = np.asarray(vectors, np.float32)
    except ValueError:  # rows of several lengths
        rows = np.empty(0, np.float32)
    if rows.ndim != 2 or len(rows) != n or not np.isfinite(rows).all():
        raise SentembError(
            f"the embedding {called(name)} must give a finite vector for each text, not an array "
            f"of the shape {rows.shape}"
        )
    return unit_rows(rows)


def probe_of(name: str, encoder: TextEncoder) -> NDArray[np.float32]:
    """The unit vector of one query, (dim,), by which an embedding is known again."""
    with keeping_text_warnings():  # a model of ours may not know its words
        return checked_vectors(encoder.encode_query([_PROBE]), 1, name)[0]


def are_alike(probe: NDArray[np.float32], second: NDArray[np.float32]) -> bool:
    """Whether two probes are those of one embedding, as far as they say."""
    return bool(probe.size == second.size and np.linalg.norm(probe - second) <= _ROUNDED)


def called(name: str) -> str:
    """The name of an embedding in a message."""
    return name or "that is given"
