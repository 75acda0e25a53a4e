"""The public face of a trained pair model."""

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self, overload

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.face import Face
from sentemb.matching.matcher import Matcher
from sentemb.matching.pair_model import PairModel, Reading, Texts
from sentemb.models.towers import SIDES
from sentemb.models.workspace import Workspace
from sentemb.protocols import Arrays
from sentemb.storage.saved_model import PAIR, SavedModel
from sentemb.system.parallel import signals_from_kernels
from sentemb.text.checks import as_pairs, as_text, as_texts
from sentemb.text.vocabulary import Vocabulary

# Texts that are read at once, and pairs that are scored at once: enough work for all threads. Pairs
# of long texts are fewer, so that a pass keeps at most this many numbers, 64 MB in float32.
_TEXTS = 2048
_PAIRS = 1024
_NUMBERS = 1 << 24


class PairScorer(Face):
    """A pair model: it reads a query and a title together and answers with a score.

    Load one with `from_pretrained`, or train one with `sentemb.train`. Several threads may use one
    model; it can be pickled and copied, and it works in a forked process.

    Parameters
    ----------
    model : PairModel
        The shape.
    vocabulary : Vocabulary
    weights : dict of arrays
        Stacked arrays as the model describes them.
    training : dict, optional
        How it was trained, for the model card.
    history : list of dict, optional
        One entry per epoch of the training.
    threads : int, optional
        By default all processors.

    Attributes
    ----------
    matcher : Matcher
        Shape, vocabulary and weights.
    """

    def __init__(
        self,
        model: PairModel,
        vocabulary: Vocabulary,
        weights: Arrays,
        training: dict[str, Any] | None = None,
        history: Iterable[dict[str, Any]] = (),
        threads: int | None = None,
    ) -> None:
        self.matcher = Matcher(model, vocabulary, weights)
        super().__init__(training, history, threads)

    def _parts(self) -> dict[str, Any]:
        return {"model": self.model, "vocabulary": self.vocabulary, "weights": self.weights}

    def __repr__(self) -> str:
        shape = ", ".join(f"{key}={value}" for key, value in self.model.settings().items())
        return f"PairScorer({self.model.name}, {shape}, {self.vocabulary})"

    def _facts(self) -> list[tuple[str, object]]:
        settings = ", ".join(f"{key} {value}" for key, value in self.model.settings().items())
        n_weights = sum(array.size for array in self.weights.values())
        return [
            ("model", self.model.name),
            ("settings", settings),
            ("features", f"{len(self.vocabulary):,}"),
            ("weights", f"{n_weights:,} in {self.dtype}"),
        ]

    # -- storage ------------------------------------------------------------------------------

    @classmethod
    def of(cls, saved: SavedModel, threads: int | None = None) -> Self:
        """The model from what a model folder holds; the inverse of `saved`."""
        matcher = saved.matcher()
        parts = matcher.model, matcher.vocabulary, matcher.weights
        return cls(*parts, saved.training, saved.history, threads)

    def saved(self) -> SavedModel:
        """What `save_pretrained` writes: the model, how it was trained, and the history."""
        return SavedModel(self.matcher, self.training, self.history)

    # -- parts --------------------------------------------------------------------------------

    @property
    def model(self) -> PairModel:
        """The shape."""
        return self.matcher.model

    @property
    def vocabulary(self) -> Vocabulary:
        """Letter trigrams and words that have rows in the input weights."""
        return self.matcher.vocabulary

    @property
    def weights(self) -> Arrays:
        """Stacked arrays; `parameters` has them under the paper's names."""
        return self.matcher.weights

    @property
    def dtype(self) -> np.dtype:
        """Type of the weights: float32, or float64 after `astype`."""
        return self.matcher.dtype

    def parameters(self) -> Arrays:
        """Every parameter under the paper's name.

        Returns
        -------
        dict of ndarray
            Views: writing to them changes the model.
        """
        # The caller may write to these views at any time, which would make remembered words stale.
        self._may_remember = False
        return self.matcher.parameters()

    # -- scores -------------------------------------------------------------------------------

    # A str is a Sequence[str] as well; the first signature that fits counts.
    @overload
    def score(self, query: str, title: str) -> float: ...  # type: ignore[overload-overlap]
    @overload
    def score(self, query: str, title: Sequence[str]) -> NDArray[np.float64]: ...

    def score(self, query: str, title: str | Sequence[str]) -> float | NDArray[np.float64]:
        """The score of a query and a title, or of a query and each of several titles.

        Parameters
        ----------
        query : str
            One query.
        title : str or list of str
            One title, or a list of them.

        Returns
        -------
        float or (k,) float64
            Any number, higher is better; scores of different queries need not be comparable. A text
            without words is read as one in which every cell is off, and a warning says how many
            there were.
        """
        if isinstance(title, str):
            return float(self.score(query, [title])[0])
        titles = as_texts(title)
        pairs = np.zeros(len(titles), np.int64), np.arange(len(titles))
        scores, empty = self._score_pairs([as_text(query)], titles, *pairs)
        if empty:
            warnings.warn(
                f"{empty} of {len(titles) + 1} texts have no words; scores with them mean nothing",
                stacklevel=2,
            )
        return scores

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Scores of some pairs out of many texts; see `sentemb.protocols.Ranker`.

        Parameters
        ----------
        queries, titles : list of str
            The texts that pairs are made of.
        query_index, title_index : (k,) int
            Pair j is ``queries[query_index[j]]`` with ``titles[title_index[j]]``.

        Returns
        -------
        (k,) float64
            Higher is better. A pair has the same score, to the bit, whatever other pairs there are.

        Raises
        ------
        SentembError
            For what is not a list of texts, indices that are not integers within the texts, or
            weights so large that a score is not finite.
        """
        first, second = as_texts(queries), as_texts(titles)
        pairs = as_pairs(query_index, title_index, len(first), len(second))
        return self._score_pairs(first, second, *pairs)[0]

    # -- passes -------------------------------------------------------------------------------

    def _score_pairs(
        self,
        queries: list[str],
        titles: list[str],
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
    ) -> tuple[NDArray[np.float64], int]:
        """The scores, and how many of the texts that were read have no words.

        Some queries are read at a time, then the titles in their pairs, portion by portion: memory
        depends on the size of a portion only.
        """
        scores = np.empty(query_index.size)
        empty = 0
        at_once = max(1, min(_PAIRS, _NUMBERS // self.model.numbers_per_pair))
        with self._turn, signals_from_kernels():
            for some, pairs in _portions(query_index):
                first, without = self._read(SIDES[0], queries, some)
                empty += without
                place = np.searchsorted(some, query_index[pairs])
                for others, inner in _portions(title_index[pairs]):
                    second, without = self._read(SIDES[1], titles, others)
                    # A title counts once for every portion of the queries.
                    empty += without
                    at = pairs[inner]
                    index = place[inner], np.searchsorted(others, title_index[at])
                    for low in range(0, at.size, at_once):
                        part = slice(low, low + at_once)
                        scores[at[part]] = self._score(
                            first, second, *(one[part].astype(np.int32) for one in index)
                        )
        # NaN and infinity have no place in a ranking, and no form in JSON.
        if not np.isfinite(scores).all():
            raise SentembError(
                f"a score is not a finite number, as the weights of the {self.model.name} are too "
                "large; train the model again with a lower learning rate"
            )
        return scores, empty

    def _score(
        self,
        queries: Reading,
        titles: Reading,
        query_index: NDArray[np.int32],
        title_index: NDArray[np.int32],
    ) -> np.ndarray:
        job = self.model.score_tasks(
            self.weights, queries, titles, query_index, title_index, Workspace()
        )
        return self._workers.together(job)[0].scores

    def _read(
        self, side: str, texts: Sequence[str], numbers: NDArray[np.int64]
    ) -> tuple[Reading, int]:
        """What belongs to each of some texts, and how many of them have no words."""
        memory = self._memory(PAIR, self.model, self.weights)
        word_index, offsets, P, empty = memory.look_up([texts[k] for k in numbers.tolist()])
        read = Texts(word_index, offsets).cut(self.model.max_words)
        job = self.model.read_tasks(self.weights, side, P, read, Workspace())
        return self._workers.together(job)[0], empty


def _portions(
    index: NDArray[np.int64],
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Cut pairs into portions by their text: its distinct texts, ascending, and its pairs."""
    order = np.argsort(index, kind="stable")
    texts, starts = np.unique(index[order], return_index=True)
    for low in range(0, texts.size, _TEXTS):
        high = low + _TEXTS
        end = starts[high] if high < texts.size else index.size
        yield texts[low:high], order[starts[low] : end]
