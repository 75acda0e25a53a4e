"""A click log of any size, written line by line, with judged queries.

Both the words and the titles follow power laws without an end, so that new ones keep coming as the
log grows: n words of text have about n^0.8 distinct ones, as real logs have. A query holds some of
the words of its title, every other word under another name, so that there is something to learn.
A log of more lines begins with the lines of a shorter one.

    python benchmarks/large_log.py FOLDER --lines 1000000 [--queries 1000]
"""

import argparse
from functools import lru_cache
from pathlib import Path

import numpy as np

# Lines that are drawn at once.
_PORTION = 65_536
# P(rank > k) = (1 + k / first) ** -tail, for words and for titles.
_WORDS = {"first": 40.0, "tail": 0.25}
_TITLES = {"first": 50_000.0, "tail": 0.2}
_MOST = 2.0**40
_MEAN_WORDS, _FEWEST, _MOST_WORDS = 7.3, 3, 16
_QUERY_WORDS = (2, 5)
# The queries of a title: the first of them are asked most.
_VARIANTS = 4
_WRONG_TITLES = 9

_ONSETS = ("b", "br", "c", "ch", "d", "dr", "f", "g", "gr", "h", "k", "l", "m", "n", "p", "pl")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "ou")
_SYLLABLES = [onset + vowel for onset in _ONSETS for vowel in _VOWELS]
_ENDINGS = ("", "n", "r", "s", "t", "l", "ng", "st")


def write_large_log(path, lines):
    """Write ``lines`` of ``query<TAB>title``.

    Of 1 million lines 89 % are distinct pairs, of 10 million 69 %.
    """
    with Path(path).open("w", encoding="utf-8") as file:
        for first in range(0, lines, _PORTION):
            rng = np.random.default_rng([1, first])
            titles = _ranks(rng.random(_PORTION), **_TITLES)
            variants = np.minimum(rng.geometric(0.5, _PORTION) - 1, _VARIANTS - 1)
            pairs = list(zip(_queries(titles, variants), _titles(titles), strict=True))
            file.writelines(f"{query}\t{title}\n" for query, title in pairs[: lines - first])


def write_judged(folder, queries):
    """Write a judged set: queries that no line of a log has, each with one right title of ten.

    Each wrong title has half of the words of the right one.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng([2, queries])
    titles = _ranks(rng.random((queries, 1 + _WRONG_TITLES)), **_TITLES)
    texts = _queries(titles[:, 0], np.full(queries, _VARIANTS))
    judged, qrels = {}, []
    for q, (right, *others) in enumerate(titles.tolist()):
        own, *wrong = (text.split() for text in _titles(np.array([right, *others])))
        half = [rng.permutation(own)[: (len(own) + 1) // 2].tolist() for _ in wrong]
        mixed = [[*words[len(some) :], *some] for words, some in zip(wrong, half, strict=True)]
        for place, words in enumerate([own, *mixed]):
            judged[f"t{q}-{place}"] = " ".join(words)
            qrels.append(f"q{q} 0 t{q}-{place} {int(place == 0)}\n")
    (folder / "queries.tsv").write_text(
        "".join(f"q{q}\t{text}\n" for q, text in enumerate(texts)), encoding="utf-8"
    )
    (folder / "docs.tsv").write_text(
        "".join(f"{name}\t{text}\n" for name, text in judged.items()), encoding="utf-8"
    )
    (folder / "qrels.txt").write_text("".join(qrels), encoding="utf-8")


def _ranks(uniform, first, tail):
    """Ranks from 0 that follow a power law."""
    found = first * (uniform ** (-1 / tail) - 1)
    return np.minimum(found, _MOST).astype(np.int64)


def _uniform(keys, salt):
    """Numbers in [0, 1) that are a function of ``keys``: splitmix64."""
    with np.errstate(over="ignore"):
        x = keys.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return ((x ^ (x >> np.uint64(31))) >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _words_of(titles):
    """The ranks of the words of each title, (n, _MOST_WORDS), and how many of them count."""
    lengths = _FEWEST + (_uniform(titles, 11) * 2 * (_MEAN_WORDS - _FEWEST) + 0.5).astype(np.int64)
    keys = titles[:, None] * _MOST_WORDS + np.arange(_MOST_WORDS)
    uniform = np.maximum(_uniform(keys, 12), 1e-12)
    return _ranks(uniform, **_WORDS), np.minimum(lengths, _MOST_WORDS)


def _titles(titles):
    words, lengths = _words_of(titles)
    return [
        " ".join(map(_word, row[:length]))
        for row, length in zip(words.tolist(), lengths.tolist(), strict=True)
    ]


def _queries(titles, variants):
    words, lengths = _words_of(titles)
    keys = titles * (_VARIANTS + 1) + variants
    fewest, most = _QUERY_WORDS
    counts = np.minimum(fewest + (_uniform(keys, 13) * (most - fewest)).astype(np.int64), lengths)
    firsts = (_uniform(keys, 14) * (lengths - counts + 1)).astype(np.int64)
    columns = firsts[:, None] + np.arange(most)
    chosen = np.take_along_axis(words, np.minimum(columns, _MOST_WORDS - 1), axis=1)
    # Words of odd rank have another name in queries.
    return [
        " ".join(_word(rank) if rank % 2 == 0 else _other(rank) for rank in row[:count])
        for row, count in zip(chosen.tolist(), counts.tolist(), strict=True)
    ]


@lru_cache(maxsize=500_000)
def _word(rank):
    """The word of a rank: frequent ones are short."""
    parts = [_ENDINGS[rank % len(_ENDINGS)]]
    rank //= len(_ENDINGS)
    while True:
        parts.append(_SYLLABLES[rank % len(_SYLLABLES)])
        rank //= len(_SYLLABLES)
        if not rank:
            return "".join(reversed(parts))
        rank -= 1


@lru_cache(maxsize=500_000)
def _other(rank):
    """What queries call the word of a rank."""
    return _word(rank)[::-1] + "y"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--queries", type=int, default=1_000)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    write_large_log(options.folder / "pairs.tsv", options.lines)
    write_judged(options.folder / "dev", options.queries)


if __name__ == "__main__":
    main()
