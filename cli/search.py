"""``sentemb search``: the best titles of an index for a query, or for many."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import (
    encoding_ahead,
    note_unknown_words,
    read_ids,
    read_texts,
    warnings_to_stderr,
)
from sentemb.cli.options import (
    Names,
    Text,
    cosine_option,
    option,
    refuse,
    text_output_option,
    threads_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.cli.rankings import (
    Ranking,
    form_of,
    form_options,
    line_of,
    write_rankings,
)
from sentemb.system.amounts import amount
from sentemb.system.terminal import columns_of, working

if TYPE_CHECKING:
    from sentemb.search.searcher import Hit, Searcher

# Queries that are searched at a time, so that the hits of many do not fill the memory.
_PORTION = 1024


@new_command("search")
@click.argument("arguments", type=click.Path(), nargs=-1, metavar="INDEX... [QUERY]")
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
    "--offset",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    help="Leave out this many of the best titles: with -k 10 --offset 10 a query has the titles "
    "from the 11th to the 20th.",
)
@option(
    "--only",
    metavar="IDS",
    type=click.Path(),
    help="Find only titles with these ids: a file with one id per line.",
)
@option(
    "--where",
    metavar="CONDITION",
    type=Text(),
    help='Find only titles whose fields meet a condition, such as "stock > 0 and price < 50".',
)
@option(
    "--sort",
    metavar="FIELD",
    type=Text(),
    help='Order the matches by a field; -price or "price desc" for the highest first. Matches are '
    "the 1,000 titles with the highest scores, as far as they have half the highest.",
)
@option(
    "--facets",
    metavar="FIELDS",
    type=Names(),
    help="Also count the values of these fields, with commas between them, among the matches.",
)
@option("--like", "similar", metavar="ID", type=Text(), help="Find titles similar to this one.")
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
@option(
    "--exact",
    is_flag=True,
    help="Look at all titles, also in an index with clusters, which may miss a few of the best.",
)
@form_options("json", "tsv", "trec")
@text_output_option("what is found")
@threads_option()
def command(
    arguments: tuple[str, ...],
    queries: str | None,
    top_k: int,
    offset: int,
    only: str | None,
    where: str | None,
    sort: str | None,
    facets: list[str] | None,
    similar: str | None,
    min_score: float | None,
    min_confidence: float | None,
    cosine: bool,
    everything: bool,
    exact: bool,
    as_json: bool,
    as_tsv: bool,
    as_trec: bool,
    output: str,
) -> None:
    """Find the titles of an index that are nearest to a query.

    Each line shows rank, score, id and title. The score is that of the ranker of the model: a sum
    of cosine, memory of the log and BM25, or the cosine alone; equal scores are in the order of the
    index. With --queries the text of each query is above its titles. A title whose id is the query
    comes first.

    Several indexes are searched as if they were one. They must have the same model, ranker and
    fields, and no id in common. Without --queries and --like the last argument is the QUERY.

    A CONDITION compares fields with numbers, 'texts', true and false: = <> < <= > >=, and, or, not,
    in, between, like, is null, + - * / %, lower(), upper(), length(), round(), abs(), coalesce().
    An empty field is equal to nothing: brand <> 'Acme' finds titles without a brand, too.

    \b
    sentemb search index/ "hotels in shanghai"
    sentemb search index/ --queries queries.tsv --trec -o model.run
    sentemb search index/ "hotels in shanghai" --only open.txt --json
    sentemb search index/ "desk lamp" --where "stock > 0 and price < 50" --facets brand
    sentemb search index/ --like P10734
    sentemb search spring/ autumn/ "hotels in shanghai"
    """
    from sentemb.data.lines import write_lines
    from sentemb.search.first_start import rank_a_title
    from sentemb.search.index import Index
    from sentemb.search.sharded_index import ShardedIndex

    form = form_of(json=as_json, tsv=as_tsv, trec=as_trec)
    if queries is not None and similar is not None:
        raise click.UsageError("give --queries or --like, not both")
    folders, query = _given(arguments, has_query=queries is None and similar is None)
    if as_trec and sort is not None:
        raise click.UsageError("a TREC run is in the order of the scores; leave --sort out")
    if facets and form in ("tsv", "trec"):
        raise click.UsageError(f"--{form} has no place for facets; leave --facets out")
    if (queries, only).count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    with warnings_to_stderr():
        opened = Index.open(folders[0]) if len(folders) == 1 else ShardedIndex.open(folders)
    limits: dict[str, Any] = {
        "offset": offset,
        "where": where,
        "sort": sort,
        "facets": facets or [],
        "cosine": cosine,
        "exact": exact,
    }
    of_query = {"only": only, "min_score": min_score, "min_confidence": min_confidence}
    if similar is not None:
        refuse({f"--{name.replace('_', '-')}": value for name, value in of_query.items()}, "--like")
        rankings = _similar(opened, similar, top_k, limits)
    else:
        ids, texts = (["query"], [query]) if query is not None else read_texts(queries or "-")
        id_list = None if only is None else _known_ids(opened, only)
        note_unknown_words(opened.model, [text for text in texts if not opened.has_id(text)])
        limits |= {**of_query, "only": id_list, "everything": everything}
        rankings = _rankings(opened, ids, texts, top_k, limits)
    ahead = encoding_ahead(opened.model, lambda: rank_a_title(opened, cosine=cosine))
    with ahead, working("searching", prints=output == "-"):
        if form is not None:
            write_rankings(output, form, rankings, offset + 1)
        else:
            write_lines(
                output, _listed(rankings, queries is not None, columns_of(output), offset + 1)
            )


def _given(arguments: tuple[str, ...], has_query: bool) -> tuple[tuple[str, ...], str | None]:
    """The folders and, if there is one, the query."""
    from sentemb.search.index_files import index_folder, is_index

    query = None
    if has_query and arguments:
        *folders, last = arguments
        query = Text().convert(last, None, click.get_current_context())
        arguments = tuple(folders)
    if not arguments:
        raise click.UsageError("give INDEX QUERY, INDEX --queries FILE or INDEX --like ID")
    arguments = tuple(str(index_folder(folder)) for folder in arguments)
    wrong = next((folder for folder in arguments[1:] if not is_index(folder)), None)
    if wrong is not None:
        remedy = "give no QUERY with --queries or --like"
        if has_query:
            remedy = "put a query of several words in quotes"
        raise click.UsageError(f"{wrong} is not an index; {remedy}")
    return arguments, query


def _listed(
    rankings: Iterable[Ranking], several: bool, columns: int | None, first: int
) -> Iterator[str]:
    """Lines to read: rank from ``first``, score, id and title; several have queries above."""
    from sentemb.search.searcher import NO_MORE
    from sentemb.system.tables import value_text, visible

    for ranking in rankings:
        if several:
            yield visible(ranking.query)
        if not ranking.hits:
            start = "" if ranking.reason == NO_MORE else "no good match: "
            nearest = "; nearest:" if ranking.nearest else ""
            yield f"       {start}{ranking.reason}{nearest}"
        listed = ranking.hits or ranking.nearest
        width = max((len(hit["id"]) for hit in listed), default=0)
        for rank, hit in enumerate(listed, first):
            fields = "".join(f"  {visible(text)}" for text in _fields(hit))
            # The score did not put it there.
            score = f"{'id':>6}" if hit["by_id"] else f"{hit['score']:6.3f}"
            left = f"{rank:5}  {score}  {visible(hit['id']):{width}}  "
            yield line_of(left, hit["title"], fields, columns, hit["marks"])
        if ranking.did_you_mean is not None:
            yield f"       did you mean {visible(ranking.did_you_mean)}?"
        for name, counts in ranking.facets.items():
            values = ", ".join(f"{value_text(value)} ({n:,})" for value, n in counts.items())
            if values:
                yield f"       {visible(name)}: {visible(values)}"
        if several:
            yield ""


def _similar(index: "Searcher", id: str, top_k: int, limits: dict[str, Any]) -> Iterator[Ranking]:
    """The titles that are similar to another."""
    yield _ranking(id, id, index.similar(id, top_k, **limits))


def _rankings(
    index: "Searcher", ids: list[str], texts: list[str], top_k: int, limits: dict[str, Any]
) -> Iterator[Ranking]:
    """The titles of each query."""
    for first in range(0, len(texts), _PORTION):
        portion = slice(first, first + _PORTION)
        results = index.search(texts[portion], top_k, **limits)
        yield from map(_ranking, ids[portion], texts[portion], results)


def _ranking(id: str, query: str, hits: "list[Hit]") -> Ranking:
    names = ("reason", "facets", "did_you_mean", "nearest")
    of_query = (getattr(hits, name) for name in names)
    return Ranking(id, query, hits, *of_query)


def _fields(hit: Mapping[str, Any]) -> Iterator[str]:
    """Fields to read, without addresses."""
    from sentemb.system.tables import value_text

    for name, value in hit.get("fields", {}).items():
        if value is not None and "://" not in str(value):
            yield f"{name} {value_text(value)}"


def _known_ids(index: "Searcher", path: str) -> list[str]:
    """The ids of a file; a note says how many are not in the index."""
    ids = read_ids(path)
    unknown = int((index.rows_of(ids) < 0).sum())
    if unknown:
        note(f"{path} has {amount(unknown, 'id')} not in the index, ignored")
    return ids
