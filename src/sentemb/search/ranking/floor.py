"""A floor: whether a query is one that the titles can answer.

A logistic function of what the first title scores and of how the query is written, fitted to dev
queries against nonsense: strings of random letters, and words drawn at random from the titles and
clicked queries. The threshold refuses one dev query in fifty.

    memory     of the first title
    coverage   BM25 of the first title, divided by its limit: the sum of the idf of the words
    letters    mean log probability of the letters of the query's words, each given the two before
    words      mean log of the share of titles that hold each word
    known      the share of words that some title holds
"""

from __future__ import annotations

import math
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.retrieval.bm25 import Statistics
from sentemb.retrieval.words_and_stems import Words
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.recipe import BM25, MEMORY

FEATURES = ("memory", "coverage", "letters", "words", "known")
# The share of dev queries below the floor.
REFUSED = 0.02
_NONSENSE = 300
_RIDGE = 1e-2
_STEPS = 60
# A part of the key of the random numbers, so that no other draw shares them.
_KEY = 0x666C6F6F
# Marks before and behind the letters of a word.
_BEFORE, _BEHIND = "\x02\x02", "\x03"


@dataclass(frozen=True, eq=False)
class Letters:
    """How often letters follow each other in the words of a collection.

    ``counts`` are of three letters in a row, with marks for both ends of a word.
    """

    counts: Mapping[str, int]

    @classmethod
    def of(cls, statistics: Statistics) -> Self:
        """Those of the words that titles hold, each counted once per title."""
        counts: Counter[str] = Counter()
        for word, holding in zip(statistics.words, statistics.holding.tolist(), strict=True):
            for three in _threes(word):
                counts[three] += holding
        return cls(dict(sorted(counts.items())))

    @cached_property
    def _pairs(self) -> dict[str, int]:
        pairs: Counter[str] = Counter()
        for three, count in self.counts.items():
            pairs[three[:2]] += count
        return dict(pairs)

    def log_probability(self, word: str) -> float:
        """The mean over the letters of a word."""
        logs = [
            math.log((self.counts.get(three, 0) + 0.1) / (self._pairs.get(three[:2], 0) + 4))
            for three in _threes(word)
        ]
        return sum(logs) / len(logs)


def _threes(word: str) -> list[str]:
    marked = f"{_BEFORE}{word}{_BEHIND}"
    return [marked[k : k + 3] for k in range(len(marked) - 2)]


@dataclass(frozen=True, eq=False)
class Floor:
    """A fitted floor.

    weights : the intercept, then one for each of `FEATURES`
    threshold : a query with a lower sum is refused
    """

    weights: tuple[float, ...]
    threshold: float
    letters: Letters

    def is_below(
        self,
        queries: Sequence[str],
        ranked: Ranked,
        statistics: Statistics,
        words: Words,
    ) -> NDArray[np.bool_]:
        """Which queries the titles cannot answer, (m,).

        ``ranked`` are their best titles, at least one of each where there is any; ``statistics``
        and ``words`` are those of BM25 over titles and clicked queries.
        """
        x = _features(queries, ranked, statistics, words, self.letters)
        sums = self.weights[0] + x @ np.array(self.weights[1:])
        return np.asarray(sums < self.threshold)

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict, without the letters."""
        return {"weights": list(self.weights), "threshold": self.threshold}


def nonsense(seed: int, statistics: Statistics, queries: Sequence[str]) -> list[str]:
    """Random letters, and random words in the lengths of ``queries``."""
    draw = np.random.default_rng([seed, _KEY])
    letters = list(string.ascii_lowercase)
    texts = [
        " ".join("".join(draw.choice(letters, draw.integers(3, 10))) for _ in range(n))
        for n in draw.integers(1, 4, _NONSENSE).tolist()
    ]
    lengths = [max(1, len(query.split())) for query in queries]
    for n in draw.choice(lengths, _NONSENSE).tolist():
        numbers = draw.integers(0, len(statistics.words), n).tolist()
        texts.append(" ".join(statistics.words[k] for k in numbers))
    return texts


def fit_floor(
    queries: Sequence[str],
    ranked: Ranked,
    unanswerable: Sequence[str],
    ranked_for_them: Ranked,
    statistics: Statistics,
    words: Words,
) -> Floor:
    """The floor between real queries and nonsense.

    ``queries`` are dev queries and ``unanswerable`` those of `nonsense`, each with its best titles;
    the other parameters are as for `Floor.is_below`.
    """
    letters = Letters.of(statistics)
    real = _features(queries, ranked, statistics, words, letters)
    unreal = _features(unanswerable, ranked_for_them, statistics, words, letters)
    x = np.concatenate([real, unreal])
    y = np.concatenate([np.ones(len(real)), np.zeros(len(unreal))])
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    deviation[deviation == 0] = 1
    z = np.concatenate([np.ones((len(x), 1)), (x - mean) / deviation], axis=1)
    w = np.zeros(z.shape[1])
    for _ in range(_STEPS):
        p = 1 / (1 + np.exp(-np.clip(z @ w, -500, 500)))
        curvature = (z.T * (p * (1 - p))) @ z + _RIDGE * np.eye(w.size)
        step = np.linalg.solve(curvature, z.T @ (p - y) + _RIDGE * w)
        w -= step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-8:
            break
    weights = w[1:] / deviation
    intercept = w[0] - float(weights @ mean)
    rounded = tuple(float(f"{weight:.7g}") for weight in (intercept, *weights.tolist()))
    sums = rounded[0] + real @ np.array(rounded[1:])
    return Floor(rounded, float(np.quantile(sums, REFUSED)), letters)


def _features(
    queries: Sequence[str],
    ranked: Ranked,
    statistics: Statistics,
    words: Words,
    letters: Letters,
) -> NDArray[np.float64]:
    """The features of each query, (m, 5)."""
    rows = np.empty((len(queries), len(FEATURES)))
    least = math.log(0.1 / max(statistics.n_titles, 1))
    memory, bm25 = (ranked.values[name][:, 0] for name in (MEMORY, BM25))
    for q, query in enumerate(queries):
        asked = words(query)
        if not asked or ranked.titles[q, 0] < 0:
            rows[q] = (0, 0, letters.log_probability(query.lower()), least, 0)
            continue
        holding = statistics.held_by(asked)
        limit = float(statistics.idf(asked).sum())
        rows[q] = (
            memory[q],
            bm25[q] / limit,
            sum(map(letters.log_probability, asked)) / len(asked),
            float(np.log((holding + 0.1) / max(statistics.n_titles, 1)).mean()),
            float((holding > 0).mean()),
        )
    return rows
