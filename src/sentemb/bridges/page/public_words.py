"""Which words of an index a page may show to everybody."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np

from sentemb.retrieval.words_and_stems import words_of
from sentemb.search.searched_fields import texts_of
from sentemb.system.bounds import whole

if TYPE_CHECKING:
    from sentemb.search.index import Index

# Clicked queries that must have a word, which somebody may have typed once by mistake.
MIN_QUERIES = 5
_MOST = 2**31 - 1
# In the place of a word that is withheld: no text has it as a word.
WITHHELD = " "


class PublicWords:
    """The words of titles, and those that many different clicked queries have.

    Queries are different if their words are. Words are those of BM25 and those of the model. In an
    index without clicked queries nothing is known of where the words of its model are from, and all
    of these are public; the words of its BM25 are then those of titles.

    ``words`` are all of them: ``of_titles`` words of titles and of their searched fields, and
    ``of_queries`` further words that at least ``min_queries`` clicked queries have.
    """

    def __init__(self, index: Index, min_queries: int) -> None:
        self.min_queries = whole("min_queries", min_queries, 1, _MOST)
        split = words_of(None, index.recipe.letters)
        self._splits = {split, index.model.vocabulary.split}
        public = set()
        searched = texts_of(index.search_fields, index.fields)
        for text in chain(index.titles, *(field.texts for field in searched)):
            public |= self._words(text)
        self.of_titles = len(public)
        clicks = index.ranker.clicks
        queries = [clicks.queries[q] for q in np.unique(clicks.clicked).tolist()]
        self.knows_queries = bool(queries)
        different = {" ".join(split(query)): query for query in queries}
        counts = Counter(word for query in different.values() for word in self._words(query))
        public.update(word for word, count in counts.items() if count >= min_queries)
        self.of_queries = len(public) - self.of_titles
        self.words = public
        self._withheld: set[str] = set()

    def _words(self, text: str) -> set[str]:
        return {word for split in self._splits for word in split(text)}

    def queries(self, queries: Iterable[str]) -> list[str]:
        """Those of ``queries`` of which all words are public."""
        return [query for query in queries if self._words(query) <= self.words]

    def of_model(self, words: Iterable[str]) -> list[str]:
        """``words`` of a model, with `WITHHELD` in the place of each that is not public."""
        if not self.knows_queries:
            return list(words)
        return self._withhold(words, self.words)

    def of_bm25(
        self, words: Iterable[str], stems_of: Callable[[list[str]], list[str]] | None
    ) -> list[str]:
        """Those of ``words``, or of stems, of BM25 that are public."""
        public = self.words
        if stems_of is not None:
            public = set(stems_of(sorted(public)))
        return [word for word in self._withhold(words, public) if word != WITHHELD]

    def _withhold(self, words: Iterable[str], public: set[str]) -> list[str]:
        words = list(words)
        self._withheld |= set(words) - public
        return [word if word in public else WITHHELD for word in words]

    def note(self) -> str:
        """How many words are published, and how many are not."""
        model = "" if self.knows_queries else ", and those that the model knows"
        return (
            f"the page has the {self.of_titles:,} words of titles and {self.of_queries:,} more "
            f"that at least {self.min_queries:,} different clicked queries have{model}; "
            f"{len(self._withheld):,} words of fewer queries are withheld"
        )
