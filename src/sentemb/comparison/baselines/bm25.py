"""BM25, with and without Porter stems, as a baseline; see `sentemb.retrieval.bm25`.

The collection consists of the titles that are ranked.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines.baseline import Baseline
from sentemb.retrieval.bm25 import K1, MAX_K1, B, TitleWords
from sentemb.retrieval.words_and_stems import words_of
from sentemb.system.bounds import number, share


class BM25(Baseline):
    """BM25 scores of the titles among each other.

    ``k1`` is the saturation of a word's count, and ``b`` how much a title's length reduces it.
    ``stem`` reduces words to their English Porter stems (PyStemmer).
    """

    name = "bm25"
    grid = tuple({"k1": k1, "b": b} for k1 in (0.5, 0.9, 1.5) for b in (0.4, 0.75))

    def __init__(self, k1: float = K1, b: float = B, stem: bool = False) -> None:
        self.k1, self.b, self.stem = number("k1", k1, 0, MAX_K1), share("b", b), stem
        self._words = words_of("porter" if stem else None)

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """BM25 scores, (k,) float64; see `sentemb.models.contracts.Ranker`."""
        by_words = TitleWords(titles, self.k1, self.b, self._words)
        return by_words.score_pairs(queries, query_index, title_index)
