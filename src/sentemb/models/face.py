"""The methods that both kinds of models share: storage, threads, copies and ranking."""

from __future__ import annotations

import contextlib
import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import naming
from sentemb.models.files.model_files import load_model, save_model
from sentemb.models.files.saved_model import SavedModel
from sentemb.retrieval.best_titles import how_many
from sentemb.system.html_tables import facts_table
from sentemb.system.parallel import Workers, renew_after_fork
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_texts

if TYPE_CHECKING:
    from sentemb.models.pairs.pair_model import PairModel
    from sentemb.models.towers.encoder import Encoder
    from sentemb.system.contracts import Arrays
    from sentemb.text.vocabulary import Vocabulary

T = TypeVar("T")


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
        self._prepared: dict[str, Any] = {}
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

    @property
    @abstractmethod
    def shape(self) -> Encoder | PairModel:
        """The model without its weights; it has a name and settings."""

    @property
    @abstractmethod
    def vocabulary(self) -> Vocabulary:
        """Letter trigrams and words that have rows in the input weights."""

    @property
    @abstractmethod
    def dtype(self) -> np.dtype:
        """Type of the weights."""

    @abstractmethod
    def weight_sets(self) -> list[Arrays]:
        """The weights of each tower, those of a shared tower once; a pair model has one set."""

    def _facts(self) -> dict[str, object]:
        """Facts that only this kind of model has, for notebooks."""
        return {}

    def __repr__(self) -> str:
        settings = "".join(f"{key}={value}, " for key, value in self.shape.settings().items())
        return f"{type(self).__name__}({self.shape.name}, {settings}{self.vocabulary})"

    def __getstate__(self) -> dict[str, Any]:
        run = {"training": self.training, "history": self.history, "threads": self._threads}
        return {**self._parts(), **run}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # The state holds the arguments of __init__; a subclass with others has its own state.
        self.__init__(**state)  # type: ignore[misc]

    def __sklearn_clone__(self) -> Self:
        # scikit-learn clones the parameters of what it fits again; a trained model is not fitted.
        return self

    def _repr_html_(self) -> str:
        """The model's settings and sizes, for notebooks."""
        n_weights = sum(array.size for arrays in self.weight_sets() for array in arrays.values())
        facts = {
            "model": self.shape.name,
            "settings": ", ".join(f"{key} {value}" for key, value in self.shape.settings().items()),
            **self._facts(),
            "features": f"{len(self.vocabulary):,}",
            "weights": f"{n_weights:,} in {self.dtype}",
            "epochs of training": len(self.history) or None,
        }
        return facts_table(facts)

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
        """The model from the contents of its folder; the inverse of `saved`."""

    @abstractmethod
    def saved(self) -> SavedModel:
        """The contents of its folder: the model, how it was trained, and the history."""

    def astype(self, dtype: str | type | np.dtype) -> Self:
        """A copy of the model in ``"float32"`` or ``"float64"``."""
        saved = self.saved()
        return self.of(replace(saved, model=saved.model.astype(dtype)), self._threads)

    # -- words and scores ---------------------------------------------------------------------

    def _cached(self, name: str, prepare: Callable[..., T], *arguments: Any) -> T:
        """The result of ``prepare``, cached as ``name`` unless weights may change."""
        if self._may_remember and name in self._prepared:
            cached: T = self._prepared[name]
            return cached
        prepared = prepare(*arguments)
        if self._may_remember:
            self._prepared[name] = prepared
        return prepared

    # A str is a Sequence[str] as well; the first signature that fits counts.
    @overload
    def score(self, query: str, title: str) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, query: str | Sequence[str], title: str | Sequence[str]) -> np.ndarray: ...

    def score(self, query: str | Sequence[str], title: str | Sequence[str]) -> float | np.ndarray:
        """The score of a query and a title, or of each of several with each of several.

        Parameters
        ----------
        query : str or list of str
            One query, or n of them.
        title : str or list of str
            One title, or k of them.

        Returns
        -------
        float, (k,), (n,) or (n, k) float
            Higher is better; one axis for each of the two that is a list. The score of two towers
            is the cosine, from -1 to 1, and 0 where a text has no word that the model knows. The
            score of a pair model can be any number, and scores of different queries need not be
            comparable; it reads a text without words as one in which every cell is off. A warning
            says how many texts have no words, and how many have none that the model knows.

        Raises
        ------
        SentembError
            For what is neither a text nor a list of texts.
        """
        one_query, one_title = isinstance(query, str), isinstance(title, str)
        queries = [query] if isinstance(query, str) else as_texts(query)
        titles = [title] if isinstance(title, str) else as_texts(title)
        scores = self._scores(queries, titles)
        if one_query and one_title:
            return float(scores[0, 0])
        return scores[0] if one_query else scores[:, 0] if one_title else scores

    @abstractmethod
    def _scores(self, queries: list[str], titles: list[str]) -> np.ndarray:
        """The score of every query with every title, (n, k) float."""

    @overload
    def rank(  # type: ignore[overload-overlap]
        self, query: str, titles: Sequence[str], top_k: int | None = None
    ) -> list[tuple[int, float]]: ...
    @overload
    def rank(
        self, query: Sequence[str], titles: Sequence[str], top_k: int | None = None
    ) -> list[list[tuple[int, float]]]: ...

    def rank(
        self, query: str | Sequence[str], titles: Sequence[str], top_k: int | None = None
    ) -> list[tuple[int, float]] | list[list[tuple[int, float]]]:
        """The best titles for a query, or for each of several queries.

        Parameters
        ----------
        query : str or list of str
            One query, or a list of them.
        titles : list of str
            The titles to rank.
        top_k : int, optional
            How many to return; by default all.

        Returns
        -------
        list of (int, float), or a list of such lists
            Index in ``titles`` and score, best first, equal scores in the order given. One list for
            each query if there is a list of them.

        Raises
        ------
        SentembError
            For what is not a list of texts, or a ``top_k`` that is not an integer of at least 1.
        """
        queries = [query] if isinstance(query, str) else as_texts(query)
        titles = as_texts(titles)
        k = how_many(top_k, len(titles))
        if not titles or not queries:
            rankings: list[list[tuple[int, float]]] = [[] for _ in queries]
        else:
            positions, scores = self._best(queries, titles, k)
            rankings = [
                list(zip(*row, strict=True))
                for row in zip(positions.tolist(), scores.tolist(), strict=True)
            ]
        return rankings[0] if isinstance(query, str) else rankings

    @abstractmethod
    def _best(
        self, queries: list[str], titles: list[str], k: int
    ) -> tuple[NDArray[np.int64], np.ndarray]:
        """Indices and scores of the ``k`` best titles of each query, both (n, k), best first."""


