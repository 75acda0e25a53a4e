"""``sentemb explain``: why a title is found for a query."""

import json
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import read_texts, warnings_to_stderr
from sentemb.cli.options import Text, cosine_option, json_option, option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.errors import SentembError
from sentemb.system.terminal import working

if TYPE_CHECKING:
    from sentemb.search.index import Index


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
    title. MODEL may be the folder of an index: then the best title is that of the index.

    \b
    sentemb explain model/ "cheap hotel in paris" --log pairs.tsv
    sentemb explain model/ "cheap hotel in paris" "Affordable Lodging in Paris"
    """
    from sentemb.analysis.explanation import Explainer, explain
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import write_lines
    from sentemb.search.index import Index
    from sentemb.search.index_files import index_folder, is_index
    from sentemb.search.ranking.opening import known_by_ids, load_best

    if title is not None and catalogue is not None:
        raise click.UsageError("give TITLE or --catalogue, not both")
    id: str | None = None
    model = str(index_folder(model))
    if is_index(model):
        index = Index.open(model)
        ranker: Any = (index.model_alone() if cosine else index).ranker
        if title is None and catalogue is None:
            id, title = _best_title(index, query, cosine)
        elif title is not None:
            # The first product that has the title.
            same = (id for id, text in zip(index.ids, index.titles, strict=True) if text == title)
            id = next(same, None)
    elif title is None and log is None and catalogue is None:
        raise click.UsageError("give TITLE, --log or --catalogue, or an index instead of the model")
    else:
        ranker = load_best(model, cosine=cosine)
    with warnings_to_stderr(), working("explaining"):
        clicks = None if log is None else read_click_log(log)
        ids, titles = (None, None) if catalogue is None else read_texts(catalogue)
        if titles is not None and ids is not None:
            ranker = known_by_ids(ranker, titles, ids)
        if id is not None and title is not None:
            explanation = Explainer(ranker, clicks).explain(query, title, top_k, id)
        else:
            explanation = explain(ranker, query, title, clicks, titles, top_k)
    write_lines("-", [json.dumps(explanation.as_dict(), indent=1) if as_json else str(explanation)])


def _best_title(index: "Index", query: str, cosine: bool) -> tuple[str, str]:
    """The id and the text of the best title for a query."""
    hits = index.search(query, 1, cosine=cosine)
    if not hits:
        raise SentembError("the index finds nothing for this query; give a TITLE")
    return hits[0].id, hits[0].title
