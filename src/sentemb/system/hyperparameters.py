"""How a hyper-parameter is declared, and how a value is checked against its declaration.

Each hyper-parameter is declared once: those of encoders in `sentemb.models.towers.registry`, those
of training in `sentemb.training.towers.settings`, those of a gradient check in
`sentemb.gradients.check_options`. Python keywords, command-line options, their help, error messages
and the keys of model files all follow from the declaration. Nothing here needs NumPy or Numba, so
``--help`` stays quick.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sentemb.errors import SentembError
from sentemb.system.bounds import brief, is_integer, is_number

# Sections of a command's help, in this order.
MODEL, FEATURES, NEGATIVES, OBJECTIVE = "Model", "Features", "Negatives", "Objective"
OPTIMISER, PROBLEM, CHECK, RUN = "Optimiser", "Problem", "Check", "Run"
WORDS, COMPONENTS = "Words", "Components"
GROUPS = (
    MODEL, WORDS, COMPONENTS, FEATURES, NEGATIVES, OBJECTIVE, OPTIMISER, PROBLEM, CHECK, RUN
)  # fmt: skip
# The largest integer that training settings take: counts are stored as int32.
MOST = 2**31 - 1


@dataclass(frozen=True)
class Hyperparameter:
    """The declaration of one hyper-parameter.

    name : as Python keywords and model files spell it; the option is ``--name`` with hyphens
    kind : int, float, str or bool
    default : None if the default depends on other hyper-parameters; ``default_text`` then describes
        it
    help : one or two sentences
    group : section of the help
    choices : all values that are allowed; empty if any value within the bounds is
    least, most : inclusive bounds
    above, below : exclusive bounds
    words : words that are allowed in place of a number
    optional : whether None is allowed; it means the default
    default_text : how the help describes a default that is not a constant
    check_default : the default in a gradient check, where it differs
    many : for a list of such values: how many it may have. The value is then a tuple; the option
        takes them separated by commas.
    """

    name: str
    kind: type
    default: Any
    help: str
    group: str
    choices: Collection[Any] = ()
    least: float | None = None
    most: float | None = None
    above: float | None = None
    below: float | None = None
    words: tuple[str, ...] = ()
    optional: bool = False
    default_text: str = ""
    check_default: Any = None
    many: int = 0

    @property
    def option(self) -> str:
        """The command-line option."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def unset(self) -> Any:
        """The value of a setting that was not given."""
        return None if self.optional else self.default

    def checked(self, value: Any) -> Any:
        """``value`` as a plain Python object.

        Raises `SentembError` if it has the wrong type or is out of bounds.
        """
        if value is None and self.optional:
            return None
        if isinstance(value, str) and value in self.words:
            return value
        if self.many:
            return self._all_checked(value)
        if not self._is_right(value):
            raise SentembError(f"{self.name} is {brief(value)}; give {self.expected()}")
        if self.kind is float:
            # An integer stays one, so that settings are written as they were given.
            return value if type(value) in (int, float) else float(value)
        return int(value) if self.kind is int else value

    def _all_checked(self, values: Any) -> tuple[Any, ...]:
        """``values`` as a tuple; a single value counts as one of a list."""
        values = tuple(values) if isinstance(values, list | tuple) else (values,)
        if not 1 <= len(values) <= self.many or not all(map(self._is_right, values)):
            given = ",".join(map(brief, values))
            raise SentembError(f"{self.name} is {given}; give {self.expected()}")
        return tuple(self.kind(value) for value in values)

    def expected(self) -> str:
        """The allowed values in words."""
        if self.many:
            single = replace(self, many=0).expected()
            return f"1 to {self.many} values, each {single}"
        if self.choices:
            kinds = f"one of {', '.join(map(str, self.choices))}"
        elif self.kind is bool:
            kinds = "True or False"
        elif self.kind is int:
            kinds = f"an integer from {self.least:,} to {self.most:,}"
        else:
            kinds = f"a number {_interval(self)}"
        return " or ".join([kinds, *self.words])

    def _is_right(self, value: Any) -> bool:
        if self.kind in (str, bool):
            right = isinstance(value, self.kind)
        else:
            right = is_integer(value) if self.kind is int else is_number(value)
        if self.choices:
            return right and value in tuple(self.choices)
        return right and self._is_within(value)

    def _is_within(self, value: Any) -> bool:
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
            and (self.below is None or value < self.below)
        )


def _interval(of: Hyperparameter) -> str:
    bounds = (
        ("of at least", of.least),
        ("above", of.above),
        ("at most", of.most),
        ("below", of.below),
    )
    return " and ".join(f"{words} {bound:g}" for words, bound in bounds if bound is not None)


def own_values(
    model: str,
    parameters: Collection[Hyperparameter],
    known: Collection[Hyperparameter],
    given: Mapping[str, Any],
) -> dict[str, Any]:
    """The settings in ``given`` that a model takes, checked.

    A setting of another model may be given too, as long as it has the value that means "not given".
    ``parameters`` are those of this model, ``known`` those of all models of its kind. Raises
    `SentembError` for a setting that the model does not have, or a wrong value.
    """
    of_model = [parameter.name for parameter in parameters]
    declared = {parameter.name: parameter for parameter in (*known, *parameters)}
    values = {}
    for name, value in given.items():
        if name in declared:
            value = declared[name].checked(value)
        if name in of_model:
            values[name] = value
        elif name not in declared or value != declared[name].unset:
            raise SentembError(
                f"the model {model} has no {name}, only {', '.join(of_model)}; leave {name} out"
            )
    return values
