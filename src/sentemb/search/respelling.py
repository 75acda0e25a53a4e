"""Queries in the spelling that most clicks have: suggestions are shown to others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

from sentemb.retrieval.clicked_queries import ClickedQueries
from sentemb.search.edits import distance
from sentemb.text.words import bare_words, folded_words

# Shorter words differ from too many others.
_LEAST_LETTERS = 4
# Letters from which on a word may be misspelled in two places.
_TWO = 8
# A spelling is right if this many times as many queries and titles have it.
_TIMES = 6


class Respelling:
    """Respells words of clicked queries as the titles that were clicked for them have them.

    A word that no title has is misspelled if a word of such a title begins with the same letter,
    differs from it in one letter, or two of eight, and is in six times as many texts of the log. An
    s at the end makes another form of a word, not another spelling.
    """

    def __init__(self, clicks: ClickedQueries) -> None:
        self._clicks = clicks
        entries = np.argsort(clicks.clicked, kind="stable")
        self._products = np.repeat(np.arange(len(clicks.keys)), np.diff(clicks.offsets))[entries]
        self._starts = np.searchsorted(
            clicks.clicked[entries], np.arange(len(clicks.queries) + 1)
        ).tolist()
        first_titles = np.full(len(clicks.keys), -1)
        first_titles[clicks.product_of[::-1]] = np.arange(len(clicks.titles))[::-1]
        self._title_of = first_titles.tolist()
        # By product; a cache of the method would hold this object in a cycle.
        self._read: dict[int, tuple[tuple[str, str], ...]] = {}
        self._of_titles = _texts_with(clicks.titles)
        self._of_queries = _texts_with(clicks.queries)

    def __call__(self, number: int) -> str:
        """The text of a query of the log, respelled."""
        query = self._clicks.queries[number]
        misspelled = {}
        for token in query.split():
            # Digits tell sizes and models apart; a text without blanks has no words to look up.
            if len(folded_words(token)) == 1 and token.isalpha() and len(token) >= _LEAST_LETTERS:
                spelled = self._spelled(number, *folded_words(token))
                if spelled is not None:
                    misspelled[token] = spelled
        if not misspelled:
            return query
        return " ".join(misspelled.get(token, token) for token in query.split())

    def _spelled(self, number: int, word: str) -> str | None:
        """The right spelling of a word of a query, if the word is misspelled."""
        if self._of_titles[word]:
            return None
        least, most = _TIMES * self._of_queries[word], 1 + (len(word) >= _TWO)
        near: dict[str, tuple[int, int]] = {}
        for spelled, key in self._clicked_words(number):
            n_texts = self._of_titles[key] + self._of_queries[key]
            is_form = key.removesuffix("s") == word.removesuffix("s")
            is_alike = not is_form and key[0] == word[0] and abs(len(key) - len(word)) <= most
            if is_alike and len(key) >= _LEAST_LETTERS and n_texts >= least:
                edits = distance(word, key)
                if edits <= most:
                    near[spelled] = (edits, -n_texts)
        return min(near, key=near.__getitem__, default=None)

    def _clicked_words(self, number: int) -> Iterator[tuple[str, str]]:
        """The words of the titles that were clicked for a query, and their folded forms."""
        for product in self._products[self._starts[number] : self._starts[number + 1]].tolist():
            if product not in self._read:
                self._read[product] = self._words_of_title(product)
            yield from self._read[product]

    def _words_of_title(self, product: int) -> tuple[tuple[str, str], ...]:
        title = self._title_of[product]
        words = bare_words(self._clicks.titles[title]) if title >= 0 else []
        folded = ((word, folded_words(word)) for word in dict.fromkeys(words))
        return tuple((word, keys[0]) for word, keys in folded if len(keys) == 1)


def _texts_with(texts: Sequence[str]) -> Counter[str]:
    """In how many texts each folded word is."""
    return Counter(word for text in texts for word in set(folded_words(text)))
