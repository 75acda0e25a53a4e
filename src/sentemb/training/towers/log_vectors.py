"""The vectors that a teacher has for the texts of a log: encoded once, before a training.

Encoding may take longer than the training, and the last bits of a vector depend on the machine and
on the texts next to it. So the vectors are kept with the checkpoints, a file for each portion of
the texts, and a training that is resumed reads them: it continues with the same bits.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.files.model_folder import is_model
from sentemb.models.files.tensor_files import Damaged, TensorFile, open_tensors, write_tensors
from sentemb.models.text_encoder import (
    TextEncoder,
    are_alike,
    called,
    checked_vectors,
    open_encoder,
    probe_of,
)
from sentemb.system.files import make_folder, status
from sentemb.system.growing import scratch_array
from sentemb.system.locks import locked
from sentemb.system.mapped_arrays import bytes_of
from sentemb.system.paths import AnyPath
from sentemb.training.batches.teacher_vectors import TeacherVectors
from sentemb.training.checkpoints import (
    is_started,
    remove_vectors,
    vectors_file,
)
from sentemb.training.negatives.teachers import BM25_TEACHER
from sentemb.training.progress import Reached
from sentemb.training.run import Run

# Texts of a file, and texts that are encoded at a time.
_PORTION, _TOGETHER = 16_384, 1024
_VECTORS, _PROBE = "vectors", "probe"


def embed_log(
    given: AnyPath | TextEncoder,
    queries: Sequence[str],
    titles: Sequence[str],
    share: float,
    run: Run,
) -> tuple[TeacherVectors, dict[str, Any]]:
    """The vectors that a teacher has for a log, and its record for the trained model.

    ``given`` is the teacher, see `open_encoder`, and ``share`` its share in the targets. Raises
    `SentembError` if it cannot be opened, gives no vectors, or is not the one with which a training
    that is resumed began.
    """
    if isinstance(given, str) and given == BM25_TEACHER:
        raise SentembError(
            f"{given} has no vectors that two towers could learn; give an embedding or a model "
            f"folder (./{given} for a folder of that name)"
        )
    name, encoder = open_encoder(given)
    output = None if run.output is None else Path(run.output)
    if output is not None and run.resume and is_model(output) and not is_started(output):
        output = None  # the training is over, and its record is all that is compared
    sides = [
        ("query", queries, encoder.encode_query),
        ("document", titles, encoder.encode_document),
    ]
    with contextlib.nullcontext() if output is None else locked(make_folder(output)):
        log = _LogVectors(name, probe_of(name, encoder), output, run, len(queries) + len(titles))
        both = [log.of(*side) for side in sides]
    digest = hashlib.sha256()
    for vectors in both:
        digest.update(bytes_of(vectors))
    named = Path(name).name if name and status(name) is not None else name
    record = {"name": named, "dim": log.dim, "sha256": digest.hexdigest()}
    return TeacherVectors(both[0], both[1], share), record


class _LogVectors:
    """Encodes the texts of a log, or reads what an earlier run has encoded in ``output``.

    ``probe`` is the vector by which the teacher ``name`` is known again.
    """

    def __init__(
        self, name: str, probe: NDArray[np.float32], output: Path | None, run: Run, n_texts: int
    ) -> None:
        self.dim = probe.size
        self._name, self._probe, self._output, self._run = name, probe, output, run
        self._reached, self._done = Reached("texts embedded", n_texts, run.note), 0
        if output is None:
            return
        if not run.resume:
            remove_vectors(output)
        elif is_started(output) and status(vectors_file(output, "query", 0)) is None:
            raise SentembError(
                f"{output}: was trained without a teacher (--teacher); leave it out, or start "
                "again with --force"
            )

    def of(
        self, side: str, texts: Sequence[str], encode: Callable[[list[str]], Any]
    ) -> NDArray[np.float32]:
        """The vectors of ``texts``, (n, dim)."""
        vectors = scratch_array((len(texts), self.dim), np.float32, self._run.scratch)
        for first in range(0, len(texts), _PORTION):
            portion = texts[first : first + _PORTION]
            rows = vectors[first : first + _PORTION]
            path = None
            if self._output is not None:
                path = vectors_file(self._output, side, first // _PORTION)
            if path is None or not self._read(path, portion, rows):
                self._encode(portion, encode, rows)
            if path is not None and status(path) is None:
                arrays = {_VECTORS: rows, _PROBE: self._probe}
                write_tensors(path, arrays, _described(portion))
            self._done += len(portion)
        return vectors

    def _encode(
        self, texts: Sequence[str], encode: Callable[[list[str]], Any], rows: NDArray[np.float32]
    ) -> None:
        for first in range(0, len(texts), _TOGETHER):
            portion = list(texts[first : first + _TOGETHER])
            vectors = checked_vectors(encode(portion), len(portion), self._name)
            if vectors.shape[1] != self.dim:
                raise SentembError(
                    f"the embedding {called(self._name)} has vectors of {self.dim} and of "
                    f"{vectors.shape[1]} numbers, which have no cosine; give another"
                )
            rows[first : first + len(portion)] = vectors
            self._reached(self._done + first + len(portion))

    def _read(self, path: Path, texts: Sequence[str], rows: NDArray[np.float32]) -> bool:
        """Set ``rows`` to the vectors that an earlier run has written; whether there are any."""
        if status(path) is None:
            return False
        try:
            with open_tensors(path) as file:
                self._check(file, texts)
                file.check()
                rows[:] = file[_VECTORS]
        except Damaged as error:
            self._run.note(f"{path} is damaged and computed again ({error})")
            path.unlink()
            return False
        return True

    def _check(self, file: TensorFile, texts: Sequence[str]) -> None:
        is_ours = file.shape(_PROBE) == self._probe.shape and are_alike(file[_PROBE], self._probe)
        if file.metadata != _described(texts) or not is_ours:
            raise SentembError(
                f"{file.path}: has vectors of another teacher or log; give the same, or start "
                "again with --force"
            )
        file.expect(_VECTORS, (len(texts), self.dim), np.float32)


def _described(texts: Sequence[str]) -> dict[str, str]:
    """The metadata of a file of vectors of ``texts``."""
    return {"texts": hashlib.sha256("\n".join(texts).encode()).hexdigest()}
