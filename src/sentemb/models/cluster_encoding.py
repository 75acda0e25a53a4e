"""Many texts as vectors, portion by portion: in this process, or by the workers of a cluster.

Either way the vectors of a portion have the same bits and come in the order of the texts, so the
code that writes or stores them is the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from sentemb.models.face import TextWarning, keeping_text_warnings, warn
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.cluster import Cluster

# Texts that are encoded at a time: enough for all threads, and little is lost with a worker.
PORTION = 8192


def portions_of(texts: Sequence[str]) -> Iterator[list[str]]:
    """Cut ``texts`` into lists of at most `PORTION`."""
    for first in range(0, len(texts), PORTION):
        yield list(texts[first : first + PORTION])


def encoded(
    encoder: SentenceEncoder,
    portions: Iterable[list[str]],
    side: str,
    *,
    unit_length: bool = False,
    known_only: bool = False,
    cluster: Cluster | None = None,
) -> Iterator[np.ndarray]:
    """The vectors of each portion of texts, in order, (k, dim) float.

    ``side`` is "query" or "document"; few portions are in memory at a time. ``unit_length`` divides
    each vector by its length. With ``known_only`` a text in which the model knows no word has a
    zero vector and causes no warning, as in `SentenceEncoder.unit_vectors`. With a ``cluster`` its
    workers encode, and the model is sent to each of them once; otherwise this process does.

    A `sentemb.models.face.TextWarning` is issued for a portion if the model says nothing of some
    texts. Errors are those of `SentenceEncoder.encode` and `Cluster.result`.
    """
    if cluster is None:
        for texts in portions:
            yield _vectors(encoder, texts, side, unit_length, known_only)
        return
    model = cluster.keep(SentenceEncoder.of(encoder.saved(), threads=1))
    tasks = ((model, texts, side, unit_length, known_only) for texts in portions)
    for vectors, warnings in cluster.in_order(_encode_there, tasks):
        for count, what in warnings:
            warn(TextWarning(count, len(vectors), what), 3)
        yield vectors


def _vectors(
    encoder: SentenceEncoder, texts: list[str], side: str, unit_length: bool, known_only: bool
) -> np.ndarray:
    if known_only:
        return encoder.unit_vectors(texts, side)
    return encoder.encode(texts, side, normalize_embeddings=unit_length, show_progress_bar=False)


def _encode_there(
    model: SentenceEncoder, texts: list[str], side: str, unit_length: bool, known_only: bool
) -> tuple[np.ndarray, list[tuple[int, str]]]:
    """On a worker: the vectors of some texts, and its warnings: number of texts and reason."""
    with keeping_text_warnings() as text_warnings:
        vectors = _vectors(model, texts, side, unit_length, known_only)
    return vectors, [(warning.count, warning.what) for warning in text_warnings]
