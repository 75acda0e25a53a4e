"""Teachers: what lists the hard negatives of every query of a log before a training begins.

A pair model cannot look through all titles for each query: that takes one pass per pair. A model
with two towers can, and so can BM25. The titles that one of them ranks high and nobody clicked are
the hard negatives of a pair model.
"""

import hashlib
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.models.face import keeping_text_warnings
from sentemb.models.loading import load
from sentemb.models.sentence_encoder import SentenceEncoder
from sentemb.models.text_encoder import TextEncoder
from sentemb.retrieval.bm25 import K1, AskedWords, B, TitleWords
from sentemb.system.bounds import brief
from sentemb.system.parallel import Workers
from sentemb.system.paths import AnyPath
from sentemb.training.negatives.hard_negatives import lists_of_all, nearest_titles, part

BM25_TEACHER = "bm25"
# Texts between two calls of ``stopped`` while they are embedded.
_PORTION = 16_384


class Teacher(ABC):
    """Lists the unclicked titles that rank highest for every query of a log."""

    @staticmethod
    def of(teacher: AnyPath | TextEncoder, threads: int | None = None) -> "Teacher":
        """A teacher by its name, its folder, or the model itself.

        The word ``bm25`` is BM25, even if a folder has that name: write ``./bm25`` for the folder.
        ``threads`` are for a model that is read from a folder; by default all processors. Raises
        `SentembError` for anything else, a folder that cannot be read, or one with a model of
        another kind.
        """
        if isinstance(teacher, SentenceEncoder):
            return _TowersTeacher(teacher, "")
        if teacher == BM25_TEACHER:
            return _BM25Teacher()
        if not isinstance(teacher, str | os.PathLike):
            raise SentembError(
                f"teacher must be {BM25_TEACHER}, a model folder or a SentenceEncoder, not "
                f"{brief(teacher)}"
            )
        model: object = load(teacher, threads)
        if not isinstance(model, SentenceEncoder):
            raise SentembError(
                f"{teacher}: a pair model cannot look through all titles; give the folder of a "
                f"two-tower model, or {BM25_TEACHER}"
            )
        return _TowersTeacher(model, Path(teacher).resolve().name)

    @abstractmethod
    def record(self) -> dict[str, str]:
        """How a trained model records its teacher: ``name``, and ``sha256`` of what decides lists.

        The name is empty for a model in memory.
        """

    def lists(
        self,
        log: ClickLog,
        workers: Workers,
        stopped: Callable[[], bool],
        note: Callable[[str], None],
    ) -> NDArray[np.int32]:
        """The best unclicked titles of every query of ``log``, for any number of threads the same.

        ``stopped`` is asked before every portion of the texts. After a yes the other queries have
        no titles. ``note`` is called if there are queries without a single title.

        Returns (n_queries, HARD_AMONG), -1 where a query has fewer titles: a text that the teacher
        cannot read, or with BM25 too few titles that share a word with the query. BM25 lists the
        highest first, equal scores by the number of the title; the order of a model's list has no
        meaning.
        """
        lists = self._lists(log, workers, stopped)
        without = int(np.count_nonzero(lists.max(axis=1) < 0))
        if without and not stopped():
            note(f"{without:,} of {len(lists):,} queries get no hard negatives from the teacher")
        return lists

    @abstractmethod
    def _lists(
        self, log: ClickLog, workers: Workers, stopped: Callable[[], bool]
    ) -> NDArray[np.int32]: ...


class _BM25Teacher(Teacher):
    def record(self) -> dict[str, str]:
        parameters = f"{BM25_TEACHER} k1={K1} b={B}"
        return {"name": BM25_TEACHER, "sha256": hashlib.sha256(parameters.encode()).hexdigest()}

    def _lists(
        self, log: ClickLog, workers: Workers, stopped: Callable[[], bool]
    ) -> NDArray[np.int32]:
        by_words = TitleWords(log.titles)
        asked, clicked = by_words.look_up(log.queries), log.titles_of_queries()

        def fill(lists: NDArray[np.int32], first: int, end: int) -> None:
            asked_part = AskedWords(*part(asked, first, end))
            lists[:], _ = by_words.lists.best(
                asked_part, lists.shape[1], workers, part(clicked, first, end)
            )

        return lists_of_all(len(log.queries), fill, stopped)


class _TowersTeacher(Teacher):
    def __init__(self, model: SentenceEncoder, name: str) -> None:
        self._model, self._name = model, name

    def record(self) -> dict[str, str]:
        return {"name": self._name, "sha256": self._model.towers.fingerprint()}

    def _lists(
        self, log: ClickLog, workers: Workers, stopped: Callable[[], bool]
    ) -> NDArray[np.int32]:
        Uq = self._embeddings("query", log.queries, stopped)
        Ud = self._embeddings("document", log.titles, stopped)
        lists = nearest_titles(Uq, Ud, log.titles_of_queries(), workers, stopped)
        # Every cosine with a zero vector is 0: no title is nearer than another.
        lists[~Uq.any(axis=1)] = -1
        lists[np.isin(lists, np.flatnonzero(~Ud.any(axis=1)))] = -1
        return lists

    def _embeddings(
        self, side: str, texts: Sequence[str], stopped: Callable[[], bool]
    ) -> np.ndarray:
        """Normalised embeddings, (n_texts, dim); zeros from the portion at which it is stopped."""
        Y = np.zeros((len(texts), self._model.dim), self._model.dtype)
        with keeping_text_warnings():
            # `lists` notes how many queries get nothing.
            for first in range(0, len(texts), _PORTION):
                if stopped():
                    break
                portion = texts[first : first + _PORTION]
                Y[first : first + len(portion)] = self._model.encode(
                    portion, side=side, normalize_embeddings=True
                )
        return Y
