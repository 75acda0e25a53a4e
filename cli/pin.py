"""``sentemb pin``: what a person decides about a query."""

import json

import click

from sentemb.cli.options import Text, json_option, option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note


@new_command("pin")
@click.argument("shop", type=click.Path())
@click.argument("query", type=Text())
@click.argument("id", required=False)
@option("--remove", is_flag=True, help="Remove what is pinned to QUERY.")
@json_option(instead_of="a line")
def command(shop: str, query: str, id: str | None, remove: bool, as_json: bool) -> None:
    """Put a title first for a query.

    SHOP is a folder of `sentemb start`, and ID the id of a title in it. For QUERY, in any case and
    with any punctuation, this title comes before the others at once, as if more users had clicked
    it than any other, and `sentemb refresh` keeps that. A query has one pinned title; another ID
    takes its place. `sentemb insights` lists the queries whose searches end without a click, and
    `sentemb explain` says of a title that it is pinned. A running `sentemb serve SHOP` takes it
    over.

    \b
    sentemb pin shop/ "desk lamp red" P10734
    sentemb pin shop/ "desk lamp red" --remove
    """
    from sentemb.bridges.refresh.pins import pin
    from sentemb.data.lines import write_lines

    if remove == (id is not None):
        raise click.UsageError("give either ID or --remove")
    done = pin(shop, query, id)
    if as_json:
        write_lines("-", [json.dumps({"query": query, "id": id, **done._asdict()}, indent=1)])
        return
    if id is None:
        write_lines("-", [f"removed the pin of {', '.join(done.replaced)} from {query}"])
        return
    where = "below place 100" if done.position is None else f"at place {done.position}"
    write_lines("-", [f"{id}, {done.title}: pinned to {query}, now {where}"])
    if done.replaced:
        note(f"note: it replaces {', '.join(done.replaced)}")
    if done.position != 1:
        note("note: the ranker of this index gives clicks too little weight to put it first")
