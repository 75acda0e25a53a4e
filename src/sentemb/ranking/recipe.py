"""What a ranker adds up: the weight of each part, and the parameters of BM25."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

from sentemb.baselines.inverted_index import K1, MAX_K1, B
from sentemb.bounds import brief, number, share
from sentemb.errors import SentembError

# The parts in the order in which tables list them.
COSINE, BM25, MEMORY = PARTS = ("cosine", "bm25", "memory")
# What tables and messages call them.
PART_NAMES = {COSINE: "cosine", BM25: "BM25", MEMORY: "memory"}
MAX_WEIGHT = 1e3


@dataclass(frozen=True)
class Recipe:
    """The weights of the parts of a score, and the parameters of BM25.

    Attributes
    ----------
    cosine, bm25, memory : float
        The weights, from 0 to 1000. At least one is above 0.
    k1, b : float
        Saturation of a word's count in BM25, from 0, and how much a title's length reduces it, from
        0 to 1.
    click_weight : float
        From 0 to 1: how much a word of a clicked query counts in BM25, compared with a word of the
        title. With 0 BM25 reads titles only.
    stem : str or None
        The language of the stemmer of BM25; None for plain words.

    Raises
    ------
    SentembError
        For a number out of range.
    """

    cosine: float = 1.0
    bm25: float = 0.0
    memory: float = 0.0
    k1: float = K1
    b: float = B
    click_weight: float = 1.0
    stem: str | None = None

    def __post_init__(self) -> None:
        for part in PARTS:
            number(f"the weight of {PART_NAMES[part]}", self.weight(part), 0, MAX_WEIGHT)
        if not any(map(self.weight, PARTS)):
            raise SentembError("all weights of the ranker are 0; give one part a weight")
        number("k1", self.k1, 0, MAX_K1)
        share("b", self.b)
        share("click_weight", self.click_weight)
        if not isinstance(self.stem, str | None):
            raise SentembError(f"stem is {brief(self.stem)}; give a language or None")

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The recipe that `as_dict` wrote.

        Raises
        ------
        SentembError
            For a value that is missing, unknown or out of range.
        """
        try:
            return cls(**values)
        except TypeError as error:
            raise SentembError(f"the recipe of the ranker: {error}") from None

    def as_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return asdict(self)

    def weight(self, part: str) -> float:
        """The weight of one of `PARTS`."""
        found: float = getattr(self, part)
        return found

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts with a weight."""
        return tuple(part for part in PARTS if self.weight(part))

    @property
    def needs_clicks(self) -> bool:
        """Whether a part reads the log."""
        return bool(self.memory or (self.bm25 and self.click_weight))

    def alone(self, part: str) -> Self:
        """The same parameters with ``part`` as the only one, with the weight 1."""
        return self.weighted(**{one: float(one == part) for one in PARTS})

    def weighted(self, cosine: float, bm25: float, memory: float) -> Self:
        """The same parameters of BM25 with other weights."""
        return replace(self, cosine=cosine, bm25=bm25, memory=memory)

    def __str__(self) -> str:
        terms = []
        for part in self.parts:
            weight = self.weight(part)
            times = "" if weight == 1 else f"{weight:g} "
            terms.append(f"{times}{PART_NAMES[part]}{self._parameters if part == BM25 else ''}")
        return " + ".join(terms)

    @property
    def _parameters(self) -> str:
        words = "plain words" if self.stem is None else f"{self.stem} stems"
        clicks = f"clicked queries × {self.click_weight:g}" if self.click_weight else "titles only"
        return f" (k1 {self.k1:g}, b {self.b:g}, {clicks}, {words})"
