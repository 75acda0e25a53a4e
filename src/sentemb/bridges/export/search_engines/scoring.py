"""How an engine scores titles: the recipe of an index, as far as an engine can follow it.

An engine gives a vector the score (1 + cosine) / 2 and adds Lucene's BM25 of some fields, each
times a positive factor. So all weights are divided by twice that of the vectors, which leaves the
order of the titles as it is. What has a negative weight, or says nothing about the query, is added
to the best titles in a second pass, where factors of either sign are allowed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from sentemb.search.ranking.direct_parts import KAPPA
from sentemb.search.ranking.recipe import (
    BM25,
    CLICKED_BM25,
    CLICKS,
    COSINE,
    EMBEDDING,
    EXAMINED,
    MEMORY,
    NAME,
    PARTS,
    UNCLICKED,
    Recipe,
)
from sentemb.text.hashes import hash_of
from sentemb.text.words import exact_key

# The fields of a document. `WORDS` has the words of the title and of its clicked queries, `COUNTS`
# by `count_name` the clicks of each query, divided by `KAPPA`.
TITLE, CLICKED, WORDS, COUNTS, VECTOR = "title", "clicked_queries", "words", "clicks", "vector"
# Below it are the fields of the products.
FIELDS = "fields"
# Titles that the vectors find, and titles of the second pass.
NEAREST, SECOND_PASS = 300, 1000


def count_name(query: str) -> str:
    """The name of a query in `COUNTS`: its spellings share one, and it has no dots."""
    return f"{hash_of(exact_key(query)) % 2**64:016x}"


@dataclass(frozen=True)
class EngineScoring:
    """The sum by which an engine ranks titles; ``recipe`` is that of the index.

    knows_clicks : whether queries are known that titles were clicked for
    writes_clicks : whether titles get them
    """

    recipe: Recipe
    knows_clicks: bool
    writes_clicks: bool

    @property
    def has_clicks(self) -> bool:
        """Whether titles are written with the queries that they were clicked for."""
        return self.knows_clicks and self.writes_clicks

    @cached_property
    def _of_vectors(self) -> float:
        """The weight of the cosine. An engine has no memory, which is a cosine, so both count."""
        finds_words = any(weight > 0 for weight in self._of_fields.values())
        return max(self._of_cosines, 0) if finds_words or self._of_cosines > 0 else 1

    @property
    def _of_cosines(self) -> float:
        return self.recipe.weight(COSINE) + self.recipe.weight(MEMORY)

    @property
    def _of_fields(self) -> dict[str, float]:
        """The weight of BM25 by field."""
        if self.has_clicks:
            return {WORDS: self.recipe.weight(BM25), CLICKED: self.recipe.weight(CLICKED_BM25)}
        if self.knows_clicks and self._of_cosines > 0:
            # With a weight that was fitted to other words, titles rank worse than without words.
            return {}
        return {TITLE: self.recipe.weight(BM25)}

    @property
    def uses_vectors(self) -> bool:
        """Whether the cosine counts."""
        return self._of_vectors > 0

    def _factor(self, weight: float) -> float:
        return float(f"{weight / (2 * self._of_vectors or 1):.6g}")

    @property
    def finding(self) -> dict[str, float]:
        """The factors of BM25, by field, with which words find titles: all above 0."""
        weights = self._of_fields.items()
        return {field: self._factor(weight) for field, weight in weights if weight > 0}

    @property
    def second_pass(self) -> dict[str, float]:
        """The factors of BM25, by field, that the best titles are scored with again."""
        weights = self._of_fields.items()
        return {field: self._factor(weight) for field, weight in weights if weight < 0}

    @property
    def unclicked(self) -> float:
        """Added to a title without clicked queries in the second pass."""
        return self._factor(self.recipe.weight(UNCLICKED)) if self.has_clicks else 0.0

    @property
    def clicks(self) -> float:
        """The factor of ln(1 + number of `COUNTS`), with which clicks of the query find titles."""
        return self._factor(self.recipe.weight(CLICKS)) if self.has_clicks else 0.0

    def __str__(self) -> str:
        terms = ["(1 + cosine) / 2"] if self.uses_vectors else []
        fields = (self.finding | self.second_pass).items()
        terms += [f"{factor:g} · BM25 of {field}" for field, factor in fields]
        if self.unclicked:
            terms.append(f"{self.unclicked:g} without clicked queries")
        if self.clicks:
            terms.append(f"{self.clicks:g} · ln(1 + clicks of this query / {KAPPA:g})")
        return " + ".join(terms).replace("+ -", "- ")

    def differences(self) -> list[str]:
        """How the ranking differs from that of the index, in sentences."""
        recipe, sentences = self.recipe, list(self._left_out())
        if self.has_clicks and recipe.reads_words:
            sentences.append(
                "each clicked query of a title counts once in BM25, whatever its share of clicks"
            )
        if self.knows_clicks and not self.writes_clicks:
            read = (BM25, CLICKED_BM25, UNCLICKED, CLICKS)
            parts = [PARTS[part] for part in read if recipe.weight(part)]
            without = "BM25 reads titles alone" if self.finding else f"so are {', '.join(parts)}"
            sentences.append(f"clicked queries are left out, and {without}")
        if self.second_pass or self.unclicked:
            sentences.append(
                "parts with a negative weight, and that of titles without clicks, count for the "
                f"first {SECOND_PASS:,} titles alone"
            )
        if self.clicks and recipe.weight(CLICKED_BM25) < 0:
            sentences.append(
                "BM25 of clicked queries counts against titles that were clicked for the very query"
            )
        if self.clicks and recipe.weight(EXAMINED):
            sentences.append(
                "searches without a click are left out: a title does not sink because it was shown "
                "often"
            )
        if recipe.weight(NAME):
            sentences.append(
                "names are left out: a title with all words of a query is found by BM25 alone"
            )
        if not self.uses_vectors:
            sentences.append("words alone find titles")
        elif not (self.finding or self.clicks):
            sentences.append("vectors alone find titles")
        return sentences

    def _left_out(self) -> Iterator[str]:
        """Which kinds of vectors an engine has not, in sentences."""
        if memory := self.recipe.weight(MEMORY):
            yield (
                f"the memory of the log is left out, and its weight, {memory:.3g}, goes to the "
                "cosine: a query finds a title by the queries that it was clicked for through "
                "their words alone"
            )
        if self.recipe.weight(EMBEDDING):
            yield "the embedding is left out, though the weights were fitted with it"
