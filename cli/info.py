"""``sentemb info``: what a model, an index or a prepared log is."""

import json
from typing import TYPE_CHECKING

import click

from sentemb.cli.options import command as new_command
from sentemb.cli.options import json_option, option

if TYPE_CHECKING:
    from sentemb.analysis.overview import Overview
    from sentemb.analysis.prepared_overview import PreparedOverview


@new_command("info")
@click.argument("folder", type=click.Path(), metavar="MODEL|INDEX|PREPARED")
@option(
    "--verify",
    is_flag=True,
    help="Read every file and compare it with its checksum. Otherwise an index and a prepared log "
    "are compared by the sizes of their files and by samples of them.",
)
@json_option(instead_of="text")
def command(folder: str, verify: bool, as_json: bool) -> None:
    """Show what a model, an index or a prepared log is.

    Prints its kind and shape, when it was written, how it was trained, the size of its vocabulary,
    on disk and in memory, the parts of its ranking with their weights, what it reached on dev, and
    the command that is useful next. The memory is that of its arrays. Of a log that
    `sentemb prepare` wrote, prints the files that it was made from and its numbers of lines, pairs,
    queries and titles.

    \b
    sentemb info model/
    sentemb info index/ --json
    sentemb info prepared/ --verify
    """
    from sentemb.data.lines import write_lines

    facts = _facts(folder, verify)
    write_lines("-", [json.dumps(facts.as_dict(), indent=1) if as_json else str(facts)])


def _facts(folder: str, verify: bool) -> "Overview | PreparedOverview":
    from sentemb.data.prepared_log import is_prepared

    if is_prepared(folder):  # read without a compiler
        from sentemb.analysis.prepared_overview import prepared_overview

        return prepared_overview(folder, verify)
    from sentemb.analysis.overview import overview
    from sentemb.search.index_files import index_folder

    return overview(str(index_folder(folder)), verify)
