"""sentemb gradcheck"""

import json
import sys

import click

from sentemb.errors import SentembError
from sentemb.models import ENCODERS

VARIANTS = [
    ("rnn", {}),
    ("rnn", {"bag": 4}),
    *(
        ("lstm", {"forget_gate": forget_gate, "peepholes": peepholes})
        for forget_gate in (False, True)
        for peepholes in ("none", "diagonal", "full")
    ),
    ("lstm", {"bag": 4}),
    ("bilstm", {}),
    ("bilstm", {"forget_gate": True, "peepholes": "full", "bag": 4}),
    ("bag", {}),
    ("dssm", {}),
    *(("clsm", {"window": window}) for window in (1, 3, 5)),
]
# The keys of sentemb.gradients.faults.FAULTS, here so that --help loads nothing heavy.
FAULT_NAMES = ["cell-path", "other-gates", "b_g", "peepholes"]


def _lengths(ctx, parameter, value):
    try:
        return tuple(int(part) for part in value.split(","))
    except ValueError:
        raise click.BadParameter("give integers separated by commas, such as 1,2,5") from None


@click.command("gradcheck")
@click.option(
    "--model",
    type=click.Choice([*ENCODERS, "all"]),
    default="lstm",
    show_default=True,
    help="all checks every variant of every model.",
)
@click.option("--cells", type=int, default=6, show_default=True, help="Cells, 1 to 1000.")
@click.option("--forget-gate", is_flag=True, help="With forget gate.")
@click.option(
    "--peepholes",
    type=click.Choice(["none", "diagonal", "full"]),
    default="none",
    show_default=True,
    help="Connections from the cell to its gates.",
)
@click.option(
    "--bag",
    type=int,
    default=0,
    show_default=True,
    help="Numbers of a linear bag of words beside the last output of lstm, bilstm and rnn.",
)
@click.option("--hidden", type=int, help="Hidden layer of dssm and clsm. [default: 5]")
@click.option("--window", type=int, help="Words under clsm's convolution: 1, 3 or 5. [default: 3]")
@click.option("--shared-towers", is_flag=True, help="One tower for queries and titles.")
@click.option(
    "--lengths",
    default="1,2,3,5,8",
    show_default=True,
    callback=_lengths,
    help="Words of the texts.",
)
@click.option(
    "--form",
    type=click.Choice(["scan", "trace", "printed"]),
    default="scan",
    show_default=True,
    help="The production kernel; the paper's traces with exact signals; the paper to the letter.",
)
@click.option("--negatives", type=int, default=3, show_default=True, help="Titles unclicked.")
@click.option("--gamma", type=float, default=10.0, show_default=True, help="Of the softmax.")
@click.option(
    "--scale", type=float, default=0.5, show_default=True, help="Size of the made-up parameters."
)
@click.option(
    "--entries", type=int, default=24, show_default=True, help="Entries compared in each block."
)
@click.option(
    "--tolerance", type=float, default=1e-6, show_default=True, help="Relative error that passes."
)
@click.option("--seed", type=int, default=0, show_default=True, help="Of everything made up.")
@click.option(
    "--break",
    "fault",
    type=click.Choice(FAULT_NAMES),
    help="Check a gradient that lacks one term of the LSTM's recursion, to watch the check fail.",
)
@click.option(
    "--explain",
    "entry",
    metavar="ENTRY",
    help="Show all steps of the differences at one entry, such as query.Wrec3[1,2].",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print JSON instead of tables: a list, or one entry."
)
def command(model, forget_gate, peepholes, bag, window, hidden, fault, entry, as_json, **settings):
    """Check every gradient against finite differences.

    For each parameter block: entries compared, largest relative and absolute error, where, and both
    values there; then the whole gradient in random directions. In float64, on made-up words, texts
    and parameters. The exit code is 1 if any block fails.

    With --form printed the paper's own recursions are checked; they pass for the RNN, and for the
    LSTM only on texts of one word.

    Blocks have the paper's names. The number of a gate is 1 output, 2 forget, 3 input,
    4 candidate: Wrec3 is the recurrent matrix of the input gate, b1 the bias of the output gate.
    """
    from sentemb.gradients.gradcheck import gradcheck

    if model == "all" and (fault or entry):
        raise SentembError("--break and --explain look at one model; name one model with --model")
    if entry is not None:
        own = {"forget_gate": forget_gate, "peepholes": peepholes, "bag": bag, "window": window}
        del settings["entries"]
        _explain(entry, as_json, model=model, hidden=hidden, fault=fault, **own, **settings)
    if model == "all":
        if forget_gate or peepholes != "none" or bag or window is not None:
            raise SentembError("--model all tries all variants itself; leave theirs out")
        variants = VARIANTS
    else:
        own = {"forget_gate": forget_gate, "peepholes": peepholes, "bag": bag, "window": window}
        variants = [(model, own)]
    reports = []
    for name, variant in variants:
        own_hidden = hidden if "hidden" in ENCODERS[name] or model != "all" else None
        report = gradcheck(name, **variant, hidden=own_hidden, fault=fault, **settings)
        reports.append(report)
        if not as_json:
            _print(report)
    if as_json:
        click.echo(json.dumps([report.as_dict() for report in reports], indent=1))
    elif len(reports) > 1:
        failed = sum(not report.passed for report in reports)
        click.echo(f"{len(reports) - failed} of {len(reports)} variants pass")
    sys.exit(0 if all(report.passed for report in reports) else 1)


