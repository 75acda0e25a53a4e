"""``sentemb export``: models and indexes for other programs."""

from collections.abc import Callable
from typing import Any

import click

from sentemb.bridges.export.targets import INDEX, MODEL, OPTIONS, TARGETS, checked_target, export
from sentemb.cli.common import warnings_to_stderr
from sentemb.cli.options import Written, given, option, written_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise
from sentemb.errors import SentembError
from sentemb.system.terminal import ProgressLine


def _listed(takes: str) -> str:
    """The targets that are made of a model, or of an index, one per line."""
    width = max(map(len, TARGETS))
    lines = [
        f"  {name:{width}}  {target.help}"
        for name, target in TARGETS.items()
        if target.takes == takes
    ]
    return "\b\n" + "\n".join(lines)


_HELP = f"""Write a model or an index for other programs.

The output is a file or a folder, written completely or not at all. Targets for an INDEX:

{_listed(INDEX)}

Targets for a MODEL, or for the model of an INDEX:

{_listed(MODEL)}

docs/export.md says what each holds and how to read it.

\b
sentemb export index/ -o elastic/ --to elasticsearch
sentemb export index/ -o titles.parquet --to parquet --dtype float16
sentemb export model/ -o onnx/ --to onnx
sentemb export model/ -o triplets.jsonl --to triplets --log log/pairs.tsv
"""


def _target_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that some targets have."""
    for name, declared in reversed(OPTIONS.items()):
        having = [to for to, target in TARGETS.items() if name in target.options]
        values = dict.fromkeys(value for to in having for value in TARGETS[to].options[name])
        command = option(
            f"--{name.replace('_', '-')}",
            type=click.Choice(list(values)) if values else declared.kind,
            metavar=declared.metavar or None,
            help=f"For {', '.join(having)}: {declared.help}",
        )(command)
    return command


@new_command("export", help=_HELP)
@click.argument("source", type=click.Path(), metavar="MODEL|INDEX")
@written_option(
    Written(can_stream=True),
    "The file or folder to write; files may be - for standard output.",
    takes_force=True,
    metavar="OUT",
)
@option(
    "--to",
    required=True,
    metavar="TARGET",
    shell_complete=lambda context, option, word: [to for to in TARGETS if to.startswith(word)],
    help="What to write.",
)
@_target_options
def command(source: str, output: str, to: str, force: bool, **options: Any) -> None:
    chosen = given(options)
    try:
        checked_target(to, chosen)
    except SentembError as error:
        raise click.UsageError(_as_typed(str(error))) from None
    line, written = ProgressLine(), "titles" if TARGETS[to].takes == INDEX else "pairs"

    def show(done: int, total: int) -> None:
        if line.is_due:
            line.draw(f"{done:,} of {total:,} {written}")

    try:
        with warnings_to_stderr():
            made = export(source, output, to, force=force, on_progress=show, **chosen)
    finally:
        line.close()
    lines = list(map(str, made.files))
    facts: dict[str, Any] = {"files": list(lines)}
    if TARGETS[to].takes == INDEX:
        lines.append(f"{made.titles:,} titles" + _without(made.without_vector))
        facts |= {"titles": made.titles, "without_vector": made.without_vector}
    summarise(output, facts, *lines)
    for remark in made.notes:
        note(f"note: {remark}")


def _as_typed(message: str) -> str:
    """A message that may begin with the name of an option, with its name on the line."""
    name, blank, rest = message.partition(" ")
    return f"--{name.replace('_', '-')}{blank}{rest}" if name in OPTIONS else message


def _without(without_vector: int) -> str:
    """Count the titles with no known words, as a clause of the closing line."""
    if not without_vector:
        return ""
    return f", {without_vector:,} of them without a vector: the model knows none of their words"
