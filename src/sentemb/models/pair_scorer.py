"""The public face of a trained pair model."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError, naming
from sentemb.kernels.top_k import top_k
from sentemb.models.face import Face, warn_of_texts
from sentemb.models.files.model_files import load_model
from sentemb.models.files.saved_model import PAIR, SavedModel
from sentemb.models.pairs.head import Pass
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.pairs.pair_model import FirstStage, PairModel, Pairs, Texts
from sentemb.models.towers.towers import SIDES
from sentemb.models.words.word_memory import LookedUp, WordMemory
from sentemb.models.words.workspace import Workspace
from sentemb.system.contracts import Arrays
from sentemb.system.parallel import signals_from_kernels
from sentemb.system.paths import AnyPath
from sentemb.text.arguments import as_pairs, as_texts
from sentemb.text.vocabulary import Vocabulary

# Texts that are read at once, and pairs that are scored at once: enough work for all threads. Pairs
# of long texts are fewer, so that a pass keeps at most this many numbers, 64 MB in float32.
_TEXTS = 2048
_PAIRS = 1024
_NUMBERS = 1 << 24
# Pairs whose scores are in memory at a time while titles are ranked.
_RANKED = 1 << 20


class PairScorer(Face):
    """A pair model: it reads a query and a title together and answers with a score.

    Load one with ``PairScorer("folder")`` or `from_pretrained`, or train one with `sentemb.train`.
    Several threads may use one model; it can be pickled and copied, and it works in a forked
    process.

    Parameters
    ----------
    model : path or PairModel
        A model folder, which also has everything else; or the shape.
    vocabulary : Vocabulary, optional
        With a PairModel only, as are all below but ``threads``.
    weights : dict of arrays, optional
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
        model: PairModel | AnyPath,
        vocabulary: Vocabulary | None = None,
        weights: Arrays | None = None,
        training: dict[str, Any] | None = None,
        history: Iterable[dict[str, Any]] = (),
        threads: int | None = None,
    ) -> None:
        if isinstance(model, PairModel):
            if vocabulary is None or weights is None:
                raise SentembError("a PairModel needs vocabulary and weights; or give a folder")
            self.matcher = Matcher(model, vocabulary, weights)
        else:
            if vocabulary is not None or weights is not None:
                raise SentembError("a model folder has its own vocabulary and weights; leave yours")
            saved = load_model(model)
            with naming(model):
                self.matcher = saved.matcher()
            training, history = saved.training, saved.history
        super().__init__(training, history, threads)

    def _parts(self) -> dict[str, Any]:
        return {"model": self.model, "vocabulary": self.vocabulary, "weights": self.weights}

    # -- storage ------------------------------------------------------------------------------

    @classmethod
    def of(cls, saved: SavedModel, threads: int | None = None) -> Self:
        """The model from the contents of its folder; the inverse of `saved`."""
        matcher = saved.matcher()
        parts = matcher.model, matcher.vocabulary, matcher.weights
        return cls(*parts, saved.training, saved.history, threads)

    def saved(self) -> SavedModel:
        """The contents of its folder: the model, how it was trained, and the history."""
        return SavedModel(self.matcher, self.training, self.history)

    # -- parts --------------------------------------------------------------------------------

    @property
    def model(self) -> PairModel:
        """The shape."""
        return self.matcher.model

    @property
    def shape(self) -> PairModel:
        """The same as `model`."""
        return self.matcher.model

    def weight_sets(self) -> list[Arrays]:
        """The weights, as the only element."""
        return [self.weights]

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

    def _scores(self, queries: list[str], titles: list[str]) -> np.ndarray:
        poor = _Poor(len(queries), len(titles))
        query_index, title_index = np.indices((len(queries), len(titles))).reshape(2, -1)
        scores = self._score_pairs(queries, titles, query_index, title_index, poor)
        poor.warn()
        return scores.reshape(len(queries), len(titles))

    def _best(
        self, queries: list[str], titles: list[str], k: int
    ) -> tuple[NDArray[np.int64], np.ndarray]:
        poor = _Poor(len(queries), len(titles))
        positions = np.empty((len(queries), k), np.int64)
        best_scores = np.empty((len(queries), k))
        at_once = max(1, _RANKED // len(titles))
        for first in range(0, len(queries), at_once):
            asked = np.arange(first, min(first + at_once, len(queries)))
            pairs = np.repeat(asked, len(titles)), np.tile(np.arange(len(titles)), asked.size)
            scores = self._score_pairs(queries, titles, *pairs, poor).reshape(asked.size, -1)
            rows = slice(first, first + asked.size)
            top_k(positions[rows], scores, 0, asked.size)
            best_scores[rows] = np.take_along_axis(scores, positions[rows], axis=1)
        poor.warn()
        return positions, best_scores

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Scores of some pairs out of many texts; see `sentemb.models.contracts.Ranker`.

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
        return self._score_pairs(first, second, *pairs, _Poor(len(first), len(second)))

    # -- passes -------------------------------------------------------------------------------

    def _score_pairs(
        self,
        queries: list[str],
        titles: list[str],
        query_index: NDArray[np.int64],
        title_index: NDArray[np.int64],
        poor: "_Poor",
    ) -> NDArray[np.float64]:
        """The scores; ``poor`` notes the texts that say nothing.

        Some queries are read at a time, then the titles in their pairs, portion by portion: memory
        depends on the size of a portion only.
        """
        scores = np.empty(query_index.size)
        at_once = max(1, min(_PAIRS, _NUMBERS // self.model.numbers_per_pair))
        with self._turn, signals_from_kernels():
            for query_numbers, pairs in _portions(query_index):
                first = self._read(SIDES[0], queries, query_numbers, poor)
                query_rows = np.searchsorted(query_numbers, query_index[pairs])
                for title_numbers, inner in _portions(title_index[pairs]):
                    second = self._read(SIDES[1], titles, title_numbers, poor)
                    at = pairs[inner]
                    index = query_rows[inner], np.searchsorted(title_numbers, title_index[at])
                    for low in range(0, at.size, at_once):
                        part = slice(low, low + at_once)
                        rows = (numbers[part].astype(np.int32) for numbers in index)
                        scores[at[part]] = self._score(Pairs(first, second, *rows))
        # NaN and infinity have no place in a ranking, and no form in JSON.
        if not np.isfinite(scores).all():
            raise SentembError(
                f"a score is not a finite number, as the weights of the {self.model.name} are too "
                "large; train the model again with a lower learning rate"
            )
        return scores

    def _score(self, pairs: Pairs) -> np.ndarray:
        given = Pass(self.weights, np.empty(0), Workspace())
        return self._workers.together(self.model.score_tasks(given, pairs))[0].scores

    def _read(
        self, side: str, texts: Sequence[str], numbers: NDArray[np.int64], poor: "_Poor"
    ) -> FirstStage:
        memory = self._cached(PAIR, WordMemory, self.model, self.vocabulary, self.weights)
        words = memory.look_up([texts[k] for k in numbers.tolist()], self._workers)
        poor.note(side, numbers, words)
        read = Texts(words.word_index, words.offsets).cut(self.model.max_words)
        given = Pass(self.weights, words.P, Workspace())
        return self._workers.together(self.model.read_tasks(given, side, read))[0]


class _Poor:
    """Flags of the texts without words, and of those without known words.

    A text is read once for every portion of its partners and counts once.
    """

    def __init__(self, n_queries: int, n_titles: int) -> None:
        self._n_texts = n_queries + n_titles
        sizes = dict(zip(SIDES, (n_queries, n_titles), strict=True))
        self._without_words = {side: np.zeros(n, np.bool_) for side, n in sizes.items()}
        self._unknown = {side: np.zeros(n, np.bool_) for side, n in sizes.items()}

    def note(self, side: str, numbers: NDArray[np.int64], words: LookedUp) -> None:
        """Mark those of the texts ``numbers`` of one side."""
        if words.n_known is not None:
            self._without_words[side][numbers] = words.without_words()
            self._unknown[side][numbers] = words.unknown()

    def warn(self) -> None:
        """Warn if there are any."""
        without_words, unknown = (
            sum(int(marked.sum()) for marked in sides.values())
            for sides in (self._without_words, self._unknown)
        )
        nothing = "scores with them mean nothing"
        # In the name of the caller of `score` or `rank`.
        warn_of_texts(self._n_texts, without_words, unknown, nothing, nothing, depth=5)


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
