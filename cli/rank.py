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
    sums_of_warnings,
    warnings_to_stderr,
)
from sentemb.cli.options import Text, no_ranker_option, option, text_output_option
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note
from sentemb.cli.rankings import Ranking, form_of, form_options, write_rankings
from sentemb.errors import SentembError
from sentemb.system.terminal import ProgressLine

if TYPE_CHECKING:
    from sentemb.evaluation.reranking import Candidates, ScoringProgress
    from sentemb.protocols import Ranker
    from sentemb.ranking.ranker import HybridRanker
    from sentemb.search.index import Index
    from sentemb.sentence_encoder import SentenceEncoder

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
@no_ranker_option()
@form_options("table", "tsv", "json")
@text_output_option("the ranking")
def command(
    model: str,
    files: tuple[str, ...],
    query: str | None,
    candidates: str | None,
    depth: int | None,
    top_k: int,
    no_ranker: bool,
    as_table: bool,
    as_tsv: bool,
    as_json: bool,
    output: str,
) -> None:
    """Rank titles for queries.

    QUERIES and TITLES are files with lines id<TAB>text, unpacked if they end in .gz; one of them
    may be - for standard input. The result is a TREC run, sorted by descending score, ties by
    descending title id. With --query the query has the id "query". TITLES may also be an index
    that was made with this model: unless a ranker ranks, its titles are not encoded again. A model
    of two towers keeps the best titles so far, not the vectors of all.

    With --candidates the model re-ranks: for each query it scores the best titles of the run that
    have a text in TITLES. Without it every title is scored for every query; a pair model then takes
    one pass per pair.

    If the model folder has a ranker, the ranker ranks, with TITLES as its catalogue.

    \b
    sentemb rank model/ queries.tsv titles.tsv -o model.run
    sentemb rank model/ --query "hotels in shanghai" titles.tsv --table
    sentemb rank reranker/ queries.tsv titles.tsv --candidates model.run --depth 30 -k 0
    """
    from sentemb.ranking.opening import load_best
    from sentemb.ranking.ranker import CatalogueRanker, HybridRanker
    from sentemb.search.index_files import is_index
    from sentemb.sentence_encoder import SentenceEncoder
    from sentemb.system.growing import scratch_folder

    form = form_of(table=as_table, tsv=as_tsv, json=as_json) or "trec"
    if len(files) != (2 if query is None else 1):
        raise click.UsageError("give MODEL QUERIES TITLES, or MODEL --query TEXT TITLES")
    if (*files, candidates).count("-") > 1:
        raise click.UsageError("standard input can be only one of the files")
    if depth is not None and candidates is None:
        raise click.UsageError("--depth needs --candidates")
    ranker: Any = load_best(model, use_ranker=not no_ranker)
    encoder = ranker.model if isinstance(ranker, HybridRanker) else ranker
    index = _opened(files[-1], encoder, model) if is_index(files[-1]) else None
    title_ids: Sequence[str]
    titles: Sequence[str]
    title_ids, titles = (
        read_titles(files[-1], scratch_folder("-")) if index is None else (index.ids, index.titles)
    )
    query_ids, queries = (["query"], [query]) if query is not None else read_texts(files[0])
    query_of = dict(zip(query_ids, queries, strict=True))
    if isinstance(ranker, SentenceEncoder) and candidates is None:
        run, title_of = _by_vectors(ranker, index, query_of, title_ids, titles, top_k)
    else:
        title_of = dict(zip(title_ids, titles, strict=True))
        if isinstance(ranker, HybridRanker):
            # It scores over all titles, also where only some are asked for.
            ranker = ranker.over(titles)
        if candidates is not None:
            chosen = _candidates(candidates, query_ids, title_ids, depth or _DEPTH)
            by_pairs = CatalogueRanker(ranker) if isinstance(ranker, HybridRanker) else ranker
            run = _by_pairs(by_pairs, query_of, title_of, chosen, top_k)
        elif isinstance(ranker, HybridRanker):
            with warnings_to_stderr():
                run = _by_ranker(ranker, query_of, title_of, top_k)
        else:
            run = _by_pairs(ranker, query_of, title_of, None, top_k)
    note_unknown_words(encoder, queries)
    write_rankings(output, form, _rankings(query_of, run, title_of))


