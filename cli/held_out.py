"""``sentemb evaluate`` on held-out clicks: a model and others, side by side over a catalogue."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from sentemb.cli.common import read_texts, warnings_to_stderr
from sentemb.cli.program import note
from sentemb.system.tables import aligned, visible

if TYPE_CHECKING:
    from sentemb.data.click_log import ClickLog
    from sentemb.data.judged_set import JudgedSet
    from sentemb.evaluation.held_out import Evaluation
    from sentemb.evaluation.significance import Difference
    from sentemb.models.contracts import Retriever
    from sentemb.models.pair_scorer import PairScorer
    from sentemb.search.index import Index
    from sentemb.search.ranking.ranker import HybridRanker

METRICS = ("hit@1", "mrr@10", "recall@10", "recall@100", "ndcg@10")
# Name of a lexical ranker -> whether it has stems, and the queries clicked on a title.
LEXICAL = {
    "bm25": (False, False),
    "bm25-stem": (True, False),
    "bm25-clicks": (False, True),
    "bm25-stem-clicks": (True, True),
}
LETTERS = "letters-clicks"
# What can be compared without a folder.
BASELINES = (*LEXICAL, LETTERS)
_TITLES = "titles.tsv"  # as `sentemb split` names it
# With fewer queries than this the intervals are wide.
_FEW_QUERIES = 200
# If a pair model has more pairs to score than this, a note says so.
_MANY_PAIRS = 1_000_000


def evaluated(
    model: str,
    path: str,
    clicks: "ClickLog",
    catalogue: str | None,
    metrics: Sequence[str],
    rivals: Sequence[str],
    learned: "ClickLog | None",
    cosine: bool,
    per_query: bool,
    as_json: bool,
    known: Mapping[str, Any],
) -> Iterator[str]:
    """The lines to print: a table, or one JSON object.

    model : the folder of a model or of an index, whose titles are then the catalogue
    path, clicks : the file of held-out clicks, and its contents
    catalogue : a file of lines id<TAB>title
    metrics : see `sentemb.evaluation.held_out`
    rivals : folders of models or indexes, or names in `BASELINES`
    learned : the log that rivals with clicks learn from
    cosine : whether the models are measured alone
    per_query : whether the figures of every query are printed too
    as_json : whether JSON is printed
    known : the result of `note_known_queries`, for the JSON
    """
    from sentemb.evaluation.held_out import HeldOutClicks
    from sentemb.search.ranking.opening import known_by_ids
    from sentemb.search.ranking.ranker import HybridRanker

    opened = {name: _opened(name, cosine) for name in dict.fromkeys((model, *rivals))}
    first_model = opened[model]
    titles_name, titles, ids = catalogue_of(model, first_model, path, catalogue, clicks)
    if ids is not None:
        opened = {name: known_by_ids(ranker, titles, ids) for name, ranker in opened.items()}
        first_model = opened[model]
    if isinstance(first_model, HybridRanker):
        over = first_model.over(titles)
        # The parts follow the ranker, before all others.
        opened = {model: over, **over.parts_alone(), **{name: opened[name] for name in rivals}}
    held_out = HeldOutClicks(clicks, titles, metrics)
    with warnings_to_stderr():
        evaluations = {
            name: held_out.evaluate(_retriever(name, ranker, titles, learned, len(clicks.queries)))
            for name, ranker in opened.items()
        }
    first = evaluations[model]
    if first.n_outside:
        note(
            f"{first.n_outside:,} of {first.n_clicked:,} clicked titles are not in "
            f"{titles_name}: they "
            "count as missed"
        )
    if len(first.queries) < _FEW_QUERIES:
        note(f"only {len(first.queries):,} queries: figures and intervals are uncertain")
    differences = _differences(evaluations)
    if as_json:
        yield json.dumps(
            {**_as_dict(evaluations, differences, titles_name, per_query), **known}, indent=1
        )
        return
    yield f"{len(first.queries):,} queries against {first.n_titles:,} titles of {titles_name}"
    yield ""
    yield from aligned(_rows(evaluations))
    if differences:
        yield ""
        yield from aligned(_difference_rows(model, first.metrics, differences))
        yield "in brackets: 95 % intervals of the paired bootstrap over the queries"
    if per_query:
        yield ""
        yield from _query_lines(evaluations)


def note_known_queries(
    path: str, judgments: "JudgedSet | ClickLog", log: str | None, learned: "ClickLog | None"
) -> dict[str, Any]:
    """Say how many of the queries are in the log of the training, or that nobody knows.

    The result has the numbers for JSON, under ``in_log``; it is empty without a log.
    """
    from sentemb.data.click_log import ClickLog
    from sentemb.data.seen_queries import in_log
    from sentemb.data.split_description import split_warning

    if learned is None:
        warning = split_warning(Path(path)) if isinstance(judgments, ClickLog) else None
        if warning is not None:
            note(warning)
        return {}
    known = in_log(judgments.queries, learned.queries)
    counts: dict[str, Any] = {"queries": int(known.sum())}
    of_clicks = ""
    if isinstance(judgments, ClickLog):
        clicks = judgments.clicks[known[judgments.query_index]].sum() / judgments.clicks.sum()
        counts["share_of_clicks"] = float(clicks)
        of_clicks = f", with {clicks:.1%} of the clicks,"
    note(
        f"{counts['queries']:,} of {known.size:,} queries{of_clicks} are also in {log}, in this or "
        "another spelling"
    )
    return {"in_log": counts}


def _opened(name: str, cosine: bool) -> "Index | PairScorer | HybridRanker | None":
    """The ranking of the model or the index in folder ``name``; None for one of `BASELINES`."""
    from sentemb.search.index import Index
    from sentemb.search.index_files import is_index
    from sentemb.search.ranking.opening import load_best

    if name in BASELINES:
        return None
    if not is_index(Path(name)):
        return load_best(name, cosine=cosine)
    index = Index.open(name)
    return index.model_alone() if cosine else index


def catalogue_of(
    name: str, model: object, path: str, catalogue: str | None, clicks: "ClickLog"
) -> tuple[str, list[str], list[str] | None]:
    """Where the titles to rank are from, the titles, and the ids that a file has for them."""
    from sentemb.search.index import Index

    if isinstance(model, Index):
        if catalogue is not None:
            raise click.UsageError(f"{name} has titles of its own; leave --catalogue out")
        return name, list(model.titles), None
    next_to_it = Path(path).parent / _TITLES
    if catalogue is None and path != "-" and next_to_it.is_file():
        catalogue = str(next_to_it)
        note(f"the catalogue is {catalogue}")
    if catalogue is not None:
        ids, titles = read_texts(catalogue)
        return catalogue, titles, ids
    note(
        f"without --catalogue only the {len(clicks.titles):,} titles of {path} are ranked: the "
        "figures are higher than over a whole catalogue"
    )
    return path, clicks.titles, None


def _retriever(
    name: str,
    model: "Index | PairScorer | HybridRanker | None",
    titles: list[str],
    log: "ClickLog | None",
    n_queries: int,
) -> "Retriever":
    from sentemb.comparison.baselines.clicked_queries import with_clicked_queries
    from sentemb.comparison.baselines.letters import LettersOfClicks
    from sentemb.errors import SentembError
    from sentemb.evaluation.held_out import AllPairs
    from sentemb.retrieval.bm25 import TitleWords
    from sentemb.retrieval.words_and_stems import words_of
    from sentemb.search.index import Index
    from sentemb.search.ranking.ranker import HybridRanker

    if name == LETTERS:
        assert log is not None  # the command asks for it
        return LettersOfClicks(titles, log)
    if model is None:
        stems, with_clicks = LEXICAL[name]
        texts = titles if log is None or not with_clicks else with_clicked_queries(titles, log)
        return TitleWords(texts, words=words_of("english" if stems else None))
    if isinstance(model, Index):
        if list(model.titles) != titles:
            raise SentembError(
                f"{name}: an index of other titles; compare indexes of the same file, or give the "
                "index as MODEL and leave --catalogue out"
            )
        return model
    if isinstance(model, HybridRanker):
        # The first one has these titles, and has prepared them for its parts.
        return model if model.has_titles(titles) else model.over(titles)
    note_pairs(name, n_queries * len(titles))
    return AllPairs(model, titles)


def note_pairs(name: str, n_pairs: int) -> None:
    """Say that a pair model has many pairs to score, which takes a while."""
    if n_pairs > _MANY_PAIRS:
        note(f"{name}: a pair model; {n_pairs:,} pairs to score")


def _differences(evaluations: "dict[str, Evaluation]") -> "dict[str, list[Difference]]":
    """The first system minus each of the others, by metric."""
    import numpy as np

    from sentemb.evaluation.significance import compare_all

    (_, first), *rivals = evaluations.items()
    if not rivals:
        return {}
    n_metrics = len(first.metrics)
    columns = np.concatenate([(first.values - rival.values).T for _, rival in rivals])
    each = compare_all(columns, np.zeros(columns.shape[1]))
    return {name: each[k * n_metrics : (k + 1) * n_metrics] for k, (name, _) in enumerate(rivals)}


def shown(metrics: Sequence[str]) -> list[str]:
    """The names of metrics as tables have them."""
    return [name.replace("ndcg", "NDCG").replace("mrr", "MRR") for name in metrics]


def _rows(evaluations: "dict[str, Evaluation]") -> Iterator[list[str]]:
    yield ["", *shown(next(iter(evaluations.values())).metrics)]
    for name, evaluation in evaluations.items():
        yield [name, *(f"{value:.3f}" for value in evaluation.mean)]


def _difference_rows(
    name: str, metrics: Sequence[str], differences: "dict[str, list[Difference]]"
) -> Iterator[list[str]]:
    yield [f"{name} minus", *differences]
    for metric, each in zip(shown(metrics), zip(*differences.values(), strict=True), strict=True):
        yield [
            metric,
            *(
                f"{difference.mean:+.3f} ({difference.low:+.3f} to {difference.high:+.3f})"
                for difference in each
            ),
        ]


def _query_lines(evaluations: "dict[str, Evaluation]") -> Iterator[str]:
    first = next(iter(evaluations.values()))
    rows = [
        [name, *(f"{value:.3f}" for value in evaluation.values[q])]
        for q in range(len(first.queries))
        for name, evaluation in evaluations.items()
    ]
    head, *lines = aligned([["", *shown(first.metrics)], *rows])
    yield f"{head}  query"
    for number, line in enumerate(lines):
        yield f"{line}  {visible(first.queries[number // len(evaluations)])}"


def _as_dict(
    evaluations: "dict[str, Evaluation]",
    differences: "dict[str, list[Difference]]",
    titles_name: str,
    per_query: bool,
) -> dict[str, Any]:
    (name, first), *_ = evaluations.items()

    def by_metric(values: Any) -> dict[str, Any]:
        return dict(zip(first.metrics, values, strict=True))

    result: dict[str, Any] = {
        "queries": len(first.queries),
        "catalogue": titles_name,
        "titles": first.n_titles,
        "clicked_titles": first.n_clicked,
        "clicked_titles_outside": first.n_outside,
        "model": name,
        "systems": {
            name: by_metric(evaluation.mean.tolist()) for name, evaluation in evaluations.items()
        },
        "model_minus": {
            name: by_metric([vars(difference) for difference in each])
            for name, each in differences.items()
        },
    }
    if per_query:
        result["per_query"] = [
            {
                "query": query,
                "systems": {
                    name: by_metric(evaluation.values[q].tolist())
                    for name, evaluation in evaluations.items()
                },
            }
            for q, query in enumerate(first.queries)
        ]
    return result
