"""Cases of the battery that follow from declarations: each value that one forbids is refused.

Bounds come from the declarations of hyper-parameters and from the ranges of other options.
"""

import itertools

import click

from reliability.battery import Case
from sentemb.cli import main
from sentemb.gradients.check_options import FORM, OBJECTIVE, SEED
from sentemb.gradients.checks import check_parameters
from sentemb.models.towers.registry import ENCODERS
from sentemb.models.vectors.skip_gram import SETTINGS
from sentemb.models.vectors.vector_options import HYPERPARAMETERS
from sentemb.training.families import FAMILIES

REFUSED = (1, 2)
HUGE = str(10**30)
NO_INTEGERS = ("abc", "", "1.5", "nan", HUGE, f"-{HUGE}")
NO_NUMBERS = ("abc", "", "nan", "inf", "-inf", "1e400")


def cases(commands):
    """A case for each option of some commands and each value that its declaration forbids.

    Parameters
    ----------
    commands : dict of str to tuple of str
        By its name each command with what it needs.
    """
    found = itertools.chain(_declared(commands), _ranges(commands))
    calls = ((argv, option, value) for argv, option, values in found for value in values)
    for argv, option, value in dict.fromkeys(calls):
        yield Case(
            f"bounds: {' '.join(argv)} {option} {value[:40]!r}",
            (*_without(argv, option), option, value),
            REFUSED,
            check=_names(option),
        )

    for model, parameter in _foreign():
        option = parameter.option
        argv = ("train", "log.tsv", "-o", "new", "--model", model, "--epochs", "1")
        yield Case(
            f"bounds: {model} with {option}",
            (*argv, *_set(parameter)),
            REFUSED,
            check=_names(option),
        )


def _foreign():
    """A model and a hyper-parameter that it does not have."""
    of_all = {p.name: p for family in FAMILIES for p in family.settings.parameters}
    for family in FAMILIES:
        for model in family.models:
            of_model = {p.name for p in family.parameters_of(model)}
            for name, parameter in of_all.items():
                if name not in of_model:
                    yield model, parameter


def _set(parameter):
    """Arguments of a command line that set a hyper-parameter to another value than the default."""
    if parameter.kind is bool:
        return [f"--no-{parameter.option[2:]}" if parameter.default else parameter.option]
    values = parameter.choices or (parameter.least, 0.25, 0.75)
    if parameter.kind is int:
        values = values if parameter.choices else (parameter.least, parameter.least + 1)
    return [parameter.option, str(next(x for x in values if x not in (None, parameter.unset)))]


def forbidden(parameter):
    """Values that the declaration of a hyper-parameter forbids, as a command line gives them."""
    if parameter.many:
        yield from (value for value in _outside(parameter) if "," not in value)
        yield ",".join(["1"] * (parameter.many + 1))
        yield "1,"
    elif parameter.choices:
        yield "other"
    elif parameter.kind is not bool:
        yield from _outside(parameter)


def _outside(of):
    step, nonsense = (1, NO_INTEGERS) if of.kind is int else (0.5, NO_NUMBERS)
    yield from nonsense
    if of.least is not None:
        yield str(of.least - step)
    if of.most is not None:
        yield str(of.most + step if of.kind is int else 2 * of.most)
    yield from (str(bound) for bound in (of.above, of.below) if bound is not None)


def _declared(commands):
    """Command, option and forbidden values of every hyper-parameter that a command takes."""
    for family in FAMILIES:
        of_model = {p.name: model for model in family.models for p in family.parameters_of(model)}
        for parameter in family.settings.parameters:
            if parameter.name in of_model:
                argv = ("train", "log.tsv", "-o", "new", "--model", of_model[parameter.name])
                yield argv, parameter.option, forbidden(parameter)
    own = {
        "gradcheck": (*ENCODERS.parameters, *check_parameters(), FORM, OBJECTIVE, SEED),
        "vectors train": SETTINGS.values(),
        "sif": HYPERPARAMETERS,
        "sts": HYPERPARAMETERS,
    }
    for name, parameters in own.items():
        options = {flag for option in _options(name) for flag in option.opts}
        for parameter in parameters:
            if parameter.option in options:
                yield commands[name], parameter.option, forbidden(parameter)


def _ranges(commands):
    """Command, option and wrong values, for each option with a range or choices of click's."""
    seen = set()
    for name, argv in commands.items():
        for option in _options(name):
            flag, is_new = option.opts[-1], id(option) not in seen
            seen.add(id(option))
            if is_new and isinstance(option.type, click.Choice) and option.name != "model":
                yield argv, flag, ["other"]
            elif is_new and isinstance(option.type, click.IntRange | click.FloatRange):
                is_integer = isinstance(option.type, click.IntRange)
                values = list(NO_INTEGERS if is_integer else ("abc", "", "nan"))
                low, high = option.type.min, option.type.max
                values += [str(low - 1)] if low is not None else []
                values += [str(high + 1)] if high is not None else []
                yield argv, flag, [value for value in values if high or value != HUGE]


def _options(name):
    """The options of the command that is called in a case of this name."""
    command = main
    for word in name.split():
        if not isinstance(command, click.Group):
            break
        command = command.get_command(click.Context(command), word)
    return [option for option in command.params if isinstance(option, click.Option)]


def _without(argv, option):
    if option in argv:
        at = argv.index(option)
        argv = (*argv[:at], *argv[at + 2 :])
    return argv


def _names(option):
    name = option.removeprefix("--")

    def check(outcome):
        said = outcome.stderr.strip().splitlines()[-1:]
        if said and (name in said[0] or name.replace("-", "_") in said[0]):
            return None
        return f"{option} is not named: {said}"

    return check
