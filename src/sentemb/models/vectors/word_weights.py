"""The weight of a word in the average: SIF's, tf-idf's and others."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.text.batch import Tokens

# The average number of words of a text, as the code of uSIF has it.
_USIF_WORDS = 11


def sif_weights(p: NDArray[np.float64], a: float) -> NDArray[np.float64]:
    """a / (a + p(w)), equation (3): (n,) float64."""
    weights: NDArray[np.float64] = a / (a + p)
    return weights


def usif_weights(p: NDArray[np.float64]) -> NDArray[np.float64]:
    """a / (a / 2 + p(w)) with an a that follows from p: (n,) float64.

    Ethayarajh, "Unsupervised random walk sentence embeddings: a strong but simple baseline" (2018).
    alpha is the share of words with p(w) > 1 - (1 - 1 / n)^11, the chance that 11 words drawn
    uniformly include a given word; a = (1 - alpha) / (alpha Z) with Z = n / 2.
    """
    n_words = p.size
    alpha = float(np.mean(p > 1 - (1 - 1 / n_words) ** _USIF_WORDS))
    # Without such a word, alpha would be 0 and all weights alike.
    a = (1 - alpha) / (max(alpha, 1 / n_words) * n_words / 2)
    weights: NDArray[np.float64] = a / (a / 2 + p)
    return weights


def idf_weights(words: Sequence[str], tokens: Tokens) -> NDArray[np.float64]:
    """log((1 + N) / (1 + N_w)), equation (7): N texts, N_w of them with the word: (n,) float64."""
    n_texts, containing = _text_counts(words, tokens, each_once=True)
    weights: NDArray[np.float64] = np.log((1 + n_texts) / (1 + containing))
    return weights


def idf_code_weights(words: Sequence[str], tokens: Tokens) -> NDArray[np.float64]:
    """log2((2 + N) / (1 + n_w)) as in the authors' code, which counts every occurrence n_w.

    At least 0, (n,) float64: the formula is negative for a word that occurs more than N + 1 times.
    """
    n_texts, occurrences = _text_counts(words, tokens, each_once=False)
    weights: NDArray[np.float64] = np.log2((2 + n_texts) / (1 + occurrences))
    return np.maximum(weights, 0)


def _text_counts(
    words: Sequence[str], tokens: Tokens, each_once: bool
) -> tuple[int, NDArray[np.float64]]:
    """Number of texts, and for each word the number of texts or of tokens with it."""
    n_texts = tokens.offsets.size - 1
    index: NDArray[np.integer] = tokens.word_index
    if each_once:
        text_of_token = np.repeat(np.arange(n_texts), np.diff(tokens.offsets))
        index = np.unique(text_of_token * max(len(tokens.words), 1) + index) % max(
            len(tokens.words), 1
        )
    counts = np.bincount(index, minlength=len(tokens.words))
    by_word = dict(zip(tokens.words, counts.tolist(), strict=True))
    return n_texts, np.array([by_word.get(word, 0) for word in words], np.float64)
