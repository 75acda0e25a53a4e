"""Many texts as vectors, portion by portion: in this process, or by the workers of a cluster.

Either way the vectors of a portion have the same bits and come in the order of the texts, so
whoever writes or stores them need not know who computed them.
"""

from __future__ import annotations

import os
import pickle
import threading
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sentemb.distributed.cluster import Cluster
from sentemb.errors import SentembError
from sentemb.face import TextWarning
from sentemb.sentence_encoder import SentenceEncoder
from sentemb.storage.model_files import fingerprint
from sentemb.system.paths import AnyPath

if TYPE_CHECKING:
    from distributed import Future

# Texts that are encoded at a time: enough for all threads, and little is lost with a worker.
PORTION = 8192
# What a worker has loaded: the model of one fingerprint.
_loaded: dict[str, SentenceEncoder] = {}
_turn = threading.Lock()


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
    cluster: Cluster | None = None,
    path: AnyPath | None = None,
) -> Iterator[np.ndarray]:
    """The vectors of each portion of texts, in order.

    Parameters
    ----------
    encoder : SentenceEncoder
        The model.
    portions : iterable of list of str
        Few of them are in memory at a time.
    side : {"query", "document"}
        Which tower reads them.
    unit_length : bool
        Divide each vector by its length.
    cluster : Cluster, optional
        Its workers encode; without it this process does.
    path : path, optional
        The folder of the model. Workers that find the same model there read it themselves; to
        others it is sent once.

    Yields
    ------
    (k, dim) float
        With a `sentemb.face.TextWarning` for the portion if the model says nothing of some texts.

    Raises
    ------
    SentembError
        As `SentenceEncoder.encode`, and as `Cluster.results`.
    """
    if cluster is None:
        for some in portions:
            yield _vectors(encoder, some, side, unit_length)
        return
    source = _source(encoder, path, cluster)
    tasks = ((*source, some, side, unit_length) for some in portions)
    for vectors, told in cluster.in_order(_encode_there, tasks):
        for count, what in told:
            warnings.warn(TextWarning(count, len(vectors), what), stacklevel=2)
        yield vectors


def _vectors(
    encoder: SentenceEncoder, texts: list[str], side: str, unit_length: bool
) -> np.ndarray:
    return encoder.encode(texts, side, normalize_embeddings=unit_length, show_progress_bar=False)


def _source(
    encoder: SentenceEncoder, path: AnyPath | None, cluster: Cluster
) -> tuple[str, str | None, Future[Any] | None]:
    """Where workers take the model from: its fingerprint, and its folder or its bytes."""
    sha256 = fingerprint(encoder.saved())
    if path is not None:
        folder = os.path.abspath(path)
        if all(cluster.everywhere(_is_there, sha256, folder)):
            return sha256, folder, None
    return sha256, None, cluster.keep(pickle.dumps(encoder))


# -- on a worker --------------------------------------------------------------------------------


def _is_there(sha256: str, folder: str) -> bool:
    """Whether ``folder`` holds the model."""
    try:
        _model(sha256, folder, None)
    except SentembError:
        return False
    return True


def _model(sha256: str, folder: str | None, pickled: bytes | None) -> SentenceEncoder:
    """The model of a fingerprint, loaded once by each worker."""
    with _turn:
        if sha256 not in _loaded:
            if pickled is not None:
                encoder: SentenceEncoder = pickle.loads(pickled)
                model = SentenceEncoder.of(encoder.saved(), threads=1)
            else:
                assert folder is not None
                model = SentenceEncoder.from_pretrained(folder, threads=1)
                if fingerprint(model.saved()) != sha256:
                    raise SentembError(f"{folder}: holds another model; give each worker the same")
            _loaded.clear()  # one model at a time
            _loaded[sha256] = model
        return _loaded[sha256]


def _encode_there(
    sha256: str,
    folder: str | None,
    pickled: bytes | None,
    texts: list[str],
    side: str,
    unit_length: bool,
) -> tuple[np.ndarray, list[tuple[int, str]]]:
    """The vectors of some texts, and what there is to warn of: how many texts, and why."""
    model: Any = _model(sha256, folder, pickled)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", TextWarning)
        vectors = _vectors(model, texts, side, unit_length)
    messages = [one.message for one in caught]
    return vectors, [(one.count, one.what) for one in messages if isinstance(one, TextWarning)]
