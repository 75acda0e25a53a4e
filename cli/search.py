"""``sentemb search``: the best titles of an index for a query, or for many."""

from collections.abc import Iterable, Iterator
from typing import Any

import click

from sentemb.cli.common import note_unknown_words, read_ids, read_texts, warnings_to_stderr
from sentemb.cli.options import Text, cosine_option, option, text_output_option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.cli.rankings import Ranking, form_of, form_options, write_rankings
from sentemb.system.terminal import working

# Queries that are searched at a time, so that the hits of many do not fill the memory.
_PORTION = 1024


@new_command("search")
@click.argument("index", type=click.Path())
@click.argument("query", type=Text(), required=False)
@option(
    "--queries",
    metavar="FILE",
    type=click.Path(),
    help="Search for each query of a file with lines id<TAB>text; - is standard input.",
)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    help="Titles per query.",
)
@option(
    "--only",
    metavar="IDS",
    type=click.Path(),
    help="Find only titles with these ids: a file with one id per line.",
)
@option("--min-score", type=float, help="Leave out titles with a lower score.")
@option(
    "--min-confidence",
    type=float,
    help="Find nothing for a query whose first title has a lower confidence; see `sentemb "
    "calibrate`.",
)
@cosine_option()
@option(
    "--all",
    "everything",
    is_flag=True,
    help="Show the best titles even if none is a good match.",
)
@form_options("json", "tsv", "trec")
@text_output_option("what is found")
@threads_option()
def command(
    index: str,
    query: str | None,
    queries: str | None,
    top_k: int,
    only: str | None,
    min_score: float | None,
    min_confidence: float | None,
    cosine: bool,
    everything: bool,
    as_json: bool,
    as_tsv: bool,
    as_trec: bool,
    output: str,
) -> None:
    """Find the titles of an index that are nearest to a query.

    Each line shows rank, score, id and title. The score is that of the ranker of the model: a sum
    of cosine, memory of the log and BM25, or the cosine alone; equal scores are in the order of the
    index. With --queries the text of each query is above its titles.

    \b
    sentemb search index/ "hotels in shanghai"
    sentemb search index/ --queries queries.tsv --trec -o model.run
    sentemb search index/ "hotels in shanghai" --only open.txt --json
    """
    from sentemb.data.lines import write_lines
    from sentemb.search.index import Index

    form = form_of(json=as_json, tsv=as_tsv, trec=as_trec)
    if (query is None) == (queries is None):
        raise click.UsageError("give INDEX QUERY, or INDEX --queries FILE")
    if (queries, only).count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    with warnings_to_stderr():
        opened = Index.open(index)
    ids, texts = (["query"], [query]) if query is not None else read_texts(queries or "-")
    wanted = None if only is None else read_ids(only)
    if wanted is not None:
        unknown = int((opened.place_of().of(wanted) < 0).sum())
        if unknown:
            note(f"{only} has {unknown:,} ids that are not in the index: they are ignored")
    note_unknown_words(opened.model, texts)
    limits: dict[str, Any] = {
        "only": wanted,
        "min_score": min_score,
        "min_confidence": min_confidence,
        "cosine": cosine,
        "everything": everything,
    }

    def found() -> Iterator[Ranking]:
        for first in range(0, len(texts), _PORTION):
            some = slice(first, first + _PORTION)
            hits = opened.search(texts[some], top_k, **limits)
            for id, text, own in zip(ids[some], texts[some], hits, strict=True):
                reason = getattr(own, "reason", None)
                yield Ranking(id, text, [hit.as_dict() for hit in own], reason)

    with working("searching", prints=output == "-"):
        if form is not None:
            write_rankings(output, form, found())
        else:
            write_lines(output, _listed(found(), several=queries is not None))


def _listed(rankings: Iterable[Ranking], several: bool) -> Iterator[str]:
    """Lines to read: rank, score, id and title; the query above if there are several."""
    from sentemb.search.index import BELOW_FLOOR
    from sentemb.system.tables import visible

    for ranking in rankings:
        if several:
            yield visible(ranking.query)
        width = max((len(hit["id"]) for hit in ranking.hits), default=0)
        for rank, hit in enumerate(ranking.hits, 1):
            yield (
                f"{rank:5}  {hit['score']:6.3f}  {visible(hit['id']):{width}}  "
                f"{visible(hit['title'])}"
            )
        if not ranking.hits:
            remedy = "; --all shows the nearest titles" if ranking.reason == BELOW_FLOOR else ""
            yield f"       no good match: {ranking.reason}{remedy}"
        if several:
            yield ""