class TextWarning(UserWarning):
    """A model can say nothing about ``count`` of the ``n_texts`` texts of a call.

    ``what`` says what is wrong with them, and what follows.
    """

    def __init__(self, count: int, n_texts: int, what: str) -> None:
        super().__init__(f"{count} of {n_texts} texts {what}")
        self.count, self.n_texts, self.what = count, n_texts, what


_collected: ContextVar[list[TextWarning] | None] = ContextVar("collected", default=None)


@contextlib.contextmanager
def keeping_text_warnings() -> Iterator[list[TextWarning]]:
    """Collect the warnings of this thread in the list that is yielded, and show none.

    `warnings.catch_warnings` changes the filters of all threads; two that use it at a time may
    leave them changed for good.
    """
    text_warnings: list[TextWarning] = []
    token = _collected.set(text_warnings)
    try:
        yield text_warnings
    finally:
        _collected.reset(token)


def warn(warning: TextWarning, depth: int) -> None:
    """Show a warning, or keep it; ``depth`` is 2 for the caller, 3 for its caller, and so on."""
    collected = _collected.get()
    if collected is None:
        warnings.warn(warning, stacklevel=depth)
    else:
        collected.append(warning)


def warn_of_texts(
    n_texts: int, without_words: int, unknown: int, lost: str, vague: str, depth: int = 3
) -> None:
    """Warn of texts that a model can say nothing about.

    ``without_words`` of the texts have no words, from which ``lost`` follows; ``unknown`` have
    words but none that the model knows, from which ``vague`` follows. The warning is in the name of
    the caller if ``depth`` is 2, of its caller if it is 3, and so on.
    """
    for count, what in (
        (without_words, f"have no words; {lost}"),
        (unknown, f"have no word that the model knows; {vague}"),
    ):
        if count:
            warn(TextWarning(count, n_texts, what), depth + 1)
