"""A floor: whether a query is one that the titles can answer.

Two rules come before it: a query is answered if the log has clicks for it on a title that is there,
or if one title has all of its words (`sentemb.search.ranking.engine.are_answered`). For the others
a logistic function of what the first title scores and of how the query is written tells real
queries from random letters; `sentemb.search.ranking.floor_fit` fits it. Random *words* are not
refused: they look like the names and short queries that people type.

    memory     of the first title
    coverage   BM25 of the first title, divided by its limit: the sum of the idf of the words
    letters    mean log probability of the letters of the query's words, each given the two before
    words      mean log of the share of titles that hold each word
    known      the share of words that some title holds
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sentemb.retrieval.bm25 import Statistics
from sentemb.search.ranking.engine import Ranked
from sentemb.search.ranking.part import Asked
from sentemb.search.ranking.recipe import BM25, MEMORY

FEATURES = ("memory", "coverage", "letters", "words", "known")
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
        marked, counts, pairs, total = f"{_BEFORE}{word}{_BEHIND}", self.counts, self._pairs, 0.0
        for k in range(len(marked) - 2):
            share = (counts.get(marked[k : k + 3], 0) + 0.1) / (pairs.get(marked[k : k + 2], 0) + 4)
            total += math.log(share)
        return total / (len(marked) - 2)


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

    def is_below(self, asked: Asked, ranked: Ranked, statistics: Statistics) -> NDArray[np.bool_]:
        """Which queries the titles cannot answer, (m,).

        ``ranked`` are their best titles, at least one of each where there is any; ``statistics``
        are those of BM25 over titles and clicked queries.
        """
        x = features_of(asked, ranked, statistics, self.letters)
        sums = self.weights[0] + x @ np.array(self.weights[1:])
        return np.asarray(sums < self.threshold)

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict, without the letters."""
        return {"weights": list(self.weights), "threshold": self.threshold}


def features_of(
    asked: Asked, ranked: Ranked, statistics: Statistics, letters: Letters
) -> NDArray[np.float64]:
    """The features of each query, (m, 5)."""
    rows = np.zeros((len(asked), len(FEATURES)))
    n_titles, tokens = max(statistics.n_titles, 1), asked.tokens
    least, of_words = math.log(0.1 / n_titles), statistics.held_by(asked.packed)
    for q, row in enumerate(rows):
        words = tokens.word_index[tokens.offsets[q] : tokens.offsets[q + 1]]
        if not words.size or ranked.titles[q, 0] < 0:
            row[2:4] = letters.log_probability(asked.queries[q].lower()), least
            continue
        holding, bm25 = of_words[words], ranked.values.get(BM25)
        if MEMORY in ranked.values:
            row[0] = ranked.values[MEMORY][q, 0]
        if bm25 is not None:
            row[1] = bm25[q, 0] / float(np.add.reduce(statistics.idf(holding)))
        of_letters = [letters.log_probability(tokens.words[word]) for word in words.tolist()]
        shares = np.log((holding + 0.1) / n_titles)
        row[2:] = (
            sum(of_letters) / words.size,
            np.add.reduce(shares) / words.size,
            np.count_nonzero(holding) / words.size,
        )
    return rows
