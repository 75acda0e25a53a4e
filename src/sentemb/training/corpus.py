"""A click log as integers, in memory."""

import hashlib
from collections.abc import Iterator
from dataclasses import fields

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog
from sentemb.errors import SentembError
from sentemb.kernels.negatives import titles_to_leave_out
from sentemb.text.batch import TextBatch, batch_of, tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import split_words
from sentemb.training.settings import Settings
from sentemb.training.text_list import TextList

# Texts per portion; the projected words of one portion are in memory at once.
_PORTION = 16_384


class Corpus:
    """The pairs of a click log, ready for training; a `sentemb.protocols.LogSource`.

    Parameters
    ----------
    log : ClickLog
    settings : Settings
        Uses ``word_features`` and ``shared_towers``. With shared towers queries and titles have
        one list of words.
    vocabulary : Vocabulary, optional
        The features to read, and how texts are split; by default they are collected from the log.

    Attributes
    ----------
    vocabulary : Vocabulary
        The one that was given, or all trigrams of the log and its frequent words.
    n_pairs, n_queries, n_titles : int
    query_index, title_index : (n_pairs,) int32
        The query and the clicked title of each pair.
    weights : (n_pairs,) float64
        1 + ln(clicks), so that 1,000 clicks of a title for a query count 8 times as much as one.
    query_offsets, query_titles : (n_queries + 1,) int64, (n_pairs,) int32
        The clicked titles of every query.
    clicked_keys : (n_pairs,) int64
        query * n_titles + title of every pair, ascending.
    skipped_offsets, skipped : (n_pairs + 1,) int64, (n,) int32
        The titles that the log lists as shown and skipped, for each pair.
    """

    def __init__(
        self, log: ClickLog, settings: Settings, vocabulary: Vocabulary | None = None
    ) -> None:
        split = split_words if vocabulary is None else vocabulary.split
        if settings.shared_towers:
            tokens = {"query": tokenize([*log.queries, *log.titles], split)}
        else:
            tokens = {
                "query": tokenize(log.queries, split),
                "document": tokenize(log.titles, split),
            }
        if vocabulary is None:
            vocabulary = Vocabulary.collect(*tokens.values(), word_features=settings.word_features)
        self.vocabulary = vocabulary
        self.query_index, self.title_index = log.query_index, log.title_index
        self.n_pairs = log.query_index.size
        self.n_queries, self.n_titles = len(log.queries), len(log.titles)
        self.weights = 1 + np.log(log.clicks)
        self.skipped_offsets, self.skipped = log.skipped_offsets, log.skipped_index
        self._texts = {
            side: TextList(batch_of(some, self.vocabulary)) for side, some in tokens.items()
        }
        self._shared = settings.shared_towers
        self._title_scratch = np.full(self.n_titles, -1, np.int32)

        pair_keys = self.query_index.astype(np.int64) * self.n_titles + self.title_index
        self.clicked_keys = np.sort(pair_keys)
        self.query_offsets, self.query_titles = log.titles_of_queries()
        self._check_negatives()

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the log."""
        known = [*self.vocabulary.trigrams, *self.vocabulary.words]
        digest = hashlib.sha256("\n".join(known).encode("utf-8"))
        arrays = [self.query_index, self.title_index, self.weights]
        arrays += [self.skipped_offsets, self.skipped]
        for texts in self._texts.values():
            arrays += [getattr(texts.batch, field.name) for field in fields(texts.batch)]
        for array in arrays:
            digest.update(array.tobytes())
        return digest.hexdigest()

    def seen(self, side: str) -> NDArray[np.int32]:
        """The features that the tower of ``side`` ("query" or "document") reads."""
        return self._texts[self._list_of(side)].batch.input_rows

    def unknown_share(self) -> float:
        """The share of the words of all queries and titles that have no known feature."""
        known = total = 0
        for texts in (some.batch for some in self._texts.values()):
            has_features = np.diff(texts.feature_offsets) > 0
            known += int(np.count_nonzero(has_features[texts.word_index]))
            total += texts.word_index.size
        return 1 - known / total if total else 1.0

    def n_batches(self, batch_size: int) -> int:
        """Mini-batches per epoch."""
        return -(-self.n_pairs // batch_size)

    def order(self, seed: int, epoch: int) -> NDArray[np.int64]:
        """The order in which ``epoch`` goes through the pairs, (n_pairs,)."""
        return np.random.default_rng([seed, epoch]).permutation(self.n_pairs)

    def texts(self, side: str, numbers: NDArray[np.int32]) -> TextBatch:
        """Some queries (``side`` "query") or titles ("document"), in this order.

        Parameters
        ----------
        side : {"query", "document"}
            Which texts ``numbers`` counts.
        numbers : (k,) int32
            Which queries or titles, all different.
        """
        return self._texts[self._list_of(side)].take(numbers + np.int32(self._first(side)))

    def texts_of_both(
        self, queries: NDArray[np.int32], titles: NDArray[np.int32]
    ) -> tuple[TextBatch, TextBatch]:
        """Some queries and some titles; with shared towers one batch of both, twice."""
        if not self._shared:
            return self.texts("query", queries), self.texts("document", titles)
        numbers = np.concatenate([queries, titles + np.int32(self.n_queries)])
        both = self._texts["query"].take(numbers)
        return both, both

    def portions(self, side: str) -> Iterator[TextBatch]:
        """All texts of ``side`` in order, in batches of limited size."""
        n_texts = self.n_queries if side == "query" else self.n_titles
        for low in range(0, n_texts, _PORTION):
            yield self.texts(side, np.arange(low, min(low + _PORTION, n_texts), dtype=np.int32))

    def other_clicks(
        self, pairs: NDArray[np.integer], titles: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The other titles that were clicked for the query of each pair.

        Parameters
        ----------
        pairs : (k,) int
            Numbers of pairs.
        titles : (n_titles,) int32
            The titles of a mini-batch; only these count.

        Returns
        -------
        offsets, places : (k + 1,) int64, (n,) int32
            For each pair, places in ``titles``.
        """
        self._title_scratch[titles] = np.arange(titles.size)
        offsets, places = titles_to_leave_out(
            self.query_index[pairs],
            self.title_index[pairs],
            self.query_offsets,
            self.query_titles,
            self._title_scratch,
        )
        self._title_scratch[titles] = -1
        return offsets, places

    def _list_of(self, side: str) -> str:
        """The list that holds the texts of ``side``."""
        return "query" if self._shared else side

    def _first(self, side: str) -> int:
        """Where the texts of ``side`` begin in their list."""
        return self.n_queries if self._shared and side == "document" else 0

    def _check_negatives(self) -> None:
        """Raise a `SentembError` unless some pair has a title that can be its negative."""
        clicked_titles = np.diff(self.query_offsets)
        if np.all(clicked_titles[self.query_index] >= self.n_titles):
            raise SentembError(
                "the click log has no negatives: every title in it is clicked for every query; "
                "add queries with other titles"
            )
