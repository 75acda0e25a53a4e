"""Lessons of a pair model: lists of a clicked title and negatives, or labelled pairs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sentemb.data.labelled_pairs import LabelledPairs
from sentemb.text.batch import Numbering, TextBatch
from sentemb.training.batches.corpus import Corpus
from sentemb.training.batches.mini_batches import draw_candidates
from sentemb.training.batches.text_pairs import TextPairs
from sentemb.training.negatives.hard_negatives import draw
from sentemb.training.objectives.pair_losses import PairTargets
from sentemb.training.pairs.pair_settings import PairSettings


@dataclass(frozen=True)
class PairBatch:
    """Texts, pairs and targets of one update.

    texts : all texts, queries first
    query_index, title_index : (n_pairs,), the query and the title of each pair, each counted on its
        own side
    """

    texts: TextBatch
    n_queries: int
    query_index: NDArray[np.int32]
    title_index: NDArray[np.int32]
    targets: PairTargets


class Lessons(Protocol):
    """Examples in mini-batches; ``steps`` is the number of mini-batches per epoch."""

    n_examples: int
    steps: int

    @property
    def texts(self) -> TextPairs:
        """The texts of all examples."""
        ...

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the examples."""
        ...

    def examples_before(self, step: int) -> int:
        """Examples in the mini-batches of an epoch before ``step``."""
        ...

    def right_pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The query and the title of each pair that goes together, (n,) and (n,)."""
        ...

    def batch(self, epoch: int, step: int) -> PairBatch:
        """The mini-batch ``step`` of ``epoch``; both are counted from 0."""
        ...


class _Ordered:
    """Examples in an order that every epoch draws."""

    def __init__(self, n_examples: int, per_batch: int, seed: int) -> None:
        self.n_examples, self._per_batch, self._seed = n_examples, per_batch, seed
        self.steps = -(-n_examples // per_batch)
        self._order: tuple[int, NDArray[np.int64]] = -1, np.empty(0, np.int64)

    def examples_before(self, step: int) -> int:
        """Examples in the mini-batches of an epoch before ``step``."""
        return min(step * self._per_batch, self.n_examples)

    def _examples(self, epoch: int, step: int) -> NDArray[np.int64]:
        """The examples of a mini-batch."""
        if self._order[0] != epoch:
            rng = np.random.default_rng([self._seed, epoch])
            self._order = epoch, rng.permutation(self.n_examples)
        return self._order[1][self.examples_before(step) : self.examples_before(step + 1)]


class ClickLessons(_Ordered):
    """Each pair of a click log with negatives; the corpus has one list of texts.

    ``hard_negatives`` are drawn for each pair from ``hard_titles`` (n_queries, m), titles of each
    query, -1 where there are fewer.
    """

    def __init__(
        self,
        corpus: Corpus,
        settings: PairSettings,
        hard_negatives: int = 0,
        hard_titles: NDArray[np.int32] | None = None,
    ) -> None:
        self._corpus = corpus
        self._settings, self._hard, self._hard_titles = settings, hard_negatives, hard_titles
        per_pair = settings.n_negatives + hard_negatives
        super().__init__(corpus.n_pairs, max(1, settings.batch_size // per_pair), settings.seed)

    @property
    def texts(self) -> TextPairs:
        """The texts of the log."""
        return self._corpus

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the log."""
        return self._corpus.fingerprint()

    def right_pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Those of the log."""
        return self._corpus.query_index, self._corpus.title_index

    def batch(self, epoch: int, step: int) -> PairBatch:
        """As `Lessons.batch`."""
        corpus, settings = self._corpus, self._settings
        pairs = self._examples(epoch, step)
        clicked = corpus.title_index[pairs]
        offsets, drawn = draw_candidates(corpus, pairs, clicked, settings, epoch, step)
        if self._hard_titles is not None:
            numbers = self._hard, settings.seed, epoch, step
            hard_offsets, hard = draw(self._hard_titles, corpus.query_index[pairs], *numbers)
            offsets, drawn = _side_by_side(offsets, drawn, hard_offsets, hard)
        queries, query_of_pair = np.unique(corpus.query_index[pairs], return_inverse=True)
        titles, title_index = np.unique(drawn, return_inverse=True)
        both, _ = corpus.texts_of_both(queries.astype(np.int32), titles.astype(np.int32))
        weights = corpus.weights[pairs]
        return PairBatch(
            both,
            queries.size,
            np.repeat(query_of_pair.astype(np.int32), np.diff(offsets)),
            title_index.astype(np.int32),
            PairTargets.of_lists(offsets, weights / weights.sum()),
        )


def _side_by_side(
    offsets: NDArray[np.int64],
    items: NDArray[np.int32],
    added_offsets: NDArray[np.int64],
    added: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    """Lists of items, each followed by the list of the same number in ``added``."""
    n_lists = offsets.size - 1
    owner = np.concatenate(
        [np.repeat(np.arange(n_lists), np.diff(bounds)) for bounds in (offsets, added_offsets)]
    )
    order = np.argsort(owner, kind="stable")
    return offsets + added_offsets, np.concatenate([items, added])[order]


class LabelledLessons(_Ordered):
    """Pairs with label 0 or 1; ``texts`` has the distinct texts in the order of `distinct`."""

    def __init__(self, texts: TextPairs, pairs: LabelledPairs, settings: PairSettings) -> None:
        self._texts, self._pairs = texts, pairs
        (_, self._first), (_, self._second) = (
            distinct(side) for side in (pairs.first, pairs.second)
        )
        super().__init__(len(pairs), settings.batch_size, settings.seed)

    @property
    def texts(self) -> TextPairs:
        """The texts of the pairs."""
        return self._texts

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the pairs."""
        vocabulary = self.texts.vocabulary
        known = [*vocabulary.trigrams, *vocabulary.words]
        digest = hashlib.sha256("\n".join(known).encode("utf-8"))
        digest.update(self._pairs.fingerprint().encode())
        return digest.hexdigest()

    def right_pairs(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The first and the second texts of the pairs with label 1, (k,) int32 each."""
        right = self._pairs.labels == 1
        return self._first[right], self._second[right]

    def batch(self, epoch: int, step: int) -> PairBatch:
        """As `Lessons.batch`."""
        examples = self._examples(epoch, step)
        queries, query_index = np.unique(self._first[examples], return_inverse=True)
        titles, title_index = np.unique(self._second[examples], return_inverse=True)
        both, _ = self.texts.texts_of_both(queries, titles)
        targets = PairTargets(
            np.arange(examples.size + 1),
            self._pairs.labels[examples],
            np.full(examples.size, 1 / examples.size),
        )
        index = query_index.astype(np.int32), title_index.astype(np.int32)
        return PairBatch(both, queries.size, *index, targets)


def distinct(texts: list[str]) -> tuple[list[str], NDArray[np.int32]]:
    """The distinct texts in order of first appearance, and the number of each text among them."""
    number_of = Numbering()
    numbers = np.array([number_of[text] for text in texts], np.int32)
    return list(number_of), numbers
