"""Texts as integers: distinct words, their letter trigrams, nothing padded, nothing one-hot."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sentemb.text.words import split_words


@dataclass(frozen=True)
class Tokens:
    """Texts as indices into their distinct words.

    Attributes
    ----------
    word_index : (n_tokens,) int32
        For every token, in reading order, its word's place in ``words``.
    offsets : (n_texts + 1,) int64
        Text k holds the tokens ``offsets[k]`` to ``offsets[k + 1]``.
    words : list of str
        The distinct words, in order of first appearance.
    """

    word_index: np.ndarray
    offsets: np.ndarray
    words: list


@dataclass(frozen=True)
class TextBatch:
    """Texts as indices into distinct words, and those words as lists of trigram ids and counts.

    Attributes
    ----------
    word_index : (n_tokens,) int32
    offsets : (n_texts + 1,) int64
    trigram_offsets : (n_words + 1,) int64
        Word w holds the entries ``trigram_offsets[w]`` to ``trigram_offsets[w + 1]`` of the two
        arrays below. A word without any known trigram holds none and stays a word.
    trigram_ids : (n_entries,) int32
        Places in ``rows``.
    trigram_counts : (n_entries,) int32
    rows : (n_rows,) int32
        The distinct trigrams of the batch, as rows of the input weights, rising.
    """

    word_index: np.ndarray
    offsets: np.ndarray
    trigram_offsets: np.ndarray
    trigram_ids: np.ndarray
    trigram_counts: np.ndarray
    rows: np.ndarray

    @property
    def n_texts(self):
        return self.offsets.size - 1

    @property
    def n_words(self):
        return self.trigram_offsets.size - 1

    @cached_property
    def packing(self):
        """The `Packing` of the texts."""
        # Imported late: reading a log and its vocabulary need not wait for Numba.
        from sentemb.models.packing import Packing

        return Packing(self.word_index, self.offsets)

    @cached_property
    def words_of_rows(self):
        """The words that hold each trigram, and how often.

        Returns
        -------
        offsets, words, counts : (n_rows + 1,) int64, (n_entries,) int32, (n_entries,) int32
        """
        from sentemb.kernels.words import invert_lists

        offsets, words, entries = invert_lists(
            self.trigram_offsets, self.trigram_ids, self.rows.size
        )
        return offsets, words, self.trigram_counts[entries]

    @cached_property
    def rows_of_words(self):
        """For each direction of reading the rows of the packing in which each word stands.

        Returns
        -------
        list of (offsets, rows) : (n_words + 1,) int64, (n_tokens,) int32
        """
        from sentemb.kernels.words import invert_lists

        each_alone = np.arange(self.word_index.size + 1)
        return [invert_lists(each_alone, words, self.n_words)[:2] for words in self.packing.words]

    @cached_property
    def texts_of_words(self):
        """The texts in which each word stands, once for every time that it does.

        Returns
        -------
        offsets, texts : (n_words + 1,) int64, (n_tokens,) int32
        """
        from sentemb.kernels.words import invert_lists

        return invert_lists(self.offsets, self.word_index, self.n_words)[:2]


class Places(dict):
    """A number for every word that is asked for: a new one gets the next."""

    def __missing__(self, word):
        place = self[word] = len(self)
        return place


def tokenize(texts):
    """Split ``texts`` (iterable of str) into `Tokens`."""
    places = Places()
    word_index, lengths = [], [0]
    for text in texts:
        words = split_words(text)
        word_index += map(places.__getitem__, words)
        lengths.append(len(words))
    return Tokens(
        word_index=np.array(word_index, np.int32),
        offsets=np.cumsum(lengths, dtype=np.int64),
        words=list(places),
    )


def batch_of(tokens, vocabulary):
    """Give every distinct word of ``tokens`` its features known to ``vocabulary``."""
    words, ids = vocabulary.features_of_all(tokens.words)
    # The same trigram may be in a word more than once.
    entries, counts = np.unique(words * len(vocabulary) + ids, return_counts=True)
    rows, places = np.unique(entries % len(vocabulary), return_inverse=True)
    per_word = np.bincount(entries // len(vocabulary), minlength=len(tokens.words))
    return TextBatch(
        word_index=tokens.word_index,
        offsets=tokens.offsets,
        trigram_offsets=np.concatenate([[0], np.cumsum(per_word)]),
        trigram_ids=places.astype(np.int32),
        trigram_counts=counts.astype(np.int32),
        rows=rows.astype(np.int32),
    )
