"""The families of models that `sentemb.train` trains, and what a training reads.

A family is declared by one entry of `FAMILIES`. The command line and `sentemb.train` find it by the
name of the model and know nothing else of it. Nothing here loads NumPy or Numba.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.models.family import Family
from sentemb.models.towers.registry import ENCODERS
from sentemb.system.hyperparameters import Hyperparameter
from sentemb.training.declared import DeclaredSettings
from sentemb.training.inputs import Inputs
from sentemb.training.pairs.pair_settings import PairSettings
from sentemb.training.towers.settings import Settings

if TYPE_CHECKING:
    from sentemb.models.face import Face
    from sentemb.training.run import Run

# Inputs that not every family reads.
SPECIAL = ("vector_dim", "vector_words", "catalogue", "labels", "seeds", "dask")


@dataclass(frozen=True)
class TrainedFamily:
    """Models that are trained alike.

    settings : the settings of a training; it names the models
    reads : the special `Inputs` that a training reads
    home : ``module:function``, called with `Inputs`, the preset, the settings given and the `Run`
    """

    settings: type[DeclaredSettings]
    reads: frozenset[str]
    home: str

    @property
    def models(self) -> Family:
        """The models by name."""
        return self.settings.family

    def parameters_of(self, model: str) -> list[Hyperparameter]:
        """The hyper-parameters of a training of ``model``, with its help texts and defaults."""
        of_family = {p.name for p in self.models.parameters}
        of_others = of_family - set(self.models[model].names)
        return [p for p in self.settings.parameters if p.name not in of_others]

    def check(self, inputs: Inputs, settings: Mapping[str, Any]) -> None:
        """Refuse inputs and settings for another family: a `SentembError` that names its models."""
        defaults = {field.name: field.default for field in fields(Inputs)}
        for name in SPECIAL:
            is_given = getattr(inputs, name) is not None and getattr(inputs, name) != defaults[name]
            if is_given and name not in self.reads:
                self._refuse(name, [family for family in FAMILIES if name in family.reads])
        for name in settings:
            users = [f for f in FAMILIES if name in {p.name for p in f.settings.parameters}]
            if users and self not in users:
                self._refuse(name, users)

    def _refuse(self, name: str, families: Sequence[TrainedFamily]) -> None:
        models = ", ".join(model for family in families for model in family.models)
        raise SentembError(
            f"{name} is not for {self.models.noun}; leave {name} out, or choose model {models}"
        )

    def train(self, inputs: Inputs, preset: str | None, settings: dict[str, Any], run: Run) -> Face:
        """A trained model."""
        module, function = self.home.split(":")
        trained: Face = getattr(importlib.import_module(module), function)(
            inputs, preset, settings, run
        )
        return trained


FAMILIES = (
    TrainedFamily(
        Settings,
        frozenset({"vector_dim", "vector_words", "catalogue", "seeds", "dask"}),
        "sentemb.training.towers.two_tower_trainer:train_two_towers",
    ),
    TrainedFamily(
        PairSettings,
        frozenset({"labels"}),
        "sentemb.training.pairs.pair_trainer:train_pair_model",
    ),
)


def model_names() -> list[str]:
    """The names of all models that can be trained."""
    return [name for family in FAMILIES for name in family.models]


def family_of(model: object) -> TrainedFamily:
    """The family of the model called ``model``; a `SentembError` if there is no such model."""
    name = replace(ENCODERS.model, choices=model_names()).checked(model)
    return next(family for family in FAMILIES if name in family.models)
