"""Classes of settings whose fields come from declarations of hyper-parameters."""

import inspect
from collections.abc import Callable, Collection
from dataclasses import dataclass

from sentemb.hyperparameters import Hyperparameter


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
