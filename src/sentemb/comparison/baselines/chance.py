"""Random scores: the floor that any ranker must beat."""

import hashlib
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from sentemb.comparison.baselines.baseline import Baseline
from sentemb.data.click_log import ClickLog


class Chance(Baseline):
    """The score is a hash of seed, query and title, so it depends on nothing else."""

    name = "random"
    is_random = True

    def fit(self, log: ClickLog | None, titles: Sequence[str] = (), seed: int = 0) -> Self:
        """Keep the seed; see `Baseline.fit`."""
        self._seed = seed
        return self

    def score_pairs(
        self,
        queries: Sequence[str],
        titles: Sequence[str],
        query_index: NDArray[np.integer],
        title_index: NDArray[np.integer],
    ) -> NDArray[np.float64]:
        """Random numbers from 0 to 1, (k,) float64; see `sentemb.models.contracts.Ranker`."""
        pairs = zip(query_index, title_index, strict=True)
        return np.array([self._score(queries[q], titles[t]) for q, t in pairs], np.float64)

    def _score(self, query: str, title: str) -> float:
        text = f"{self._seed}\0{query}\0{title}".encode("utf-8", "surrogatepass")
        return int.from_bytes(hashlib.blake2b(text, digest_size=6).digest(), "big") / 2**48