def _explain(entry, as_json, **settings):
    """Print one entry of the check and exit."""
    from sentemb.gradients.explain import explain

    found = explain(entry, **settings)
    if as_json:
        click.echo(json.dumps(found.as_dict(), indent=1))
        sys.exit(0 if found.passed else 1)
    struck_out = f", without {found.fault}" if found.fault else ""
    click.echo(f"{found.entry} of {found.model}, form {found.form}{struck_out}")
    click.echo(f"analytic {found.analytic:+.12e}, largest of its block {found.largest:.3e}\n")
    heads = ("step", "second order", "error", "fourth order", "error", "change", "taken")
    rows = [heads] + [
        (
            f"{step.step:g}",
            _number(step.second, "+.12e"),
            _number(step.second_error, ".1e"),
            _number(step.fourth, "+.12e"),
            _number(step.fourth_error, ".1e"),
            "-" if step.change is None else f"{step.change:.1e}",
            "taken" if step.taken else "",
        )
        for step in found.steps
    ]
    _print_table(rows)
    click.echo(f"\n{found.reason}")
    if found.relative is not None:
        verdict = "PASS" if found.passed else "FAIL"
        click.echo(f"{verdict}: relative error {found.relative:.1e}, tolerance {found.tolerance:g}")
    sys.exit(0 if found.passed else 1)


def _number(value, form):
    return "kink" if value is None else format(value, form)


def _print_table(rows):
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    for row in rows:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:]))]
        click.echo("  ".join(cells))


def _print(report):
    shape = ", ".join(f"{key} {value}" for key, value in report.settings.items())
    click.echo(f"{report.model}, form {report.form}: {shape}")
    if report.legend:
        click.echo(report.legend)
    if report.fault:
        from sentemb.gradients.faults import FAULTS

        click.echo(f"struck out on purpose, {report.fault}: {FAULTS[report.fault]}")
    printed = report.form == "printed"
    last = ("cosine", "norm ratio") if printed else ("other form",)
    rows = [("block", "shape", "checked", "relative", "absolute", "at", "analytic", "numeric")]
    rows[0] += (*last, "verdict")
    for block in report.blocks:
        if not printed:
            difference = block.form_difference
            comparison = ("-" if difference is None else f"{difference:.1e}",)
        elif block.cosine is None:
            comparison = ("-", "-")
        else:
            comparison = (f"{block.cosine:.4f}", f"{block.norm_ratio:.3g}")
        rows.append(
            (
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
            )
        )
    _print_table(rows)
    faults = {block.equations: [] for block in report.blocks if block.equations}
    for block in report.blocks:
        if block.equations:
            faults[block.equations].append(block.block)
    for equations, blocks in faults.items():
        click.echo(f"at fault in {', '.join(blocks)}: {equations}")
    kinks = sum(block.kinks for block in report.blocks)
    if kinks:
        click.echo(f"{kinks} entries left out: a kink of max pooling is too near")
    click.echo(
        f"whole gradient in random directions: relative error {report.directional:.1e}; "
        f"backward twice: {'same bits' if report.repeatable else 'DIFFERENT BITS'}"
    )
    if report.fault:
        short = max(report.settings["lengths"]) == 1
        unused = "no block fails" + (": texts of one word do not use this term" if short else "")
        named = ", ".join(report.failed)
        click.echo(f"without {report.fault}, {f'these blocks fail: {named}' if named else unused}")
    click.echo(f"{'PASS' if report.passed else 'FAIL'} (tolerance {report.tolerance:g})\n")