def _candidates(
    path: str, query_ids: Sequence[str], title_ids: Sequence[str], depth: int
) -> "Candidates":
    """The candidates in the run at ``path``, with a note for whatever cannot be scored."""
    from sentemb.errors import naming
    from sentemb.evaluation.reranking import Candidates
    from sentemb.evaluation.trec import read_run
    from sentemb.system.files import place_name

    run = read_run(path)
    with naming(place_name(path)):
        found = Candidates.of(run, query_ids, title_ids, depth)
    for count, what in (
        (found.n_unknown_queries, "queries that are not in QUERIES: they are ignored"),
        (found.n_unknown_titles, "titles that are not in TITLES: they are ignored"),
    ):
        if count:
            note(f"{place_name(path)} has {count:,} {what}")
    if found.n_without:
        note(f"{found.n_without:,} queries have no candidates and are left out")
    return found


def _by_pairs(
    ranker: "Ranker",
    query_of: dict[str, str],
    title_of: dict[str, str],
    candidates: "Candidates | None",
    top_k: int,
) -> dict[str, dict[str, float]]:
    """The run of the ``top_k`` best titles of each query, scored pair by pair."""
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
    index: "Index | None",
    query_of: dict[str, str],
    title_ids: Sequence[str],
    titles: Sequence[str],
    top_k: int,
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """The run of the ``top_k`` nearest titles of each query, and the texts of these titles.

    Vectors of titles are those of the index, or computed portion by portion.
    """
    from sentemb.search.scan import best_titles
    from sentemb.system.parallel import Workers

    queries, k = list(query_of.values()), top_k or len(titles)
    if index is not None:
        # The ranking is that of the model, whatever else the index scores.
        hits = index.search(queries, k, bm25_weight=0)
        best = [[(hit.score, hit.id, hit.title) for hit in own] for own in hits]
    else:
        with warnings_to_stderr():
            vectors = encoder.encode_query(queries, normalize_embeddings=True)
        with (
            Workers() as workers,
            sums_of_warnings(len(titles)),
            closing(TimeLeft("titles")) as line,
        ):
            found = best_titles(encoder, vectors, title_ids, titles, k, workers, line.show)
        best = [[(score, id, titles[place]) for score, id, place in own] for own in found]
    run = {
        query_id: {id: score for score, id, _ in own}
        for query_id, own in zip(query_of, best, strict=True)
    }
    return run, {id: title for own in best for _, id, title in own}


def _by_ranker(
    ranker: "HybridRanker", query_of: dict[str, str], title_of: dict[str, str], top_k: int
) -> dict[str, dict[str, float]]:
    """The run of the ``top_k`` best titles of each query by a ranker."""
    ids = list(title_of)
    ids = [ids[place] for place in _falling(ids)]
    over = ranker.over([title_of[id] for id in ids])
    return _run_of(list(query_of), ids, *over.find(list(query_of.values()), top_k or len(ids)))


def _falling(title_ids: Sequence[str]) -> list[int]:
    """The places of titles by falling id.

    Of equal scores the lower place comes first, so this breaks ties as trec_eval does.
    """
    return sorted(range(len(title_ids)), key=title_ids.__getitem__, reverse=True)


def _run_of(
    query_ids: Sequence[str], title_ids: Sequence[str], places: Any, scores: Any
) -> dict[str, dict[str, float]]:
    """The run of places in ``title_ids`` and their scores, one row of each per query."""
    return {
        query_id: {title_ids[place]: score for place, score in zip(*row, strict=True)}
        for query_id, *row in zip(query_ids, places.tolist(), scores.tolist(), strict=True)
    }


def _opened(path: str, ranker: Any, model: str) -> "Index":
    """The index at ``path``, which must have been made with the model in folder ``model``."""
    from sentemb.search.index import Index
    from sentemb.storage.model_files import fingerprint

    index = Index.open(path)
    if fingerprint(ranker.saved()) != index.model_sha256:
        raise SentembError(
            f"{path}: was made with another model than {model}; use `sentemb search`, which needs "
            "no model, or make the index again"
        )
    return index


def _rankings(
    query_of: dict[str, str], run: dict[str, dict[str, float]], title_of: dict[str, str]
) -> Iterator[Ranking]:
    for query_id, scores in run.items():
        hits = [
            {"id": title_id, "title": title_of[title_id], "score": score}
            for title_id, score in scores.items()
        ]
        yield Ranking(query_id, query_of[query_id], hits)
