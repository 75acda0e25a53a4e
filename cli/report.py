"""``sentemb report``: a page that shows a model at work."""

import click

from sentemb.cli.program import note


@click.command("report")
@click.argument("model", type=click.Path())
@click.argument("queries", type=click.Path())
@click.argument("output", type=click.Path(), metavar="OUT.html")
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Pairs on the page, the first of QUERIES.",
)
def command(model, queries, output, limit):
    """Write a page that shows a model at work.

    One HTML file that needs no network: the model and its learning curve; for pairs of a query and
    a title their score, what each word does to it, keywords and gates; and the words that each cell
    collects over the first 5000 queries.

    QUERIES is a file with a line query<TAB>title for each pair, such as a click log, or a query
    alone on its line, which is shown without a score; or the folder of a judged set, of which each
    query is shown with the title that the model puts first and, if that is not among the most
    relevant ones, the best of these.
    """
    from pathlib import Path

    from sentemb.analysis.report.page import collect, page, read_pairs
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.files import write_text

    encoder = SentenceEncoder.from_pretrained(model)
    pairs, texts = read_pairs(encoder, queries, limit)
    report = page(collect(encoder, Path(model).resolve().name, pairs, texts))
    write_text(output, report)
    note(f"{output}: {len(pairs)} pairs, {len(report.encode()) / 1e6:.1f} MB")
