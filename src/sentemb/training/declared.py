"""Classes of settings whose fields come from declarations of hyper-parameters."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from sentemb.system.hyperparameters import Hyperparameter


class DeclaredSettings:
    """Base of the classes that `declared` decorates."""

    if TYPE_CHECKING:  # the fields come from the declarations

        def __init__(self, **settings: Any) -> None: ...

        def __getattr__(self, name: str) -> Any: ...

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
    parameters: Collection[Hyperparameter], describe: Callable[[Hyperparameter], str]
) -> Callable[[type], type]:
    """A decorator: the class as a frozen dataclass with a field for each of ``parameters``.

    Parameters
    ----------
    parameters : collection of Hyperparameter
        In the order of the fields.
    describe : function
        The text that is added to the docstring for each.
    """

    def with_fields(cls: type) -> type:
        cls.__annotations__ = {
            one.name: one.kind | None if one.optional else one.kind for one in parameters
        }
        for one in parameters:
            setattr(cls, one.name, one.unset)
        # Python 3.13 removes the indentation of docstrings, earlier versions keep it.
        written = inspect.cleandoc(cls.__doc__ or "")
        texts = (_documented(one, describe(one)) for one in parameters)
        cls.__doc__ = f"{written}\n{''.join(texts)}"
        return dataclass(frozen=True)(cls)

    return with_fields


def _documented(one: Hyperparameter, text: str) -> str:
    kind = f"{{{', '.join(map(repr, one.choices))}}}" if one.choices else one.kind.__name__
    if one.many:
        kind = f"{kind} or sequence of {kind}"
    default = one.default_text or repr(one.default)
    return f"{one.name} : {kind}, default {default}\n    {text}\n"
