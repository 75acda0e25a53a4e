"""A click log of pseudo-words, of any size: what the speed benchmark trains on.

Words are random letters, so that an alphabet of k letters gives about k³ letter trigrams; their
frequencies follow Zipf's law. Texts are drawn word by word, all from one seed.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np

# Lower-case letters that stay single characters: enough for 200,000 trigrams and more.
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿœšžłđ"
LEXICON = 100_000


def write_log(path, pairs, trigrams=50_000, query_words=3.6, title_words=7.3, spread=True):
    """Write ``pairs`` lines ``query<TAB>title``.

    Parameters
    ----------
    path : path
        The log, replaced if it exists.
    pairs : int
        Lines to write.
    trigrams : int
        Approximate number of distinct letter trigrams, if there are enough words.
    query_words, title_words : float
        Mean number of words.
    spread : bool
        Whether lengths vary (one more than a Poisson number); otherwise all texts are as long as
        the mean.
    """
    rng = np.random.default_rng([pairs, trigrams])
    words = np.array(lexicon(trigrams, rng))
    frequencies = 1 / np.arange(3, words.size + 3)
    cumulative = np.cumsum(frequencies / frequencies.sum())
    sides = []
    for mean in (query_words, title_words):
        lengths = 1 + rng.poisson(mean - 1, pairs) if spread else np.full(pairs, int(mean))
        places = np.searchsorted(cumulative, rng.random(lengths.sum()))
        tokens = words[np.minimum(places, words.size - 1)].tolist()
        ends = np.cumsum(lengths).tolist()
        sides.append([" ".join(tokens[a:b]) for a, b in pairwise([0, *ends])])
    lines = "".join(f"{query}\t{title}\n" for query, title in zip(*sides, strict=True))
    Path(path).write_text(lines, encoding="utf-8")


def lexicon(trigrams, rng):
    """Distinct pseudo-words of 3 to 11 letters, in random order."""
    size = next(k for k in range(2, len(LETTERS) + 1) if k**3 + 2 * k**2 >= 0.98 * trigrams)
    letters = np.array(list(LETTERS[:size]))
    lengths = rng.integers(3, 12, LEXICON)
    text = "".join(letters[rng.integers(0, size, lengths.sum())])
    ends = np.cumsum(lengths).tolist()
    return list(dict.fromkeys(text[a:b] for a, b in pairwise([0, *ends])))


def mixed_titles(titles, n):
    """Titles of the first words of one title and the last words of another."""
    rng = np.random.default_rng(0)
    words = [title.split() for title in titles]
    chosen = rng.integers(0, len(words), (n, 2))
    return [
        " ".join(words[a][: (len(words[a]) + 1) // 2] + words[b][len(words[b]) // 2 :])
        for a, b in chosen.tolist()
    ]
