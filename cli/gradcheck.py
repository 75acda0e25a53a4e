"""``sentemb gradcheck``: every gradient against finite differences."""

import json
import sys
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import click

from sentemb.cli.options import Integers, given, json_option, option, option_of
from sentemb.cli.options import command as new_command
from sentemb.errors import SentembError
from sentemb.gradients.check_options import (
    FAULTS,
    FORM,
    LENGTHS,
    OBJECTIVE,
    SEED,
    TEACHER_SHARE,
    VECTOR_DIM,
    Problem,
)
from sentemb.gradients.checks import CHECKS, all_checks, check_parameters
from sentemb.models.pairs.registry import PAIR_MODELS
from sentemb.models.towers.registry import BAG_DIM, CELLS, ENCODERS, SHARED_TOWERS
from sentemb.system.hyperparameters import CHECK, PROBLEM, Hyperparameter

_ALL = "all"
# A variant of every encoder, in addition to its own.
_WITH_VECTORS = {VECTOR_DIM.name: 3}


def _own_settings(function: Any) -> Any:
    """``function`` with an option for what changes the equations of a model, and for its size."""
    for declared in reversed(list(filter(_is_form, check_parameters()))):
        users = [name for name, entry in all_checks().items() if declared in entry.parameters]
        help = f"Only for {', '.join(users)}."
        function = option_of(declared, help=help)(function)
    for declared in reversed(list(filter(_is_form, ENCODERS.parameters))):
        function = option_of(declared, default=declared.check_default, family=ENCODERS)(function)
    return option_of(CELLS, default=CELLS.check_default)(function)


def _is_form(declared: Hyperparameter) -> bool:
    return declared.kind in (bool, str) or declared is BAG_DIM


@new_command("gradcheck")
@option_of(
    ENCODERS.model,
    choices=[*all_checks(), _ALL],
    help=f"Or a pair model: {', '.join(PAIR_MODELS)}. Or a loss by itself: {', '.join(CHECKS)}. "
    f"{_ALL} checks every variant of each.",
)
@_own_settings
@option_of(SHARED_TOWERS)
@option(
    "--lengths",
    type=Integers(),
    default=",".join(map(str, LENGTHS)),
    show_default=True,
    help="Words of the texts.",
    group=PROBLEM,
)
@option_of(OBJECTIVE)
@option_of(TEACHER_SHARE)
@option_of(SEED)
@option_of(FORM)
@option(
    "--break",
    "fault",
    type=click.Choice(list(FAULTS)),
    help="Check a gradient that lacks one term of the LSTM's recursion, to watch the check fail.",
    group=CHECK,
)
@option(
    "--explain",
    "entry",
    metavar="ENTRY",
    help="Show all steps of the differences at one entry, such as query.Wrec3[1,2].",
    group=CHECK,
)
@json_option(instead_of="tables")
def command(model: str | None, entry: str | None, as_json: bool, **options: Any) -> None:
    """Check every gradient against finite differences.

    For each block of parameters, prints the number of entries compared, the largest relative and
    absolute error, where the largest relative error is, and both values there; then the error of
    the whole gradient in random directions. Works in float64 on random words, texts and parameters.
    Last, 600 texts (or pairs) are taken at once, as in training: their gradient must be the sum of
    that of 8 at a time and, for the models of the paper, that of the traces, also where errors are
    cut off as by train --truncate. The exit code is 1 if anything fails.

    With --form printed, the recursions printed in the paper are checked. They pass for the RNN, and
    for the LSTM only on texts of one word.

    urae-reconstruction checks the loss that the auto-encoder of the pair model urae learns from.

    All blocks of a pair model, such as arc2, have the side "pair". With the hinge its loss is
    piecewise linear in each parameter (except in urae), so larger steps are taken and errors are
    smaller. An entry is left out, and counted, if a ReLU, a maximum or a hinge changes within the
    steps.

    Blocks have the paper's names. The number of a gate is 1 output, 2 forget, 3 input,
    4 candidate: Wrec3 is the recurrent matrix of the input gate, b1 the bias of the output gate.

    \b
    sentemb gradcheck --model lstm --forget-gate --peepholes full
    sentemb gradcheck --model all
    """
    if model == _ALL and (options["fault"] or entry):
        raise SentembError("--break and --explain look at one model; name one model with --model")
    if entry is not None:
        _explain(entry, as_json, model=model or ENCODERS.model.default, **given(options))
    reports = []
    for report in _reports(model or ENCODERS.model.default, given(options)):
        reports.append(report)
        if not as_json:
            _print(report)
    if as_json:
        click.echo(json.dumps([report.as_dict() for report in reports], indent=1))
    elif len(reports) > 1:
        failed = sum(not report.passed for report in reports)
        click.echo(f"{len(reports) - failed} of {len(reports)} variants pass")
    sys.exit(0 if all(report.passed for report in reports) else 1)


