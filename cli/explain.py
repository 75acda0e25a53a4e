"""``sentemb explain``: why a title is found for a query."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import read_texts, warnings_to_stderr
from sentemb.cli.options import Text, json_option, no_ranker_option, option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.errors import SentembError

if TYPE_CHECKING:
    from sentemb.ranking.ranker import Share
    from sentemb.search.index import Hit, Index


@new_command("explain")
@click.argument("model", type=click.Path())
@click.argument("query", type=Text())
@click.argument("title", type=Text(), required=False)
@option("--log", type=click.Path(), help="Click log with evidence: what similar queries clicked.")
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
@no_ranker_option()
@json_option(instead_of="tables")
def command(
    model: str,
    query: str,
    title: str | None,
    log: str | None,
    catalogue: str | None,
    top_k: int,
    no_ranker: bool,
    as_json: bool,
) -> None:
    """Explain why a title is found for a query.

    Prints the score, the effect of every word (the score minus the score without this word), and,
    with --log, the nearest queries of the log with the titles that were clicked for them, and words
    that the log does not have. Without TITLE it explains the best title. MODEL may be the folder of
    an index: then the best title is that of the index. For a model folder with a ranker the score
    is that of the ranker, and what each part adds to it is printed first.

    \b
    sentemb explain model/ "cheap hotel in paris" --log pairs.tsv
    sentemb explain model/ "cheap hotel in paris" "Affordable Lodging in Paris"
    """
    from sentemb.analysis.explanation import explain
    from sentemb.data.click_log import read_click_log
    from sentemb.data.lines import write_lines
    from sentemb.ranking.opening import load_best
    from sentemb.search.index import Index
    from sentemb.search.index_files import is_index

    if title is not None and catalogue is not None:
        raise click.UsageError("give TITLE or --catalogue, not both")
    if no_ranker and is_index(model):
        raise click.UsageError("--no-ranker is for a model, and this is an index")
    explained: Any
    shares: list[Share] | None = None
    if is_index(model):
        index = Index.open(model)
        explained = index.model
        if title is None and catalogue is None:
            title, shares = _best_title(index, query)
    elif title is None and log is None and catalogue is None:
        raise click.UsageError("give TITLE, --log or --catalogue, or an index instead of the model")
    else:
        explained = load_best(model, use_ranker=not no_ranker)
    clicks = None if log is None else read_click_log(log)
    titles = None if catalogue is None else read_texts(catalogue)[1]
    with warnings_to_stderr():
        found = explain(explained, query, title, clicks, titles, top_k)
    if shares is not None:
        found = replace(found, shares=shares)
    write_lines("-", [json.dumps(found.as_dict(), indent=1) if as_json else str(found)])


def _best_title(index: "Index", query: str) -> "tuple[str, list[Share] | None]":
    """The title that the index ranks first, and what each part of a ranker adds to its score."""
    hits = index.search(query, 1)
    if not hits:
        raise SentembError("the index finds nothing for this query; give a TITLE")
    (hit,) = hits
    if hit.memory is not None or index.recipe.cosine != 1:
        return hit.title, _shares(index, query, hit)
    if hit.bm25 is not None:
        note(
            f"note: the index ranks by {hit.score:.3f}, of which the cosine is {hit.cosine:.3f} "
            "and the rest BM25; this explains the cosine"
        )
    return hit.title, None


def _shares(index: "Index", query: str, hit: "Hit") -> "list[Share]":
    """What each part adds to the score of a hit."""
    from sentemb.ranking.ranker import Share
    from sentemb.ranking.recipe import BM25, COSINE, MEMORY

    recipe = index.recipe
    values = {COSINE: hit.cosine, MEMORY: hit.memory or 0.0}
    rest = sum(recipe.weight(part) * value for part, value in values.items())
    if recipe.bm25:
        # A hit has the score of BM25 as it is, not divided by the highest of the query.
        values[BM25] = (hit.score - rest) / recipe.bm25
    nearest = {MEMORY: index.nearest_clicked(query, [hit.id])[0]} if recipe.memory else {}
    return [
        Share(part, recipe.weight(part), values[part], nearest.get(part)) for part in recipe.parts
    ]
