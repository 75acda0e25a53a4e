"""Former names of arguments, which keep working for one version with a warning."""

import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def former_names(**names: str) -> Callable[[F], F]:
    """Let a function take keyword arguments under former names: ``old="new"``.

    A call with a former name issues a FutureWarning; one with both names is a TypeError.
    """

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*arguments: Any, **keywords: Any) -> Any:
            for old, new in names.items():
                if old not in keywords:
                    continue
                if new in keywords:
                    raise TypeError(f"{old} is the former name of {new}; give one of them")
                message = f"{old} is now {new}; the former name works in this version only"
                warnings.warn(message, FutureWarning, stacklevel=2)
                keywords[new] = keywords.pop(old)
            return function(*arguments, **keywords)

        # With the current names it takes what ``function`` takes.
        return call  # type: ignore[return-value]

    return decorate
