"""How lexical rankers split texts into words, with and without stems."""

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from sentemb.errors import SentembError
from sentemb.retrieval.tokenizing import tokenize_all
from sentemb.system.bounds import brief
from sentemb.system.extras import package
from sentemb.text.batch import Numbering, Tokens
from sentemb.text.words import searched_pairs, searched_words

# Splits a text into words.
Words: TypeAlias = Callable[[str], list[str]]


class Stems:
    """Words without punctuation, reduced to their stems by the package PyStemmer.

    ``language`` is a stemmer of Snowball, such as ``english``, ``german`` or ``porter``, and
    ``split`` makes the words. Raises `SentembError` for another name, or if the package is missing.
    """

    def __init__(self, language: str, split: Words = searched_words) -> None:
        stemmer = package("Stemmer", "stems")
        if language not in stemmer.algorithms():
            raise SentembError(
                f"{brief(language)} is not a stemmer of Snowball; give one, such as english, "
                "german, french or porter"
            )
        self.language, self.split = language, split
        self.of_words: Callable[[list[str]], list[str]] = stemmer.Stemmer(language).stemWords

    def __call__(self, text: str) -> list[str]:
        """The stems of the words of ``text``."""
        return self.of_words(self.split(text))

    def of_tokens(self, plain: Tokens) -> Tokens:
        """Texts that ``split`` has split, as stems; each distinct word is stemmed once."""
        stems = Numbering()
        numbers = np.array([stems[stem] for stem in self.of_words(list(plain.words))], np.int32)
        return Tokens(numbers[plain.word_index], plain.offsets, list(stems))

    def __reduce__(self) -> tuple[type["Stems"], tuple[str, Words]]:
        # A stemmer cannot be pickled.
        return Stems, (self.language, self.split)


@lru_cache
def words_of(stem: str | None, letters: bool = True) -> Words:
    """`Stems` of a language, or plain words without one.

    ``letters`` says whether scripts without blanks give single letters next to pairs of them.
    """
    split = searched_words if letters else searched_pairs
    return split if stem is None else Stems(stem, split)


def tokens_of(texts: Sequence[str], words: Words) -> Tokens:
    """Split texts into words."""
    if isinstance(words, Stems):
        return words.of_tokens(tokenize_all(texts, words.split))
    return tokenize_all(texts, words)
