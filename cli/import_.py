"""``sentemb import``: a click log from CSV, TSV, JSON lines, Parquet or recorded searches."""

from typing import Any

import click

from sentemb.cli.options import Written, option, since_option, written_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise
from sentemb.cli.table_options import delimiter_of, fields_kept, table_options
from sentemb.system.amounts import amount
from sentemb.system.terminal import working


@new_command("import")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path())
@written_option(
    Written(can_stream=True),
    "The log to write; - is standard output.",
    takes_force=True,
    metavar="LOG",
)
@table_options(in_catalogue="Catalogue")
@option(
    "--min-clicks",
    default=1,
    show_default=True,
    help="Leave out pairs with fewer clicks in all files together.",
)
@option("--lower", is_flag=True, help="Lower-case the queries.")
@option("--skip-bad-lines", is_flag=True, help="Count bad rows instead of stopping at the first.")
@since_option()
@option(
    "--catalogue",
    metavar="TABLE",
    type=click.Path(),
    group="Catalogue",
    help="FILE has ids; take their titles from this table.",
)
@option(
    "--write-catalogue",
    metavar="TITLES",
    type=Written(),
    group="Catalogue",
    help="Also write the titles as id<TAB>title: all of the catalogue, or those of the log.",
)
@option(
    "--search-column",
    metavar="COLUMN",
    group="Shown results",
    help="Rows are shown results, clicked or not; this is the id of their search.",
)
@option(
    "--position-column",
    metavar="COLUMN",
    group="Shown results",
    help="Place in the results: only titles above the lowest click count as skipped.",
)
@option(
    "--format",
    type=click.Choice(["auto", "csv", "tsv", "jsonl", "parquet"]),
    default="auto",
    show_default=True,
    group="Reading",
    help="Format of FILE; auto goes by its name, then by its first line.",
)
@option(
    "--header/--no-header",
    default=None,
    group="Reading",
    help="Whether the first row names the columns. [default: detected]",
)
@option(
    "--no-quotes",
    is_flag=True,
    group="Reading",
    help="Read double quotes as ordinary characters.",
)
def command(files: tuple[str, ...], output: str, **given: Any) -> None:
    """Turn tables of clicks into a click log.

    FILE is CSV, TSV or other delimited text, JSON lines, Parquet (pip install sentemb[parquet]), or
    what `sentemb serve --record` has written, whose columns are query, title, id, clicks, search,
    position and time. Text is unpacked if its name ends in .gz, - is standard input. A COLUMN is a
    name or a number from 1; in JSON and Parquet a.b is the field b of a. Quoted texts of CSV may
    hold delimiters and line ends.

    Lines before the header and rows of totals are passed over. Clicks may have separators of
    thousands. A list of ids or titles is one click on each. Rows with an empty query or title,
    without clicks, or with an id that has no title are left out and counted, and cells such as NULL
    are empty. Memory does not grow with FILE; a catalogue is kept in memory.

    \b
    sentemb import clicks.csv -o pairs.tsv --query-column search_term \\
        --title-column product --clicks-column n
    sentemb import clicks.csv -o pairs.tsv --id-column sku --catalogue products.csv \\
        --title-column name --write-catalogue titles.tsv --fields price,stock,brand
    sentemb import shown.parquet -o log.jsonl --clicks-column clicked \\
        --search-column sid --position-column pos
    """
    from sentemb.data.importers.click_rows import Columns
    from sentemb.data.importers.click_table import import_clicks
    from sentemb.data.importers.columns import Reading
    from sentemb.search.product_fields import check_columns
    from sentemb.system.files import place_name

    how = Reading(
        given.pop("format"),
        delimiter_of(given.pop("delimiter")),
        given.pop("encoding"),
        header=given.pop("header"),
        quotes=not given.pop("no_quotes"),
    )
    keep = fields_kept(given.pop("fields"), given["catalogue"], how.encoding)
    check_columns(list(keep))
    roles = ("query", "title", "id", "clicks", "search", "position", "catalogue_id")
    columns = Columns(**{role: given.pop(f"{role}_column") for role in roles}, keep=keep)
    min_clicks = given["min_clicks"]
    with working("importing"):
        done = import_clicks(files, output, columns, how=how, **given)
    for message in done.notes:
        note(f"note: {message}")
    name = place_name(files[0]) if len(files) == 1 else f"{len(files)} files"
    written = "searches" if columns.search else "pairs" if min_clicks > 1 else "lines"
    thing = "search" if columns.search else "pair" if min_clicks > 1 else "line"
    lines = amount(done.lines, thing)
    parts = [f"{name}: {amount(done.rows, 'row')}, {lines} written"]
    if done.catalogue is not None:
        parts[0] += f", {amount(done.catalogue, 'title')} in the catalogue"
    left_out = ", ".join(f"{count:,} {reason}" for reason, count in done.left_out.most_common())
    if left_out:
        parts.append(f"left out: {left_out}")
    facts = {
        "files": list(files),
        "rows": done.rows,
        written: done.lines,
        "catalogue": done.catalogue,
        "left_out": dict(done.left_out),
        "clicks": {"read": done.clicks, "kept": done.clicks_kept, "lost": dict(done.lost)},
    }
    summarise(output, facts, "; ".join(parts), done.of_clicks())
