"""``sentemb diff``: what two models find for the same queries."""

import json

import click

from sentemb.cli.common import note_unknown_words, read_texts, warnings_to_stderr
from sentemb.cli.options import Written, json_option, option, output_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note


@new_command("diff")
@click.argument("first", type=click.Path(), metavar="MODEL_A")
@click.argument("second", type=click.Path(), metavar="MODEL_B")
@option(
    "--catalogue",
    metavar="TITLES",
    required=True,
    type=click.Path(),
    help="File of lines id<TAB>title; equal titles count once.",
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
    "--limit",
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
@json_option(instead_of="text")
def command(
    first: str,
    second: str,
    catalogue: str,
    queries: str | None,
    clicks: str | None,
    top_k: int,
    limit: int,
    output: str | None,
    as_json: bool,
) -> None:
    """Compare what two models find for the same queries.

    Prints for how many queries both models find the same title first, how many of the first k
    titles they share, and, with --clicks, MRR@k of both, the share of queries for which each puts
    the clicked title higher, and the difference with its bootstrap interval. Then the queries that
    differ most, side by side; * marks a clicked title.

    \b
    sentemb diff old/ new/ --catalogue titles.tsv --clicks test.tsv -o diff.html
    sentemb diff old/ new/ --catalogue titles.tsv --queries queries.tsv --limit 5
    """
    from sentemb.analysis.labels import short_names
    from sentemb.comparison.difference import difference
    from sentemb.comparison.difference_page import difference_page
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import write_lines
    from sentemb.evaluation.catalogue import in_tie_order
    from sentemb.models.nearest import TitleVectors
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.files import place_name, write_text

    if queries is None and clicks is None:
        raise click.UsageError("give --queries, --clicks or both")
    if [catalogue, queries, clicks].count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    models = [SentenceEncoder.from_pretrained(folder) for folder in (first, second)]
    titles = in_tie_order({text.strip() for text in read_texts(catalogue)[1]})
    held_out = None if clicks is None else read_click_log(clicks)
    if queries is not None:
        texts = read_texts(queries)[1]
    else:
        texts = held_out.queries if held_out is not None else []
    for folder, model in zip((first, second), models, strict=True):
        note_unknown_words(model, texts, folder)
    with warnings_to_stderr():
        a, b = (TitleVectors(model, titles) for model in models)
        found = difference(a, b, texts, titles, held_out, top_k)
    if found.by_clicks is not None and found.by_clicks.n_missing:
        note(
            f"{found.by_clicks.n_missing:,} clicked titles are not in {catalogue}; they count as "
            "missed"
        )
    if output is not None:
        page = difference_page(found, short_names([first, second]), limit)
        write_text(output, page)
        size = len(page.encode()) / 1e6
        note(f"{place_name(output, 'output')}: {min(limit, len(texts)):,} queries, {size:.1f} MB")
        if output == "-":
            return
    if as_json:
        lines = [json.dumps(found.as_dict(limit), indent=1)]
    else:
        lines = found.summary()
        for query in found.order[: limit if output is None else 0].tolist():
            lines += ["", *found.lines(query)]
    write_lines("-", lines)
