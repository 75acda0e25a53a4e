"""The contents of a model folder, for all kinds of models."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sentemb.errors import SentembError
from sentemb.models.pairs.matcher import Matcher
from sentemb.models.towers.towers import Towers

TOWERS, PAIR = Towers.kind, Matcher.kind
KINDS: dict[str, type[Towers] | type[Matcher]] = {TOWERS: Towers, PAIR: Matcher}
# A file with this among its metadata holds no towers but a classifier, which training alone reads.
CLASSIFIER = "classifier"


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model as it is stored, between a folder and the class that people use it through.

    ``training`` says how the model was trained, as JSON can hold it, and is empty for a model that
    was not trained; ``history`` has one entry per epoch.
    """

    model: Towers | Matcher
    training: dict[str, Any] = field(default_factory=dict)
    history: Sequence[dict[str, Any]] = ()

    def towers(self) -> Towers:
        """The two towers; `SentembError` if it is a pair model."""
        if isinstance(self.model, Towers):
            return self.model
        raise SentembError(
            f"the model {self.model.model.name} scores pairs and has no vector of a text; use "
            "`sentemb score`, `rank`, `evaluate` or `plot-match`, or PairScorer in Python"
        )

    def matcher(self) -> Matcher:
        """The pair model; `SentembError` if it has two towers."""
        if isinstance(self.model, Matcher):
            return self.model
        raise SentembError(
            f"the model {self.model.encoder.name} has two towers and is not a pair model; use "
            "`sentemb plot-gates` or `report`, or SentenceEncoder in Python"
        )
