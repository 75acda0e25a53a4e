"""Words and the stems that a stemmer reduces them to, for places where the stemmer cannot run."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile

# Endings that are tried on every stem: the most frequent ones of the words that are known.
_ENDINGS = 12


def forms_of_stems(
    stems_of: Callable[[list[str]], list[str]], stems: Sequence[str], words: Iterable[str]
) -> dict[str, int]:
    """Words that have one of ``stems``, each with the number of its stem, in a fixed order.

    They are ``words``, which occur in texts, the stems themselves, and stems with frequent endings,
    as far as the stemmer says that they have that stem. ``stems_of`` returns the stems of words.
    """
    number_of = {stem: number for number, stem in enumerate(stems)}
    known = sorted(words)
    endings: Counter[tuple[str, str]] = Counter()
    for word, stem in zip(known, stems_of(known), strict=True):
        pairs = zip(word, stem, strict=False)
        common = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
        # What is cut from the stem and what is put in its place: "y" and "ies" for "flies".
        endings[stem[common:], word[common:]] += 1
    candidates = {*known, *stems}
    frequent = sorted(endings, key=lambda ending: (-endings[ending], ending))[:_ENDINGS]
    for cut, ending in frequent:
        candidates.update(
            stem[: len(stem) - len(cut)] + ending for stem in stems if stem.endswith(cut)
        )
    listed = sorted(candidates)
    stemmed = zip(listed, stems_of(listed), strict=True)
    return {word: number_of[stem] for word, stem in stemmed if stem in number_of}
