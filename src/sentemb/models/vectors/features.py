"""Word vectors as features of a model: their principal components, at the scale of its weights."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.models.vectors.principal_components import PrincipalComponents
from sentemb.models.vectors.reading import read_word_vectors
from sentemb.models.vectors.vector_options import VECTOR_DIM, VECTOR_WORDS
from sentemb.models.vectors.word_vectors import WordVectors
from sentemb.system.paths import AnyPath
from sentemb.text.word_features import WordFeatures
from sentemb.text.words import without_edges

# The mean squared length of a word's numbers: that of the counts of two trigrams. Chosen on dev.
_SQUARED_LENGTH = 2.0
_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True)
class VectorSource:
    """Word vectors that a training takes as features.

    vectors : see `read_word_vectors`
    vector_dim : how many principal components become features; by default that of `VECTOR_DIM`, or
        all dimensions if the vectors have fewer
    vector_words : how many words, from the first on, have features even if the log lacks them

    Raises `SentembError` for a number of the wrong type or out of bounds.
    """

    vectors: AnyPath | WordVectors
    vector_dim: int | None = None
    vector_words: int = VECTOR_WORDS.default

    def __post_init__(self) -> None:
        VECTOR_DIM.checked(self.vector_dim)
        VECTOR_WORDS.checked(self.vector_words)

    @classmethod
    def of(
        cls,
        vectors: AnyPath | WordVectors | None,
        vector_dim: int | None,
        vector_words: int | None,
    ) -> Self | None:
        """The source for the arguments of `sentemb.train`; None without ``vectors``.

        Raises `SentembError` for settings of vectors without them.
        """
        settings = {"vector_dim": vector_dim, "vector_words": vector_words}
        given = {name: value for name, value in settings.items() if value is not None}
        if vectors is not None:
            return cls(vectors, **given)
        if given:
            raise SentembError(f"{next(iter(given))} is for vectors; give vectors too")
        return None

    @property
    def name(self) -> str:
        """The name of the file or folder."""
        return self._first.name or "word vectors"

    @cached_property
    def _first(self) -> WordVectors:
        """The first words, with their vectors in memory."""
        if isinstance(self.vectors, WordVectors):
            return self.vectors.take(range(min(self.vector_words, len(self.vectors))))
        first = read_word_vectors(self.vectors, limit=self.vector_words)
        return first.take(range(len(first)))

    def features(self, uses: Mapping[str, int], note: Callable[[str], None]) -> WordFeatures:
        """The features of the first words, and of all words of the log that have a vector.

        ``uses`` says how often the log has each of its words; ``note`` is called with the share of
        words that have a vector. Raises `SentembError` if the vectors cannot be read, are shorter
        than ``vector_dim`` or span fewer directions, or no word of the log has one.
        """
        vectors = _lower_cased(
            self._vectors_of({form for w in uses for form in (w, without_edges(w))})
        )
        dim = self.vector_dim
        if dim is None:
            dim = min(VECTOR_DIM.default, vectors.dim)
        elif dim > vectors.dim:
            raise SentembError(
                f"{self.name}: the vectors have {vectors.dim} dimensions and vector_dim is {dim}; "
                "lower it"
            )
        numbers = np.zeros((len(vectors), dim), np.float16)
        features = WordFeatures(vectors.words, numbers)
        known = [word for word in uses if features.row_of(word) >= 0]
        if not known:
            raise SentembError(
                f"{self.name}: no word of the log has a vector; give vectors of the same language"
            )
        _add_components(numbers, vectors, self.name)
        share = sum(uses[word] for word in known) / sum(uses.values())
        note(
            f"{share:.1%} of the words of the log, and {len(known) / len(uses):.1%} of its "
            f"distinct words, have a vector in {self.name}"
        )
        return features

    def record(self, features: WordFeatures) -> dict[str, Any]:
        """The origin of ``features``, for the records of the trained model."""
        origin = {"source": self._first.source, "licence": self._first.licence}
        return {
            "name": self._first.name,
            "dim": features.dim,
            "words": len(features),
            "sha256": features.fingerprint(),
            **{key: value for key, value in origin.items() if value},
        }

    def _vectors_of(self, words: set[str]) -> WordVectors:
        """The first words, and after them those of ``words`` that come later."""
        first = self._first
        if len(first) < self.vector_words:
            return first
        known = set(first.words)
        missing = words - known
        if isinstance(self.vectors, WordVectors):
            later = self.vectors
        elif str(self.vectors) == "-":  # which cannot be read twice
            return first
        else:
            # A word that is there for certain: finding none would be an error.
            later = read_word_vectors(self.vectors, words=[*missing, first.words[0]])
        rest = later.take([row for row, word in enumerate(later.words) if word in missing])
        return replace(
            first,
            words=[*first.words, *rest.words],
            vectors=np.concatenate([first.vectors, rest.vectors]),
            counts=None,
        )


def _lower_cased(vectors: WordVectors) -> WordVectors:
    """``vectors`` with lower-cased words; of words that are then equal the first is kept.

    Words with white space are left out, because no text is split into such, and so are words that
    UTF-8 cannot hold.
    """
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        if word.split() == [word] and not _SURROGATE.search(word):
            rows.setdefault(word.lower(), row)
    distinct = vectors.take(list(rows.values()))
    return replace(distinct, words=list(rows))


def _add_components(numbers: NDArray[np.float16], vectors: WordVectors, name: str) -> None:
    """Add the first principal components of the vectors, scaled, to ``numbers``, (n, dim).

    Without the mean, so that a word without a vector is read like the mean of all words.
    """
    dim = numbers.shape[1]
    components = PrincipalComponents.of(vectors, dim)
    components.expect(dim, name, VECTOR_DIM.name)
    scale = math.sqrt(_SQUARED_LENGTH / components.mean_square)
    for first, rows in components.turned(vectors, scale):
        numbers[first : first + len(rows)] += rows.astype(np.float16)
