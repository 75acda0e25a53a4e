"""The words of a title that a query has too, as places to mark."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import pairwise

from sentemb.retrieval.words_and_stems import Words
from sentemb.text.words import SIGNS, UNSPACED, folded_words

# A letter of a script without blanks, or a run of other letters, each with its marks.
_WITH_MARKS = f"[{SIGNS['marks']}{SIGNS['silent']}]"
_PIECE = re.compile(
    f"[{UNSPACED}](?:\u17d2[{UNSPACED}]|{_WITH_MARKS})*|(?:[^\\W{UNSPACED}]|{_WITH_MARKS})+"
)
# Pieces whose words are remembered.
_MOST = 16_384


class MarkedWords:
    """Finds in titles what a query names: words of BM25, and words without case and accents.

    ``words`` splits a text for BM25, into stems where it counts these.
    """

    def __init__(self, query: str, words: Words) -> None:
        self._words = words
        self._asked, self._folded = frozenset(words(query)), frozenset(folded_words(query))

    def of(self, title: str) -> list[list[int]]:
        """The begin and the end of each place to mark, counted in code points, in order."""
        pieces = list(_PIECE.finditer(title))
        marked = [self._are_asked(*_read(piece[0], self._words)) for piece in pieces]
        for k, (a, b) in enumerate(pairwise(pieces)):
            if a.end() == b.start() and self._makes_word(a[0], b[0]):
                marked[k] = marked[k + 1] = True
        marks: list[list[int]] = []
        for piece, is_marked in zip(pieces, marked, strict=True):
            if is_marked and marks and marks[-1][1] == piece.start():
                marks[-1][1] = piece.end()
            elif is_marked:
                marks.append([*piece.span()])
        return marks

    def _are_asked(self, words: frozenset[str], folded: frozenset[str]) -> bool:
        return not self._asked.isdisjoint(words) or (bool(folded) and folded <= self._folded)

    def _makes_word(self, first: str, second: str) -> bool:
        """Whether the query has a word that two pieces make together."""
        together = _read(first + second, self._words)
        alone = zip(_read(first, self._words), _read(second, self._words), strict=True)
        new = (both.difference(*each) for both, each in zip(together, alone, strict=True))
        return self._are_asked(*new)


@lru_cache(_MOST)
def _read(text: str, words: Words) -> tuple[frozenset[str], frozenset[str]]:
    """The words of a piece, and its folded words: titles that are found have many in common."""
    return frozenset(words(text)), frozenset(folded_words(text))
