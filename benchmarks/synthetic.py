"""Click logs of pseudo-words, of any size: what the speed benchmarks train on.

The *uniform* log has words of random letters, so that an alphabet of k letters gives about k³
letter trigrams, all about equally frequent: the worst case, since a mini-batch touches several
times the trigrams that it touches in a real log. The *realistic* log has pronounceable stems with
English endings, and a few per cent of random codes such as part numbers, nearly all of them new.
Frequencies of words follow Zipf's law in both. Texts are drawn word by word, all from one seed.
"""

from itertools import pairwise
from pathlib import Path

import numpy as np

# Lower-case letters that stay single characters: enough for 200,000 trigrams and more.
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789àáâãäåæçèéêëìíîïðñòóôõöøùúûüýþÿœšžłđ"
LEXICON = 100_000
QUERY_WORDS, TITLE_WORDS = 3.6, 7.3

# What a syllable of the realistic log begins with, sounds with and ends in.
_ONSETS = [
    *"bcdfghklmnprstvwz", "br", "ch", "cl", "cr", "dr", "fl", "gr", "pl", "pr", "qu", "sh", "sk",
    "sl", "sp", "st", "str", "th", "tr",
]  # fmt: skip
_VOWELS = [*"aeiou", "ai", "ea", "ee", "ie", "io", "oo", "ou", "y"]
_CODAS = [
    "", "", "", "", *"nrsltm", "nd", "nt", "st", "ck", "rd", "ll", "ng", "rt", "ss", "ct", "x",
]  # fmt: skip
_ENDINGS = [
    "", "", "", "s", "ed", "ing", "er", "ers", "ly", "al", "ion", "ions", "able", "ment", "y",
    "ness",
]  # fmt: skip
_STEMS, _ENDINGS_OF_A_STEM = 12_000, 3
_CODE_SHARE = 0.05
_CODE_LETTERS = "abcdefghijkmnpqrstuvwxyz0123456789"  # no l and o, which look like digits


def write_log(
    path, pairs, trigrams=50_000, query_words=QUERY_WORDS, title_words=TITLE_WORDS, spread=True
):
    """Write ``pairs`` lines ``query<TAB>title`` of the uniform log.

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
    sides = []
    for mean in (query_words, title_words):
        lengths = 1 + rng.poisson(mean - 1, pairs) if spread else np.full(pairs, int(mean))
        sides.append(_texts(_drawn(words, 3, lengths.sum(), rng), lengths))
    _write(path, sides)


def write_realistic_log(path, pairs):
    """Write ``pairs`` lines ``query<TAB>title`` of the realistic log.

    100,000 pairs have about 43,000 letter trigrams, and a mini-batch of 512 pairs about 7,300. In
    the logs that the package is evaluated on it is 4,100 to 6,600, in the uniform log 18,700.
    """
    rng = np.random.default_rng(pairs)
    words = np.array(_word_forms(rng))
    sides = []
    for mean in (QUERY_WORDS, TITLE_WORDS):
        lengths = 1 + rng.poisson(mean - 1, pairs)
        tokens = _drawn(words, 10, lengths.sum(), rng)
        for place in np.flatnonzero(rng.random(len(tokens)) < _CODE_SHARE).tolist():
            tokens[place] = _code(rng)
        sides.append(_texts(tokens, lengths))
    _write(path, sides)


def _drawn(words, rank, count, rng):
    """``count`` of the words; the first has the frequency of rank ``rank`` in Zipf's law."""
    frequencies = 1 / np.arange(rank, words.size + rank)
    cumulative = np.cumsum(frequencies / frequencies.sum())
    places = np.searchsorted(cumulative, rng.random(count))
    return words[np.minimum(places, words.size - 1)].tolist()


def _texts(tokens, lengths):
    ends = np.cumsum(lengths).tolist()
    return [" ".join(tokens[a:b]) for a, b in pairwise([0, *ends])]


def _write(path, sides):
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


def _word_forms(rng):
    """Distinct stems of 1 to 3 syllables with some of their endings, in random order."""
    stems = [
        "".join(_one_of(part, rng) for _ in range(count) for part in (_ONSETS, _VOWELS, _CODAS))
        for count in rng.choice(3, _STEMS, p=[0.25, 0.5, 0.25]) + 1
    ]
    forms = dict.fromkeys(
        stem + _one_of(_ENDINGS, rng) for stem in stems for _ in range(_ENDINGS_OF_A_STEM)
    )
    return rng.permutation(list(forms)).tolist()


def _one_of(parts, rng):
    return parts[int(rng.random() * len(parts))]


def _code(rng):
    """6 to 9 letters and digits."""
    return "".join(_one_of(_CODE_LETTERS, rng) for _ in range(rng.integers(6, 10)))


def mixed_titles(titles, n):
    """Titles of the first words of one title and the last words of another."""
    rng = np.random.default_rng(0)
    words = [title.split() for title in titles]
    chosen = rng.integers(0, len(words), (n, 2))
    return [
        " ".join(words[a][: (len(words[a]) + 1) // 2] + words[b][len(words[b]) // 2 :])
        for a, b in chosen.tolist()
    ]
