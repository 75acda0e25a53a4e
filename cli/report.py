"""``sentemb report``: a page that shows a model at work."""

import click

from sentemb.cli.common import check_ending, warnings_to_stderr
from sentemb.cli.options import command as new_command
from sentemb.cli.options import option
from sentemb.cli.program import note


@new_command("report")
@click.argument("model", type=click.Path())
@click.argument("queries", type=click.Path())
@click.argument("output", type=click.Path(), metavar="OUT.html")
@option(
    "--limit",
    type=click.IntRange(min=1),
    default=20,
    show_default=True,
    help="Number of pairs on the page, taken from the start of QUERIES.",
)
def command(model: str, queries: str, output: str, limit: int) -> None:
    """Write a page that shows a model at work.

    The page is one HTML file that needs no network. It shows the model and its learning curve; for
    each pair of a query and a title the score, the effect of each word on it, keywords and gates;
    and the words that each cell collects over the first 5000 queries. For a pair model it
    shows the scores and the effects of words, and for arc2 also what each pair of windows carries.

    QUERIES is a file with one pair per line, query<TAB>title, such as a click log; a query alone on
    a line is shown without a score, but a pair model needs both. It may also be the folder of a
    judged set: each query is then shown with the title that the model ranks first and, if that is
    not among the most relevant titles, with the best of these.

    \b
    sentemb report model/ test/ model.html
    """
    from pathlib import Path

    from sentemb.analysis.report.page import collect, page, read_pairs
    from sentemb.loading import load
    from sentemb.system.files import write_text

    check_ending(output, (".html", ".htm"), "the page is HTML")
    shown = load(model)
    with warnings_to_stderr():
        pairs, texts = read_pairs(shown, queries, limit)
        report = page(collect(shown, Path(model).resolve().name, pairs, texts))
    write_text(output, report)
    note(f"{output}: {len(pairs)} pairs, {len(report.encode()) / 1e6:.1f} MB")
