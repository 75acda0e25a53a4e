"""Classes of settings whose fields come from declarations of hyper-parameters."""

import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from sentemb.errors import SentembError
from sentemb.models.family import Family
from sentemb.system.hyperparameters import Hyperparameter


class DeclaredSettings:
    """Base of the classes that `declared` decorates.

    parameters : in the order of the fields, which is that of model files
    family : whose models they train
    presets : other defaults by name
    """

    parameters: ClassVar[tuple[Hyperparameter, ...]]
    family: ClassVar[Family]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]]

    if TYPE_CHECKING:  # the fields come from the declarations

        def __init__(self, **settings: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

    @classmethod
    def of(cls, preset: str | None = None, **given: Any) -> Self:
        """The settings of a preset, changed by those ``given``.

        Of the preset, settings are left out that the model does not have. Raises `SentembError` for
        an unknown preset or setting, a wrong value, or settings that do not go together.
        """
        if preset is not None and preset not in tuple(cls.presets):
            raise SentembError(
                f"preset must be {' or '.join(cls.presets)} for {cls.family.noun}, not {preset!r}"
            )
        known = {parameter.name for parameter in cls.parameters}
        unknown = sorted(set(given) - known)
        if unknown:
            raise SentembError(
                f"unknown setting {unknown[0]}; there are {', '.join(sorted(known))}"
            )
        of_preset = cls.presets[preset] if preset else {}
        name = given.get("model", of_preset.get("model", cls.family.model.default))
        of_others = {parameter.name for parameter in cls.family.parameters}
        of_others -= set(cls.family.entry(name).names)
        applicable = {key: value for key, value in of_preset.items() if key not in of_others}
        return cls(**{**applicable, **given})

    @classmethod
    def left_to_the_log(cls, preset: str | None, given: Mapping[str, Any]) -> list[str]:
        """Names of the settings that depend on the log unless ``preset`` or ``given`` has them."""
        return []

    def check_each(self) -> None:
        """Check every setting by itself, and that the model has it."""
        for parameter in self.parameters:
            self._set(parameter.name, parameter.checked(getattr(self, parameter.name)))
        self.of_model()

    def of_model(self) -> dict[str, Any]:
        """The settings that the model takes."""
        of_family = {p.name: getattr(self, p.name) for p in self.family.parameters}
        return self.family.settings_of(self.model, of_family)

    def changed(self, **settings: Any) -> Self:
        """The same settings apart from those given."""
        return type(self)(**{**self.__dict__, **settings})

    def _set(self, name: str, value: Any) -> None:
        """Set a field, which is frozen once the object is made."""
        object.__setattr__(self, name, value)

    def as_dict(self) -> dict[str, Any]:
        """The settings by name, as model files hold them."""
        # The decorator makes it a dataclass, which the type checker cannot see.
        written: dict[str, Any] = asdict(self)  # type: ignore[call-overload]
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in written.items()
        }


def declared(
    family: Family,
    parameters: Collection[Hyperparameter],
    presets: Mapping[str, Mapping[str, Any]],
) -> Callable[[type], type]:
    """A decorator: the class as a frozen dataclass with a field for each of ``parameters``.

    Its docstring lists them. The other arguments are attributes of `DeclaredSettings`.
    """

    def with_fields(cls: type) -> type:
        cls.__annotations__ = {p.name: p.kind | None if p.optional else p.kind for p in parameters}
        for parameter in parameters:
            setattr(cls, parameter.name, parameter.unset)
        # Python 3.13 removes the indentation of docstrings, earlier versions keep it.
        written = inspect.cleandoc(cls.__doc__ or "")
        texts = (_documented(parameter, family.describe(parameter)) for parameter in parameters)
        cls.__doc__ = f"{written}\n{''.join(texts)}"
        settings: Any = dataclass(frozen=True)(cls)
        settings.family, settings.parameters, settings.presets = family, tuple(parameters), presets
        return cls

    return with_fields


def _documented(parameter: Hyperparameter, text: str) -> str:
    choices = ", ".join(map(repr, parameter.choices))
    kind = f"{{{choices}}}" if choices else parameter.kind.__name__
    if parameter.many:
        kind = f"{kind} or sequence of {kind}"
    default = parameter.default_text or repr(parameter.default)
    return f"{parameter.name} : {kind}, default {default}\n    {text}\n"
