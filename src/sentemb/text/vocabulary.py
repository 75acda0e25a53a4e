"""The features that a model knows: letter trigrams and whole words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import compress
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sentemb.text.batch import TextBatch, Tokens, batch_of, tokenize
from sentemb.text.word_features import WordFeatures
from sentemb.text.words import LETTERED, SPLITTINGS, WHITE_SPACE, text_of_words

# Words whose trigrams are in memory at once.
_PORTION = 1 << 17
# Letters of a trigram, and bits that hold any letter of Unicode.
_LETTERS, _LETTER_BITS = 3, 21


class FeatureLists(NamedTuple):
    """The features of some words: those of word w are the entries offsets[w] to offsets[w + 1].

    offsets : (n_words + 1,) int64
    ids : (n_entries,) int32, rows of the input weights, ascending for each word
    values : (n_entries,) float32, how often the word holds the trigram; 1 for a whole word; the
        word's number for a dimension
    """

    offsets: NDArray[np.int64]
    ids: NDArray[np.int32]
    values: NDArray[np.float32]


class Vocabulary:
    """The known features: letter trigrams, some words as a whole, and dimensions of word vectors.

    The id of a feature is its row in the input weights: trigrams come first, then words, then the
    dimensions.

    Parameters
    ----------
    trigrams, words : iterable of str
        Neither may hold a string twice.
    splitting : {"white-space", "words"}
        How texts are split into words, see `sentemb.text.words.SPLITTINGS`.
    vectors : WordFeatures, optional
        The word vectors whose dimensions are features.

    Attributes
    ----------
    trigrams, words : list of str
    splitting : str
    vectors : WordFeatures or None
    split : function of a str
        The words of a text.
    """

    def __init__(
        self,
        trigrams: Iterable[str],
        words: Iterable[str] = (),
        splitting: str = WHITE_SPACE,
        vectors: WordFeatures | None = None,
    ) -> None:
        self.vectors = vectors
        self.splitting, self.split = splitting, SPLITTINGS[splitting]
        self.trigrams, self.words = list(trigrams), list(words)

    @cached_property
    def _trigram_ids(self) -> dict[str, int]:
        return dict(zip(self.trigrams, range(len(self.trigrams)), strict=True))

    @cached_property
    def _word_ids(self) -> dict[str, int]:
        first = len(self.trigrams)
        return dict(zip(self.words, range(first, first + len(self.words)), strict=True))

    def __len__(self) -> int:
        """The number of features, which is the number of rows of the input weights."""
        dimensions = 0 if self.vectors is None else self.vectors.dim
        return len(self.trigrams) + len(self.words) + dimensions

    def __str__(self) -> str:
        parts = [f"{len(self.trigrams):,} letter trigrams"]
        if self.words:
            parts.append(f"{len(self.words):,} words")
        if self.vectors is not None:
            parts.append(f"vectors of {len(self.vectors):,} words")
        return " and ".join([", ".join(parts[:-1]), parts[-1]]) if parts[1:] else parts[0]

    @classmethod
    def collect(
        cls,
        *tokens: Tokens,
        word_features: int = 0,
        max_word_features: int | None = None,
        splitting: str = WHITE_SPACE,
    ) -> Vocabulary:
        """Collect all trigrams, most frequent first, ties in alphabetical order.

        Rows of frequent trigrams then share memory pages, which makes training faster.

        Parameters
        ----------
        *tokens : Tokens
            The texts to collect from.
        word_features : int
            Also collect the words that occur at least this often in all ``tokens`` together; 0
            collects none.
        max_word_features : int, optional
            At most this many words, the most frequent ones; by default all.
        splitting : str
            How ``tokens`` were split into words.
        """
        keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
        used = [np.bincount(texts.word_index, minlength=len(texts.words)) for texts in tokens]
        for texts, uses in zip(tokens, used, strict=True):
            for first in range(0, len(texts.words), _PORTION):
                portion_keys, lengths = _keys_of_all(texts.words[first : first + _PORTION])
                portion_counts = np.repeat(uses[first : first + _PORTION], lengths)
                keys, inverse = np.unique(np.concatenate([keys, portion_keys]), return_inverse=True)
                summed = np.bincount(inverse, np.concatenate([counts, portion_counts]), keys.size)
                counts = summed.astype(np.int64)
        # Keys are in alphabetical order.
        trigrams = _trigrams(keys[np.argsort(-counts, kind="stable")])
        frequent = _frequent_words(tokens, used, word_features) if word_features else {}
        return cls(trigrams, _most_frequent_first(frequent)[:max_word_features], splitting)

    def grown(self, vocabulary: Vocabulary) -> Vocabulary:
        """This vocabulary with the features of ``vocabulary`` that it lacks appended."""
        return Vocabulary(
            [*self.trigrams, *(t for t in vocabulary.trigrams if t not in self._trigram_ids)],
            [*self.words, *(word for word in vocabulary.words if word not in self._word_ids)],
            self.splitting,
            self.vectors,
        )

    def with_vectors(self, vectors: WordFeatures | None) -> Vocabulary:
        """This vocabulary with the dimensions of ``vectors`` in place of its own."""
        return Vocabulary(self.trigrams, self.words, self.splitting, vectors)

    def rows_of(self, vocabulary: Vocabulary) -> NDArray[np.int64]:
        """The rows that the features of ``vocabulary`` have here, (len(vocabulary),) int64.

        Every feature of ``vocabulary`` must be in this one; dimensions of word vectors are those of
        the same vectors.
        """
        rows = [self._trigram_ids[trigram] for trigram in vocabulary.trigrams]
        rows += [self._word_ids[word] for word in vocabulary.words]
        if vocabulary.vectors is not None:
            rows += range(len(self) - vocabulary.vectors.dim, len(self))
        return np.array(rows, np.int64)

    def occurrences(self, words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The known trigrams and words of ``words``; a repeated trigram is listed each time.

        Returns
        -------
        word_numbers, ids : (k,) int64
            Word ``word_numbers[j]`` of the list has the feature ``ids[j]``.
        """
        word_numbers = np.zeros(0, np.int64)
        known = np.zeros(0, np.int64)
        keys, ids = self._trigram_keys
        if keys.size:
            sought, lengths = _keys_of_all(words)
            slots = np.minimum(np.searchsorted(keys, sought), keys.size - 1)
            known = np.where(keys[slots] == sought, ids[slots], -1)
            # A word of n letters has n trigrams.
            word_numbers = np.repeat(np.arange(len(words)), lengths)
        if self.words:
            whole = [self._word_ids.get(word, -1) for word in words]
            known = np.concatenate([known, np.array(whole, np.int64)])
            word_numbers = np.concatenate([word_numbers, np.arange(len(words))])
        return word_numbers[known >= 0], known[known >= 0]

    @cached_property
    def _trigram_keys(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The `_keys` of all trigrams in ascending order, and their ids."""
        ids = [k for k, trigram in enumerate(self.trigrams) if len(trigram) == _LETTERS]
        codes = _codes("".join(self.trigrams[k] for k in ids)).reshape(-1, _LETTERS)
        keys = _keys(*codes.T)
        order = np.argsort(keys)
        return keys[order], np.array(ids, np.int64)[order]

    def features_of_all(self, words: Sequence[str]) -> FeatureLists:
        """The known features of each of ``words``, in ascending order of their ids.

        The order is the same everywhere, so that the sum of a word's rows has the same bits
        everywhere.
        """
        portions = [
            self._features_of_portion(words[first : first + _PORTION])
            for first in range(0, max(1, len(words)), _PORTION)
        ]
        if len(portions) == 1:
            return portions[0]
        starts = np.cumsum([0] + [portion.offsets[-1] for portion in portions])
        offsets = [
            portion.offsets[1:] + start for portion, start in zip(portions, starts, strict=False)
        ]
        return FeatureLists(
            np.concatenate([[0], *offsets]),
            np.concatenate([portion.ids for portion in portions]),
            np.concatenate([portion.values for portion in portions]),
        )

    def _features_of_portion(self, words: Sequence[str]) -> FeatureLists:
        word_numbers, ids = self.occurrences(words)
        keys = word_numbers * len(self) + ids
        # A word may hold the same trigram more than once.
        keys, counts = np.unique(keys, return_counts=True)
        values = counts.astype(np.float32)
        if self.vectors is not None:
            of_words, numbers = self.vectors.of(words)
            first = len(self) - self.vectors.dim
            dimensions = (of_words * len(self) + first)[:, None] + np.arange(self.vectors.dim)
            keys = np.concatenate([keys, dimensions.ravel()])
            values = np.concatenate([values, numbers.ravel()])
            order = np.argsort(keys, kind="stable")
            keys, values = keys[order], values[order]
        per_word = np.bincount(keys // max(1, len(self)), minlength=len(words))
        return FeatureLists(
            np.concatenate([[0], np.cumsum(per_word)]),
            (keys % max(1, len(self))).astype(np.int32),
            values,
        )

    def knows(self, words: Sequence[str]) -> NDArray[np.bool_]:
        """Whether each word has a known feature, (len(words),) bool."""
        known = np.zeros(len(words), np.bool_)
        known[self.occurrences(words)[0]] = True
        if self.vectors is not None:
            known[self.vectors.of(words)[0]] = True
        return known

    def features(self, word: str) -> dict[int, float]:
        """The known features of ``word`` as a dict from id to value, in ascending order of ids."""
        of_word = self.features_of_all([word])
        return dict(zip(of_word.ids.tolist(), of_word.values.tolist(), strict=True))

    def text_of(self, words: Iterable[str]) -> str:
        """The text of which `split` makes ``words``, which are some of those of a text."""
        return text_of_words(words) if self.splitting == LETTERED else " ".join(words)

    def batch(self, texts: Iterable[str]) -> TextBatch:
        """``texts`` as a `TextBatch`."""
        return batch_of(tokenize(texts, self.split), self)


def _codes(letters: str) -> NDArray[np.int64]:
    """The number of each letter in Unicode."""
    return np.frombuffer(letters.encode("utf-32-le", "surrogatepass"), "<u4").astype(np.int64)


def _keys(*codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """One number for each trigram, from its three letters."""
    first, second, third = codes
    return (first << 2 * _LETTER_BITS) | (second << _LETTER_BITS) | third


def _trigrams(keys: NDArray[np.int64]) -> list[str]:
    shifts = _LETTER_BITS * np.arange(_LETTERS - 1, -1, -1)
    codes = keys[:, None] >> shifts & ((1 << _LETTER_BITS) - 1)
    letters = codes.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    return [letters[k : k + _LETTERS] for k in range(0, len(letters), _LETTERS)]


def _keys_of_all(words: Sequence[str]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The keys of the trigrams of all words, one after the other, and how many each word has."""
    lengths = np.fromiter(map(len, words), np.int64, len(words))
    codes = _codes("".join(f"#{word}#" for word in words))
    keys = _keys(codes[:-2], codes[1:-1], codes[2:])
    # The last two letters of each word begin no trigram.
    begins = np.ones(codes.size, np.bool_)
    ends = np.cumsum(lengths + 2)
    begins[ends - 1] = begins[ends - 2] = False
    return keys[begins[:-2]], lengths


def _frequent_words(
    tokens: Sequence[Tokens], used: Sequence[NDArray[np.integer]], least: int
) -> dict[str, int]:
    """Counts, in all ``tokens`` together, of each word that occurs ``least`` times or more.

    ``used`` has the uses of each word in each of the lists. Words that are too rare in every list
    are never kept: most words are.
    """
    share = -(-least // max(1, len(tokens)))
    counts = dict.fromkeys(
        (
            word
            for texts, uses in zip(tokens, used, strict=True)
            for word, _ in _words_used(texts, uses >= share, uses)
        ),
        0,
    )
    for texts, uses in zip(tokens, used, strict=True):
        for word, count in _words_used(texts, uses > 0, uses):
            if word in counts:
                counts[word] += count
    return {word: count for word, count in counts.items() if count >= least}


def _words_used(
    texts: Tokens, which: NDArray[np.bool_], uses: NDArray[np.integer]
) -> Iterator[tuple[str, int]]:
    """Some of the words, and how often each is used."""
    for first in range(0, len(texts.words), _PORTION):
        part = slice(first, first + _PORTION)
        yield from compress(zip(texts.words[part], uses[part].tolist(), strict=True), which[part])


def _most_frequent_first(counts: Mapping[str, float]) -> list[str]:
    return sorted(counts, key=lambda item: (-counts[item], item))
