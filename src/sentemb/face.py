"""What the public faces of both kinds of models share: storage, threads, copies and ranking."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from sentemb.errors import naming
from sentemb.models.ranking import best_titles
from sentemb.models.word_memory import WordMemory
from sentemb.models.word_reader import WordReader
from sentemb.protocols import Arrays
from sentemb.storage.model_files import load_model, save_model
from sentemb.storage.saved_model import SavedModel
from sentemb.system.html_tables import html_table
from sentemb.system.parallel import Workers, renew_after_fork
from sentemb.system.paths import AnyPath
from sentemb.text.checks import as_texts


class Face(ABC):
    """Base of `SentenceEncoder` and `PairScorer`, which hold a model and compute with it.

    Parameters
    ----------
    training : dict or None
        How the model was trained, for the model card.
    history : list of dict
        One entry per epoch of the training.
    threads : int or None
        None for all processors.
    """

    def __init__(
        self,
        training: dict[str, Any] | None,
        history: Iterable[dict[str, Any]],
        threads: int | None,
    ) -> None:
        self.training = dict(training or {})
        self.history = list(history)
        self._threads = threads
        self._workers = Workers(threads)
        self._memories: dict[str, WordMemory] = {}
        self._may_remember = True
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Replace the lock, after a fork: in the child the old one may never be released."""
        # Several threads may use one model; they take turns with the word memories.
        self._turn = threading.Lock()

    @abstractmethod
    def _parts(self) -> dict[str, Any]:
        """The arguments of ``__init__`` that are the model itself."""

    @abstractmethod
    def _facts(self) -> list[tuple[str, object]]:
        """The model's settings and sizes, for notebooks."""

    def __getstate__(self) -> dict[str, Any]:
        run = {"training": self.training, "history": self.history, "threads": self._threads}
        return {**self._parts(), **run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The state holds the arguments of __init__; a subclass with others has its own state.
        self.__init__(**state)  # type: ignore[misc]

    def _repr_html_(self) -> str:
        """The model's settings and sizes, for notebooks."""
        rows = self._facts()
        if self.history:
            rows.append(("epochs of training", len(self.history)))
        return html_table(rows)

    # -- storage ------------------------------------------------------------------------------

    @classmethod
    def from_pretrained(cls, path: AnyPath, threads: int | None = None) -> Self:
        """Read a model folder; docs/formats.md describes its files.

        Parameters
        ----------
        path : path
            A model folder.
        threads : int, optional
            By default all processors.

        Raises
        ------
        SentembError
            If the folder is not a model of this kind, is damaged, or was written by a newer
            version.
        """
        saved = load_model(path)
        with naming(path):
            return cls.of(saved, threads)

    def save_pretrained(self, path: AnyPath, force: bool = False) -> None:
        """Write a model folder, all of it or nothing.

        Parameters
        ----------
        path : path
            The folder to write; it is made if it is missing.
        force : bool
            Replace a model that is there.

        Raises
        ------
        SentembError
            If the folder holds something else, holds a model and ``force`` is not set, or cannot be
            written.
        """
        save_model(self.saved(), path, force)

    @classmethod
    @abstractmethod
    def of(cls, saved: SavedModel, threads: int | None = None) -> Self:
        """The model from what a model folder holds; the inverse of `saved`."""

    @abstractmethod
    def saved(self) -> SavedModel:
        """What `save_pretrained` writes: the model, how it was trained, and the history."""

    def astype(self, dtype: str | type | np.dtype) -> Self:
        """A copy of the model in ``"float32"`` or ``"float64"``."""
        saved = self.saved()
        return self.of(replace(saved, model=saved.model.astype(dtype)), self._threads)

    # -- words and scores ---------------------------------------------------------------------

    def _memory(self, name: str, reader: WordReader, weights: Arrays) -> WordMemory:
        """The memory of projected words ``name``: kept, or a new one where weights may change."""
        vocabulary = self.saved().model.vocabulary
        if not self._may_remember:
            return WordMemory(reader, vocabulary, weights)
        if name not in self._memories:
            self._memories[name] = WordMemory(reader, vocabulary, weights)
        return self._memories[name]

    @abstractmethod
    def score(self, query: str, title: Any) -> Any:
        """The score of a query and a title, or of a query and each of several titles."""

    def rank(
        self, query: str, titles: Sequence[str], top_k: int | None = None
    ) -> list[tuple[int, float]]:
        """The best titles for a query.

        Parameters
        ----------
        query : str
            One query.
        titles : list of str
            The titles to rank.
        top_k : int, optional
            How many to return; by default all.

        Returns
        -------
        list of (int, float)
            Index in ``titles`` and score, best first, equal scores in the order given.
        """
        return best_titles(lambda some: self.score(query, some), as_texts(titles), top_k)