def _reports(model: str, settings: dict[str, Any]) -> Iterator[Any]:
    from sentemb.gradients.gradcheck import gradcheck

    if model != _ALL:
        yield gradcheck(model, **settings)
        return
    variants = [entry.variants for entry in ENCODERS.values()]
    variants += [entry.variants for entry in all_checks().values()]
    varied = {name for of_entry in variants for names in of_entry for name in names}
    if varied & settings.keys():
        raise SentembError(f"--model {_ALL} tries all variants itself; leave their settings out")
    of_encoders = {declared.name for declared in ENCODERS.parameters}
    of_checks = {declared.name for declared in check_parameters()}
    for encoder in ENCODERS.values():
        foreign = (of_encoders | of_checks) - set(encoder.names)
        applying = {key: value for key, value in settings.items() if key not in foreign}
        for variant in (*encoder.variants, _WITH_VECTORS):
            yield gradcheck(encoder.name, **{**variant, **applying})
    of_towers = of_encoders | of_checks | {field.name for field in fields(Problem)}
    for check in all_checks().values():
        foreign = of_towers - set(check.names)
        applying = {key: value for key, value in settings.items() if key not in foreign}
        for variant in check.variants:
            yield gradcheck(check.name, **variant, **applying)


def _explain(entry: str, as_json: bool, **settings: Any) -> None:
    """Print one entry of the check and exit."""
    from sentemb.gradients.entry_trace import explain_gradient
    from sentemb.system.tables import aligned

    steps = explain_gradient(entry, **settings)
    if as_json:
        click.echo(json.dumps(steps.as_dict(), indent=1))
        sys.exit(0 if steps.passed else 1)
    left_out = f", without {steps.fault}" if steps.fault else ""
    click.echo(f"{steps.entry} of {steps.model}, form {steps.form}{left_out}")
    click.echo(f"analytic {steps.analytic:+.12e}, largest of its block {steps.largest:.3e}\n")
    heads = ("step", "second order", "error", "fourth order", "error", "change", "taken")
    rows = [heads] + [
        (
            f"{step.step:g}",
            _number(step.second, "+.12e"),
            _number(step.second_error, ".1e"),
            _number(step.fourth, "+.12e"),
            _number(step.fourth_error, ".1e"),
            "-" if step.change is None else f"{step.change:.1e}",
            "taken" if step.taken else "-",
        )
        for step in steps.steps
    ]
    for line in aligned(rows):
        click.echo(line)
    click.echo(f"\n{steps.reason}")
    if steps.relative is not None:
        verdict = "PASS" if steps.passed else "FAIL"
        click.echo(f"{verdict}: relative error {steps.relative:.1e}, tolerance {steps.tolerance:g}")
    sys.exit(0 if steps.passed else 1)


def _number(value: float | None, form: str) -> str:
    return "kink" if value is None else format(value, form)


def _print_fault(report: Any) -> None:
    """Which term was left out on purpose."""
    if report.fault:
        click.echo(f"left out on purpose, {report.fault}: {FAULTS[report.fault]}")


def _print_failed(report: Any) -> None:
    """The blocks that fail without the term."""
    if not report.fault:
        return
    short = max(report.settings["lengths"]) == 1
    unused = "no block fails" + (": texts of one word do not use this term" if short else "")
    named = ", ".join(report.failed)
    click.echo(f"without {report.fault}, {f'these blocks fail: {named}' if named else unused}")


def _cells_of(block: Any, printed: bool) -> list[str]:
    if not printed:
        difference = block.form_difference
        comparison = ["-" if difference is None else f"{difference:.1e}"]
    elif block.cosine is None:
        comparison = ["-", "-"]
    else:
        comparison = [f"{block.cosine:.4f}", f"{block.norm_ratio:.3g}"]
    return [
        block.block,
        "x".join(map(str, block.shape)),
        str(block.checked),
        f"{block.relative:.1e}",
        f"{block.absolute:.1e}",
        ",".join(map(str, block.index)),
        f"{block.analytic:+.6e}",
        f"{block.numeric:+.6e}",
        *comparison,
        "pass" if block.passed else "FAIL",
    ]


def _print_equations(report: Any) -> None:
    """The equations of the paper that are at fault, each with the blocks that it spoils."""
    spoilt: dict[str, list[str]] = {}
    for block in report.blocks:
        if block.equations:
            spoilt.setdefault(block.equations, []).append(block.block)
    for equations, blocks in spoilt.items():
        click.echo(f"at fault in {', '.join(blocks)}: {equations}")


def _print(report: Any) -> None:
    from sentemb.system.tables import aligned

    shape = ", ".join(f"{key} {value}" for key, value in report.settings.items())
    click.echo(f"{report.model}, form {report.form}: {shape}")
    if report.legend:
        click.echo(report.legend)
    _print_fault(report)
    printed = report.form == "printed"
    last = ["cosine", "norm ratio"] if printed else ["other form"]
    head = ["block", "shape", "checked", "relative", "absolute", "at", "analytic", "numeric"]
    rows = [[*head, *last, "verdict"]]
    rows += [_cells_of(block, printed) for block in report.blocks]
    for line in aligned(rows):
        click.echo(line)
    _print_equations(report)
    kinks = sum(block.kinks for block in report.blocks)
    if kinks:
        click.echo(f"{kinks} entries left out: they are too near to a kink of the loss")
    click.echo(
        f"whole gradient in random directions: relative error {report.directional:.1e}; "
        f"backward twice: {'same bits' if report.repeatable else 'DIFFERENT BITS'}"
    )
    if report.batch_line:
        click.echo(report.batch_line)
    _print_failed(report)
    click.echo(f"{'PASS' if report.passed else 'FAIL'} (tolerance {report.tolerance:g})\n")
