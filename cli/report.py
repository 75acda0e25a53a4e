"""``sentemb report``: a page that shows where a model ranks badly, and why."""

from typing import TYPE_CHECKING

import click

from sentemb.cli.common import check_ending, read_texts, warnings_to_stderr
from sentemb.cli.held_out import catalogue_of, note_pairs
from sentemb.cli.options import (
    Written,
    cosine_option,
    option,
    threads_option,
    written_option,
)
from sentemb.cli.options import command as new_command
from sentemb.cli.program import note, summarise
from sentemb.system.amounts import amount
from sentemb.system.terminal import working

if TYPE_CHECKING:
    from sentemb.analysis.triage import Triage
    from sentemb.data.click_log import ClickLog
    from sentemb.data.judged_set import JudgedSet
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.search.index import Index
    from sentemb.search.ranking.ranker import HybridRanker

_LIMIT = 20
# More would make a page that browsers open slowly.
_MOST_WORST = 1000


@new_command("report")
@click.argument("model", type=click.Path())
@click.argument("dev", type=click.Path())
@written_option(
    Written(can_stream=True), "File of the page; - is standard output.", metavar="FILE.html"
)
@option(
    "--show",
    type=click.IntRange(0, _MOST_WORST),
    default=50,
    show_default=True,
    help="Number of queries to show with their rankings and word effects.",
)
@option(
    "-k",
    "--top-k",
    type=click.IntRange(1, 100),
    default=10,
    show_default=True,
    help="Number of titles to show for each of them.",
)
@option(
    "--catalogue",
    metavar="TITLES",
    type=click.Path(),
    help="File of lines id<TAB>title, all of which are ranked. [default: the judged titles of each "
    "query; for held-out clicks titles.tsv next to DEV, without it the titles of DEV]",
)
@option(
    "--log",
    metavar="LOG",
    type=click.Path(),
    help="Click log of the training: shows what titles were clicked for, and whether it has the "
    "best title.",
)
@option(
    "--limit",
    type=click.IntRange(min=1),
    help="Show the first pairs of DEV, this many, without looking for the worst queries. "
    f"[default for queries alone and standard input: {_LIMIT}]",
)
@cosine_option()
@threads_option()
def command(
    model: str,
    dev: str,
    output: str,
    show: int,
    top_k: int,
    catalogue: str | None,
    log: str | None,
    limit: int | None,
    cosine: bool,
) -> None:
    """Write a page that shows where a model ranks badly, and why.

    The page is one HTML file that needs no network. It lists the queries of DEV, worst first, with
    a box to filter them, and says which kinds of queries lose most: by length, unknown words and
    score. For each of the worst it shows the ranked titles with their grades, the effect of
    each word on the score of the title that is wrongly first and of the right one, and what the
    cells of a recurrent model do. The settings of the model and its learning curve are there too.

    MODEL is the folder of a model, or of an index, whose titles are then ranked. Titles are ranked
    as `sentemb rank` and `search` rank them; words and cells explain the cosine of the model.

    DEV is the folder of a judged set, measured by NDCG@10, or a file of held-out clicks, measured
    by MRR@10, as `sentemb evaluate` does; its --per-query and --json give the figures to programs.
    A file of queries alone, or of pairs with --limit, is shown as it is.

    \b
    sentemb report model/ dev/ -o report.html
    sentemb report model/ log/dev.tsv -o report.html --log log/pairs.tsv
    sentemb report index/ log/dev.tsv -o report.html --show 200
    """
    from pathlib import Path

    from sentemb.analysis.report.page_pairs import read_pairs
    from sentemb.analysis.report.report_page import collect, page, triage_report
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.search.index import Index
    from sentemb.search.index_files import is_index
    from sentemb.search.ranking.opening import load_best
    from sentemb.search.ranking.ranker import HybridRanker
    from sentemb.system.files import place_name, write_text

    check_ending(output, (".html", ".htm"), "the page is HTML")
    opened: Index | HybridRanker | PairScorer
    if is_index(Path(model)):
        index = Index.open(model)
        opened = index.model_alone() if cosine else index
    else:
        opened = load_best(model, cosine=cosine)
    encoder = opened.model if isinstance(opened, Index | HybridRanker) else opened
    name = Path(model).resolve().name
    if limit is None and _has_titles(dev):
        with warnings_to_stderr(), working("ranking"):
            ranked_queries = _triage(model, opened, dev, catalogue, log, show, top_k)
            report = page(triage_report(encoder, name, ranked_queries))
        facts = {"queries": len(ranked_queries.order), "shown": len(ranked_queries.worst)}
        what = f"{facts['queries']:,} queries, the worst {facts['shown']:,} in detail"
    else:
        _refuse({"--catalogue": catalogue, "--log": log})
        with warnings_to_stderr(), working("reading"):
            ranker = opened.ranker if isinstance(opened, Index) else opened
            pairs, texts = read_pairs(encoder, dev, limit or _LIMIT, ranker)
            report = page(collect(encoder, name, pairs, texts))
        facts = {"pairs": len(pairs)}
        what = f"{len(pairs)} pairs"
    write_text(output, report)
    size = len(report.encode())
    facts["bytes"] = size
    summarise(output, facts, f"{place_name(output, 'output')}: {what}, {size / 1e6:.1f} MB")


