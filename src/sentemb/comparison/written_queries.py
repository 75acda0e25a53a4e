"""Queries that no log has, drawn from a catalogue: names of titles, and random letters.

A name is a word, or two words of a title in their order, that one title alone has and nobody has
clicked for. Its title should come first. Random letters should find nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

import numpy as np

from sentemb.evaluation.kinds import WrittenQueries
from sentemb.retrieval.postings import Postings
from sentemb.search.ranking.floor_fit import random_letters
from sentemb.text.hashes import hash_of, hashes_of
from sentemb.text.words import exact_key, folded_words

# Names of each length, and texts of random letters, that are drawn at most.
MOST = 300
_SEED = 1  # the floor is fitted to letters of seed 0
# Titles that are tried for one name.
_TRIES = 8


def measure_written(
    answer: Callable[[Sequence[str]], Sequence[int]],
    titles: Sequence[str],
    typed: Sequence[str],
    has_floor: bool,
) -> WrittenQueries | None:
    """Measure a ranking of ``titles``, or return None if no title has a name.

    ``answer`` gives the place of the first title for each query, -1 where nothing is found;
    ``typed`` are the queries of the log.
    """
    names = drawn_names(titles, set(map(exact_key, typed)))
    if not names[0] and not names[1]:
        return None
    first, n_nothing = [], 0
    for of_length in names:
        ranked_first = answer([query for query, _ in of_length])
        n_nothing += sum(t < 0 for t in ranked_first)
        hits = [
            t >= 0 and titles[t] == title
            for t, (_, title) in zip(ranked_first, of_length, strict=True)
        ]
        first.append(float(np.mean(hits)) if hits else 1.0)
    letters = None
    if has_floor:
        letters = float(np.mean([t < 0 for t in answer(random_letters(_SEED, MOST))]))
    counts = len(names[0]), len(names[1])
    return WrittenQueries(counts, (first[0], first[1]), n_nothing / sum(counts), letters)


def drawn_names(titles: Sequence[str], typed: Set[str]) -> list[list[tuple[str, str]]]:
    """Names of one word, then of two, each with its title; ``typed`` are the keys of queries."""
    draw = np.random.default_rng(_SEED)
    words = [folded_words(title) for title in titles]
    keys = hashes_of([word for of_title in words for word in of_title])
    title_of = np.repeat(np.arange(len(titles)), list(map(len, words)))
    postings, _ = Postings.of(keys, title_of, len(titles))
    # Titles of equal text are one title.
    texts = {text: t for t, text in reversed(list(enumerate(titles)))}
    names: list[list[tuple[str, str]]] = [[], []]
    seen = set(typed)
    for t in draw.permutation(len(titles)).tolist():
        distinct = list(dict.fromkeys(words[t]))
        for length, of_length in enumerate(names, 1):
            for _ in range(_TRIES if len(distinct) >= length and len(of_length) < MOST else 0):
                chosen = np.sort(draw.choice(len(distinct), length, replace=False)).tolist()
                query = " ".join(distinct[k] for k in chosen)
                asked = np.array([hash_of(distinct[k]) for k in chosen], np.int64)
                holding = {texts[titles[h]] for h in postings.holding_all(asked).tolist()}
                if len(holding) == 1 and exact_key(query) not in seen:
                    seen.add(exact_key(query))
                    of_length.append((query, titles[t]))
                    break
    return names
