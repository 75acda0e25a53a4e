"""``sentemb info``: what a model or an index is."""

import json

import click

from sentemb.cli.options import command as new_command
from sentemb.cli.options import json_option


@new_command("info")
@click.argument("folder", type=click.Path(), metavar="MODEL|INDEX")
@json_option(instead_of="text")
def command(folder: str, as_json: bool) -> None:
    """Show what a model or an index is.

    Prints its kind and shape, when it was written, how it was trained, the size of its vocabulary,
    on disk and in memory, the parts of its ranking with their weights, what it reached on dev, and
    the command that is useful next. The memory is that of its arrays.

    \b
    sentemb info model/
    sentemb info index/ --json
    """
    from sentemb.analysis.overview import overview
    from sentemb.data.lines import write_lines

    facts = overview(folder)
    write_lines("-", [json.dumps(facts.as_dict(), indent=1) if as_json else str(facts)])
