"""Averages of word vectors over texts, and their moments, without a matrix of all texts."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sentemb.kernels.sif import add_moments, average_words
from sentemb.system.parallel import PRODUCTS, Workers, spans, spread
from sentemb.text.batch import Tokens


@dataclass(frozen=True, eq=False)
class Moments:
    """Sums over the averages x of the ``n_texts`` texts that have at least one known word.

    second : (d, d) float64, sum of x x^T, not centred
    first : (d,) float64, sum of x
    """

    second: NDArray[np.float64]
    first: NDArray[np.float64]
    n_texts: int

    def __add__(self, addend: "Moments") -> "Moments":
        return Moments(
            self.second + addend.second, self.first + addend.first, self.n_texts + addend.n_texts
        )


def only_known(tokens: Tokens, is_known: NDArray[np.bool_]) -> Tokens:
    """``tokens`` without the words where ``is_known``, (n_words,), is false."""
    if is_known.all():
        return tokens
    new_index = np.cumsum(is_known, dtype=np.int32) - np.int32(1)
    stays = is_known[tokens.word_index]
    before = np.concatenate([[0], np.cumsum(stays)])
    return Tokens(
        word_index=new_index[tokens.word_index[stays]],
        offsets=before[tokens.offsets],
        words=[word for word, yes in zip(tokens.words, is_known, strict=True) if yes],
    )


def averages(table: np.ndarray, tokens: Tokens, workers: Workers) -> np.ndarray:
    """The mean of each text's rows, (n_texts, d), zero for a text without words.

    ``table`` is (n_words, d) float32 or float64, a row for each of ``tokens.words``; the result has
    its dtype.
    """
    X = np.empty((tokens.offsets.size - 1, table.shape[1]), table.dtype)
    arguments = X, table, tokens.word_index, tokens.offsets
    cost = table.shape[1] * (1 + tokens.word_index.size / max(1, len(X)))
    workers.run(spread(len(X), average_words, *arguments, cost=cost))
    return X


def moments(table: np.ndarray, tokens: Tokens, workers: Workers) -> Moments:
    """The moments of the `averages`, which are computed a few at a time and not kept."""
    d, n_texts = table.shape[1], tokens.offsets.size - 1
    texts = spans(n_texts, d * d / PRODUCTS, sums=d * d)
    second, first = np.zeros((len(texts), d, d)), np.zeros((len(texts), d))
    workers.run(
        [
            (add_moments, second[c], first[c], table, tokens.word_index, tokens.offsets, low, high)
            for c, low, high in texts
        ]
    )
    has_words = np.diff(tokens.offsets) > 0
    return Moments(second.sum(axis=0), first.sum(axis=0), int(np.count_nonzero(has_words)))
