"""A family of models: their names, classes and hyper-parameters, declared once.

The model classes, the training settings, the command line, the gradient check and the model files
all read it. Importing it loads neither NumPy nor Numba.
"""

import importlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.hyperparameters import MODEL, Hyperparameter, own_values


@dataclass(frozen=True)
class ModelEntry:
    """One model.

    home : ``module:class``, imported when the first model of this name is made
    parameters : the arguments of its constructor
    recurrent : whether it reads word by word
    variants : the settings that ``sentemb gradcheck --model all`` tries
    """

    name: str
    home: str
    parameters: tuple[Hyperparameter, ...]
    recurrent: bool = False
    variants: tuple[Mapping[str, Any], ...] = ({},)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the parameters."""
        return tuple(parameter.name for parameter in self.parameters)


class Family(dict[str, ModelEntry]):
    """The entries of a family by the names of the models.

    ``noun`` is what messages call its models, ``default`` the model that is trained unless another
    is asked for, ``help`` the help text of the hyper-parameter ``model``.
    """

    def __init__(self, noun: str, default: str, help: str) -> None:
        super().__init__()
        self.noun, self.default = noun, default
        self.model = Hyperparameter(
            name="model", kind=str, default=default, help=help, group=MODEL, choices=self
        )

    def register(self, entry: ModelEntry) -> None:
        """Add a model; `SentembError` if there is one of that name."""
        if entry.name in self:
            raise SentembError(f"there is a model {entry.name} already; choose another name")
        self[entry.name] = entry

    def entry(self, name: str) -> ModelEntry:
        """The entry of the model called ``name``; `SentembError` if there is none."""
        return self[self.model.checked(name)]

    @property
    def parameters(self) -> tuple[Hyperparameter, ...]:
        """The hyper-parameters of all its models, each once."""
        return tuple({p.name: p for entry in self.values() for p in entry.parameters}.values())

    def having(self, parameter: Hyperparameter) -> list[str]:
        """Names of the models that have ``parameter``."""
        return [name for name, entry in self.items() if parameter.name in entry.names]

    def describe(self, parameter: Hyperparameter) -> str:
        """The help text of a declaration, with the models that it applies to."""
        models = self.having(parameter)
        if not models or len(models) == len(self):
            return parameter.help
        return f"{parameter.help} Only for {', '.join(models)}."

    def settings_of(self, model: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The settings in ``given`` that ``model`` takes, checked.

        A setting of another model of the family may be given too, as long as it has the value that
        means "not given". Raises `SentembError` for an unknown model, a setting that it does not
        have, or a wrong value.
        """
        return own_values(model, self.entry(model).parameters, self.parameters, given)

    def make(self, name: str, **settings: Any) -> Any:
        """The model called ``name``, without weights.

        Raises `SentembError` for an unknown name, a setting that the model does not have, a wrong
        value, or settings that do not go together.
        """
        arguments = self.settings_of(name, settings)
        module, kind = self[name].home.split(":")
        return getattr(importlib.import_module(module), kind)(**arguments)
