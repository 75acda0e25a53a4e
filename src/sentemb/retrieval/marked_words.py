"""The words of a title that a query has too, as places to mark."""

from __future__ import annotations

import re
from functools import lru_cache

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

    def of(self, title: str) -> list[list[int]]:
        """The begin and the end of each place to mark, counted in code points, in order."""
        asked, before = self._asked, None
        marks: list[list[int]] = []
        for piece in (_ASCII_PIECE if title.isascii() else _PIECE).finditer(title):
            words, folded = _read(piece[0], self._words)
            begin, end = piece.span()
            # Two pieces may touch, and make a word together.
            if before and before.end() == begin and self._are_asked(before[0], piece[0]):
                begin = before.start()
            elif asked.isdisjoint(words) and not (folded and folded <= self._folded):
                begin = end
            before = piece
            if begin == end:
                continue
            if marks and marks[-1][1] >= begin:
                marks[-1][1] = end
            else:
                marks.append([begin, end])
        return marks

    def _are_asked(self, first: str, second: str) -> bool:
        """Whether the query has a word that two pieces make together."""
        read = (_read(piece, self._words) for piece in (first + second, first, second))
        return self._has(*(both - a - b for both, a, b in zip(*read, strict=True)))

    def _has(self, words: frozenset[str], folded: frozenset[str]) -> bool:
        return not self._asked.isdisjoint(words) or (bool(folded) and folded <= self._folded)