def _has_titles(dev: str) -> bool:
    """Whether titles can be ranked: for a judged set, and for a file whose first line has a title.

    A pipe can be read only once, and is read as pairs.
    """
    from sentemb.data.lines import clean_lines
    from sentemb.system.files import is_file, is_folder, status

    if is_file(dev):
        return "\t" in next(clean_lines(dev), (0, "\t"))[1]
    return dev != "-" and (is_folder(dev) or status(dev) is None)


def _refuse(given: dict[str, str | None]) -> None:
    for name, value in given.items():
        if value is not None:
            raise click.UsageError(f"{name} needs a judged set or held-out clicks, without --limit")


def _triage(
    model: str,
    opened: "Index | HybridRanker | PairScorer",
    dev: str,
    catalogue: str | None,
    log: str | None,
    worst: int,
    top: int,
) -> "Triage":
    """Rank the titles for the queries of ``dev``."""
    from sentemb.analysis.triage import triage
    from sentemb.data.click_log import read_click_log
    from sentemb.data.held_out_clicks import read_held_out
    from sentemb.search.index import Index
    from sentemb.search.ranking.opening import known_by_ids

    held_out = read_held_out(dev)
    titles, ids = _titles(model, opened, dev, catalogue, held_out)
    if titles is not None and ids is not None:
        opened = known_by_ids(opened, titles, ids)
    if titles is not None:
        note_pairs(model, opened, len(held_out.queries) * len(titles))
    learned = None if log is None else read_click_log(log)
    ranked = None if isinstance(opened, Index) else titles
    outcome = triage(opened, held_out, ranked, worst=worst, top=top, log=learned)
    if outcome.n_outside:
        note(f"{amount(outcome.n_outside, 'relevant title')} not in the catalogue cannot be found")
    return outcome


def _titles(
    model: str,
    opened: "Index | HybridRanker | PairScorer",
    dev: str,
    catalogue: str | None,
    held_out: "JudgedSet | ClickLog",
) -> tuple[list[str] | None, list[str] | None]:
    """The catalogue to rank, None for the judged titles of each query, and its ids."""
    from sentemb.data.judged_set import JudgedSet
    from sentemb.search.index import Index

    if not isinstance(held_out, JudgedSet) or isinstance(opened, Index):
        listed = catalogue_of(model, opened, dev, catalogue, held_out)
        return listed.titles, listed.ids
    if catalogue is None:
        return None, None
    ids, titles = read_texts(catalogue)
    return titles, ids
