"""Many texts as vectors, portion by portion: in this process, or by the workers of a cluster.

Either way the vectors of a portion have the same bits and come in the order of the texts, so the
code that writes or stores them is the same.
"""

from __future__ import annotations

import os
import pickle
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sentemb.errors import SentembError
from sentemb.models.face import TextWarning, keeping_text_warnings, warn
from sentemb.models.files.model_files import fingerprint
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.system.cluster import Cluster, Task
from sentemb.system.paths import AnyPath

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
    known_only: bool = False,
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
    known_only : bool
        As `SentenceEncoder.unit_vectors`: also zero where the model knows no word, and no warning.
    cluster : Cluster, optional
        Its workers encode; without it this process does.
    path : path, optional
        The folder of the model. Workers that find the same model there read it themselves; to
        others it is sent once.

    Yields
    ------
    (k, dim) float
        With a `sentemb.models.face.TextWarning` for the portion if the model says nothing of some
        texts.

    Raises
    ------
    SentembError
        As `SentenceEncoder.encode`, and as `Cluster.results`.
    """
    if cluster is None:
        for some in portions:
            yield _vectors(encoder, some, side, unit_length, known_only)
        return
    source = _Source.of(encoder, path, cluster)
    under_way: deque[list[str]] = deque()

    def tasks() -> Iterator[tuple[Any, ...]]:
        for some in portions:
            under_way.append(some)
            yield source.sha256, source.folder, source.pickled, some, side, unit_length, known_only

    for there in cluster.in_order(_encode_there, tasks()):
        some, found = under_way.popleft(), there
        if found is None:  # by a worker that came later and does not find the model
            source.send(encoder, cluster)
            how = side, unit_length, known_only
            arguments = source.sha256, None, source.pickled, some, *how
            (found,) = cluster.results([cluster.submit(_encode_there, *arguments)])
        vectors, told = found
        for count, what in told:
            warn(TextWarning(count, len(vectors), what), 3)
        yield vectors


def _vectors(
    encoder: SentenceEncoder, texts: list[str], side: str, unit_length: bool, known_only: bool
) -> np.ndarray:
    if known_only:
        return encoder.unit_vectors(texts, side)
    return encoder.encode(texts, side, normalize_embeddings=unit_length, show_progress_bar=False)


@dataclass(eq=False)
class _Source:
    """Where workers take the model from: its folder, or its bytes.

    Attributes
    ----------
    sha256 : str
        The fingerprint of the model.
    folder : str or None
        A folder in which every worker found it at the beginning.
    pickled : Task or None
        The model itself, once it is sent.
    """

    sha256: str
    folder: str | None = None
    pickled: Task | None = None

    @classmethod
    def of(cls, encoder: SentenceEncoder, path: AnyPath | None, cluster: Cluster) -> _Source:
        source = cls(fingerprint(encoder.saved()))
        folder = None if path is None else os.path.abspath(path)
        if folder is not None and all(cluster.everywhere(_is_there, source.sha256, folder)):
            source.folder = folder
        else:
            source.send(encoder, cluster)
        return source

    def send(self, encoder: SentenceEncoder, cluster: Cluster) -> None:
        """Send the model, once, for all portions from now on."""
        self.folder = None
        if self.pickled is None:
            self.pickled = cluster.keep(pickle.dumps(encoder))


# -- on a worker --------------------------------------------------------------------------------


def _is_there(sha256: str, folder: str) -> bool:
    """Whether this worker has loaded the model, or finds it in ``folder``."""
    return _model(sha256, folder, None) is not None


def _model(sha256: str, folder: str | None, pickled: bytes | None) -> SentenceEncoder | None:
    """The model of a fingerprint, loaded once by each worker; None if it is not in ``folder``."""
    with _turn:
        if sha256 not in _loaded:
            if pickled is not None:
                encoder: SentenceEncoder = pickle.loads(pickled)
                model = SentenceEncoder.of(encoder.saved(), threads=1)
            else:
                try:
                    model = SentenceEncoder.from_pretrained(folder or "", threads=1)
                except SentembError:
                    return None
                if fingerprint(model.saved()) != sha256:
                    return None
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
    known_only: bool,
) -> tuple[np.ndarray, list[tuple[int, str]]] | None:
    """The vectors of some texts, and what to warn of: how many texts, and why.

    None if this worker has no model.
    """
    model = _model(sha256, folder, pickled)
    if model is None:
        return None
    with keeping_text_warnings() as kept:
        vectors = _vectors(model, texts, side, unit_length, known_only)
    return vectors, [(one.count, one.what) for one in kept]
