"""The registry of gradient checks that are not towers: names, classes and settings.

`sentemb.gradcheck`, ``sentemb gradcheck --model NAME`` and ``--model all`` read it. Importing it
does not load Numba.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from sentemb.errors import SentembError
from sentemb.gradients.check_options import DROPOUT, Problem
from sentemb.models.pairs.registry import PAIR_MODELS
from sentemb.models.towers.registry import CELLS, ENCODERS
from sentemb.system.hyperparameters import MODEL, Hyperparameter

if TYPE_CHECKING:
    from sentemb.gradients.problem import CheckedProblem


@dataclass(frozen=True)
class CheckEntry:
    """One check.

    name : must not be the name of an encoder
    home : ``module:class`` of a `CheckedProblem`, called with the keyword ``seed`` and one for each
        of ``takes`` and of ``parameters``
    takes : the fields of `Problem` that the class takes, except ``seed``
    parameters : the settings of the check, which may include those of encoders. If a setting has a
        ``check_default``, that is its default here.
    forms : the gradients it has: "scan", and perhaps "trace" and "printed"
    variants : the settings that ``sentemb gradcheck --model all`` tries
    defaults : settings of the check that are not given, where they differ from the declared ones
    arguments : keywords of the class that are not settings
    """

    name: str
    home: str
    takes: tuple[str, ...] = ()
    parameters: tuple[Hyperparameter, ...] = ()
    forms: tuple[str, ...] = ("scan",)
    variants: tuple[Mapping[str, Any], ...] = ({},)
    defaults: Mapping[str, Any] = field(default_factory=dict)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all settings."""
        return (*(parameter.name for parameter in self.parameters), *self.takes, "seed")


CHECKS: dict[str, CheckEntry] = {}


def register_check(entry: CheckEntry) -> None:
    """Add a check; `SentembError` if there is a check or a model of that name."""
    if any(entry.name in registry for registry in (CHECKS, ENCODERS, PAIR_MODELS)):
        raise SentembError(f"there is a check {entry.name} already; choose another name")
    CHECKS[entry.name] = entry


register_check(
    CheckEntry(
        name="urae-reconstruction",
        home="sentemb.gradients.urae_reconstruction:URAEReconstruction",
        takes=("lengths",),
        parameters=(CELLS,),
    )
)


def all_checks() -> dict[str, CheckEntry]:
    """The registered checks and one for every pair model, by name."""
    taken = "lengths", "n_negatives", "objective"
    pair_models = {
        entry.name: CheckEntry(
            name=entry.name,
            home="sentemb.gradients.pair_models:PairModelProblem",
            takes=taken,
            parameters=(
                *(parameter for parameter in entry.parameters if parameter.group == MODEL),
                DROPOUT,
            ),
            variants=entry.variants,
            # Its variants are small, the model's defaults are not.
            defaults=entry.variants[0],
            arguments={"model": entry.name},
        )
        for entry in PAIR_MODELS.values()
    }
    return CHECKS | pair_models


def check_parameters() -> tuple[Hyperparameter, ...]:
    """The hyper-parameters of all checks that towers do not have, each once."""
    parameters = {
        parameter.name: parameter
        for entry in all_checks().values()
        for parameter in entry.parameters
    }
    of_towers = {parameter.name for parameter in ENCODERS.parameters} | asdict(Problem()).keys()
    return tuple(parameter for name, parameter in parameters.items() if name not in of_towers)


def make_check(
    name: str, problem: Problem, form: str, settings: Mapping[str, Any]
) -> "CheckedProblem":
    """The problem of the check called ``name``, one of `all_checks`.

    A field of ``problem`` that the check does not take must have its default. ``form`` says which
    gradient will be asked for; ``settings`` are those that are not in ``problem``. Raises
    `SentembError` for a form or a setting that the check does not have, or a wrong value.
    """
    entry = all_checks()[name]
    if form not in entry.forms:
        raise SentembError(f"{name} has no form {form}; choose {' or '.join(entry.forms)}")
    defaults = asdict(Problem())
    for key, value in asdict(problem).items():
        if key not in entry.names and value != defaults[key]:
            raise _not_there(entry, key)
    known = {parameter.name: parameter for parameter in (*ENCODERS.parameters, *check_parameters())}
    declared = {parameter.name: parameter for parameter in entry.parameters}
    chosen = {
        key: parameter.default if parameter.check_default is None else parameter.check_default
        for key, parameter in declared.items()
    } | dict(entry.defaults)
    for key, value in settings.items():
        if key in declared:
            chosen[key] = declared[key].checked(value)
        elif key not in known or known[key].checked(value) != known[key].unset:
            raise _not_there(entry, key)
    chosen |= {key: value for key, value in asdict(problem).items() if key in entry.names}
    module, kind = entry.home.split(":")
    made: CheckedProblem = getattr(import_module(module), kind)(**chosen, **entry.arguments)
    return made


def _not_there(entry: CheckEntry, key: str) -> SentembError:
    return SentembError(
        f"{entry.name} has no {key}, only {', '.join(entry.names)}; leave {key} out"
    )
