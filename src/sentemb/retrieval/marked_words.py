"""The words of a title that a query has too, as places to mark."""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import compress, pairwise

from sentemb.retrieval.words_and_stems import Words
from sentemb.text.words import SIGNS, UNSPACED, folded_words

# A letter of a script without blanks, or a run of other letters, each with its marks.
_WITH_MARKS = f"[{SIGNS['marks']}{SIGNS['silent']}]"
_PIECE = re.compile(
    f"[{UNSPACED}](?:\u17d2[{UNSPACED}]|{_WITH_MARKS})*|(?:[^\\W{UNSPACED}]|{_WITH_MARKS})+"
)
_ASCII_PIECE = re.compile(r"\w+", re.ASCII)


# The words of BM25 of a piece of a title, and its words without case and accents. Titles share most
# of their pieces, and these take longer than all else here.
@lru_cache(1 << 14)
def _read(piece: str, words: Words) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(words(piece)), frozenset(folded_words(piece))


class MarkedWords:
    """Finds in titles what a query names: words of BM25, and words without case and accents.

    ``words`` splits a text for BM25, into stems where it counts these.
    """

    def __init__(self, query: str, words: Words) -> None:
        self._words = words
        self._asked, self._folded = frozenset(words(query)), frozenset(folded_words(query))
        self._known: dict[str, bool] = {}

    def of(self, title: str) -> list[list[int]]:
        """The begin and the end of each place to mark, counted in code points, in order."""
        is_ascii = title.isascii()
        pieces = list((_ASCII_PIECE if is_ascii else _PIECE).finditer(title))
        marked = [self._is_asked(piece[0]) for piece in pieces]
        # No two pieces of ASCII letters touch.
        for k, (a, b) in enumerate(() if is_ascii else pairwise(pieces)):
            if a.end() == b.start() and self._are_asked(a[0], b[0]):
                marked[k] = marked[k + 1] = True
        marks: list[list[int]] = []
        for piece in compress(pieces, marked):
            if marks and marks[-1][1] == piece.start():
                marks[-1][1] = piece.end()
            else:
                marks.append([*piece.span()])
        return marks

    def _is_asked(self, piece: str) -> bool:
        """Whether the query has a word of a piece."""
        is_asked = self._known.get(piece)
        if is_asked is None:
            is_asked = self._known[piece] = self._has(*_read(piece, self._words))
        return is_asked

    def _are_asked(self, first: str, second: str) -> bool:
        """Whether the query has a word that two pieces make together."""
        read = (_read(piece, self._words) for piece in (first + second, first, second))
        return self._has(*(both - a - b for both, a, b in zip(*read, strict=True)))

    def _has(self, words: frozenset[str], folded: frozenset[str]) -> bool:
        return not self._asked.isdisjoint(words) or (bool(folded) and folded <= self._folded)
