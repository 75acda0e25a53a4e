"""A row of the table: what is compared, and the settings to choose from on dev."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from sentemb.comparison.baselines import make_baseline
from sentemb.comparison.data_folder import Data
from sentemb.models.contracts import Ranker

# One choice of settings: name -> value.
Point: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One line of the table; this class is a baseline, subclasses are models.

    fixed : settings that are not chosen on dev; a baseline's ``name`` is one of them
    needs_log : whether it learns from a click log
    """

    name: str
    fixed: Point = field(default_factory=dict)
    needs_log: bool = False
    kind: ClassVar[str] = "baseline"

    def points(self) -> list[Point]:
        """The settings to choose from on dev, the defaults first; each dict has all settings."""
        name = self.fixed["name"]
        plain = make_baseline(**self.fixed)
        made = [plain, *(make_baseline(**{**self.fixed, **point}) for point in plain.grid)]
        return distinct({"name": name, **baseline.settings()} for baseline in made)

    @property
    def is_random(self) -> bool:
        """Whether the result depends on the seed."""
        return make_baseline(**self.fixed).is_random

    def fit(self, settings: Point, data: Data, seed: int) -> tuple[Ranker, int]:
        """A ranker fitted with ``settings``, and the number of its parameters."""
        ranker = make_baseline(**settings).fit(data.log, data.titles, seed)
        return ranker, ranker.n_parameters


def apart(point: Point, points: Sequence[Point]) -> str:
    """The settings in which a point differs from other ``points``, in words; "" if it is alone."""
    return ", ".join(
        f"{key} {value}"
        for key, value in point.items()
        if any(each[key] != value for each in points)
    )


def distinct(points: Iterable[Point]) -> list[Point]:
    """``points``, each once."""
    unique: list[Point] = []
    for point in points:
        if point not in unique:
            unique.append(point)
    return unique
