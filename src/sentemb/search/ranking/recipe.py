"""The weights of the parts of a ranking, and the parameters of BM25."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from sentemb.errors import SentembError
from sentemb.retrieval.bm25 import K1, MAX_K1, B
from sentemb.retrieval.words_and_stems import Words, words_of
from sentemb.system.bounds import brief, number, share

COSINE, MEMORY, EMBEDDING, BM25, CLICKED_BM25, UNCLICKED, CLICKS, NAME, EXAMINED = (
    "cosine",
    "memory",
    "embedding",
    "bm25",
    "clicked_bm25",
    "unclicked",
    "clicks",
    "name",
    "examined",
)
# Products of vectors of unit length: the only parts whose scores are bounded whatever the query is.
OF_VECTORS = (COSINE, MEMORY, EMBEDDING)
# Those that look a query up as it is written; they follow whatever else is the ranking.
DIRECT = (CLICKS, NAME, EXAMINED)
# In the order in which they are added and in which tables list them, with their names in tables.
PARTS = {
    COSINE: "cosine",
    MEMORY: "memory",
    EMBEDDING: "embedding",
    BM25: "BM25",
    CLICKED_BM25: "BM25 of clicked queries",
    UNCLICKED: "no clicks",
    CLICKS: "clicks of this query",
    NAME: "name",
    EXAMINED: "shown for this query",
}
# What each part measures, for readers who know nothing of models.
MEANINGS = {
    COSINE: "how near the model puts query and title, from -1 to 1",
    MEMORY: "how near the query is to the title or to a query it was clicked for, from -1 to 1",
    EMBEDDING: "how near another embedding puts query and title, from -1 to 1",
    BM25: "words of the query that are in the title, rare ones more",
    CLICKED_BM25: "words of the query that are in queries clicked on the title",
    UNCLICKED: "1 for a title that has no clicks yet",
    CLICKS: "ln(1 + clicks / 2) of the title for exactly this query",
    NAME: "whether the title has all words of the query; less where others have its clicks",
    EXAMINED: "-ln(1 + n / 6) of a title that was looked at n times for exactly this query",
}
MAX_WEIGHT = 1e3


@dataclass(frozen=True)
class Recipe:
    """The weights of the parts of a score, and the parameters of BM25.

    Attributes
    ----------
    weights : mapping
        By part, from -1000 to 1000, those of `DIRECT` from 0; at least one is not 0. A part that is
        missing has the weight 0.
    k1, b : float
        Saturation of a word's count in BM25, from 0, and how much a title's length reduces it, from
        0 to 1.
    stem : str or None
        The language of the stemmer of BM25; None for plain words.
    letters : bool
        Whether the words of BM25 in scripts without blanks are single letters and pairs of them.
        Rankers of version 1.0 have pairs alone.

    Raises
    ------
    SentembError
        For a number out of range, or an unknown part.
    """

    weights: Mapping[str, float]
    k1: float = K1
    b: float = B
    stem: str | None = None
    letters: bool = True

    def __post_init__(self) -> None:
        for part, weight in self.weights.items():
            if part not in PARTS:
                raise SentembError(f"{brief(part)} is not a part; choose from {', '.join(PARTS)}")
            least = 0 if part in DIRECT else -MAX_WEIGHT
            number(f"the weight of {PARTS[part]}", weight, least, MAX_WEIGHT)
        if not any(self.weights.values()):
            raise SentembError("all weights of the ranking are 0; give a part a weight")
        number("k1", self.k1, 0, MAX_K1)
        share("b", self.b)
        if not isinstance(self.stem, str | None):
            raise SentembError(f"stem is {brief(self.stem)}; give a language or None")
        if not isinstance(self.letters, bool):
            raise SentembError(f"letters is {brief(self.letters)}; give True or False")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The recipe that `as_dict` wrote.

        Raises
        ------
        SentembError
            For a value that is missing, unknown or out of range.
        """
        if not isinstance(values.get("weights"), dict):
            raise SentembError("the recipe of the ranking has no weights")
        try:
            recipe = cls(**values)
        except TypeError as error:
            raise SentembError(f"the recipe of the ranking: {error}") from None
        is_of_1_0 = "letters" not in values and recipe.reads_words
        return replace(recipe, letters=False) if is_of_1_0 else recipe

    def as_dict(self) -> dict[str, Any]:
        """A JSON-serialisable dict."""
        return {
            "weights": dict(self.weights),
            "k1": self.k1,
            "b": self.b,
            "stem": self.stem,
            "letters": self.letters,
        }

    def weight(self, part: str) -> float:
        """The weight of one of `PARTS`."""
        return self.terms.get(part, 0.0)

    @cached_property
    def terms(self) -> dict[str, float]:
        """The weights other than 0, in the order of `PARTS`."""
        return {part: float(self.weights[part]) for part in PARTS if self.weights.get(part)}

    @cached_property
    def parts(self) -> tuple[str, ...]:
        """The parts with a weight, in the order of `PARTS`."""
        return tuple(self.terms)

    @property
    def words(self) -> Words:
        """How BM25 splits texts into words."""
        return words_of(self.stem, self.letters)

    @property
    def rankings(self) -> tuple[str, ...]:
        """The parts with a weight that can rank alone, and the cosine in any case.

        Names, and the lack of clicks, say nothing of most titles.
        """
        parts = (part for part in PARTS if part not in (UNCLICKED, EXAMINED, NAME))
        return tuple(part for part in parts if part == COSINE or self.weight(part))

    @property
    def reads_words(self) -> bool:
        """Whether a part is a BM25."""
        return bool(self.weight(BM25) or self.weight(CLICKED_BM25))

    @property
    def needs_clicks(self) -> bool:
        """Whether the score of a title depends on its clicks."""
        return self.parts != (COSINE,)

    def alone(self, part: str) -> Self:
        """The same parameters with ``part`` as the only one, with the weight 1."""
        return self.weighted({part: 1.0})

    def weighted(self, weights: Mapping[str, float]) -> Self:
        """The same parameters of BM25 with other weights."""
        return replace(self, weights=weights)

    def __str__(self) -> str:
        terms = ""
        for part in self.parts:
            weight = self.weight(part)
            sign = ("" if weight > 0 else "-") if not terms else (" + " if weight > 0 else " - ")
            times = "" if abs(weight) == 1 else f"{abs(weight):.3g} "
            terms += f"{sign}{times}{PARTS[part]}"
        if not self.reads_words:
            return terms
        words = "plain words" if self.stem is None else f"{self.stem} stems"
        return f"{terms} (BM25: k1 {self.k1:g}, b {self.b:g}, {words})"


MODEL_ALONE = Recipe({COSINE: 1.0})
