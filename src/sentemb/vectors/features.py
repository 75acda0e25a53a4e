"""Word vectors as features of a model: their principal components, at the scale of its weights."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError
from sentemb.kernels.matmul import add_matmul
from sentemb.kernels.sif import orthogonalise_rows
from sentemb.system.paths import AnyPath
from sentemb.text.word_features import WordFeatures
from sentemb.text.words import without_edges
from sentemb.vectors.reading import read_word_vectors
from sentemb.vectors.word_vectors import WordVectors

# The mean squared length of a word's numbers. A word of 7 letters holds as many trigrams, each
# once, so this is about what its trigrams contribute to the projection at the start.
_SQUARED_LENGTH = 7.0
_SWEEPS = 100
_BLOCK = 4096


@dataclass(frozen=True, eq=False)
class VectorSource:
    """Word vectors that a training takes as features.

    Attributes
    ----------
    vectors : path or WordVectors
        See `read_word_vectors`.
    dim : int
        How many principal components become features.
    most_words : int
        How many words of the file, from its start, have features even if the log lacks them.
    """

    vectors: AnyPath | WordVectors
    dim: int
    most_words: int

    def features(self, log_words: Iterable[str]) -> WordFeatures:
        """The features: of the first words of the file, and of all words of the log that it has."""
        wanted = {form for word in log_words for form in (word, without_edges(word))}
        found = _lower_cased(self._kept(wanted))
        return WordFeatures(found.words, _components(found, self.dim))

    def _kept(self, wanted: set[str]) -> WordVectors:
        """The first words of the file, and after them the wanted ones that come later in it."""
        if isinstance(self.vectors, WordVectors):
            words = self.vectors.words
            rows = [r for r, word in enumerate(words) if r < self.most_words or word in wanted]
            return self.vectors.take(rows)
        first = read_word_vectors(self.vectors, limit=self.most_words)
        first = first.take(range(len(first)))
        if len(first) < self.most_words:
            return first
        known = set(first.words)
        try:
            more = read_word_vectors(self.vectors, words=wanted)
        except SentembError:  # none of the log's words has a vector
            return first
        later = [row for row, word in enumerate(more.words) if word not in known]
        rest = more.take(later)
        return replace(
            first,
            words=[*first.words, *rest.words],
            vectors=np.concatenate([first.vectors, rest.vectors]),
            counts=None,
        )


def _lower_cased(vectors: WordVectors) -> WordVectors:
    """``vectors`` with lower-cased words; of words that are then equal the first is kept."""
    rows: dict[str, int] = {}
    for row, word in enumerate(vectors.words):
        rows.setdefault(word.lower(), row)
    found = vectors.take(list(rows.values()))
    return replace(found, words=list(rows))


def _components(vectors: WordVectors, dim: int) -> NDArray[np.float16]:
    """The first ``dim`` principal components of the vectors, scaled: (n, dim)."""
    d = vectors.dim
    mean = np.zeros(d)
    for _, rows in _portions(vectors):
        mean += rows.sum(axis=0)
    mean /= len(vectors)
    second = np.zeros((d, d))
    for _, rows in _portions(vectors):
        centred = np.ascontiguousarray(rows - mean)
        add_matmul(second, centred.T, centred)
    total = np.trace(second)
    second /= total
    orthogonalise_rows(second, _SWEEPS)
    shares = np.sqrt(np.einsum("ij,ij->i", second, second))
    order = np.argsort(-shares, kind="stable")[:dim]
    directions = second[order] / shares[order, None]
    # The mean squared length is the sum of the eigenvalues that are kept.
    kept = total * shares[order].sum() / len(vectors)
    directions *= math.sqrt(_SQUARED_LENGTH / kept)
    turned = np.ascontiguousarray(directions.T)
    numbers = np.empty((len(vectors), dim), np.float16)
    for first, rows in _portions(vectors):
        product = np.zeros((len(rows), dim))
        add_matmul(product, np.ascontiguousarray(rows - mean), turned)
        numbers[first : first + len(rows)] = product
    return numbers


def _portions(vectors: WordVectors) -> Iterator[tuple[int, NDArray[np.float64]]]:
    """Yield ``(first, rows)`` as float64."""
    for first in range(0, len(vectors), _BLOCK):
        yield first, vectors.vectors[first : first + _BLOCK].astype(np.float64)
