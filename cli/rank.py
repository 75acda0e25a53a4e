"""``sentemb rank``: the best titles for each query."""

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import (
    TimeLeft,
    duration,
    note_unknown_words,
    read_texts,
    read_titles,
)
from sentemb.cli.options import Text, cosine_option, option, text_output_option, threads_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.cli.rankings import Ranking, form_of, form_options, write_rankings
from sentemb.errors import SentembError
from sentemb.system.amounts import amount
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from sentemb.evaluation.reranking import RunTitles, ScoringProgress
    from sentemb.models.contracts import Ranker
    from sentemb.models.sentence_encoder import SentenceEncoder
    from sentemb.search.ranking.ranker import HybridRanker

_DEPTH = 100
# If there are more pairs than this, a note says how long they take, once the rate is known.
_MANY_PAIRS = 5_000_000
_SECONDS_BEFORE_NOTE = 3.0


@new_command("rank")
@click.argument("model", type=click.Path())
@click.argument("files", type=click.Path(), metavar="[QUERIES] TITLES", nargs=-1)
@option("--query", type=Text(), help="Rank for this query instead of those in a file.")
@option(
    "--candidates",
    metavar="RUN",
    type=click.Path(),
    help="Score only the titles of a TREC run, from this or any other program.",
)
@option(
    "--depth",
    type=click.IntRange(min=1),
    help=f"Titles of the run per query, best first. Only with --candidates. [default: {_DEPTH}]",
)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Titles per query; 0 prints all.",
)
@cosine_option()
@form_options("table", "tsv", "json")
@text_output_option("the ranking")
@threads_option()
def command(
    model: str,
    files: tuple[str, ...],
    query: str | None,
    candidates: str | None,
    depth: int | None,
    top_k: int,
    cosine: bool,
    as_table: bool,
    as_tsv: bool,
    as_json: bool,
    output: str,
) -> None:
    """Rank titles for queries.

    QUERIES and TITLES are files with lines id<TAB>text, unpacked if they end in .gz; one of them
    may be - for standard input. The result is a TREC run, sorted by descending score, ties by
    descending title id. With --query the query has the id "query". A model without a ranker keeps
    the best titles so far, not the vectors of all. Titles with no known words are left out.

    With --candidates the model re-ranks: for each query it scores the best titles of the run that
    have a text in TITLES. Without it every title is scored for every query; a pair model then takes
    one pass per pair.

    If the model folder has a ranker, the ranker ranks: by cosine, memory of the log and BM25.

    \b
    sentemb rank model/ queries.tsv titles.tsv -o model.run
    sentemb rank model/ --query "hotels in shanghai" titles.tsv --table
    sentemb rank reranker/ queries.tsv titles.tsv --candidates model.run --depth 30 -k 0
    """
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.search.index_files import is_index
    from sentemb.search.ranking.opening import known_by_ids, load_best
    from sentemb.search.ranking.recipe import MODEL_ALONE
    from sentemb.system.growing import scratch_folder

    form = form_of(table=as_table, tsv=as_tsv, json=as_json) or "trec"
    if len(files) != (2 if query is None else 1):
        raise click.UsageError("give MODEL QUERIES TITLES, or MODEL --query TEXT TITLES")
    if (*files, candidates).count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    if depth is not None and candidates is None:
        raise click.UsageError("--depth needs --candidates")
    if is_index(files[-1]):
        raise SentembError(f"{files[-1]}: is an index; `sentemb search` ranks its titles")
    ranker = load_best(model, cosine=cosine)
    title_ids, titles, _ = read_titles(files[-1], scratch_folder("-"))
    ranker = known_by_ids(ranker, titles, title_ids)
    query_ids, queries = (["query"], [query]) if query is not None else read_texts(files[0])
    query_of = dict(zip(query_ids, queries, strict=True))
    if isinstance(ranker, PairScorer) or candidates is not None:
        title_of = dict(zip(title_ids, titles, strict=True))
        chosen = None
        if candidates is not None:
            chosen = _candidates(candidates, query_ids, title_ids, depth or _DEPTH)
        run = _by_pairs(ranker, query_of, title_of, chosen, top_k)
    elif ranker.recipe == MODEL_ALONE:
        run, title_of = _by_vectors(ranker.model, query_of, title_ids, titles, top_k)
    else:
        title_of = dict(zip(title_ids, titles, strict=True))
        run = _by_ranker(ranker, query_of, title_of, top_k)
    note_unknown_words(ranker if isinstance(ranker, PairScorer) else ranker.model, queries)
    write_rankings(output, form, _rankings(query_of, run, title_of))


