"""``sentemb explain``: why a title is found for a query."""

import json
from typing import Any

import click

from sentemb.cli.common import read_texts, warnings_to_stderr
from sentemb.cli.options import Text, cosine_option, json_option, option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.system.terminal import working


@new_command("explain")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@click.argument("title", type=Text(), required=False)
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Click log with evidence: what similar queries clicked.",
)
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="File of lines id<TAB>title: explain the best title in it. [default: the index, or "
    "the titles of --log]",
)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(1, 1000),
    default=5,
    show_default=True,
    help="Similar queries of the log to show.",
)
@cosine_option()
@json_option(instead_of="tables")
@threads_option()
def command(
    model: str,
    query: str,
    title: str | None,
    log: str | None,
    catalogue: str | None,
    top_k: int,
    cosine: bool,
    as_json: bool,
) -> None:
    """Explain why a title is found for a query.

    Prints the score, what each part of it adds, the effect of every word (the score minus the score
    without this word), and, with --log, the nearest queries of the log with the titles that were
    clicked for them, and words that the log does not have. Without TITLE it explains the best
    title. MODEL may be the folder of an index: then TITLE may be an id, and the best title is that
    of the index.

    \b
    sentemb explain model/ "cheap hotel in paris" --log pairs.tsv
    sentemb explain model/ "cheap hotel in paris" "Affordable Lodging in Paris"
    """
    from sentemb.analysis.explanation import explain
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import write_lines
    from sentemb.search.index import Index
    from sentemb.search.index_files import index_folder, is_index
    from sentemb.search.ranking.opening import known_by_ids, load_best

    if title is not None and catalogue is not None:
        raise click.UsageError("give TITLE or --catalogue, not both")
    model = str(index_folder(model))
    if title is None and log is None and catalogue is None and not is_index(model):
        raise click.UsageError("give TITLE, --log or --catalogue, or an index instead of the model")
    with warnings_to_stderr(), working("explaining"):
        opened: Any = Index.open(model) if is_index(model) else load_best(model, cosine=cosine)
        clicks = None if log is None else read_click_log(log)
        ids, titles = (None, None) if catalogue is None else read_texts(catalogue)
        if titles is not None and ids is not None:
            opened = known_by_ids(opened, titles, ids)
        explanation = explain(opened, query, title, clicks, titles, top_k, cosine=cosine)
    is_word = title is not None and len(title.split()) == 1
    if is_word and isinstance(opened, Index) and title not in opened and title not in opened.titles:
        note(f"{title} is not an id of the index, so it was read as a title")
    write_lines("-", [json.dumps(explanation.as_dict(), indent=1) if as_json else str(explanation)])
