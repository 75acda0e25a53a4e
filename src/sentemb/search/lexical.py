"""The half of an index that compares words: BM25 and its weight."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sentemb.baselines.clicked_queries import clicked_texts
from sentemb.baselines.inverted_index import InvertedIndex
from sentemb.baselines.words_and_stems import stem_of, words_of
from sentemb.bounds import number
from sentemb.data.click_log import ClickLog
from sentemb.ranking.parts import bm25_lists
from sentemb.ranking.recipe import MAX_WEIGHT, Recipe
from sentemb.system.paths import AnyPath

# A weight that helps, or does little harm, before `tune` has chosen one.
WEIGHT = 0.1


@dataclass(frozen=True, eq=False)
class Lexical:
    """BM25 over the titles of an index.

    Attributes
    ----------
    lists : InvertedIndex
        The same titles in the same order.
    weight : float
        Of BM25 in the sum; see `sentemb.search.hybrid`.
    """

    lists: InvertedIndex
    weight: float

    @property
    def has_clicks(self) -> bool:
        """Whether the titles were indexed together with the queries that they were clicked for."""
        return self.lists.has_clicks

    @classmethod
    def build(
        cls,
        titles: Sequence[str],
        log: ClickLog | None,
        stem: str | None,
        scratch: AnyPath | None = None,
    ) -> Lexical:
        """Index titles, together with the queries that they were clicked for in ``log``."""
        clicked = None if log is None else clicked_texts(titles, log)
        lists = InvertedIndex(titles, words=words_of(stem), clicked=clicked, scratch=scratch)
        return cls(lists, WEIGHT)

    @classmethod
    def of_recipe(
        cls,
        titles: Sequence[str],
        clicks: ClickLog | None,
        recipe: Recipe,
        scratch: AnyPath | None = None,
    ) -> Lexical:
        """BM25 as the ranker of a model has it."""
        lists = bm25_lists(titles, clicks, recipe, scratch)
        return cls(lists, recipe.bm25)

    def settings(self) -> dict[str, Any]:
        """All that decides the scores of given titles."""
        lists = self.lists
        return {
            "weight": self.weight,
            "k1": lists.k1,
            "b": lists.b,
            "stem": stem_of(lists.words),
            "click_weight": lists.click_weight if lists.has_clicks else None,
        }


def checked_weight(value: object) -> float:
    """A weight of BM25; a `SentembError` for anything else."""
    return float(number("the weight of BM25", value, 0, MAX_WEIGHT))
