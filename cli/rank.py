"""``sentemb rank``: the best titles for each query."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import click

from sentemb.cli.common import read_texts, warnings_to_stderr
from sentemb.cli.options import Text, option
from sentemb.cli.options import command as new_command

# Scores that are in memory at a time: 64 MB of them, whatever the number of titles and queries.
_BLOCK_SCORES = 16_000_000


@new_command("rank")
@click.argument("model", type=click.Path())
@click.argument("files", type=click.Path(), metavar="[QUERIES] TITLES", nargs=-1)
@option("--query", type=Text(), help="Rank for this query instead of those in a file.")
@option(
    "-k",
    "--top-k",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Titles per query; 0 prints all.",
)
@option("--table", is_flag=True, help="Print a table with the texts instead of a TREC run.")
@option(
    "-o",
    "--output",
    metavar="FILE",
    type=click.Path(),
    default="-",
    help="File of the ranking; - is standard output. [default: -]",
)
def command(
    model: str, files: tuple[str, ...], query: str | None, top_k: int, table: bool, output: str
) -> None:
    """Rank titles for queries.

    QUERIES and TITLES are files with lines id<TAB>text, unpacked if they end in .gz; one of them
    may be - for standard input. The result is a TREC run, sorted by descending score, ties by
    descending title id. With --query the query has the id "query".

    \b
    sentemb rank model/ queries.tsv titles.tsv -o model.run
    sentemb rank model/ --query "hotels in shanghai" titles.tsv --table
    """
    from sentemb.data.lines import write_lines
    from sentemb.evaluation.trec import write_run
    from sentemb.sentence_encoder import SentenceEncoder

    if len(files) != (2 if query is None else 1):
        raise click.UsageError("give MODEL QUERIES TITLES, or MODEL --query TEXT TITLES")
    if files.count("-") == 2:
        raise click.UsageError("standard input can be QUERIES or TITLES, not both")
    encoder = SentenceEncoder.from_pretrained(model)
    title_ids, titles = read_texts(files[-1])
    query_ids, queries = (["query"], [query]) if query is not None else read_texts(files[0])
    with warnings_to_stderr():
        query_vectors = encoder.encode_query(queries, normalize_embeddings=True)
        title_vectors = encoder.encode_document(titles, normalize_embeddings=True)
    run = _best(query_ids, query_vectors, title_ids, title_vectors, top_k)
    if table:
        title_of = dict(zip(title_ids, titles, strict=True))
        write_lines(output, _table(zip(queries, run.values(), strict=True), title_of))
    else:
        write_run(run, output)


def _best(
    query_ids: Sequence[str], queries: Any, title_ids: Sequence[str], titles: Any, top_k: int
) -> dict[str, dict[str, float]]:
    """The run of the ``top_k`` best titles of each query, best first.

    Parameters
    ----------
    query_ids, title_ids : list of str
        Ids of the rows of ``queries`` and ``titles``.
    queries, titles : (k, dim), (l, dim) float
        Normalised embeddings.
    top_k : int
        Titles per query; 0 for all.
    """
    import numpy as np

    from sentemb.kernels.top_k import highest

    # `highest` puts the lower place first, so titles by falling id break ties as trec_eval does.
    falling = np.array(sorted(range(len(title_ids)), key=title_ids.__getitem__, reverse=True))
    titles = titles[falling]
    k = min(top_k or len(titles), len(titles))
    block = max(1, _BLOCK_SCORES // len(titles))
    run = {}
    for start in range(0, len(queries), block):
        for query_id, scores in zip(
            query_ids[start : start + block], queries[start : start + block] @ titles.T, strict=True
        ):
            best = highest(scores, k)
            run[query_id] = {
                title_ids[title]: score
                for title, score in zip(falling[best].tolist(), scores[best].tolist(), strict=True)
            }
    return run


def _table(
    rankings: Iterable[tuple[str, dict[str, float]]], title_of: dict[str, str]
) -> Iterator[str]:
    """Lines to read: a query, below it rank, score and title."""
    from sentemb.tables import visible

    for query, scores in rankings:
        yield visible(query)
        for rank, (title_id, score) in enumerate(scores.items(), 1):
            yield f"{rank:5}  {score:9.6f}  {visible(title_of[title_id])}"
        yield ""
