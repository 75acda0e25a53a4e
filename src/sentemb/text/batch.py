"""Texts as integers: distinct words and their features, neither padded nor one-hot."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sentemb.text.words import split_words

if TYPE_CHECKING:
    from sentemb.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Tokens:
    """Texts as indices into their distinct words.

    word_index : (n_tokens,) int32, the index in ``words`` of every token's word, in reading order
    offsets : (n_texts + 1,) int64; text k holds the tokens ``offsets[k]`` to ``offsets[k + 1]``
    words : the distinct words, in order of first appearance
    """

    word_index: NDArray[np.int32]
    offsets: NDArray[np.int64]
    words: Sequence[str]


@dataclass(frozen=True)
class TextBatch:
    """Texts as indices into distinct words, and each of those words as a list of features.

    A feature is a letter trigram, a whole word or a dimension of word vectors. Each has a row in
    the input weights.

    word_index : (n_tokens,) int32
    offsets : (n_texts + 1,) int64
    feature_offsets : (n_words + 1,) int64; word w holds the entries ``feature_offsets[w]`` to
        ``feature_offsets[w + 1]`` of the next two arrays. A word without any known feature holds
        none and is still a word.
    feature_ids : (n_entries,) int32, places in ``input_rows``
    feature_values : (n_entries,) float32, how often the word holds the trigram; 1 for a whole word;
        the word's number for a dimension
    input_rows : (n_features,) int32, the distinct features of the batch, as rows of the input
        weights, in ascending order
    """

    word_index: NDArray[np.int32]
    offsets: NDArray[np.int64]
    feature_offsets: NDArray[np.int64]
    feature_ids: NDArray[np.int32]
    feature_values: NDArray[np.float32]
    input_rows: NDArray[np.int32]

    @property
    def n_texts(self) -> int:
        """The number of texts, those without words included."""
        return self.offsets.size - 1

    @property
    def n_words(self) -> int:
        """The number of distinct words."""
        return self.feature_offsets.size - 1


class Numbering(dict[str, int]):
    """A number for every word that is looked up: a new word gets the next number."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self)
        return number


def tokenize(texts: Iterable[str], split: Callable[[str], list[str]] = split_words) -> Tokens:
    """Split ``texts`` into `Tokens`, with one of `sentemb.text.words.SPLITTINGS`."""
    number_of = Numbering()
    word_index = array("i")  # as np.int32
    lengths = [0]
    for text in texts:
        words = split(text)
        word_index.extend(map(number_of.__getitem__, words))
        lengths.append(len(words))
    return Tokens(
        word_index=np.array(word_index, np.int32),
        offsets=np.cumsum(lengths, dtype=np.int64),
        words=list(number_of),
    )


def batch_of(tokens: Tokens, vocabulary: Vocabulary) -> TextBatch:
    """Look up the features of every distinct word of ``tokens`` that ``vocabulary`` knows."""
    features = vocabulary.features_of_all(tokens.words)
    rows, feature_ids = _distinct(features.ids, len(vocabulary))
    return TextBatch(
        word_index=tokens.word_index,
        offsets=tokens.offsets,
        feature_offsets=features.offsets,
        feature_ids=feature_ids,
        feature_values=features.values,
        input_rows=rows,
    )


def _distinct(
    numbers: NDArray[np.int32], limit: int
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The distinct ``numbers``, ascending, and the index of each among them.

    All are below ``limit``. If they are many, a table of all possible numbers takes less time and
    memory than sorting them.
    """
    if numbers.size < limit:
        rows, ranks = np.unique(numbers, return_inverse=True)
        return rows.astype(np.int32), ranks.astype(np.int32)
    rank_of = np.zeros(limit, np.int32)
    rank_of[numbers] = 1
    distinct = np.flatnonzero(rank_of).astype(np.int32)
    rank_of[distinct] = np.arange(distinct.size)
    return distinct, rank_of[numbers]
