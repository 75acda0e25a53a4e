"""A click log as integers, in memory or mapped from a prepared log."""

import copy
import hashlib
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.data.click_log import ClickLog, titles_by_query
from sentemb.data.prepared_log import PreparedLog
from sentemb.errors import SentembError
from sentemb.kernels.negatives import titles_to_leave_out
from sentemb.system.mapped_arrays import bytes_of
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.words import NEW
from sentemb.training.batches.renumbering import Renumbering
from sentemb.training.batches.shuffling import Shuffle
from sentemb.training.batches.teacher_vectors import TeacherVectors
from sentemb.training.batches.text_pairs import TextPairs, VectorsOf


class Corpus(TextPairs):
    """The pairs of a click log, ready for training; a `sentemb.training.contracts.LogSource`.

    Of a prepared log all arrays stay mapped, but those of the distinct words and the weights. Of
    the settings it uses ``word_features``, and ``shared_towers`` where ``one_list`` is not given:
    shared towers have one list. `TextPairs` describes the other parameters and more attributes.

    query_index, title_index : (n_pairs,) int32, the query and the clicked title of each pair
    weights : (n_pairs,) float64, 1 + ln(clicks), so that 1,000 clicks of a title for a query count
        8 times as much as one
    query_offsets, query_titles : (n_queries + 1,) int64, (n_pairs,) int32, the clicked titles of
        every query
    query_numbers, title_numbers : `Renumbering` of all queries and of all titles, for the
        mini-batches
    skipped_offsets, skipped : (n_pairs + 1,) int64, (n,) int32, the titles that the log lists as
        shown and skipped, for each pair
    teacher : the vectors of another embedding, whose cosines are learned, if any
    """

    teacher: TeacherVectors | None = None

    def __init__(
        self,
        log: ClickLog | PreparedLog,
        settings: Any,
        vocabulary: Vocabulary | None = None,
        *,
        one_list: bool | None = None,
        most_words: int | None = None,
        max_word_features: int | None = None,
        whole_words: bool = False,
        splitting: str = NEW,
        grow: bool = False,
        vectors: VectorsOf | None = None,
    ) -> None:
        super().__init__(
            log.queries,
            log.titles,
            one_list=settings.shared_towers if one_list is None else one_list,
            word_features=settings.word_features,
            vocabulary=vocabulary,
            most_words=most_words,
            max_word_features=max_word_features,
            whole_words=whole_words,
            splitting=splitting,
            grow=grow,
            vectors=vectors,
            tokens=log.tokens if isinstance(log, PreparedLog) else None,
        )
        self.query_index, self.title_index = log.query_index, log.title_index
        self.weights = 1 + np.log(log.clicks)
        self.skipped_offsets, self.skipped = log.skipped_offsets, log.skipped_index
        self._number(*log.titles_of_queries())

    def _number(self, query_offsets: NDArray[np.int64], query_titles: NDArray[np.int32]) -> None:
        """Set what follows from the numbers of pairs, queries and titles."""
        self.n_pairs = self.query_index.size
        self.query_numbers = Renumbering(self.n_queries)
        self.title_numbers = Renumbering(self.n_titles)
        self._title_scratch = np.full(self.n_titles, -1, np.int32)
        self.query_offsets, self.query_titles = query_offsets, query_titles
        self._check_negatives()

    @cached_property
    def sorted_titles(self) -> NDArray[np.int32]:
        """As ``query_titles``, ascending for each query; only drawn negatives need it."""
        keys = self.query_index.astype(np.int64)
        keys *= self.n_titles
        keys += self.title_index
        keys.sort()
        keys %= self.n_titles
        return keys.astype(np.int32)

    def fingerprint(self) -> str:
        """A hash of everything that training takes from the log."""
        known = [*self.vocabulary.trigrams, *self.vocabulary.words]
        digest = hashlib.sha256("\n".join(known).encode("utf-8"))
        arrays = [self.query_index, self.title_index, self.weights]
        arrays += [self.skipped_offsets, self.skipped]
        for array in (*arrays, *self.arrays()):
            digest.update(bytes_of(array))
        return digest.hexdigest()

    def n_batches(self, batch_size: int) -> int:
        """Mini-batches per epoch."""
        return -(-self.n_pairs // batch_size)

    def order(self, seed: int, epoch: int) -> Shuffle:
        """The order in which ``epoch`` goes through the pairs."""
        return Shuffle(self.n_pairs, seed, epoch)

    def part(self, queries: NDArray[np.int32]) -> Self:
        """The pairs of some queries as a log of their own, with the vocabulary of this one.

        ``queries`` (k,) ascend; their numbers in the part are 0 to k - 1. Its titles are those that
        the log lists for these queries, in their order. Raises `SentembError` if the part has no
        negatives.
        """
        part = copy.copy(self)
        part.__dict__.pop("sorted_titles", None)
        is_in = np.zeros(self.n_queries, np.bool_)
        is_in[queries] = True
        pairs = np.flatnonzero(is_in[self.query_index])
        counts = np.diff(self.skipped_offsets)
        skipped = self.skipped[np.repeat(is_in[self.query_index], counts)]
        listed = np.concatenate([self.title_index[pairs], skipped])
        titles, title_index = np.unique(listed, return_inverse=True)
        part.query_index = np.searchsorted(queries, self.query_index[pairs]).astype(np.int32)
        part.title_index, part.skipped = np.split(title_index.astype(np.int32), [pairs.size])
        part.skipped_offsets = np.concatenate([[0], np.cumsum(counts[pairs])])
        part.weights = self.weights[pairs]
        if self.teacher is not None:
            part.teacher = self.teacher.part(queries, titles)
        part._take(self, queries, titles.astype(np.int32))
        part._number(*titles_by_query(queries.size, part.query_index, part.title_index))
        return part

    def other_clicks(
        self, pairs: NDArray[np.integer], titles: NDArray[np.int32]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
        """The other titles that were clicked for the query of each pair.

        Only ``titles`` (n_titles,) of a mini-batch count. Returns offsets (k + 1,) and, for each
        pair, positions (n,) in ``titles``.
        """
        self._title_scratch[titles] = np.arange(titles.size)
        offsets, positions = titles_to_leave_out(
            self.query_index[pairs],
            self.title_index[pairs],
            self.query_offsets,
            self.query_titles,
            self._title_scratch,
        )
        self._title_scratch[titles] = -1
        return offsets, positions

    def _check_negatives(self) -> None:
        """Raise a `SentembError` unless some pair has a title that can be its negative."""
        clicked_titles = np.diff(self.query_offsets)
        if np.all(clicked_titles[self.query_index] >= self.n_titles):
            raise SentembError(
                "the click log has no negatives: every title in it is clicked for every query; "
                "add queries with other titles"
            )
