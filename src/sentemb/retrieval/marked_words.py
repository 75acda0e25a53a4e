"""The words of a title that a query has too, as places to mark."""

from __future__ import annotations

import re
from itertools import pairwise

from sentemb.retrieval.words_and_stems import Words
from sentemb.text.words import SIGNS, UNSPACED, folded_words

# A letter of a script without blanks, or a run of other letters, each with its marks.
_WITH_MARKS = f"[{SIGNS['marks']}{SIGNS['silent']}]"
_PIECE = re.compile(
    f"[{UNSPACED}](?:\u17d2[{UNSPACED}]|{_WITH_MARKS})*|(?:[^\\W{UNSPACED}]|{_WITH_MARKS})+"
)


class MarkedWords:
    """Finds in titles what a query names: words of BM25, and words without case and accents.

    ``words`` splits a text for BM25, into stems where it counts these.
    """

    def __init__(self, query: str, words: Words) -> None:
        self._words = words
        self._asked, self._folded = frozenset(words(query)), frozenset(folded_words(query))
        self._known: dict[tuple[str, ...], bool] = {}

    def of(self, title: str) -> list[list[int]]:
        """The begin and the end of each place to mark, counted in code points, in order."""
        pieces = list(_PIECE.finditer(title))
        marked = [self._is_asked(piece[0]) for piece in pieces]
        for k, (a, b) in enumerate(pairwise(pieces)):
            if a.end() == b.start() and self._is_asked(a[0], b[0]):
                marked[k] = marked[k + 1] = True
        marks: list[list[int]] = []
        for piece, is_marked in zip(pieces, marked, strict=True):
            if is_marked and marks and marks[-1][1] == piece.start():
                marks[-1][1] = piece.end()
            elif is_marked:
                marks.append([*piece.span()])
        return marks

    def _is_asked(self, *pieces: str) -> bool:
        """Whether the query has a word of a piece, or one that two pieces make together."""
        if pieces not in self._known:
            text, alone = "".join(pieces), pieces if len(pieces) > 1 else ()
            words = set(self._words(text)).difference(*map(self._words, alone))
            folded = set(folded_words(text)).difference(*map(folded_words, alone))
            has_folded = bool(folded) and folded <= self._folded
            self._known[pieces] = has_folded or not self._asked.isdisjoint(words)
        return self._known[pieces]
