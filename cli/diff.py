"""``sentemb diff``: what two models find for the same queries."""

import json

import click

from sentemb.cli.common import note_unknown_words, read_texts
from sentemb.cli.options import (
    Written,
    cosine_option,
    json_option,
    option,
    output_option,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.system.amounts import amount
from sentemb.system.terminal import working


@new_command("diff")
@click.argument("first", type=click.Path(), metavar="A")
@click.argument("second", type=click.Path(), metavar="B")
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="File of lines id<TAB>title that models rank; equal titles count once. An index ranks its "
    "own titles.",
)
@option(
    "--queries",
    type=click.Path(),
    help="File of lines id<TAB>query. [default: the queries of --clicks]",
)
@option("--clicks", type=click.Path(), help="Held-out clicks, a click log: adds MRR@k of both.")
@option(
    "-k",
    "--top-k",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Titles per query.",
)
@option(
    "--show",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Queries to show, those that differ most.",
)
@output_option(
    Written(can_stream=True),
    "Show the queries on an HTML page instead of the terminal.",
    metavar="OUT.html",
)
@cosine_option()
@json_option(instead_of="text")
@threads_option()
def command(
    first: str,
    second: str,
    catalogue: str | None,
    queries: str | None,
    clicks: str | None,
    top_k: int,
    show: int,
    output: str | None,
    cosine: bool,
    as_json: bool,
) -> None:
    """Compare what two models, or two indexes, find for the same queries.

    Both rank as `sentemb rank` and `search` do. Prints for how many queries both find the same
    title first, how many of the first k titles they share, and, with --clicks, MRR@k of both, the
    share of queries for which each puts
    the clicked title higher, and the difference with its bootstrap interval. Then the queries that
    differ most, side by side; * marks a clicked title.

    \b
    sentemb diff old/ new/ --catalogue titles.tsv --clicks test.tsv -o diff.html
    sentemb diff old/ new/ --catalogue titles.tsv --queries queries.tsv --show 5
    sentemb diff old-index/ new-index/ --clicks test.tsv
    """
    from sentemb.analysis.labels import short_names
    from sentemb.analysis.report.difference_page import difference_page
    from sentemb.comparison.difference import difference, sides_of
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import write_lines
    from sentemb.search.index_files import index_folder
    from sentemb.system.files import place_name, write_text

    if queries is None and clicks is None:
        raise click.UsageError("give --queries, --clicks or both")
    if [catalogue, queries, clicks].count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    first, second = (str(index_folder(folder)) for folder in (first, second))
    _check_usage((first, second), catalogue)
    ids, listed = (None, None) if catalogue is None else read_texts(catalogue)
    sides, titles = sides_of(first, second, listed, cosine, ids)
    held_out = None if clicks is None else read_click_log(clicks)
    if queries is not None:
        texts = read_texts(queries)[1]
    else:
        texts = held_out.queries if held_out is not None else []
    for folder, side in zip((first, second), sides, strict=True):
        note_unknown_words(side.model, texts, folder)
    a, b = sides
    with working("ranking"):
        comparison = difference(a, b, texts, titles, held_out, top_k)
    if comparison.by_clicks is not None and comparison.by_clicks.n_missing:
        titles_name = catalogue or "the indexes"
        note(
            f"{amount(comparison.by_clicks.n_missing, 'clicked title')} not in {titles_name} "
            "count as missed"
        )
    if output is not None:
        page = difference_page(comparison, short_names([first, second]), show)
        write_text(output, page)
        shown, size = amount(min(show, len(texts)), "query"), len(page.encode()) / 1e6
        note(f"{place_name(output, 'output')}: {shown}, {size:.1f} MB")
        if output == "-":
            return
    if as_json:
        lines = [json.dumps(comparison.as_dict(show), indent=1)]
    else:
        lines = comparison.summary()
        for query in comparison.order[: show if output is None else 0].tolist():
            lines += ["", *comparison.lines(query)]
    write_lines("-", lines)


def _check_usage(folders: tuple[str, str], catalogue: str | None) -> None:
    """Refuse a model with an index, an index with titles, and a model without."""
    from sentemb.search.index_files import is_index

    are_indexes = {is_index(folder) for folder in folders}
    if len(are_indexes) > 1:
        raise click.UsageError("give two models or two indexes")
    if are_indexes == {True} and catalogue is not None:
        raise click.UsageError("indexes have titles of their own; leave --catalogue out")
    if are_indexes == {False} and catalogue is None:
        raise click.UsageError("models need --catalogue TITLES")