def _candidates(
    path: str, query_ids: Sequence[str], title_ids: Sequence[str], depth: int
) -> "RunTitles":
    """The candidates in the run at ``path``, with a note for whatever cannot be scored."""
    from sentemb.errors import naming
    from sentemb.evaluation.reranking import RunTitles
    from sentemb.evaluation.trec import read_run
    from sentemb.system.files import place_name

    run = read_run(path)
    with naming(place_name(path)):
        candidates = RunTitles.of(run, query_ids, title_ids, depth)
    for count, what in (
        (candidates.n_unknown_queries, "queries that are not in QUERIES: they are ignored"),
        (candidates.n_unknown_titles, "titles that are not in TITLES: they are ignored"),
    ):
        if count:
            note(f"{place_name(path)} has {count:,} {what}")
    if candidates.n_without:
        note(f"{amount(candidates.n_without, 'query')} without candidates left out")
    return candidates


def _by_pairs(
    ranker: "Ranker",
    query_of: dict[str, str],
    title_of: dict[str, str],
    candidates: "RunTitles | None",
    top_k: int,
) -> dict[str, dict[str, float]]:
    from sentemb.evaluation.reranking import rank_pairs

    line = ProgressLine()
    began = time.monotonic()
    noted: list[int] = []

    def show(progress: "ScoringProgress") -> None:
        left = duration(progress.seconds_left)
        # The first portions are small, and their rate is too low.
        warm = time.monotonic() - began >= _SECONDS_BEFORE_NOTE
        if progress.total > _MANY_PAIRS and warm and not noted:
            noted.append(progress.total)
            remedy = "" if candidates else "; --candidates scores only the titles of a run"
            line.note(f"{progress.total:,} pairs to score, about {left} left{remedy}")
        if line.is_due:
            rate = f"{progress.pairs_per_second:,.0f} pairs/s"
            line.draw(f"{progress.done:,} of {progress.total:,} pairs, {rate}, {left} left")

    try:
        return rank_pairs(ranker, query_of, title_of, candidates, top_k, show)
    finally:
        line.close()


def _by_vectors(
    encoder: "SentenceEncoder",
    query_of: dict[str, str],
    title_ids: Sequence[str],
    titles: Sequence[str],
    top_k: int,
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The run of the ``top_k`` nearest titles of each query, and the texts of these titles.

    Vectors of titles are computed portion by portion.
    """
    from sentemb.search.scan import best_titles
    from sentemb.system.parallel import Workers

    vectors = encoder.unit_vectors(list(query_of.values()), "query")
    with Workers() as workers, closing(TimeLeft("titles")) as line:
        k = top_k or len(titles)
        best = best_titles(encoder, vectors, title_ids, titles, k, workers, line.show)
    run = {
        query_id: {id: score for score, id, _ in hits}
        for query_id, hits in zip(query_of, best, strict=True)
    }
    return run, {id: titles[row] for hits in best for _, id, row in hits}


def _by_ranker(
    ranker: "HybridRanker", query_of: dict[str, str], title_of: dict[str, str], top_k: int
) -> dict[str, dict[str, float]]:
    ids = list(title_of)
    ids = [ids[row] for row in _falling(ids)]
    over = ranker.over([title_of[id] for id in ids])
    return _run_of(list(query_of), ids, *over.find(list(query_of.values()), top_k or len(ids)))


def _falling(title_ids: Sequence[str]) -> list[int]:
    """The places of titles by falling id.

    Of equal scores the lower place comes first, so this breaks ties as trec_eval does.
    """
    return sorted(range(len(title_ids)), key=title_ids.__getitem__, reverse=True)


def _run_of(
    query_ids: Sequence[str], title_ids: Sequence[str], rows: Any, scores: Any
) -> dict[str, dict[str, float]]:
    """The run of rows of ``title_ids`` and their scores, an array of each per query."""
    return {
        query_id: {title_ids[row]: score for row, score in zip(*best, strict=True) if row >= 0}
        for query_id, *best in zip(query_ids, rows.tolist(), scores.tolist(), strict=True)
    }


def _rankings(
    query_of: dict[str, str], run: dict[str, dict[str, float]], title_of: dict[str, str]
) -> Iterator[Ranking]:
    for query_id, scores in run.items():
        hits = [
            {"id": title_id, "title": title_of[title_id], "score": score}
            for title_id, score in scores.items()
        ]
        yield Ranking(query_id, query_of[query_id], hits)
