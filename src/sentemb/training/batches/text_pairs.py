"""The texts of both sides of pairs as integers, in memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from sentemb.text.batch import Numbering, TextBatch, Tokens, batch_of, tokenize
from sentemb.text.vocabulary import Vocabulary
from sentemb.text.word_features import WordFeatures
from sentemb.text.words import NEW, SPLITTINGS
from sentemb.training.batches.text_list import TextList

# From how often texts have each word to the features of word vectors.
VectorsOf: TypeAlias = Callable[[Mapping[str, int]], WordFeatures]

# From a splitting to the words of all texts, by side.
TokensOf: TypeAlias = Callable[[str], Mapping[str, Tokens]]

# Texts per portion; the projected words of one portion are in memory at once.
_PORTION = 16_384
# Numbers that are converted at a time.
_VALUES = 1 << 20


class TextPairs:
    """Queries and titles, ready for training.

    queries, titles : the distinct texts of each side
    one_list : whether queries and titles have one list of words, because one table reads both
    word_features, max_word_features : for the vocabulary that is collected: see
        `Vocabulary.collect`
    vocabulary : the features to read, and how texts are split; by default they are collected: all
        trigrams of the texts and their frequent words. The attribute is the one in use, grown or
        not.
    splitting : how texts are split where no vocabulary is given, see
        `sentemb.text.words.SPLITTINGS`
    grow : whether the features that the given vocabulary lacks are collected and added to it
    most_words : how many words are kept of each text, by default all; the attribute ``n_cut``
        counts the texts that had more
    whole_words : whether the vocabulary that is collected has frequent words only, without trigrams
    vectors : called with how often the texts have each word; its result becomes the word vectors of
        the vocabulary
    tokens : gives the words of the texts by side for a splitting; by default the texts are split
        here
    """

    def __init__(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        *,
        one_list: bool,
        word_features: int,
        max_word_features: int | None = None,
        vocabulary: Vocabulary | None = None,
        splitting: str = NEW,
        grow: bool = False,
        most_words: int | None = None,
        whole_words: bool = False,
        vectors: VectorsOf | None = None,
        tokens: TokensOf | None = None,
    ) -> None:
        splits_as = splitting if vocabulary is None else vocabulary.splitting
        lists: Mapping[str, Tokens]
        if tokens is None:
            lists = _tokenized(queries, titles, splits_as, one_list)
        else:
            lists = tokens(splits_as)
            lists = {"query": _joined(lists["query"], lists["document"])} if one_list else lists
        self.n_cut = 0
        if most_words is not None:
            self.n_cut = sum(
                int(np.count_nonzero(np.diff(of_side.offsets) > most_words))
                for of_side in lists.values()
            )
            lists = {side: _cut(of_side, most_words) for side, of_side in lists.items()}
        if vocabulary is None or grow:
            collected = Vocabulary.collect(
                *lists.values(),
                word_features=word_features,
                max_word_features=max_word_features,
                splitting=splitting,
            )
            if whole_words:
                collected = Vocabulary([], collected.words, splitting)
            vocabulary = collected if vocabulary is None else vocabulary.grown(collected)
        if vectors is not None:
            vocabulary = vocabulary.with_vectors(vectors(_uses(lists.values())))
        self.vocabulary = vocabulary
        self.n_queries, self.n_titles = len(queries), len(titles)
        self._texts = {
            side: TextList(batch_of(of_side, vocabulary)) for side, of_side in lists.items()
        }
        self._one_list = one_list

    def arrays(self) -> Iterator[np.ndarray]:
        """All arrays of the texts, for a fingerprint; one that is converted comes in parts."""
        for texts in self._texts.values():
            for field in fields(texts.batch):
                array = getattr(texts.batch, field.name)
                if field.name == "feature_values" and self.vocabulary.vectors is None:
                    # Counts, as earlier versions had them.
                    for first in range(0, array.size, _VALUES):
                        yield array[first : first + _VALUES].astype(np.int32)
                else:
                    yield array

    def seen(self, side: str) -> NDArray[np.int32]:
        """The features in the texts of ``side`` ("query" or "document")."""
        return self._texts[self._list_of(side)].batch.input_rows

    def unknown_share(self) -> float:
        """The share of the words of all queries and titles that have no known feature."""
        known = total = 0
        for texts in (text_list.batch for text_list in self._texts.values()):
            has_features = np.diff(texts.feature_offsets) > 0
            known += int(np.count_nonzero(has_features[texts.word_index]))
            total += texts.word_index.size
        return 1 - known / total if total else 1.0

    def texts(self, side: str, numbers: NDArray[np.int32]) -> TextBatch:
        """Some queries (``side`` "query") or titles ("document"), in this order.

        ``numbers`` (k,) are all different.
        """
        return self._texts[self._list_of(side)].take(numbers + np.int32(self._first(side)))

    def texts_of_both(
        self, queries: NDArray[np.int32], titles: NDArray[np.int32]
    ) -> tuple[TextBatch, TextBatch]:
        """Some queries and some titles; of one list a batch of both, twice."""
        if not self._one_list:
            return self.texts("query", queries), self.texts("document", titles)
        numbers = np.concatenate([queries, titles + np.int32(self.n_queries)])
        both = self._texts["query"].take(numbers)
        return both, both

    def _take(
        self, whole: "TextPairs", queries: NDArray[np.int32], titles: NDArray[np.int32]
    ) -> None:
        """Have some queries and titles of ``whole`` as all texts."""
        both = whole.texts_of_both(queries, titles)
        self.n_queries, self.n_titles = queries.size, titles.size
        self._texts = {
            side: TextList(batch)
            for side, batch in zip(whole._texts, both, strict=False)  # of one list both are equal
        }

    def portions(self, side: str) -> Iterator[TextBatch]:
        """All texts of ``side`` in order, in batches of limited size."""
        n_texts = self.n_queries if side == "query" else self.n_titles
        for low in range(0, n_texts, _PORTION):
            yield self.texts(side, np.arange(low, min(low + _PORTION, n_texts), dtype=np.int32))

    def _list_of(self, side: str) -> str:
        """The list that holds the texts of ``side``."""
        return "query" if self._one_list else side

    def _first(self, side: str) -> int:
        """Where the texts of ``side`` begin in their list."""
        return self.n_queries if self._one_list and side == "document" else 0


def _uses(tokens: Iterable[Tokens]) -> Counter[str]:
    """How often the texts of all ``tokens`` have each word."""
    uses: Counter[str] = Counter()
    for of_side in tokens:
        counts = np.bincount(of_side.word_index, minlength=len(of_side.words))
        uses.update(dict(zip(of_side.words, counts.tolist(), strict=True)))
    return uses


def _tokenized(
    queries: Sequence[str], titles: Sequence[str], splitting: str, one_list: bool
) -> dict[str, Tokens]:
    """The words of queries and titles, of both together with ``one_list``."""
    texts_of = {"query": queries, "document": titles}
    if one_list:
        texts_of = {"query": [*queries, *titles]}
    return {side: tokenize(texts, SPLITTINGS[splitting]) for side, texts in texts_of.items()}


def _joined(queries: Tokens, titles: Tokens) -> Tokens:
    """The tokens of one list of texts: ``queries``, then ``titles``."""
    numbers = Numbering({word: number for number, word in enumerate(queries.words)})
    renumbered = np.fromiter(map(numbers.__getitem__, titles.words), np.int32, len(titles.words))
    return Tokens(
        word_index=np.concatenate([queries.word_index, renumbered[titles.word_index]]),
        offsets=np.concatenate([queries.offsets, titles.offsets[1:] + queries.offsets[-1]]),
        words=list(numbers),
    )


def _cut(tokens: Tokens, most: int) -> Tokens:
    """``tokens`` without the words after the first ``most`` of each text."""
    lengths = np.minimum(np.diff(tokens.offsets), most)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    positions = np.arange(offsets[-1]) + np.repeat(tokens.offsets[:-1] - offsets[:-1], lengths)
    return replace(tokens, word_index=tokens.word_index[positions], offsets=offsets)
