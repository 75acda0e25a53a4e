"""``sentemb insights``: what users searched."""

import json
from datetime import datetime

import click

from sentemb.cli.options import command as new_command
from sentemb.cli.options import json_option, option, since_option


@new_command("insights")
@click.argument("record", type=click.Path())
@option(
    "-k",
    "--top-k",
    type=click.IntRange(1, 1_000_000),
    default=10,
    show_default=True,
    help="Queries in each list.",
)
@since_option()
@json_option(instead_of="tables")
def command(record: str, top_k: int, since: datetime | None, as_json: bool) -> None:
    """Show what users searched, and what they did not find.

    RECORD is what `sentemb serve --record` writes; the server may still be running. Prints the most
    frequent queries, those that found nothing, those without a good match, the slowest, and those
    that lose most, with the title that was shown first: they lack the most clicks to be clicked
    like the average query. Queries that differ in case alone count as the same query.

    \b
    sentemb insights searches.sqlite
    sentemb insights searches.sqlite -k 100 --since 2026-11-01 --json
    """
    from sentemb.analysis.insights import insights
    from sentemb.data.lines import write_lines

    result = insights(record, top_k, since)
    write_lines("-", [json.dumps(result.as_dict(), indent=1) if as_json else str(result)])
