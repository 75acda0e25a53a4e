"""p(w): the probability of each word that has a vector."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.errors import SentembError

# What a word without a count gets: Zipf's probability of its rank, 0 or 1.
UNKNOWN = ("rank", "zero", "one")


def zipf(n_words: int) -> NDArray[np.float64]:
    """Zipf's law for words in order of their frequency: p_r ~ 1 / (r + 2), r from 0, sum 1."""
    p = 1 / np.arange(2, n_words + 2, dtype=np.float64)
    total: np.float64 = p.sum()
    return p / total


def relative_frequencies(
    words: Sequence[str], counts: Mapping[str, int], unknown: str = "rank"
) -> NDArray[np.float64]:
    """The relative frequency of each word among all counted words, (n_words,) float64.

    The total includes words that are not in ``words``. ``unknown`` is the probability of a word
    without a count: "rank" for `zipf` of its rank, for which ``words`` must be in the order of
    their frequency, "zero" for 0 (so that SIF gives it the weight 1, as the authors' code does) or
    "one" for 1 (almost no weight). Raises `SentembError` if all counts are zero.
    """
    total = sum(counts.values())
    if total <= 0:
        raise SentembError("there are no counts of words to compute probabilities from; give some")
    counted = np.array([counts.get(word, 0) for word in words], np.float64)
    p: NDArray[np.float64] = counted / total
    unseen = counted == 0
    if unknown == "rank":
        p[unseen] = zipf(len(words))[unseen]
    else:
        p[unseen] = float(unknown == "one")
    return p
