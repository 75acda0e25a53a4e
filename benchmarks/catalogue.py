"""A catalogue of any size with its clicked queries: what the benchmarks of large indexes search in.

A title is one of a simulated log and 1 to 4 more words, a query one that was clicked for the title
there, often with one or two of these words. The further words follow Zipf's law over two million
made-up words, so that a large catalogue has as many rare words as a large shop.
"""

from typing import NamedTuple

import numpy as np

from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    CLICKS,
    COSINE,
    MEMORY,
    NAME,
    UNCLICKED,
    Recipe,
)

_WORDS, _EXPONENT = 2_000_000, 1.07
_ONSETS = "b br c ch d dr f g gr h k l m n p pl r s st t tr v w z"
_VOWELS = "a e i o u ai ea oo"
_SYLLABLES = [onset + vowel for onset in _ONSETS.split() for vowel in _VOWELS.split()]
# Weights as a fit gives them.
RECIPE = Recipe(
    {
        COSINE: 3.0, MEMORY: 5.0, BM25: 0.6, CLICKED_BM25: -0.2, UNCLICKED: 0.5, CLICKS: 1.0,
        NAME: 1.0,
    },
    k1=1.2,
)  # fmt: skip


class MadeCatalogue(NamedTuple):
    """``pairs`` are clicked queries and their titles; ``asked`` (m,) queries that are not in them.

    Each of ``asked`` is a query for one title.
    """

    titles: list[str]
    pairs: list[tuple[str, str]]
    asked: list[str]


def made_catalogue(log, n, asked=1000, seed=7):
    """``n`` titles with 2 to 5 clicked queries each, from a `sentemb.data.click_log.ClickLog`."""
    rng = np.random.default_rng(seed)
    offsets = np.append(0, np.cumsum(np.bincount(log.title_index, minlength=len(log.titles))))
    by_title = log.query_index[np.argsort(log.title_index, kind="stable")].tolist()
    frequency = np.cumsum(np.arange(1, _WORDS + 1) ** -_EXPONENT)
    bases = rng.integers(0, len(log.titles), n).tolist()
    n_more, n_queries = 1 + rng.integers(0, 4, n), 2 + rng.integers(0, 4, n)
    drawn = np.searchsorted(frequency / frequency[-1], rng.random(n_more.sum())).tolist()
    draws = rng.random((n, 6, 2))
    chosen = set(rng.choice(n, min(asked, n), replace=False).tolist())
    titles, pairs, held_out, at = [], [], [], 0
    for t, base in enumerate(bases):
        more = [_made(word) for word in drawn[at : at + n_more[t]]]
        at += len(more)
        titles.append(f"{log.titles[base]} {' '.join(more)}")
        clicked = by_title[offsets[base] : offsets[base + 1]]
        for which, share in draws[t, : n_queries[t] + (t in chosen)].tolist():
            words = [log.queries[clicked[int(which * len(clicked))]]]
            count = int(share < 0.7) + int(share < 0.2)
            first = int(which * 997) % len(more)
            words += (more[first:] + more[:first])[:count]
            pairs.append((" ".join(words), titles[-1]))
        if t in chosen:
            held_out.append(pairs.pop()[0])
    return MadeCatalogue(titles, pairs, held_out)


def _made(number):
    """A word of syllables, each number another one."""
    number, word = number + len(_SYLLABLES), ""
    while number:
        number, last = divmod(number, len(_SYLLABLES))
        word += _SYLLABLES[last]
    return word
