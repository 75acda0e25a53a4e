"""What a model folder holds, whatever the model is used for."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

from sentemb.models.towers import Towers

TOWERS = "towers"
# A file with this among its metadata holds no towers but a classifier, which training alone reads.
CLASSIFIER = "classifier"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model as it is stored, between a folder and the class that people use it through.

    Attributes
    ----------
    model : Towers
    training : dict
        How the model was trained: what JSON can hold. Empty for a model that was not trained.
    history : sequence of dict
        One entry per epoch.
    kind : str
        ``"towers"``; decides which class `sentemb.load` returns.
    """

    model: Towers
    training: dict[str, Any] = field(default_factory=dict)
    history: Sequence[dict[str, Any]] = ()
    kind: str = TOWERS


class Stored(Protocol):
    """A class that can be stored in a model folder."""

    def saved(self) -> SavedModel:
        """What a model folder holds of this model."""
        ...

    @classmethod
    def of(cls, saved: SavedModel, threads: int | None = None) -> Self:
        """The model from what a folder holds."""
        ...
